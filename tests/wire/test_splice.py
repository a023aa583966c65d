"""Splicing: the document changes as asked, every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.wire.splice import SpliceError, members, replace_members, sole_member


@pytest.mark.parametrize(
    ("body", "changes", "result"),
    [
        (b'{"model":"a"}', {"model": b'"b"'}, b'{"model":"b"}'),
        (b' { "model" : "a" , "n" : 1e2 } \n', {"model": b'"b"'}, b' { "model" : "b" , "n" : 1e2 } \n'),
        (b'{"x":{"model":"in"},"model":"a"}', {"model": b'"b"'}, b'{"x":{"model":"in"},"model":"b"}'),
        (b'{"model":"a","x":{"model":"in"}}', {"model": b'"b"'}, b'{"model":"b","x":{"model":"in"}}'),
        (b'{"model":"a","model":"c"}', {"model": b'"b"'}, b'{"model":"b","model":"b"}'),
        (b'{"m\\u006fdel":"a"}', {"model": b'"b"'}, b'{"m\\u006fdel":"b"}'),
        (b'{"model":"a","mod\\u0065l":"c"}', {"model": b'"b"'}, b'{"model":"b","mod\\u0065l":"b"}'),
        (b'{"\\"model":1,"x":"\\"model\\":"}', {"model": b'"b"'}, b'{"\\"model":1,"x":"\\"model\\":","model":"b"}'),
        (b'{"x":["model"],"y":"model"}', {"model": b"1"}, b'{"x":["model"],"y":"model","model":1}'),
        (b"{}", {"model": b'"b"'}, b'{"model":"b"}'),
        (b"{ \n}", {"model": b'"b"', "n": b"1"}, b'{ \n"model":"b","n":1}'),
        (b'{"a":1, "b":2,\n"c":3}', {"a": None}, b'{"b":2,\n"c":3}'),
        (b'{"a":1, "b":2,\n"c":3}', {"b": None}, b'{"a":1,\n"c":3}'),
        (b'{"a":1, "b":2,\n"c":3}', {"c": None}, b'{"a":1, "b":2}'),
        (b'{"a":1, "b":2,\n"c":3}', {"a": None, "b": None, "c": None}, b"{}"),
        (b'{"a":1, "b":2}', {"a": None, "b": None, "c": b"[]"}, b'{"c":[]}'),
        (b'{"a":1,"a":2,"b":3}', {"a": None}, b'{"b":3}'),
        (b'{"a":1}', {"b": None}, b'{"a":1}'),
        (b'{"\\ud83d":1,"a":1,"b":2}', {"a": None, "b": b"3"}, b'{"\\ud83d":1,"b":3}'),
        (b'{"a":[{"b":"]}"},[1,[2,{"c":[[]]}]]],"m":1}', {"m": b"2"}, b'{"a":[{"b":"]}"},[1,[2,{"c":[[]]}]]],"m":2}'),
    ],
)
def test_top_level(body: bytes, changes: dict[str, bytes | None], result: bytes) -> None:
    assert replace_members(body, changes) == result


@pytest.mark.parametrize(
    ("body", "changes", "result"),
    [
        (b'{"r":{"effort":"x", "s":1}}', {("r", "effort"): b'"low"'}, b'{"r":{"effort":"low", "s":1}}'),
        (b'{"r":{"effort":"x", "s":1}}', {("r", "effort"): None}, b'{"r":{"s":1}}'),
        (b'{"r":{"effort":"x"}}', {("r", "effort"): None}, b'{"r":{}}'),
        (b'{"r": {}}', {("r", "effort"): b'"low"'}, b'{"r": {"effort":"low"}}'),
        (b'{"a":1}', {("r", "effort"): b'"low"'}, b'{"a":1,"r":{"effort":"low"}}'),
        (b'{"a":1}', {("r", "effort"): None}, b'{"a":1}'),
        (b'{"r":null}', {("r", "effort"): b'"low"'}, b'{"r":{"effort":"low"}}'),
        (b'{"r":"text"}', {("r", "effort"): None}, b'{"r":"text"}'),
        (b'{"r":{"a":1},"r":{"a":2}}', {("r", "a"): b"3"}, b'{"r":{"a":3},"r":{"a":3}}'),
        (
            b'{"a":{"b":{"c":1}}}',
            {("a", "b", "c"): b"2", ("a", "d"): b"3", "e": b"4"},
            b'{"a":{"b":{"c":2},"d":3},"e":4}',
        ),
        (b'{"m":1}', {("m",): b"2"}, b'{"m":2}'),
    ],
)
def test_nested(body: bytes, changes: dict[str | tuple[str, ...], bytes | None], result: bytes) -> None:
    assert replace_members(body, changes) == result


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b'{"a"', b'{"a":', b'{"a":[1', b'{"a":1', b'{"a":"x', b'{"a" 1}'])
def test_no_object(body: bytes) -> None:
    with pytest.raises(SpliceError):
        replace_members(body, {"zz": b"1"})


def test_paths_that_exclude_each_other() -> None:
    for changes in ({"a": b"1", ("a", "b"): b"2"}, {("a", "b"): b"2", "a": None}):
        with pytest.raises(ValueError, match="at once"):
            replace_members(b"{}", changes)


# Documents with duplicate and escaped keys, and with numbers that a parser would not give back as they were.
NUMBERS = st.sampled_from(["1.0", "1e400", "123456789012345678901234567890", "-0", "0.10", "1E+2"])
WORDS = st.sampled_from(
    ["model", "a", "b", "reasoning", "effort", "mo\\u0064el", '\\"model', "x\\\\", "{[", "\u6771", "\\n"]
)
STRINGS = WORDS.map(lambda word: f'"{word}"')
SPACES = st.sampled_from(["", " ", "\n\t"])


def joined(items: list[str], brackets: str, space: str) -> str:
    return brackets[0] + space + f"{space},{space}".join(items) + space + brackets[1]


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(STRINGS, SPACES, inner).map(lambda p: f"{p[0]}{p[1]}:{p[2]}"), max_size=5)
    arrays = st.tuples(st.lists(inner, max_size=4), SPACES).map(lambda a: joined(a[0], "[]", a[1]))
    return arrays | st.tuples(pairs, SPACES).map(lambda o: joined(o[0], "{}", o[1]))


VALUES = st.recursive(NUMBERS | STRINGS | st.sampled_from(["null", "true", "[]", "{}"]), containers, max_leaves=20)
OBJECTS = st.tuples(
    st.lists(st.tuples(STRINGS, SPACES, VALUES).map(lambda p: f"{p[0]}{p[1]}:{p[2]}"), max_size=6), SPACES
).map(lambda o: joined(o[0], "{}", o[1]))
CHANGES = st.dictionaries(
    st.sampled_from(["model", "a", "b", "effort", "x\\", "\u6771", '"model']),
    st.none() | VALUES.map(str.encode),
    min_size=1,
    max_size=3,
)


def pairs_of(text: bytes) -> list[tuple[str, Any]]:
    """The members of the root as pairs, numbers as their text, objects as tuples of pairs."""
    found: list[tuple[str, Any]] = json.loads(
        text, object_pairs_hook=lambda pairs: tuple(pairs), parse_int=repr, parse_float=repr
    )
    return list(found)


@given(OBJECTS, CHANGES)
@settings(max_examples=200)
def test_the_result_is_the_expected_document(text: str, changes: dict[str, bytes | None]) -> None:
    body = text.encode()
    expected: list[tuple[str, Any]] = []
    for key, value in pairs_of(body):
        if key not in changes:
            expected.append((key, value))
        elif (change := changes[key]) is not None:
            expected.append((key, pairs_of(b'{"v":' + change + b"}")[0][1]))
    present = {key for key, _ in pairs_of(body)}
    for key, change in changes.items():
        if key not in present and change is not None:
            expected.append((key, pairs_of(b'{"v":' + change + b"}")[0][1]))
    assert pairs_of(replace_members(body, changes)) == expected


@given(OBJECTS, st.sampled_from(["model", "a", "effort"]))
@settings(max_examples=200)
def test_bytes_outside_changed_members_stay(text: str, key: str) -> None:
    body = text.encode()
    spans = [(member.value, member.end) for member in members(body) if member.key == key]
    expected, position = b"", 0
    for start, end in spans:
        expected += body[position:start] + b'"new"'
        position = end
    result = replace_members(body, {key: b'"new"'})
    if spans:
        assert result == expected + body[position:]
    else:
        assert result.startswith(body.rstrip()[:-1].rstrip())


@given(OBJECTS)
@settings(max_examples=200)
def test_the_short_way_agrees_with_the_long_one(text: str) -> None:
    body = text.encode()
    span = sole_member(body, "model")
    if span is not None:
        assert [(member.value, member.end) for member in members(body) if member.key == "model"] == [span]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"model":"a","input":[{"x":1}]}', True),
        (b'{"input":[{"x":"}"}],"model":"a","stream":true}', True),
        (b'{"input":[1],"model":"a","tools":[2]}', False),
        (b'{"model":"a","tools":[{"model":"b"}]}', False),
        (b'{"model":"a","x":"\\u006d"}', False),
        (b'{"model":{"a":1}}', False),
        (b'{"model":[1]}', False),
        (b'{"model":"a","model":{"b":1}}', False),
        (b'{"model":["model"],"model":"a"}', False),
        (b'{"x":"say \\"model\\": b","model":"a","y":"model"}', True),
        (b'{"x":"model","model" :\n"a"}', True),
    ],
)
def test_what_can_be_told_at_a_glance(body: bytes, found: bool) -> None:
    assert (sole_member(body, "model") is not None) is found


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 900 + b"]" * 900,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"[" + b'"s",' * 200_000 + b"1]",
        b'"' + b"\\\\" * 500_000 + b'"',
        b"[" + b"[[[[1,2],3],4],5]," * 20_000 + b"0]",
    ],
    ids=["deep arrays", "deep objects", "many strings", "long string", "many brackets"],
)
def test_large_and_deep_values_are_skipped(value: bytes) -> None:
    body = b'{"x":' + value + b',"model":"a","y":' + value + b"}"
    assert replace_members(body, {"model": b'"b"'}) == b'{"x":' + value + b',"model":"b","y":' + value + b"}"
    assert [member.key for member in members(body)] == ["x", "model", "y"]
