"""Hostile input: whatever comes in, only the declared errors come out, and every stream ends in its own form."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from combos.core.errors import ProxyError
from combos.core.facts import Dialect
from combos.wire.errors import stream_tail
from combos.wire.translate import (
    AnswerError,
    StreamTranslator,
    Unsupported,
    scrub,
    translate_error,
    translate_request,
    translate_response,
)
from combos.wire.translate.stage import Budget
from oracle_lint import lint_stream
from translations import CASES, DIALECTS, GIVEN, PAIRS, context, label, profile, read, stream

R, C, M, G = DIALECTS
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=8),
    st.sampled_from(
        ["function", "custom", "auto", "user", "assistant", "reasoning", "text", "json_schema", "cmb1.e30"]
    ),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
)
pairs = st.sampled_from([(client, target) for client in DIALECTS for target in DIALECTS])


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of every value in a document."""
    found = [at]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        found += paths(inner, (*at, key))
    return found


def spoil(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return document


REQUESTS = [case for case in CASES if case["kind"] == "request"]
ANSWERS = [case for case in CASES if case["kind"] in ("response", "stream")]


@SETTINGS
@given(st.data(), st.sampled_from(REQUESTS), st.sampled_from(DIALECTS), json_values)
def test_a_request_with_one_value_replaced(data: st.DataObject, case: Any, target: Dialect, value: Any) -> None:
    document = json.loads(read(case))
    document = spoil(document, data.draw(st.sampled_from(paths(document)[1:])), value)
    with suppress(Unsupported):
        body = translate_request(document, Dialect(case["dialect"]), target, profile(target), GIVEN).body
        assert isinstance(json.loads(body), dict)


@SETTINGS
@given(pairs, st.dictionaries(st.sampled_from(["input", "messages", "contents", "tools", "system"]), json_values))
def test_any_document(pair: tuple[Dialect, Dialect], document: dict[str, Any]) -> None:
    client, target = pair
    with suppress(Unsupported):
        scrub(document, client, profile(target), "elsewhere")
        body = translate_request(document, client, target, profile(target), GIVEN).body
        assert isinstance(json.loads(body), dict)


@SETTINGS
@given(st.data(), st.sampled_from(ANSWERS), st.sampled_from(DIALECTS), json_values)
def test_an_answer_with_one_value_replaced(data: st.DataObject, case: Any, client: Dialect, value: Any) -> None:
    target = Dialect(case["dialect"])
    raw = read(case)
    if case["kind"] == "response":
        document = json.loads(raw)
        document = spoil(document, data.draw(st.sampled_from(paths(document)[1:])), value)
        with suppress(AnswerError):
            body = translate_response(json.dumps(document).encode(), client, target, context(client, target))
            assert client is target or isinstance(json.loads(body), dict)
        return
    frames = raw.replace(b"\r\n", b"\n").split(b"\n\n")
    index = data.draw(st.sampled_from([i for i, frame in enumerate(frames) if b"data: {" in frame]))
    head, _, payload = frames[index].partition(b"data: ")
    document = json.loads(payload)
    document = spoil(document, data.draw(st.sampled_from(paths(document))), value)
    frames[index] = head + b"data: " + json.dumps(document).encode()
    assert isinstance(stream(b"\n\n".join(frames), client, target), bytes)


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "stream"], ids=label)
def test_a_list_in_every_place_of_every_event(case: Any) -> None:
    """Nothing that a target sends is trusted to be a number, a text or a key."""
    target = Dialect(case["dialect"])
    client = M if target is R else R
    frames = read(case).replace(b"\r\n", b"\n").split(b"\n\n")
    for index, frame in enumerate(frames):
        head, found, payload = frame.partition(b"data: {")
        for path in paths(json.loads(b"{" + payload))[:40] if found else []:
            spoiled = json.dumps(spoil(json.loads(b"{" + payload), path, [1])).encode()
            raw = b"\n\n".join([*frames[:index], head + b"data: " + spoiled, *frames[index + 1 :]])
            assert stream(raw, client, target)


@SETTINGS
@given(st.sampled_from(PAIRS), st.binary(max_size=200))
def test_any_bytes_end_in_the_clients_error_form(pair: tuple[Dialect, Dialect], raw: bytes) -> None:
    client, target = pair
    out = stream(b"data: " + raw, client, target)
    assert lint_stream(client.value, out) == []
    status, body = translate_error(500, raw, client, target)
    assert status >= 400
    assert isinstance(json.loads(body), dict)
    with pytest.raises(AnswerError):
        translate_response(b"\x00" + raw, client, target, context(client, target))


@pytest.mark.parametrize(("client", "target"), PAIRS)
@pytest.mark.parametrize("deep", [300, 900])
def test_deep_nesting(client: Dialect, target: Dialect, deep: int) -> None:
    nested: Any = {}
    for _ in range(deep):
        nested = {"a": nested}
    tool = {
        R: {"type": "function", "name": "f", "parameters": nested},
        C: {"type": "function", "function": {"name": "f", "parameters": nested}},
        M: {"name": "f", "input_schema": nested},
        G: {"functionDeclarations": [{"name": "f", "parameters": nested}]},
    }[client]
    document = {"messages": [], "tools": [tool]}
    with suppress(Unsupported):
        body = translate_request(document, client, target, profile(target), GIVEN).body
        assert isinstance(json.loads(body), dict)


@pytest.mark.parametrize(("client", "target"), PAIRS)
def test_a_failure_from_here_ends_the_stream_once(client: Dialect, target: Dialect) -> None:
    translator = StreamTranslator(client, target, context(client, target))
    out = translator.failure(ProxyError(502, "server_error", "connection_reset", "The target went away."))
    assert b"The target went away." in out
    assert translator.ended
    assert translator.feed(b"data: {}\n\n") + translator.finish() == b""
    assert translator.failure(ProxyError(500, "server_error", "x", "again")) == b""
    assert lint_stream(client.value, out) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_passed_through_breaks_as_every_other_one(dialect: Dialect) -> None:
    error = ProxyError(502, "server_error", "connection_reset", "The target went away.")
    assert StreamTranslator(dialect, dialect, context(dialect, dialect)).failure(error) == stream_tail(error, dialect)


@pytest.mark.parametrize(("client", "target"), PAIRS)
def test_a_frame_beyond_the_bound_is_a_failure(client: Dialect, target: Dialect) -> None:
    huge = b'data: {"x": "' + b"a" * (9 * 1024 * 1024)
    out = stream(huge + b'"}\n\n', client, target)
    assert b"not in its dialect" in out


def test_held_text_is_bounded() -> None:
    budget = Budget(10)
    budget.take(6)
    budget.give_back(6)
    budget.take(10)
    with pytest.raises(AnswerError):
        budget.take(1)


@pytest.mark.parametrize("case", REQUESTS, ids=label)
def test_another_shape_in_every_place_of_every_request(case: Any) -> None:
    """Nothing that a client sends is trusted to be an object, a text or a key, whatever is to be done with it."""
    client, raw = Dialect(case["dialect"]), read(case)
    for path in paths(json.loads(raw))[1:300]:
        for value in ([1], {"a": 1}, [{}], None):
            document = spoil(json.loads(raw), path, value)
            for target in DIALECTS:
                for around in (GIVEN, replace(GIVEN, compact=True), replace(GIVEN, native_from="elsewhere")):
                    with suppress(Unsupported):
                        translate_request(document, client, target, profile(target), around)
