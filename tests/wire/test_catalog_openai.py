"""The OpenAI shape: exact rows, fields that vanish, marked defaults, fast siblings."""

from typing import Any

import pytest

from catalogs import NATIVE_ALIAS, catalog, discovered, provider, row, targets
from combos.wire.catalog_openai import openai_document, openai_row, openai_rows

UP = provider(
    contextWindow=150_000,
    modelMaxOutputTokens={"m": 8_000},
    reasoningEfforts=["low", "high"],
    modelInputModalities={"m": ["text", "image"]},
)


def one(**combo: Any) -> dict[str, Any]:
    found = catalog(
        {"providers": {"up": UP, "bare": provider()}, "combos": {"c": {"targets": targets("up/m"), **combo}}}
    )
    return openai_row(found.combos[0])


def test_a_combo_row_in_full() -> None:
    assert one(alias="team/fast", defaultEffort="high", displayName="Shown elsewhere") == {
        "id": "team/fast",
        "object": "model",
        "created": 0,
        "owned_by": "openai",
        "is_combo": True,
        "supports_reasoning_effort": True,
        "reasoning_effort": "high",
        "reasoning_efforts": [
            {"value": "low", "label": "Low Effort"},
            {"value": "high", "label": "High Effort", "default": True},
        ],
        "api_types": ["chat_completions", "responses", "anthropic_messages"],
        "capabilities": {
            "context_length": 150_000,
            "max_output_tokens": 8_000,
            "output_modalities": ["text"],
            "input_modalities": ["text", "image"],
            "supports_tool_use": True,
            "supports_streaming": True,
            "supports_reasoning": True,
            "supports_vision": True,
            "reasoning_effort": ["low", "high"],
        },
        "context_window": 150_000,
        "context_length": 150_000,
        "max_output_tokens": 8_000,
    }


def test_what_is_not_known_is_left_out() -> None:
    made = one(targets=targets("bare/m"))
    assert made["id"] == "combo/c"
    assert not {"supports_reasoning_effort", "reasoning_effort", "reasoning_efforts", "max_output_tokens"} & made.keys()
    assert "max_output_tokens" not in made["capabilities"]
    assert made["capabilities"]["reasoning_effort"] == []
    assert (made["capabilities"]["supports_reasoning"], made["capabilities"]["supports_vision"]) == (False, False)


@pytest.mark.parametrize(
    ("ladder", "configured", "marked"),
    [
        (["low", "medium", "high"], None, "medium"),
        (["low", "high"], None, "high"),
        (["low", "xhigh"], None, "low"),
        (["low", "xhigh"], "max", "xhigh"),
    ],
)
def test_the_marked_default(ladder: list[str], configured: str | None, marked: str) -> None:
    found = catalog(
        {
            "providers": {"up": provider(reasoningEfforts=ladder)},
            "combos": {"c": {"targets": targets("up/m"), "defaultEffort": configured}},
        }
    )
    made = openai_row(found.combos[0])
    assert made["reasoning_effort"] == marked
    assert [word["value"] for word in made["reasoning_efforts"] if word.get("default")] == [marked]  # type: ignore[attr-defined]


def test_rows_of_providers_and_of_native_aliases() -> None:
    found = catalog(
        {
            "providers": {"up": provider(models=["m"])},
            "combos": {"sol": {**NATIVE_ALIAS, "targets": targets("up/m")}},
        }
    )
    routed, native = openai_row(row(found, "up/m")), openai_row(row(found, "gpt-5.6-sol"))
    assert (routed["owned_by"], "is_combo" in routed) == ("up", False)
    assert (native["owned_by"], native["is_combo"]) == ("openai", True)


def test_a_model_with_a_priority_tier_has_a_second_name() -> None:
    doc = {
        "providers": {"up": provider(liveModels=True)},
        "combos": {"a": {"targets": targets("up/m")}, "b": {"alias": "x", "targets": targets("up/slow")}},
    }
    found = catalog(doc, {"up": [discovered("m", fast=True)]})
    names = [made["id"] for made in openai_rows(found.combos, fast_rows=True)]
    assert names == ["combo/a", "combo/a--fast", "x"]
    assert [made["id"] for made in openai_rows(found.combos, fast_rows=False)] == ["combo/a", "x"]


def test_a_second_name_that_is_taken_is_not_given() -> None:
    doc = {
        "providers": {"up": provider()},
        "combos": {
            "a": {"alias": "x", "targets": targets("up/m")},
            "b": {"alias": "x--fast", "targets": targets("up/slow")},
        },
    }
    found = catalog(doc, {"up": [discovered("m", fast=True)]})
    assert [made["id"] for made in openai_rows(found.combos, fast_rows=True)] == ["x", "x--fast"]


def test_document() -> None:
    assert openai_document([], fast_rows=True) == {"object": "list", "data": []}
