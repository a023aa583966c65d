"""The Codex shape: every field of the strict schema with its type, and no field of OpenAI's own models."""

from typing import Any

import pytest

from catalogs import CHATGPT, NATIVE_ALIAS, catalog, discovered, provider, row, targets
from combos.core.catalog import Catalog
from combos.wire.catalog_codex import INSTRUCTIONS, codex_document, codex_row, usual_priority

NONE = type(None)
# Field by field: the types that a strict reader accepts.
STRICT: dict[str, tuple[type, ...]] = {
    "slug": (str,),
    "display_name": (str,),
    "description": (str,),
    "visibility": (str,),
    "supported_in_api": (bool,),
    "priority": (int,),
    "owned_by": (str,),
    "shell_type": (str,),
    "base_instructions": (str,),
    "supported_reasoning_levels": (list,),
    "supports_reasoning_summaries": (bool,),
    "default_reasoning_summary": (str,),
    "support_verbosity": (bool,),
    "default_verbosity": (str, NONE),
    "context_window": (int,),
    "max_context_window": (int,),
    "auto_compact_token_limit": (int,),
    "effective_context_window_percent": (int,),
    "truncation_policy": (dict,),
    "input_modalities": (list,),
    "supports_parallel_tool_calls": (bool,),
    "apply_patch_tool_type": (str, NONE),
    "experimental_supported_tools": (list,),
    "supports_image_detail_original": (bool,),
    "supports_search_tool": (bool,),
    "web_search_tool_type": (str,),
    "node_repl_disabled": (bool,),
    "node_repl_auto_review_required": (bool,),
    "include_plugin_usage_instructions": (bool,),
    "include_apps_usage_instructions": (bool,),
}
OPTIONAL = {"default_reasoning_level": str, "opencodex_catalog_kind": str}
NEVER = {
    "available_in_plans",
    "minimal_client_version",
    "availability_nux",
    "upgrade",
    "model_messages",
    "use_responses_lite",
    "supports_experimental_context",
    "tool_mode",
    "multi_agent_version",
    "comp_hash",
}


def found(disabled: tuple[str, ...] = ()) -> Catalog:
    effort = {"reasoningEfforts": ["none", "low", "high"], "modelInputModalities": {"m": ["text", "image", "video"]}}
    return catalog(
        {
            "providers": {
                "openai": CHATGPT,
                "up": provider(models=["m"], contextWindow=150_000, **effort),
                "bare": provider(),
            },
            "combos": {
                "main": {"targets": targets("up/m"), "defaultEffort": "max"},
                "plain": {"targets": targets("bare/1", "bare/2", "bare/3", "bare/4", "bare/5"), "alias": "plain"},
                "sol": {**NATIVE_ALIAS, "targets": targets("openai/gpt-5.6-sol")},
            },
            "disabledModels": list(disabled),
        }
    )


def check_strictly(made: dict[str, Any]) -> None:
    assert made.keys() - OPTIONAL.keys() == STRICT.keys()
    assert not made.keys() & NEVER
    for name, types in STRICT.items():
        assert type(made[name]) in types, name
    for name in OPTIONAL.keys() & made.keys():
        assert isinstance(made[name], OPTIONAL[name])
    assert made["visibility"] in {"list", "hide"}
    assert set(made["input_modalities"]) <= {"text", "image", "audio"}
    assert made["truncation_policy"] == {"mode": "tokens", "limit": 10_000}
    levels = [level["effort"] for level in made["supported_reasoning_levels"]]
    assert all(isinstance(level["description"], str) for level in made["supported_reasoning_levels"])
    assert made.get("default_reasoning_level") in {*levels, None}


def test_every_row_keeps_to_the_strict_schema_and_slugs_are_unique() -> None:
    rows = codex_document(found().rows)["models"]
    assert isinstance(rows, list)
    for made in rows:
        check_strictly(made)
    slugs = [made["slug"] for made in rows]
    assert len(set(slugs)) == len(slugs)
    assert {"combo/main", "plain", "gpt-5.6-sol", "gpt-5.5", "up/m"} <= set(slugs)


def test_a_combo_row() -> None:
    made = codex_row(row(found(), "combo/main"), priority=5)
    levels = made["supported_reasoning_levels"]
    assert isinstance(levels, list)
    assert [level["effort"] for level in levels] == ["none", "low", "high"]
    assert made["default_reasoning_level"] == "high"
    assert (made["display_name"], made["owned_by"]) == ("combo/main", "combo")
    assert (made["context_window"], made["max_context_window"], made["auto_compact_token_limit"]) == (
        150_000,
        150_000,
        135_000,
    )
    assert made["input_modalities"] == ["text", "image"]
    assert made["web_search_tool_type"] == "text_and_image"
    assert made["base_instructions"] == INSTRUCTIONS
    assert "opencodex_catalog_kind" not in made


def test_without_a_ladder_there_are_no_levels_and_no_default() -> None:
    made = codex_row(row(found(), "plain"), priority=5)
    assert made["supported_reasoning_levels"] == []
    assert "default_reasoning_level" not in made
    assert made["web_search_tool_type"] == "text"
    assert made["description"] == "Combo of bare/1, bare/2, bare/3 and 2 more"


def test_a_native_alias_row() -> None:
    made = codex_row(row(found(), "gpt-5.6-sol"), priority=3)
    assert (made["slug"], made["display_name"]) == ("gpt-5.6-sol", "Nova1 - sol")
    assert (made["owned_by"], made["opencodex_catalog_kind"]) == ("combo", "combo-native-alias-v1")
    assert made["priority"] == 3


@pytest.mark.parametrize(("id", "priority"), [("combo/main", 5), ("up/m", 5), ("gpt-5.5", 9), ("gpt-5.6-sol", 9)])
def test_priorities(id: str, priority: int) -> None:
    assert usual_priority(row(found(), id)) == priority


def test_a_disabled_native_is_marked() -> None:
    doc = {"providers": {"openai": CHATGPT}, "disabledModels": ["gpt-5.5"]}
    rows = codex_document(catalog(doc).rows)["models"]
    assert isinstance(rows, list)
    assert {made["slug"] for made in rows if made["visibility"] == "hide"} == {"gpt-5.5"}


@pytest.mark.parametrize(("id", "native"), [("gpt-5.6-sol", True), ("combo/main", False)])
def test_openais_own_tool_types_need_openais_own_targets(id: str, native: bool) -> None:
    made = codex_row(row(found(), id), priority=5)
    assert made["apply_patch_tool_type"] == ("freeform" if native else None)
    assert made["supports_search_tool"] is native


@pytest.mark.parametrize(
    ("known", "fields"),
    [
        ({}, (True, True, "auto", False, None)),
        (
            {"parallel_tools": False, "summaries": False, "verbosity": False},
            (False, False, "none", False, None),
        ),
        ({"parallel_tools": True, "summaries": True, "verbosity": True}, (True, True, "auto", True, "low")),
    ],
)
def test_flags(known: dict[str, bool], fields: tuple[object, ...]) -> None:
    doc = {"providers": {"up": provider()}, "combos": {"c": {"targets": targets("up/m")}}}
    made = codex_row(catalog(doc, {"up": [discovered("m", **known)]}).combos[0], priority=5)
    names = (
        "supports_parallel_tool_calls",
        "supports_reasoning_summaries",
        "default_reasoning_summary",
        "support_verbosity",
        "default_verbosity",
    )
    assert tuple(made[name] for name in names) == fields
