"""Claude Code's billing line: for its own vendor only."""

import json
from typing import Any

import pytest

from combos.core.config import parse_config
from combos.core.registry import Provider
from combos.engine.billing_header import without_billing_header
from combos.wire.request import request_facts

BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.123; cch=0a1b2;"}
PROMPT = {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}, "n": 2**70}


def change(system: object, base_url: str = "https://gateway.example", path: str = "/v1/messages") -> Any:
    facts = request_facts(path, json.dumps({"model": "combo/main", "system": system}).encode())
    row = {"adapter": "anthropic", "baseUrl": base_url, "apiKey": "k"}
    provider = Provider("up", parse_config({"providers": {"up": row}}).providers["up"])
    return without_billing_header(facts, provider)


@pytest.mark.parametrize(
    "base", ["https://api.anthropic.com", "https://api.anthropic.com/v1", "https://API.anthropic.com"]
)
def test_it_stays_towards_its_vendor(base: str) -> None:
    assert change([BILLING, PROMPT], base) == {}


@pytest.mark.parametrize("base", ["https://gateway.example", "https://api.anthropic.com.evil.example"])
def test_it_goes_when_the_request_leaves_its_vendor(base: str) -> None:
    assert change([BILLING, PROMPT], base) == {("system",): [PROMPT]}
    assert change([BILLING], base) == {("system",): None}


@pytest.mark.parametrize(
    "system",
    [
        "x-anthropic-billing-header: in a plain string is the user's own",
        [PROMPT],
        [{"type": "text", "text": "about the x-anthropic-billing-header"}],
        [7, {"type": "text", "text": None, "x-anthropic-billing-header": 1}],
        None,
    ],
)
def test_everything_else_stays(system: object) -> None:
    assert change(system) == {}


def test_other_dialects_have_no_such_line() -> None:
    assert change([BILLING], path="/v1/chat/completions") == {}
