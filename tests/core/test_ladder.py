"""Rungs, the nearest supported rung, per-model lookup, and the ladder of a target."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config import Config
from combos.core.ladder import RUNGS, for_model, is_chatgpt_backend, is_rung, ladder_of, resolve_at_or_below
from configs import config, with_provider

CHATGPT = {"adapter": "openai-responses", "authMode": "forward", "baseUrl": "https://chatgpt.com/backend-api/codex"}


@pytest.mark.parametrize(
    ("want", "supported", "expected"),
    [
        ("max", ["low", "high"], "high"),
        ("low", ["high", "max"], "high"),
        ("medium", ["none", "high"], "high"),
        ("ultra", ["none", "minimal"], None),
        ("high", [], None),
        ("high", ["low", "high", "max"], "high"),
        ("high", ["max", "low"], "low"),
        ("none", ["none", "low"], None),
        ("minimal", ["low"], None),
        ("nonsense", ["low"], None),
    ],
)
def test_resolve_at_or_below(want: str, supported: list[str], expected: str | None) -> None:
    assert resolve_at_or_below(want, supported) == expected


@given(st.sampled_from(RUNGS), st.sets(st.sampled_from(RUNGS), min_size=1))
def test_the_nearest_rung_is_supported_and_not_above_without_need(want: str, supported: set[str]) -> None:
    chosen = resolve_at_or_below(want, supported)
    assert chosen in supported
    rank = RUNGS.index
    below = {rung for rung in supported if rank(rung) <= rank(want)}
    assert chosen == (max(below, key=rank) if below else min(supported, key=rank))


@pytest.mark.parametrize(("value", "expected"), [("low", True), ("ultra", True), ("none", False), (None, False)])
def test_is_rung(value: object, expected: bool) -> None:
    assert is_rung(value) is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("qwen3:4b", "exact"),
        ("qwen3:8b", "base"),
        ("qwen3", "base"),
        ("QWEN3:4B", "exact"),
        ("Qwen3:8b", "base"),
        ("gpt", "folded"),
        ("other", None),
    ],
)
def test_for_model(model: str, expected: str | None) -> None:
    assert for_model({"qwen3:4b": "exact", "qwen3": "base", "GPT": "folded"}, model) == expected


def test_for_model_prefers_exact_case() -> None:
    assert for_model({"GPT": "upper", "gpt": "lower"}, "gpt") == "lower"


@pytest.mark.parametrize(
    ("fields", "model", "expected"),
    [
        ({}, "m", None),
        ({"reasoningEfforts": ["high", "low", "low"]}, "m", ("low", "high")),
        ({"reasoningEfforts": ["minimal", "none", "ultra"]}, "m", ("none", "minimal", "ultra")),
        ({"reasoningEfforts": []}, "m", ()),
        ({"reasoningEfforts": ["enabled"]}, "m", None),
        ({"reasoningEfforts": ["enabled", "low"]}, "m", ("low",)),
        ({"reasoningEfforts": ["low"], "modelReasoningEfforts": {"m": ["max"]}}, "m", ("max",)),
        ({"reasoningEfforts": ["low"], "modelReasoningEfforts": {"m": []}}, "m:4b", ()),
        ({"reasoningEfforts": ["low"], "modelReasoningEfforts": {"M": ["max"]}}, "m:4b", ("max",)),
        ({"reasoningEfforts": ["low"], "modelReasoningEfforts": {"n": ["max"]}}, "m", ("low",)),
        ({"reasoningEfforts": ["low"], "noReasoningModels": ["m"]}, "m", ()),
        ({"reasoningEfforts": ["low"], "noReasoningModels": ["n"]}, "m", ("low",)),
        ({"reasoningEfforts": ["low"], "reasoningEffortMap": {"ultra": "max"}}, "m", ("low", "max")),
        ({"reasoningEfforts": ["low"], "modelReasoningEffortMap": {"m": {"max": "xhigh"}}}, "m", ("low", "xhigh")),
        ({"reasoningEfforts": ["low"], "reasoningEffortMap": {"max": "__omit__"}}, "m", ("low",)),
        ({"reasoningEfforts": [], "reasoningEffortMap": {"ultra": "max"}}, "m", ()),
        (CHATGPT, "gpt-5.5", ("low", "medium", "high", "xhigh")),
        (CHATGPT, "gpt-5.6-luna", ("low", "medium", "high", "xhigh", "max")),
        (CHATGPT, "unknown", None),
        ({**CHATGPT, "modelReasoningEfforts": {"gpt-5.5": ["low"]}}, "gpt-5.5", ("low",)),
        ({**CHATGPT, "authMode": "key"}, "gpt-5.5", None),
    ],
)
def test_ladder_of(fields: dict[str, Any], model: str, expected: tuple[str, ...] | None) -> None:
    assert ladder_of(_provider(fields), model) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"baseUrl": "https://chatgpt.com/backend-api/codex//"}, True),
        ({"baseUrl": "https://chatgpt.com.evil.example/backend-api/codex"}, False),
        ({"baseUrl": "https://chatgpt.com/backend-api"}, False),
        ({"baseUrl": "http://chatgpt.com/backend-api/codex"}, False),
        ({"authMode": "key"}, False),
        ({"adapter": "openai-chat", "authMode": "key"}, False),
        ({"disabled": True}, False),
    ],
)
def test_canonical_chatgpt_route(fields: dict[str, Any], expected: bool) -> None:
    assert is_chatgpt_backend(_provider({**CHATGPT, **fields})) is expected


def _provider(fields: dict[str, Any]) -> Any:
    made: Config = config(with_provider(**fields))
    return made.providers["alpha"]
