"""Laws of translation: near-valid requests, answers and streams of all pairs end in a sound form of the other side."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.translate import (
    AnswerError,
    Compaction,
    StreamTranslator,
    Unsupported,
    scrub,
    translate_request,
    translate_response,
)
from fuzzing import cuts, damaged, json_values, law, lines, pieces
from oracle_lint import lint_stream
from translations import CASES, DIALECTS, GIVEN, PAIRS, context, profile, read

REQUESTS = [(Dialect(case["dialect"]), json.loads(read(case))) for case in CASES if case["kind"] == "request"]
STREAMS = [(Dialect(case["dialect"]), read(case)) for case in CASES if case["kind"] == "stream"]
# What a target writes as the arguments of a call streams on as it comes, JSON or not.
OWN_FAULTS = {"tool input is not a JSON object"}
dialects = st.sampled_from(DIALECTS)
pairs = st.sampled_from(PAIRS)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        found += places(inner, (*at, key))
    return found


def spoiled(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = json.loads(json.dumps(document))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copy


@law
@given(st.sampled_from(REQUESTS), dialects, st.lists(st.tuples(st.integers(0, 5000), json_values), max_size=3))
def test_a_spoiled_request_is_json_for_the_target_or_refused(
    case: tuple[Dialect, Any], target: Dialect, faults: list[tuple[int, Any]]
) -> None:
    client, document = case
    for number, value in faults:
        found = places(document)[1:]
        document = spoiled(document, found[number % len(found)], value) if found else document
    before = json.dumps(document)
    try:
        scrub(document, client, profile(target), "elsewhere")
        made = translate_request(document, client, target, profile(target), GIVEN)
    except Unsupported as refusal:
        assert str(refusal).isprintable()
        return
    assert isinstance(json.loads(made.body), dict)
    assert json.dumps(document) == before


@law
@given(pairs, json_values, st.sampled_from(["input", "messages", "contents", "tools", "system", "tool_choice"]))
def test_any_value_in_a_leading_field(pair: tuple[Dialect, Dialect], value: Any, field: str) -> None:
    client, target = pair
    try:
        made = translate_request({"model": "m", field: value}, client, target, profile(target), GIVEN)
    except Unsupported:
        return
    assert isinstance(json.loads(made.body), dict)


@st.composite
def spoiled_streams(draw: st.DrawFn) -> tuple[Dialect, bytes]:
    """A recorded stream with frames dropped, doubled, exchanged, or one value in them replaced."""
    dialect, raw = draw(st.sampled_from(STREAMS))
    frames = raw.replace(b"\r\n", b"\n").split(b"\n\n")
    for _ in range(draw(st.integers(1, 3))):
        at, other = draw(st.integers(0, len(frames) - 1)), draw(st.integers(0, len(frames) - 1))
        match draw(st.integers(0, 3)):
            case 0 if len(frames) > 1:
                del frames[at]
            case 1:
                frames.insert(other, frames[at])
            case 2:
                frames[at], frames[other] = frames[other], frames[at]
            case _:
                frames[at] = spoiled_frame(draw, frames[at])
    return dialect, b"\n\n".join(frames)


def spoiled_frame(draw: st.DrawFn, frame: bytes) -> bytes:
    head, found, payload = frame.partition(b"data: {")
    if not found:
        return frame
    document = json.loads(b"{" + payload)
    path = draw(st.sampled_from(places(document)))
    return head + b"data: " + json.dumps(spoiled(document, path, draw(json_values))).encode()


streams = st.one_of(spoiled_streams(), st.tuples(dialects, lines(damaged())))


def translated(raw: list[bytes], client: Dialect, target: Dialect, compaction: Compaction | None = None) -> bytes:
    translator = StreamTranslator(client, target, context(client, target, compaction=compaction))
    return b"".join(map(translator.feed, raw)) + translator.finish()


@law
@given(streams, dialects, cuts)
def test_a_spoiled_stream_ends_in_the_clients_form_whatever_the_cuts(
    case: tuple[Dialect, bytes], client: Dialect, at: list[int]
) -> None:
    target, raw = case
    out = translated([raw], client, target)
    assert translated(pieces(raw, at), client, target) == out
    if client is target:
        assert out == raw
    else:
        assert set(lint_stream(client.value, out)) <= OWN_FAULTS


@law
@given(streams)
def test_a_compaction_of_a_spoiled_stream_ends_well_or_in_an_error(case: tuple[Dialect, bytes]) -> None:
    target, raw = case
    out = translated([raw], Dialect.RESPONSES, target, Compaction.TRIGGER)
    assert lint_stream("responses", out) == []


@law
@given(streams, dialects)
def test_a_whole_answer_is_json_of_the_client_or_an_error(case: tuple[Dialect, bytes], client: Dialect) -> None:
    target, raw = case
    try:
        made = translate_response(raw, client, target, context(client, target))
    except AnswerError as error:
        assert 400 <= error.status <= 599
        return
    assert made == raw if client is target else isinstance(json.loads(made), dict)
