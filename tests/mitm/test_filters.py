"""The filters that the documentation names find what it says they find."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from mitmproxy import flowfilter

from stage import Case, stage
from wires import R, error

PAGE = (Path(__file__).parents[2] / "docs" / "mitmproxy.md").read_text()
DOCUMENTED = re.findall(r"^\| `(~[^`]+)` \|", PAGE, re.MULTILINE)
EXPECTED: Mapping[str, set[str]] = {
    "~marker :repeat:": {"client"},
    "~comment alpha": {"client", "first"},
    "~meta main": {"client"},
    "~meta client_flow": {"first", "second"},
    "~meta status-retryable": {"client"},
}


def test_every_documented_filter_is_tried() -> None:
    assert set(DOCUMENTED) == set(EXPECTED)


@pytest.mark.parametrize("expression", EXPECTED)
async def test_filters(confdir: Path, expression: str) -> None:
    hopped, plain = Case(R, alpha=error(503, {}), beta=R.answers("ok")), Case(R, gamma=R.answers("ok"))
    async with stage(confdir, hopped, plain) as on:
        await on.ask(hopped)
        await on.ask(plain)
        ours = [flow for flow in on.flows if "combos" in flow.metadata]
        clients = {flow.metadata["combos"]["combo"]: flow for flow in ours if "combo" in flow.metadata["combos"]}
        named = {str(flow.metadata["combos"].get("attempt", "client")): flow for flow in ours}
        named |= {"client": clients[hopped.id], "first": named["1"], "second": named["2"], "other": clients[plain.id]}
        matches = flowfilter.parse(expression.replace("main", hopped.id))
        found = {name for name in ("client", "first", "second", "other") if matches(named[name])}
        # Targets of a stage carry the id of their combo, which a real configuration's do not.
        attempts = {"first", "second"} if expression == "~meta main" else set()
        assert found - attempts == EXPECTED[expression]
