"""Every answer, stream and error of the corpus towards every other dialect, in one piece and in every other way."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.translate import retry_after_s, translate_error, translate_response
from combos.wire.translate.ir import Tool
from oracle_answers import digest_answer, digest_error, digest_stream
from oracle_lint import lint_stream
from translations import CASES, DIALECTS, Json, context, corpus, label, read, stream

R, C, M, G = DIALECTS
BROKEN = ("messages.cut-off", "messages.overloaded", "responses.failed", "responses.error-event", "chat.error")
STREAMS = list(corpus("stream"))
ENDING_WELL = [(case, other) for case, other in STREAMS if not any(name in case["file"] for name in BROKEN)]
ENDING_BADLY = [(case, other) for case, other in STREAMS if any(name in case["file"] for name in BROKEN)]
ZEROS = {"input_total": 0, "cached": 0, "cache_write": 0, "output": 0, "reasoning": 0}


def expected(want: Json, client: Dialect) -> Json:
    """The digest as a client of this dialect should see it."""
    said = {**want, "builtin": [], "usage": want["usage"] or ZEROS}
    if client in (M, G):
        said["text"], said["refusal"] = want["text"] + want["refusal"], ""
    if client is G:
        said["usage"] = {**said["usage"], "cache_write": 0}
    if client is not R:
        said["calls"] = [_wrapped(call) for call in want["calls"]]
    del said["opaque"]
    return said


def _wrapped(call: list[Any]) -> list[Any]:
    call_id, name, said = call
    return [call_id, name, json.dumps({"input": said[4:]}, ensure_ascii=False) if said.startswith("raw:") else said]


@pytest.mark.parametrize(("case", "client"), list(corpus("response")), ids=label)
def test_whole_answers(case: Json, client: Dialect) -> None:
    target = Dialect(case["dialect"])
    document = json.loads(translate_response(read(case), client, target, context(client, target)))
    got = digest_answer(client.value, document)
    assert got == {**expected(case["digest"], client), "opaque": got["opaque"]}


@pytest.mark.parametrize(("case", "client"), ENDING_WELL, ids=label)
def test_streams_that_end_well(case: Json, client: Dialect) -> None:
    out = stream(read(case), client, Dialect(case["dialect"]))
    assert lint_stream(client.value, out) == []
    got = digest_stream(client.value, out)
    assert got == {**expected(case["digest"], client), "opaque": got["opaque"]}


@pytest.mark.parametrize(("case", "client"), ENDING_WELL, ids=label)
def test_a_whole_answer_and_a_stream_say_the_same(case: Json, client: Dialect) -> None:
    """A target may stream although nobody asked: the body is then read as a stream."""
    target = Dialect(case["dialect"])
    whole = json.loads(translate_response(read(case), client, target, context(client, target)))
    assert digest_answer(client.value, whole) == digest_stream(client.value, stream(read(case), client, target))


@pytest.mark.parametrize(("case", "client"), ENDING_BADLY, ids=label)
def test_streams_that_break_end_in_the_clients_error_form(case: Json, client: Dialect) -> None:
    out = stream(read(case), client, Dialect(case["dialect"]))
    got = digest_stream(client.value, out)
    assert (got["finish"], got["text"]) == ("error", case["digest"]["text"])
    assert lint_stream(client.value, out) == []


ERRORS = {
    ("messages.overloaded", R): "server_is_overloaded",
    ("messages.overloaded", C): "server_is_overloaded",
    ("messages.overloaded", G): "UNAVAILABLE",
    ("responses.failed", C): "rate_limit_exceeded",
    ("responses.failed", M): "rate_limit_error",
    ("responses.failed", G): "RESOURCE_EXHAUSTED",
    ("responses.error-event", M): "api_error",
    ("chat.error", R): "server_error",
    ("chat.error", M): "api_error",
    ("messages.cut-off", R): "server_error",
    ("messages.cut-off", G): "INTERNAL",
}


@pytest.mark.parametrize(("name", "client"), ERRORS, ids=label)
def test_the_kind_of_a_failure_survives(name: str, client: Dialect) -> None:
    case = next(case for case in CASES if case["file"] == f"streams/{name}.sse")
    out = stream(read(case), client, Dialect(case["dialect"]))
    assert digest_stream(client.value, out)["error"] == ERRORS[name, client]


@pytest.mark.parametrize(("case", "client"), STREAMS, ids=label)
def test_byte_by_byte(case: Json, client: Dialect) -> None:
    raw, target = read(case), Dialect(case["dialect"])
    assert stream(raw, client, target, cuts=list(range(1, len(raw)))) == stream(raw, client, target)


def frames_of(raw: bytes) -> list[bytes]:
    """The events of a stream, each with the blank line behind it."""
    return [frame + b"\n\n" for frame in raw.replace(b"\r\n", b"\n").split(b"\n\n") if frame.strip()]


@pytest.mark.parametrize(("case", "client"), STREAMS, ids=label)
def test_event_by_event_and_in_two_at_every_event(case: Json, client: Dialect) -> None:
    frames, target = frames_of(read(case)), Dialect(case["dialect"])
    raw = b"".join(frames)
    whole = stream(raw, client, target)
    edges = [sum(map(len, frames[:end])) for end in range(1, len(frames))]
    assert stream(raw, client, target, cuts=edges) == whole
    for edge in edges:
        assert stream(raw, client, target, cuts=[edge]) == whole


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_split(data: st.DataObject) -> None:
    case, client = data.draw(st.sampled_from(STREAMS))
    raw, target = read(case), Dialect(case["dialect"])
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=12))
    assert stream(raw, client, target, cuts=cuts) == stream(raw, client, target)


@pytest.mark.parametrize(("case", "client"), ENDING_WELL, ids=label)
def test_a_stream_cut_at_an_event_never_looks_complete(case: Json, client: Dialect) -> None:
    frames, target = frames_of(read(case)), Dialect(case["dialect"])
    finish = {R: b'"response.completed"', C: b'"finish_reason":"', M: b'"message_delta"', G: b'"finishReason"'}[target]
    last = next(index for index, frame in enumerate(frames) if finish in frame)
    for end in range(last):
        got = digest_stream(client.value, stream(b"".join(frames[:end]), client, target))
        assert (got["finish"], bool(got["error"])) == ("error", True), end


@pytest.mark.parametrize(("case", "client"), ENDING_BADLY, ids=label)
def test_a_stream_that_breaks_never_looks_complete_wherever_it_is_cut(case: Json, client: Dialect) -> None:
    frames, target = frames_of(read(case)), Dialect(case["dialect"])
    for end in range(len(frames) + 1):
        out = stream(b"".join(frames[:end]), client, target)
        assert digest_stream(client.value, out)["finish"] == "error", end
        assert lint_stream(client.value, out) == [], end


@pytest.mark.parametrize(("case", "client"), [row for row in ENDING_WELL if row[0]["dialect"] != "gemini"], ids=label)
def test_nothing_follows_the_end(case: Json, client: Dialect) -> None:
    """Gemini has no end but EOF: some servers repeat its finish reason in every chunk."""
    raw, target = read(case), Dialect(case["dialect"])
    assert stream(raw + raw, client, target) == stream(raw, client, target)


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] in ("stream", "response")], ids=label)
def test_the_same_dialect_passes_through(case: Json) -> None:
    raw, dialect = read(case), Dialect(case["dialect"])
    known = context(dialect, dialect)
    if case["kind"] == "response":
        assert translate_response(raw, dialect, dialect, known) == raw
    else:
        assert stream(raw, dialect, dialect, known, cuts=[7, 99]) == raw


def test_declared_freeform_tools_stay_freeform_for_chat_clients() -> None:
    case = next(case for case in CASES if case["file"] == "streams/responses.freeform.sse")
    known = context(C, R, Tool("apply_patch", freeform=True))
    out = stream(read(case), C, R, known)
    assert lint_stream("chat", out) == []
    assert digest_stream("chat", out)["calls"] == case["digest"]["calls"]


QUOTA = "errors/responses.429-quota.json"
STATUS = {(529, R): 503, (529, C): 503, (529, G): 503}


@pytest.mark.parametrize(("case", "client"), list(corpus("error")), ids=label)
def test_errors(case: Json, client: Dialect) -> None:
    target = Dialect(case["dialect"])
    status, body = translate_error(case["status"], read(case), client, target)
    kind, message = case["digest"]
    # Messages and Gemini know no quota apart from the rate limit.
    kind = "rate_limit" if case["file"] == QUOTA and client in (M, G) else kind
    assert digest_error(client.value, json.loads(body)) == [kind, message]
    assert status == STATUS.get((case["status"], client), case["status"])
    assert translate_error(case["status"], read(case), target, target) == (case["status"], read(case))


def test_gemini_names_its_own_delay() -> None:
    body = next(read(case) for case in CASES if case["file"] == "errors/gemini.429.json")
    assert retry_after_s(body, G) == 12
    assert retry_after_s(body, M) is None


def test_answers_name_the_targets_bare_model_and_ids_come_from_the_seed() -> None:
    case = next(case for case in CASES if case["file"] == "responses/messages.full.json")
    known = context(R, M)
    one = json.loads(translate_response(read(case), R, M, known))
    two = json.loads(translate_response(read(case), R, M, context(R, M, seed="other")))
    assert one["model"] == "claude-opus-4-8"
    assert one["id"] != two["id"]
    assert one == json.loads(translate_response(read(case), R, M, known))


def test_pairs_cover_the_corpus() -> None:
    """The corpus holds streams of all four dialects, so every pair of client and target was looked at above."""
    seen = {(case["dialect"], client.value) for case, client in STREAMS}
    assert seen == {(a.value, b.value) for a in DIALECTS for b in DIALECTS if a is not b}
