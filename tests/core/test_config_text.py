"""From bytes to a document: encoding, syntax errors with their place, repeated keys, numbers that are not JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config_text import parse_config_text, parse_document
from combos.core.errors import ConfigError
from combos.core.limits import CONFIG_BYTES_MAX
from configs import document


def refused(text: bytes) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config_text(text)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b'{"a": 1,\n  "b" 2}', "line 2, column 7: expecting ':' delimiter"),
        (b'{"a": 1', "line 1, column 8: expecting ',' delimiter"),
        (b"{} {}", "line 1, column 4: extra data"),
        (b"// comment\n{}", "line 1, column 1: expecting value"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number of 5000 digits is out of range"),
        (b'{"port": 1e999}', "port: must be a finite number"),
        (b'{"a": \xff}', "the file is not UTF-8 text (byte 6)"),
        (b"\xff\xfe{\x00}\x00", "the file is not UTF-8 text (byte 0)"),
        (b"[" * 100_000, "the file is nested too deeply"),
        (b"[]", "the configuration must be a JSON object { … }"),
        (b"null", "the configuration must be a JSON object { … }"),
        (b" " * (CONFIG_BYTES_MAX + 1), f"the file is larger than {CONFIG_BYTES_MAX} bytes"),
    ],
)
def test_refused(text: bytes, message: str) -> None:
    assert refused(text) == [message]


def test_syntax_errors_do_not_repeat_the_text() -> None:
    assert "9zq" not in "".join(refused(b'{"apiKey": "sk-9zq" "x"}'))


def test_repeated_keys_are_found_at_any_depth() -> None:
    text = b'{"combos": {"m": 1, "m": 2}, "x": [{"a": 1, "a": 1, "a": 2, "b": 1, "b": 2}], "combos": {"n": {}}}'
    assert refused(text) == [
        "combos: is written more than once",
        "x[0].a: is written more than once",
        "x[0].b: is written more than once",
    ]


def test_a_byte_order_mark_is_no_fault() -> None:
    text = b"\xef\xbb\xbf" + json.dumps(document()).encode()
    assert list(parse_config_text(text).combos) == ["main"]


def test_an_empty_object_is_a_configuration() -> None:
    assert parse_config_text(b"{}").providers == {}


def read(text: bytes) -> object:
    try:
        return parse_document(text)
    except ConfigError as error:
        return error.problems


@given(st.binary(max_size=200) | st.just(b"{}"))
def test_any_bytes(text: bytes) -> None:
    found = read(text)
    assert found == json.loads(text) if isinstance(found, dict) else found


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4))
def test_documents_come_back_as_written(value: dict[str, object]) -> None:
    assert json.dumps(parse_document(json.dumps(value).encode())) == json.dumps(value)
