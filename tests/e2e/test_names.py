"""Which names lead to a combo, compared exactly, and which are left to the vendor."""

from pathlib import Path

import pytest

from e2e.vendors import ask_vendor, listing, vendor
from stage import Case, stage
from wires import WIRES, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
NATIVE_ALIAS = {"alias": "gpt-5.6-sol", "nativeAlias": True, "displayName": "Nova1 - sol"}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_names_are_exact(confdir: Path, wire: Wire) -> None:
    one = Case(wire, alpha=DOWN, beta=wire.answers("beta-ok"), combo={"alias": "daily"})
    async with stage(confdir, one) as on:
        unknown = await on.ask(one, model=one.model.upper().replace("COMBO", "combo"))
        message = unknown.json()["error"]["message"]
        assert (unknown.status, message) == (404, f"Unknown combo: {one.id.upper()}")
        kind = {"M": "not_found_error"}.get(wire.name, "invalid_request_error")
        assert unknown.json()["error"]["type"] == kind
        for model in (one.model, "daily"):
            assert (await on.ask(one, model=model)).status == 200
        assert one.calls == ["alpha", "beta", "beta"]


async def test_names_outside_the_namespace_are_not_ours(confdir: Path) -> None:
    one = Case(R, alpha=DOWN, beta=R.answers("beta-ok"), combo=NATIVE_ALIAS)
    async with vendor(listing({"from": "vendor"})) as (_, redirect), stage(confdir, one, addons=[redirect]) as on:
        for model in (
            f"Combo/{one.id}",
            f" {one.model}",
            "main/gpt-5.6-sol",
            "openai-apikey/gpt-5.6-sol",
            "GPT-5.6-sol",
        ):
            answer = await ask_vendor(on.port, "POST", "api.openai.com", "/v1/responses", body=R.request(model))
            assert answer.json() == {"from": "vendor"}
        assert one.calls == []
        bare = await ask_vendor(on.port, "POST", "api.openai.com", "/v1/responses", body=R.request("gpt-5.6-sol"))
        assert (bare.status, one.calls) == (200, ["alpha", "beta"])
