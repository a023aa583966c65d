"""Grammar of ids, aliases, provider names and selectors."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core import names

NAME_CHARS = string.ascii_letters + string.digits + "._-"
NAMES = st.text(alphabet=NAME_CHARS + "/ é", max_size=70)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("a", True),
        ("9", True),
        ("main", True),
        ("a.b_c-d", True),
        ("a-", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("", False),
        ("-a", False),
        (".a", False),
        ("_a", False),
        ("a b", False),
        ("a/b", False),
        ("ä", False),
        ("a\n", False),
    ],
)
def test_combo_id(text: str, valid: bool) -> None:
    assert names.is_combo_id(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("daily-fast", True),
        ("team/daily-fast", True),
        ("a" * 64 + "/" + "b" * 64, True),
        ("a" * 65 + "/b", False),
        ("a/" + "b" * 65, False),
        ("a/b/c", False),
        ("/a", False),
        ("a/", False),
        ("a//b", False),
        ("a/-b", False),
        ("", False),
        (" a", False),
    ],
)
def test_alias(text: str, valid: bool) -> None:
    assert names.is_alias(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("a", True),
        ("openai-apikey", True),
        ("a.b", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("a-", False),
        ("a.", False),
        ("-a", False),
        ("", False),
        ("combo", True),
        ("__proto__", False),
        ("prototype", False),
        ("constructor", False),
        ("policy", False),
        ("Policy", True),
    ],
)
def test_provider_name(text: str, valid: bool) -> None:
    assert names.is_provider_name(text) is valid


@pytest.mark.parametrize(
    ("text", "reserved"),
    [("combo", True), ("combo/x", True), ("combo/", True), ("combos", False), ("Combo", False), ("x/combo", False)],
)
def test_reserved_alias(text: str, reserved: bool) -> None:
    assert names.is_reserved_alias(text) is reserved


@pytest.mark.parametrize(
    ("text", "family", "route"),
    [
        ("gpt-5.5", True, True),
        ("o1-pro", True, True),
        ("o3-mini", True, True),
        ("o4-mini", True, True),
        ("codex-auto-review", True, True),
        ("codex-mini", True, False),
        ("gpt", False, False),
        ("GPT-5.5", False, False),
        ("o2-x", False, False),
        ("my-gpt-5", False, False),
        ("main/gpt-5.5", False, False),
        ("gpt-5/x", False, False),
    ],
)
def test_native_names(text: str, family: bool, route: bool) -> None:
    assert (names.is_native_family(text), names.is_native_route(text)) == (family, route)


@pytest.mark.parametrize(
    ("model", "combo_id"),
    [
        ("combo/main", "main"),
        ("combo/MAIN", "MAIN"),
        ("combo/a/b", "a/b"),
        ("combo/", None),
        ("combo", None),
        ("Combo/main", None),
        (" combo/main", None),
        ("main", None),
    ],
)
def test_combo_id_of(model: str, combo_id: str | None) -> None:
    assert names.combo_id_of(model) == combo_id


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("alpha/m1", ("alpha", "m1")),
        ("openrouter/openai/gpt-5.5", ("openrouter", "openai/gpt-5.5")),
        ("m1", None),
        ("/m1", None),
        ("alpha/", None),
        ("", None),
    ],
)
def test_selector(text: str, selector: tuple[str, str] | None) -> None:
    assert names.split_selector(text) == selector


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("openai", "OPENAI_API_KEY"), ("my-row.2", "MY_ROW_2_API_KEY"), ("jev", "JEV_API_KEY")],
)
def test_derived_variable(provider: str, variable: str) -> None:
    assert names.derived_key_variable(provider) == variable


@given(NAMES)
def test_id_grammar_is_the_documented_pattern(text: str) -> None:
    assert names.is_combo_id(text) is (re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text) is not None)


@given(NAMES)
def test_an_alias_is_one_or_two_ids(text: str) -> None:
    segments = text.split("/")
    assert names.is_alias(text) is (len(segments) <= 2 and all(names.is_combo_id(segment) for segment in segments))


@given(NAMES)
def test_a_provider_name_is_an_id_with_a_closed_end(text: str) -> None:
    if names.is_provider_name(text):
        assert names.is_combo_id(text)
        assert text[-1] not in "._-"


@given(NAMES)
def test_canonical_model_gives_the_id_back(text: str) -> None:
    assert names.combo_id_of(names.canonical_model(text)) == (text or None)


@pytest.mark.parametrize("text", ["", "alpha/m1", "gpt-5.6 \u00e9", "a:b/c@d", "\u65e5\u672c"])
def test_printed_texts(text: str) -> None:
    assert names.is_printed(text)


@pytest.mark.parametrize(
    "text", ["\n", "a\rb", "a\0", "\x1b[31m", "a\x7f", "a\x85b", "a\u2028b", "a\n", "\ud800", "a\udcff"]
)
def test_texts_with_control_characters(text: str) -> None:
    assert not names.is_printed(text)
