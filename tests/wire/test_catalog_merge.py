"""Combos in a vendor's own list: what is added, replaced, hidden, and what must keep its bytes."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs import NATIVE_ALIAS, catalog, discovered, provider, targets
from combos.core.catalog import Catalog
from combos.wire.catalog_codex import INSTRUCTIONS
from combos.wire.catalog_merge import merge_into
from combos.wire.catalog_shape import ListRequest, Shape

OPENAI, CODEX = ListRequest(Shape.OPENAI), ListRequest(Shape.CODEX)
ANTHROPIC, CLAUDE = ListRequest(Shape.ANTHROPIC), ListRequest(Shape.ANTHROPIC, encoded_ids=True)
# Odd spacing, escapes and number forms, which a parse and a dump would not keep.
LUNA = b'{ "slug" : "gpt-5.6-luna", "priority":7, "note": "\\u00e9 \\/ ]}", "ratio": 1.50e2, "visibility":"list" }'
SOL = b'{"slug":"gpt-5.6-sol","priority":2,"visibility":"list","nested":{"slug":"x","visibility":"list"}}'
LITE = b'{"slug":"gpt-6-sol","priority":3,"base_instructions":"lite","use_responses_lite":true}'
PLAIN = b'{"slug":"gpt-5.5","priority":4,"base_instructions":"You are Codex.","visibility":"list"}'


def codex_body(*rows: bytes) -> bytes:
    return b'{ "models" : [\n ' + b" ,\n ".join(rows) + b' ], "extra": [1, {"models": []}] }\n'


def found(*disabled: str, **combos: Any) -> Catalog:
    plain = {"main": {"targets": targets("up/m")}}
    return catalog({"providers": {"up": provider()}, "combos": {**plain, **combos}, "disabledModels": list(disabled)})


def native(*disabled: str) -> Catalog:
    return found(*disabled, nova={**NATIVE_ALIAS, "targets": targets("up/m")})


def slugs(body: bytes) -> list[str]:
    return [row["slug"] for row in orjson.loads(body)["models"]]


def codex_row(body: bytes, slug: str) -> dict[str, Any]:
    (only,) = [row for row in orjson.loads(body)["models"] if row["slug"] == slug]
    assert isinstance(only, dict)
    return only


def test_combos_follow_the_vendors_rows_whose_bytes_stay() -> None:
    merged = merge_into(codex_body(LUNA, SOL), found(), CODEX)
    assert slugs(merged) == ["gpt-5.6-luna", "gpt-5.6-sol", "combo/main"]
    assert LUNA in merged
    assert SOL in merged
    assert merged.startswith(b'{ "models" : [')
    assert merged.endswith(b'], "extra": [1, {"models": []}] }\n')


def test_without_combos_nothing_changes() -> None:
    body = codex_body(LUNA, SOL)
    assert merge_into(body, catalog({}), CODEX) == body


def test_a_native_alias_takes_the_place_of_the_native_row() -> None:
    merged = merge_into(codex_body(LUNA, SOL, PLAIN), native(), CODEX)
    assert slugs(merged) == ["gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.5", "combo/main"]
    taken = codex_row(merged, "gpt-5.6-sol")
    assert (taken["display_name"], taken["owned_by"], taken["priority"]) == ("Nova1 - sol", "combo", 2)
    assert "nested" not in taken


def test_a_slug_that_the_vendor_lists_twice_is_listed_once() -> None:
    assert slugs(merge_into(codex_body(SOL, LUNA, SOL), native(), CODEX)) == [
        "gpt-5.6-sol",
        "gpt-5.6-luna",
        "combo/main",
    ]


def test_a_native_alias_that_the_vendor_does_not_list_is_added() -> None:
    assert slugs(merge_into(codex_body(LUNA), native(), CODEX)) == ["gpt-5.6-luna", "gpt-5.6-sol", "combo/main"]


def test_a_hidden_native_alias_keeps_the_native_row_away() -> None:
    assert slugs(merge_into(codex_body(LUNA, SOL), native("combo/nova"), CODEX)) == ["gpt-5.6-luna", "combo/main"]


def test_the_bare_slug_does_not_hide_the_combo_that_took_it() -> None:
    assert slugs(merge_into(codex_body(LUNA, SOL), native("gpt-5.6-sol"), CODEX)) == [
        "gpt-5.6-luna",
        "gpt-5.6-sol",
        "combo/main",
    ]


def test_a_disabled_native_is_marked_and_nothing_else_of_it_changes() -> None:
    merged = merge_into(codex_body(LUNA, SOL), found("gpt-5.6-luna", "gpt-5.6-sol"), CODEX)
    assert LUNA.replace(b'"visibility":"list"', b'"visibility":"hide"') in merged
    assert SOL.replace(b'"visibility":"list"', b'"visibility":"hide"', 1) in merged


def test_a_disabled_native_is_omitted_while_a_native_alias_exists() -> None:
    assert slugs(merge_into(codex_body(LUNA, SOL), native("gpt-5.6-luna"), CODEX)) == ["gpt-5.6-sol", "combo/main"]


def test_a_disabled_native_is_omitted_from_the_openai_list() -> None:
    body = b'{"object":"list","data":[{"id":"gpt-5.5"},{"id":"gpt-5.6-luna"}]}'
    ids = [row["id"] for row in orjson.loads(merge_into(body, found("gpt-5.5"), OPENAI))["data"]]
    assert ids == ["gpt-5.6-luna", "combo/main"]


def test_combos_work_with_the_agent_prompt_of_the_vendors_ordinary_model() -> None:
    merged = merge_into(codex_body(LITE, PLAIN), found(), CODEX)
    assert codex_row(merged, "combo/main")["base_instructions"] == "You are Codex."
    assert codex_row(merge_into(codex_body(LITE), found(), CODEX), "combo/main")["base_instructions"] == INSTRUCTIONS


@pytest.mark.parametrize(("priorities", "expected"), [([1, 9], 5), ([9, 20], 10), ([4], 5), ([5], 6)])
def test_a_combo_never_becomes_the_default_model(priorities: list[int], expected: int) -> None:
    rows = [orjson.dumps({"slug": f"s{n}", "priority": n}) for n in priorities]
    assert codex_row(merge_into(codex_body(*rows), found(), CODEX), "combo/main")["priority"] == expected


def test_an_empty_codex_list_stays_empty_so_that_the_bundled_one_is_shown() -> None:
    assert merge_into(b'{"models":[]}', found(), CODEX) == b'{"models":[]}'
    assert orjson.loads(merge_into(b'{"data": [ ]}', found(), OPENAI))["data"][0]["id"] == "combo/main"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'"models"',
        b"{}",
        b'{"data":[{"slug":"a"}]}',
        b'{"models":{"slug":"a"}}',
        b'{"models":null}',
        b'{"models":["a"]}',
        b'{"models":[{"slug":"a"},{"id":"b"}]}',
        b'{"models":[{"slug":7}]}',
        b'{"models":[{"slug":""}]}',
        b'{"models":[{"slug":"a"}],"models":[{"slug":"b"}]}',
        b'{"models":[{"slug":"a"}]',
        b'\xef\xbb\xbf{"models":[{"slug":"a"}]}',
        b'{"models":[{"slug":"\xff"}]}',
        b'{"models":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
)
def test_what_is_not_understood_is_returned_unchanged(body: bytes) -> None:
    assert merge_into(body, native(), CODEX) == body


def test_claude_code_gets_names_it_lists() -> None:
    body = (
        b'{"data":[{"id":"claude-opus-4-8"}],"has_more":false,"first_id":"claude-opus-4-8","last_id":"claude-opus-4-8"}'
    )
    merged = orjson.loads(merge_into(body, found(), CLAUDE))
    assert [row["id"] for row in merged["data"]] == ["claude-opus-4-8", "claude-ocx-combo--main"]
    assert (merged["has_more"], merged["last_id"]) == (False, "claude-opus-4-8")
    assert orjson.loads(merge_into(body, found(), ANTHROPIC))["data"][1]["id"] == "combo/main"


def test_combos_come_once_at_the_end_of_a_list_in_pages() -> None:
    body = b'{"data":[{"id":"claude-opus-4-8"}],"has_more":true}'
    assert merge_into(body, found(), CLAUDE) == body


def test_a_combo_that_took_a_vendors_name_replaces_its_row() -> None:
    taken = found(mine={"alias": "claude-opus-4-8", "targets": targets("up/m")})
    body = b'{"data":[{"id":"claude-opus-4-8"},{"id":"claude-haiku"}]}'
    merged = orjson.loads(merge_into(body, taken, OPENAI))["data"]
    assert [(row["id"], row.get("is_combo")) for row in merged] == [
        ("claude-opus-4-8", True),
        ("claude-haiku", None),
        ("combo/main", True),
    ]


def test_a_fast_sibling_needs_a_free_name() -> None:
    fast = catalog(
        {"providers": {"up": provider()}, "combos": {"main": {"alias": "x", "targets": targets("up/m")}}},
        {"up": [discovered("m", fast=True)]},
    )
    names = [row["id"] for row in orjson.loads(merge_into(b'{"data":[]}', fast, OPENAI))["data"]]
    assert names == ["x", "x--fast"]
    merged = merge_into(b'{"data":[{"id":"x--fast","mine":1}]}', fast, OPENAI)
    assert [row["id"] for row in orjson.loads(merged)["data"]] == ["x--fast", "x"]
    assert b'{"id":"x--fast","mine":1}' in merged


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(
    st.tuples(st.text(st.sampled_from('abc"\\]}é'), min_size=1, max_size=5), VALUES), min_size=1, max_size=5
)


@given(rows=ROWS, indent=st.sampled_from([None, 0, 3]), escaped=st.booleans())
def test_every_row_of_any_vendor_keeps_its_bytes(
    rows: list[tuple[str, Any]], indent: int | None, escaped: bool
) -> None:
    texts = [json.dumps({"x": value, "slug": slug}, indent=indent, ensure_ascii=escaped) for slug, value in rows]
    body = ('{"a":1,"models":[' + ", ".join(texts) + ']  ,"z":2}').encode()
    merged = merge_into(body, found(), CODEX)
    assert orjson.loads(merged)["models"][:-1] == orjson.loads(body)["models"]
    assert slugs(merged)[-1] == "combo/main"
    position = 0
    for text in texts:
        position = merged.index(text.encode(), position) + len(text.encode())


@given(body=st.binary(max_size=60))
def test_no_bytes_break_it(body: bytes) -> None:
    assert merge_into(body, native(), CODEX) == body
