"""Providers' model lists: the forms they come in, the fields of the vendors, and values that are no values."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.catalog_member import Capabilities, DiscoveredModel
from combos.wire.model_list import ROWS_MAX, ModelListError, parse_model_list

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "data", "capabilities", "effort", "supported", "context_window", "input_modalities"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


def parse(document: object) -> tuple[DiscoveredModel, ...]:
    return parse_model_list(orjson.dumps(document))


def known(**row: Any) -> Capabilities:
    (only,) = parse([{"id": "m", **row}])
    return only.capabilities


@pytest.mark.parametrize(
    "document",
    [
        {"object": "list", "data": [{"id": "a"}, {"id": "b"}]},
        {"models": [{"slug": "a"}, {"slug": "b"}]},
        [{"id": "a"}, {"id": "b"}],
        ["a", "b"],
        {"models": [{"name": "models/a"}, {"name": "models/b"}]},
        {"models": [{"name": "a", "model": "a"}, {"name": "b"}]},
        {"data": [{"id": "a"}, {"id": "a", "context_window": 5}, {"id": "b"}, {"id": ""}, {"id": 7}, 7, None, {}]},
    ],
)
def test_forms(document: object) -> None:
    assert [row.id for row in parse(document)] == ["a", "b"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b"{}", b'{"data":{}}', b'{"error":{"message":"no"}}'])
def test_no_list(body: bytes) -> None:
    with pytest.raises(ModelListError):
        parse_model_list(body)


def test_an_empty_list_is_a_list() -> None:
    assert parse({"data": []}) == ()


def test_an_anthropic_row() -> None:
    yes, no = {"supported": True}, {"supported": False}
    (row,) = parse(
        {
            "data": [
                {
                    "type": "model",
                    "id": "claude-opus-4-8",
                    "display_name": "Claude Opus 4.8",
                    "max_input_tokens": 200_000,
                    "max_tokens": 64_000,
                    "capabilities": {
                        "image_input": yes,
                        "effort": {"supported": True, "low": yes, "medium": yes, "high": yes, "max": no},
                    },
                }
            ]
        }
    )
    assert row == DiscoveredModel(
        "claude-opus-4-8",
        "Claude Opus 4.8",
        Capabilities(
            context=200_000,
            max_input=200_000,
            max_output=64_000,
            modalities=("text", "image"),
            ladder=("low", "medium", "high"),
        ),
    )


def test_a_gateway_row() -> None:
    assert known(
        context_length=1_000,
        architecture={"input_modalities": ["image", "text", "hologram"]},
        top_provider={"context_length": 900, "max_completion_tokens": 100},
        supported_parameters=["tools", "parallel_tool_calls"],
    ) == Capabilities(context=1_000, max_output=100, modalities=("image", "text"), parallel_tools=True)


def test_a_codex_row() -> None:
    assert known(
        context_window=272_000,
        auto_compact_token_limit=200_000,
        supported_reasoning_levels=[{"effort": "high"}, {"effort": "low"}, {"effort": "cosmic"}],
        supports_parallel_tool_calls=False,
        supports_reasoning_summaries=True,
        support_verbosity=False,
        additional_speed_tiers=["fast"],
    ) == Capabilities(
        context=272_000,
        auto_compact=200_000,
        ladder=("low", "high"),
        parallel_tools=False,
        summaries=True,
        verbosity=False,
        fast=True,
    )


def test_google_rows_that_cannot_answer_are_left_out() -> None:
    rows = parse(
        {
            "models": [
                {"name": "models/embedding-1", "supportedGenerationMethods": ["embedContent"]},
                {
                    "name": "models/gemini-3-pro",
                    "displayName": "Gemini 3 Pro",
                    "inputTokenLimit": 1_048_576,
                    "outputTokenLimit": 65_536,
                    "supportedGenerationMethods": ["generateContent", "countTokens"],
                },
            ]
        }
    )
    capabilities = Capabilities(context=1_048_576, max_input=1_048_576, max_output=65_536)
    assert rows == (DiscoveredModel("gemini-3-pro", "Gemini 3 Pro", capabilities),)


@pytest.mark.parametrize(
    ("row", "ladder"),
    [
        ({"supported_reasoning_levels": []}, ()),
        ({"supported_reasoning_levels": ["enabled"]}, None),
        ({"reasoning_efforts": []}, None),
        ({"reasoning_efforts": [{"value": "low"}, "max", "none"]}, ("none", "low", "max")),
        ({"capabilities": {"reasoning_effort": ["high"]}}, ("high",)),
        ({"capabilities": {"effort": {"supported": False, "low": {"supported": True}}}}, ()),
        ({"capabilities": {"effort": {}}}, None),
        ({}, None),
    ],
)
def test_ladders(row: dict[str, Any], ladder: tuple[str, ...] | None) -> None:
    assert known(**row).ladder == ladder


@pytest.mark.parametrize("value", [0, -5, True, 1.5, "200000", None, 10**12, [5]])
def test_a_window_that_is_no_window(value: object) -> None:
    assert known(context_window=value).context is None
    assert known(context_window=value, context_length=77).context == 77


def test_max_tokens_of_other_vendors_is_not_the_longest_answer() -> None:
    assert known(max_tokens=5).max_output is None


@pytest.mark.parametrize("id", ["x" * 513, "a\nb", "a\x00", "\x7f"])
def test_names_that_are_no_names(id: str) -> None:
    assert parse([{"id": id}]) == ()


def test_a_service_tier_makes_a_model_fast() -> None:
    assert known(service_tiers=[{"id": "priority"}]).fast is True
    assert known(service_tiers=["flex"]).fast is None


def test_at_most_so_many_rows() -> None:
    assert len(parse([{"id": str(n)} for n in range(ROWS_MAX + 5)])) == ROWS_MAX


@given(document=VALUES)
def test_no_document_breaks_it(document: object) -> None:
    try:
        body = orjson.dumps(document)
    except TypeError:
        return
    try:
        rows = parse_model_list(body)
    except ModelListError:
        return
    assert len({row.id for row in rows}) == len(rows)
