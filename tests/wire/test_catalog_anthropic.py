"""The Anthropic shape, and the names that Claude Code lists, there and back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs import NATIVE_ALIAS, catalog, provider, row, targets
from combos.core.catalog import Catalog
from combos.wire.catalog_anthropic import anthropic_document, anthropic_row, claude_id, decode_claude_id

PART = st.text(st.sampled_from("ab-/.:"), min_size=1, max_size=8)


def found() -> Catalog:
    return catalog(
        {
            "providers": {
                "up": provider(
                    models=["vendor/m"],
                    reasoningEfforts=["low", "high", "ultra"],
                    modelInputModalities={"vendor/m": ["text", "image"]},
                    modelMaxOutputTokens={"vendor/m": 9_000},
                    contextWindow=150_000,
                ),
                "odd--name": provider(models=["m"]),
            },
            "combos": {
                "main": {"alias": "daily", "targets": targets("up/vendor/m")},
                "a--b": {"displayName": "Shown", "targets": targets("odd--name/m")},
                "sol": {**NATIVE_ALIAS, "targets": targets("up/vendor/m")},
            },
        }
    )


def test_a_combo_row_in_full() -> None:
    yes, no = {"supported": True}, {"supported": False}
    assert anthropic_row(row(found(), "daily"), "claude-ocx-combo--main") == {
        "id": "claude-ocx-combo--main",
        "display_name": "main (combo)",
        "type": "model",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "capabilities": {
            "effort": {"supported": True, "low": yes, "medium": no, "high": yes, "xhigh": no, "max": no},
            "image_input": yes,
            "thinking": {"supported": True, "types": {"adaptive": yes, "enabled": yes, "disabled": yes}},
        },
        "max_input_tokens": 150_000,
        "max_tokens": 9_000,
    }


def test_without_a_ladder_nothing_thinks() -> None:
    made = anthropic_row(row(found(), "combo/a--b"), "x")
    capabilities = made["capabilities"]
    assert isinstance(capabilities, dict)
    assert capabilities["effort"]["supported"] is False
    assert capabilities["thinking"]["supported"] is False
    assert capabilities["image_input"] == {"supported": False}
    assert (made["display_name"], made["max_tokens"]) == ("Shown", None)


def test_names_for_claude_code_are_made_of_the_id_and_never_of_the_alias() -> None:
    document = anthropic_document(found().visible, encoded=True)
    data = document["data"]
    assert isinstance(data, list)
    names = [made["id"] for made in data]
    assert names == [
        "claude-ocx-combo--sol",
        "claude-ocx-combo--a--b",
        "claude-ocx-combo--main",
        "claude-ocx-up--vendor/m",
    ]
    assert (document["has_more"], document["first_id"], document["last_id"]) == (False, names[0], names[-1])
    assert [decode_claude_id(name) for name in names] == ["combo/sol", "combo/a--b", "combo/main", "up/vendor/m"]


def test_other_clients_get_the_public_names() -> None:
    data = anthropic_document(found().visible, encoded=False)["data"]
    assert isinstance(data, list)
    assert [made["id"] for made in data] == ["gpt-5.6-sol", "combo/a--b", "daily", "odd--name/m", "up/vendor/m"]


def test_an_empty_list() -> None:
    assert anthropic_document([], encoded=True) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


@pytest.mark.parametrize(
    ("model", "selector"),
    [
        ("claude-ocx-combo--main", "combo/main"),
        ("claude-ocx-openrouter--anthropic/claude-opus", "openrouter/anthropic/claude-opus"),
        ("claude-ocx-up--m--fast", "up/m--fast"),
        ("claude-ocx-combo--", None),
        ("claude-ocx---main", None),
        ("claude-ocx-main", None),
        ("Claude-ocx-combo--main", None),
        ("claude-opus-4-8", None),
        ("combo/main", None),
        ("", None),
    ],
)
def test_decoding(model: str, selector: str | None) -> None:
    assert decode_claude_id(model) == selector


@given(provider=PART, model=PART)
def test_a_name_that_is_given_can_be_read_back(provider: str, model: str) -> None:
    made = claude_id(replace(row(found(), "daily"), namespace=provider, name=model))
    assert made is None or decode_claude_id(made) == f"{provider}/{model}"
    assert (made is None) == ("--" in provider or provider.endswith("-"))
