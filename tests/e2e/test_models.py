"""Model lists, details of one model and token counts, as clients of the running proxy get them."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.vendors import ask_vendor, listing, vendor
from rawclient import Answer, ask
from rawserver import Pairs
from stage import Case, Stage, stage
from wires import WIRES, M, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
CLAUDE_CODE: Pairs = ((b"User-Agent", b"claude-code/2.1.197"), (b"anthropic-version", b"2023-06-01"))
ANTHROPIC: Pairs = ((b"anthropic-version", b"2023-06-01"),)
CODEX_LIST = "/v1/models?client_version=0.171.0"
NATIVE_ALIAS = {"alias": "gpt-5.6-sol", "nativeAlias": True, "displayName": "Nova1 - sol"}
OPENAI = {
    "openai": {
        "adapter": "openai-responses",
        "baseUrl": "https://api.openai.com/v1",
        "apiKey": "k",
        "liveModels": False,
        "models": ["gpt-5.5", "gpt-5.6-sol"],
    }
}
QUIET = {name: {"liveModels": False} for name in ("alpha", "beta")}


def case(wire: Wire = R, **fields: Any) -> Case:
    """A combo whose providers are never asked for their lists."""
    return Case(wire, providers=QUIET, **{"alpha": DOWN, "beta": wire.answers("beta-ok"), **fields})


async def listed(on: Stage, path: str = "/v1/models", headers: Pairs = ()) -> Any:
    answer = await ask(on.port, "GET", path, headers=headers)
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    return answer.json()


def ids(document: Mapping[str, Any]) -> list[str]:
    rows = document.get("models") or document.get("data") or []
    return [row.get("slug") or row["id"] for row in rows]


# -- the proxy's own address


async def test_three_shapes_on_the_own_address(confdir: Path) -> None:
    plain, aliased = case(), case(combo={"alias": "team/fast", "displayName": "Fast one"})
    async with stage(confdir, plain, aliased) as on:
        openai = await listed(on)
        assert openai["object"] == "list"
        assert sorted(ids(openai)) == sorted([plain.model, "team/fast"])
        assert all(row["is_combo"] and row["owned_by"] == "openai" for row in openai["data"])

        codex = await listed(on, CODEX_LIST)
        assert sorted(ids(codex)) == sorted([plain.model, "team/fast"])
        named = {row["slug"]: row["display_name"] for row in codex["models"]}
        assert named["team/fast"] == "Fast one"

        claude = await listed(on, "/v1/models?limit=1000", CLAUDE_CODE)
        assert sorted(ids(claude)) == sorted(f"claude-ocx-combo--{one.id}" for one in (plain, aliased))
        assert claude["has_more"] is False

        sdk = await listed(on, "/v1/models", ANTHROPIC)
        assert sorted(ids(sdk)) == sorted([plain.model, "team/fast"])
        assert plain.calls == aliased.calls == []


@pytest.mark.parametrize("path", ["/v1/models", "/models", "/prefix/v1/models", "/v1/models/"])
async def test_the_list_is_at_every_path_of_that_name(confdir: Path, path: str) -> None:
    one = case()
    async with stage(confdir, one) as on:
        assert ids(await listed(on, path)) == [one.model]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_name_that_claude_code_was_shown_leads_to_its_combo(confdir: Path, wire: Wire) -> None:
    one = case(wire)
    async with stage(confdir, one) as on:
        answer = await on.ask(one, model=f"claude-ocx-combo--{one.id}")
        assert (answer.status, one.calls) == (200, ["alpha", "beta"])
        unknown = await on.ask(one, model="claude-ocx-combo--none")
        assert (unknown.status, "Unknown combo: none" in unknown.body.decode()) == (404, True)


async def test_disabled_models_are_hidden_and_served(confdir: Path) -> None:
    hidden, shown = case(), case()
    async with stage(confdir, hidden, shown) as on:
        on.service.config.adopt({**json.loads(on.service.config.path.read_text()), "disabledModels": [hidden.model]})
        for path, headers in (("/v1/models", ()), (CODEX_LIST, ()), ("/v1/models", CLAUDE_CODE)):
            assert not any(hidden.id in name for name in ids(await listed(on, path, headers)))
        assert (await on.ask(hidden)).status == 200


async def test_native_rows_and_native_aliases(confdir: Path) -> None:
    one = case()
    async with stage(confdir, one, document={"providers": OPENAI, "disabledModels": ["gpt-5.5"]}) as on:
        document = json.loads(on.service.config.path.read_text())
        rows = {row["slug"]: row for row in (await listed(on, CODEX_LIST))["models"]}
        assert rows["gpt-5.5"]["visibility"] == "hide"
        assert rows["gpt-5.6-sol"].get("opencodex_catalog_kind") is None
        assert "gpt-5.5" not in ids(await listed(on))

        # With a native alias, hidden native rows are left out, and the slug has one row: the combo's.
        document["combos"][one.id] |= NATIVE_ALIAS
        on.service.config.adopt(document)
        codex = await listed(on, CODEX_LIST)
        assert "gpt-5.5" not in ids(codex)
        assert ids(codex).count("gpt-5.6-sol") == ids(await listed(on)).count("gpt-5.6-sol") == 1
        (row,) = [row for row in codex["models"] if row["slug"] == "gpt-5.6-sol"]
        assert (row["display_name"], row["opencodex_catalog_kind"]) == ("Nova1 - sol", "combo-native-alias-v1")

        # The bare name is the combo's, with or without the vendor's host; `combo/<id>` hides it and it routes still.
        assert (await on.ask(one, model="gpt-5.6-sol")).status == 200
        on.service.config.adopt({**document, "disabledModels": [one.model]})
        assert "gpt-5.6-sol" not in ids(await listed(on, CODEX_LIST))
        assert (await on.ask(one, model="gpt-5.6-sol")).status == 200

        # Without the combo the native row is back.
        del document["combos"][one.id]
        on.service.config.adopt(document)
        rows = {row["slug"]: row for row in (await listed(on, CODEX_LIST))["models"]}
        assert "opencodex_catalog_kind" not in rows["gpt-5.6-sol"]


# -- intercepted hosts

CODEX_ROW = {
    "slug": "gpt-5.5",
    "display_name": "GPT-5.5",
    "priority": 3,
    "base_instructions": "Be an agent.",
    "unknown": {"kept": 12345678901234567890123},
}


def texts_of(rows: list[Any]) -> list[bytes]:
    return [json.dumps(row, indent=1).encode() for row in rows]


@pytest.mark.parametrize(
    ("host", "path", "headers", "key", "row"),
    [
        ("api.openai.com", "/v1/models", (), "data", {"id": "gpt-5.5", "object": "model", "x": 1.10}),
        ("chatgpt.com", "/backend-api/codex/models?client_version=1", (), "models", CODEX_ROW),
        ("api.anthropic.com", "/v1/models", ANTHROPIC, "data", {"id": "claude-opus-4-8", "type": "model"}),
    ],
)
@pytest.mark.parametrize("coding", [None, "gzip"])
async def test_combos_join_a_vendors_list(
    confdir: Path, host: str, path: str, headers: Pairs, key: str, row: Any, coding: str | None
) -> None:
    text = json.dumps(row, indent=1).encode()
    body = b'{ "first": 1.10,\n "%s" : [%s],  "has_more": false }' % (key.encode(), text)
    sent = gzip.compress(body) if coding else body
    more: Pairs = ((b"ETag", b'W/"abc"'), *(((b"Content-Encoding", b"gzip"),) if coding else ()))
    one = case()
    async with (
        vendor(listing(None, more, raw=sent)) as (server, redirect),
        stage(confdir, one, addons=[redirect]) as on,
    ):
        answer = await ask_vendor(on.port, "GET", host, path, headers=headers)
        assert (answer.status, answer.header("etag"), answer.header("content-encoding")) == (200, 'W/"abc"', None)
        assert answer.header("content-length") == str(len(answer.body))
        # The vendor's bytes are all there, around and in its row.
        start, end = body.split(text)
        assert answer.body.startswith(start.rstrip(b"[") + b"[" + text)
        assert answer.body.endswith(end)
        assert ids(answer.json()) == [row.get("slug") or row["id"], one.model]
        assert redirect.hosts == [host]
        assert server.requests[0].target == path


async def test_a_gzipped_list_that_nothing_is_added_to_stays_as_it_is(confdir: Path) -> None:
    sent = gzip.compress(b'{"models": []}')
    one = case()
    async with (
        vendor(listing(None, ((b"Content-Encoding", b"gzip"),), raw=sent)) as (_, redirect),
        stage(confdir, one, addons=[redirect]) as on,
    ):
        # Codex shows its built-in list instead of an empty one: a list of combos alone would take that away.
        answer = await ask_vendor(on.port, "GET", "chatgpt.com", "/backend-api/codex/models?client_version=1")
        assert (answer.header("content-encoding"), answer.body) == ("gzip", sent)


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"no json"), (200, b'{"data": {}}'), (200, b'{"data": [7]}'), (404, b'{"data": []}'), (500, b"")],
)
async def test_what_is_no_list_passes_unchanged(confdir: Path, status: int, body: bytes) -> None:
    made = listing(body).replace(b"200 OK", b"%d Status" % status)
    async with vendor(made) as (_, redirect), stage(confdir, case(), addons=[redirect]) as on:
        answer = await ask_vendor(on.port, "GET", "api.openai.com", "/v1/models")
        assert (answer.status, answer.body) == (status, body)


async def test_lists_of_hosts_that_are_no_vendors_pass_unchanged(confdir: Path) -> None:
    body = b'{"object":"list","data":[{"id":"x","object":"model"}]}'
    async with vendor(listing(body)) as (_, redirect), stage(confdir, case(), addons=[redirect]) as on:
        assert (await ask_vendor(on.port, "GET", "registry.test", "/v1/models")).body == body


async def test_a_native_alias_replaces_the_vendors_row(confdir: Path) -> None:
    one = case(combo=NATIVE_ALIAS)
    rows = [{**CODEX_ROW, "slug": "gpt-5.6-sol", "priority": 7}, CODEX_ROW]
    async with (
        vendor(listing({"models": rows})) as (_, redirect),
        stage(confdir, one, addons=[redirect], document={"disabledModels": ["gpt-5.5"]}) as on,
    ):
        answer = await ask_vendor(on.port, "GET", "chatgpt.com", "/backend-api/codex/models?client_version=1")
        (row,) = answer.json()["models"]
        assert (row["slug"], row["display_name"], row["priority"]) == ("gpt-5.6-sol", "Nova1 - sol", 7)


async def test_a_disabled_native_row_is_marked_and_kept(confdir: Path) -> None:
    async with (
        vendor(listing({"models": [CODEX_ROW]})) as (_, redirect),
        stage(confdir, case(), addons=[redirect], document={"disabledModels": ["gpt-5.5"]}) as on,
    ):
        answer = await ask_vendor(on.port, "GET", "chatgpt.com", "/backend-api/codex/models?client_version=1")
        assert answer.json()["models"][0] == {**CODEX_ROW, "visibility": "hide"}


async def test_a_list_made_here_is_merged_with_nothing(confdir: Path) -> None:
    """The stub providers are on this machine, as the proxy is: its own list is no list of theirs."""
    one = case(M)
    async with stage(confdir, one) as on:
        assert ids(await listed(on, "/v1/models", CLAUDE_CODE)) == [f"claude-ocx-combo--{one.id}"]


# -- details of one model

DETAILS = error(200, {"id": "m2", "object": "model", "owned_by": "beta"}, ((b"openai-model", b"m2"),))


async def details(on: Stage, model: str, headers: Pairs = ()) -> Answer:
    return await ask(on.port, "GET", f"/v1/models/{model}", headers=headers)


@pytest.mark.parametrize("name", ["canonical", "alias", "encoded", "claude"])
async def test_details_come_from_the_target_that_would_be_asked(confdir: Path, name: str) -> None:
    one = case(combo={"alias": "team/one"}, alpha=[DOWN, DOWN], beta=DETAILS)
    async with stage(confdir, one) as on:
        await on.ask(one)  # alpha is cooling now
        one.calls.clear()
        names = {"canonical": one.model, "alias": "team/one", "encoded": f"combo%2F{one.id}"}
        answer = await details(
            on, names.get(name, f"claude-ocx-combo--{one.id}"), ((b"Authorization", b"Bearer mine"),)
        )
        assert (answer.status, answer.json()["id"], one.calls) == (200, "m2", ["beta"])
        request = one.requests[-1]
        assert (request.method, request.target) == ("GET", f"/{one.id}/beta/v1/models/m2")
        assert request.all("authorization") == ["Bearer beta-key"]
        assert answer.header("openai-model") in (None, "m2")


async def test_a_model_id_with_slashes_is_asked_for_as_it_is(confdir: Path) -> None:
    one = case(targets=["alpha/org/m1:free"], alpha=DETAILS)
    async with stage(confdir, one) as on:
        assert (await details(on, one.model)).status == 200
        assert (await details(on, f"{one.provider('alpha')}/org/m1:free")).status == 200
        assert [request.target for request in one.requests] == [f"/{one.id}/alpha/v1/models/org/m1:free"] * 2


@pytest.mark.parametrize("way", ["../../files", "..%2f..%2ffiles", "m/%2e%2e/x", "..--fast", ".."])
async def test_details_are_not_a_way_to_other_addresses_of_a_provider(confdir: Path, way: str) -> None:
    one = case(alpha=DETAILS)
    async with stage(confdir, one) as on:
        for name in (f"{one.provider('alpha')}/{way}", f"claude-ocx-{one.provider('alpha')}--{way}"):
            answer = await details(on, name)
            assert (answer.status, answer.json()["error"]["code"]) == (404, "model_not_found")
        assert one.requests == []


async def test_details_neither_hop_nor_cool(confdir: Path) -> None:
    one = case(alpha=error(404, {"error": {"message": "no such model"}}))
    async with stage(confdir, one) as on:
        answer = await details(on, one.model)
        assert (answer.status, answer.json()["error"]["message"]) == (404, "no such model")
        assert (one.calls, on.cooling(one)) == (["alpha"], {})


async def test_details_of_what_is_unknown_or_cooling(confdir: Path) -> None:
    one = case(beta=DOWN)
    async with stage(confdir, one) as on:
        unknown = await details(on, "combo/none")
        assert (unknown.status, unknown.json()["error"]["message"]) == (404, "Unknown combo: none")
        bare = await details(on, "nothing-at-all")
        assert (bare.status, bare.json()["error"]["code"]) == (404, "model_not_found")
        anthropic = await details(on, "combo/none", ANTHROPIC)
        assert anthropic.json()["error"]["type"] == "not_found_error"
        await on.ask(one)
        one.calls.clear()
        cooling = await details(on, one.model)
        assert (cooling.status, cooling.header("retry-after")) == (503, "60")
        assert cooling.json()["error"]["code"] == "combo_unavailable"
        assert one.calls == []


async def test_details_on_a_vendors_host(confdir: Path) -> None:
    one = case(alpha=DETAILS)
    async with vendor(listing({"from": "vendor"})) as (_, redirect), stage(confdir, one, addons=[redirect]) as on:
        ours = await ask_vendor(on.port, "GET", "api.openai.com", f"/v1/models/{one.model}")
        assert ours.json()["id"] == "m2"
        # Other services have such paths, too: a name that happens to be that of a provider is not ours there.
        for path in ("/v1/models/gpt-5.5", f"/api/models/{one.provider('alpha')}/org-model"):
            assert (await ask_vendor(on.port, "GET", "hub.test", path)).json() == {"from": "vendor"}
        assert one.calls == ["alpha"]


async def test_details_larger_than_any_model_are_not_cut(confdir: Path) -> None:
    one = case(alpha=error(200, {"id": "x" * 5_000_000}))
    async with stage(confdir, one) as on:
        answer = await details(on, one.model)
        assert (answer.status, "larger than" in answer.json()["error"]["message"]) == (502, True)


# -- token counts


def counting(**fields: Any) -> Case:
    return case(M, **fields)


async def count(on: Stage, one: Case, model: str | None = None) -> Answer:
    body = {"model": model or one.model, "messages": [{"role": "user", "content": "hi"}]}
    headers = [(b"Content-Type", b"application/json"), (b"x-api-key", b"mine"), *ANTHROPIC]
    raw = json.dumps(body).encode()
    return await ask(on.port, "POST", "/v1/messages/count_tokens?beta=true", headers=headers, body=raw)


async def test_tokens_are_counted_by_the_target_that_would_be_asked(confdir: Path) -> None:
    one = counting(beta=[M.answers("beta-ok"), error(200, {"input_tokens": 17})])
    async with stage(confdir, one) as on:
        await on.ask(one)
        answer = await count(on, one)
        assert (answer.status, answer.json()) == (200, {"input_tokens": 17})
        assert one.calls == ["alpha", "beta", "beta"]
        request = one.requests[-1]
        assert request.target == f"/{one.id}/beta/v1/messages/count_tokens?beta=true"
        assert json.loads(request.body)["model"] == "m2"
        assert request.header("x-api-key") == "beta-key"


@pytest.mark.parametrize("status", [404, 429, 500, 503])
async def test_a_count_neither_hops_nor_cools(confdir: Path, status: int) -> None:
    refusal = {"type": "error", "error": {"type": "api_error", "message": "no"}}
    one = counting(alpha=error(status, refusal, ((b"Retry-After", b"30"),)))
    async with stage(confdir, one) as on:
        answer = await count(on, one)
        assert (answer.status, answer.json(), answer.header("retry-after")) == (status, refusal, "30")
        assert (one.calls, on.cooling(one)) == (["alpha"], {})


async def test_counts_do_not_move_a_rotation(confdir: Path) -> None:
    whole = error(200, {"input_tokens": 1})
    one = counting(combo={"strategy": "round-robin"}, alpha=[whole, whole, M.answers("a")], beta=M.answers("b"))
    async with stage(confdir, one) as on:
        await count(on, one)
        await count(on, one)
        await on.ask(one)
        await on.ask(one)
        assert one.calls == ["alpha", "alpha", "alpha", "beta"]


async def test_a_count_for_a_cooling_or_unknown_combo(confdir: Path) -> None:
    one = counting(beta=DOWN)
    async with stage(confdir, one) as on:
        await on.ask(one)
        one.calls.clear()
        answer = await count(on, one)
        assert (answer.status, answer.header("retry-after"), one.calls) == (503, "60", [])
        assert (await count(on, one, "combo/none")).status == 404


async def test_a_list_can_be_looked_for_without_its_body(confdir: Path) -> None:
    async with stage(confdir, case()) as on:
        answer = await ask(on.port, "HEAD", "/v1/models")
        assert (answer.status, answer.body) == (200, b"")
