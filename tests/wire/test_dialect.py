"""Inspectors: the event classes of each dialect, terminals, usage, and independence of how the bytes are cut."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.dialect import FailureTerminal, StreamInspector, SuccessTerminal, Terminal, inspector
from combos.wire.inspector import leading_type
from combos.wire.responses import ResponsesInspector
from combos.wire.sse import parse_frame

DATA = Path(__file__).parent.parent / "data"
STREAMS = {path.name: path.read_bytes() for path in sorted((DATA / "streams").glob("*.sse"))}
DIALECTS = {"openai-responses": Dialect.RESPONSES, "openai-chat": Dialect.CHAT, "anthropic": Dialect.MESSAGES}

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI


def read(dialect: Dialect, stream: bytes, cuts: list[int] | None = None) -> StreamInspector:
    seen = inspector(dialect)
    for start, end in pairwise([0, *sorted(cuts or []), len(stream)]):
        seen.feed(stream[start:end])
    seen.close()
    return seen


def event(payload: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(payload)}\n\n".encode()


def typed(kind: str, **fields: object) -> bytes:
    return event({"type": kind, **fields}, kind)


def facts(seen: StreamInspector) -> tuple[object, ...]:
    return seen.output, seen.terminal, seen.usage, seen.model, seen.response_id


def result(terminal: Terminal | None) -> tuple[bool, str]:
    assert terminal is not None
    return isinstance(terminal, SuccessTerminal), terminal.kind


@pytest.mark.parametrize(
    ("name", "output", "terminal"),
    [
        ("chat.error.sse", True, (False, "error")),
        ("chat.full.sse", True, (True, "completed")),
        ("chat.interleaved.sse", True, (True, "completed")),
        ("chat.refusal.sse", True, (True, "completed")),
        ("gemini.full.sse", True, (True, "completed")),
        ("messages.crlf.sse", True, (True, "completed")),
        ("messages.cut-off.sse", True, (False, "eof")),
        ("messages.full.sse", True, (True, "completed")),
        ("messages.overloaded.sse", True, (False, "error")),
        ("messages.proxy-turn-response-1.sse", True, (True, "completed")),
        ("messages.proxy-turn-response-2.sse", True, (True, "completed")),
        ("messages.redacted.sse", True, (True, "completed")),
        ("messages.refusal.sse", True, (True, "incomplete")),
        ("messages.web-search.sse", True, (True, "completed")),
        ("responses.apikey-turn-response-1.sse", True, (True, "completed")),
        ("responses.apikey-turn-response-2.sse", True, (True, "completed")),
        ("responses.compaction-remote-v2-response-1.sse", True, (True, "completed")),
        ("responses.error-event.sse", False, (False, "error")),
        ("responses.failed.sse", False, (False, "failed")),
        ("responses.freeform.sse", True, (True, "completed")),
        ("responses.full.sse", True, (True, "completed")),
        ("responses.loose.sse", True, (True, "completed")),
        ("responses.refusal.sse", True, (True, "completed")),
        ("responses.web-search.sse", True, (True, "completed")),
    ],
)
def test_recorded_streams(name: str, output: bool, terminal: tuple[bool, str]) -> None:
    seen = read(Dialect(name.partition(".")[0]), STREAMS[name])
    assert seen.output is output
    assert result(seen.terminal) == terminal


def test_every_recorded_stream_is_tested() -> None:
    rows = test_recorded_streams.pytestmark[0].args[1]
    assert {row[0] for row in rows} == set(STREAMS)


@given(st.sampled_from(sorted(STREAMS)), st.data())
@settings(max_examples=120, deadline=None)
def test_any_split_gives_the_same_result(name: str, draw: st.DataObject) -> None:
    dialect, stream = Dialect(name.partition(".")[0]), STREAMS[name]
    cuts = draw.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    assert facts(read(dialect, stream, cuts)) == facts(read(dialect, stream))


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_byte_by_byte_and_with_crlf(name: str) -> None:
    dialect, stream = Dialect(name.partition(".")[0]), STREAMS[name]
    whole = facts(read(dialect, stream))
    assert facts(read(dialect, stream, list(range(len(stream))))) == whole
    crlf = stream.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert facts(read(dialect, crlf)) == whole
    assert facts(read(dialect, stream.replace(b"data: ", b"data:"))) == whole


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_stream_cut_before_its_terminal_has_failed(name: str) -> None:
    dialect, stream = Dialect(name.partition(".")[0]), STREAMS[name].replace(b"\r\n", b"\n")
    frames = stream.split(b"\n\n")
    for count in range(len(frames)):
        seen = inspector(dialect)
        seen.feed(b"\n\n".join(frames[:count]) + b"\n\n")
        known = seen.terminal
        seen.close()
        assert seen.terminal == (known or FailureTerminal(dialect, "eof"))


# Without the cases of an adapter's own check of declared tools: no reading of bytes decides those.
CASES = [
    case
    for case in json.loads((DATA / "classification-cases.json").read_text())
    if "sse" in case and "run_turn" not in case
]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_classification_cases(case: dict[str, object]) -> None:
    """A case that commits has output or a success; one that hops or stops has neither, but a failure."""
    stream = case["sse"] or ""
    assert isinstance(stream, str)
    seen = read(DIALECTS[str(case["dialect"])], stream.encode())
    expected = case["expected"]
    assert isinstance(expected, dict)
    commits = seen.output or isinstance(seen.terminal, SuccessTerminal)
    assert commits is (expected["verdict"] == "commit")


CREATED = typed("response.created", response={"id": "r1", "model": "m1", "output": []})
START = typed("message_start", message={"id": "m_a", "model": "m1", "content": [], "usage": {"input_tokens": 25}})
ROLE = event({"id": "c1", "model": "m1", "choices": [{"delta": {"role": "assistant", "content": ""}}]})


@pytest.mark.parametrize(
    "frame",
    [
        CREATED,
        typed("response.created", response={"status": "in_progress"}),
        typed("response.in_progress"),
        typed("response.queued"),
        typed("response.heartbeat"),
        typed("keepalive"),
        typed("ping"),
        typed("response.metadata", headers={"openai-model": "x"}),
        typed("codex.rate_limits"),
        typed("codex.response.metadata"),
        b": waiting\n\n",
        b"data: [DONE]\n\n",
        b"event: response.output_text.delta\n\n",
        b"data:\n\n",
        b"<html>502</html>\n\n",
    ],
)
def test_responses_before_output(frame: bytes) -> None:
    seen = read(R, frame)
    assert not seen.output
    assert seen.terminal == FailureTerminal(R, "eof")


@pytest.mark.parametrize(
    "frame",
    [
        typed("response.output_text.delta", delta="x"),
        typed("response.reasoning_summary_text.delta", delta=""),
        typed("response.output_item.added", item={"type": "reasoning"}),
        typed("response.content_part.added"),
        typed("response.created", response={"output": [{"type": "message"}]}),
        typed("provider.future_event"),
        event({"delta": "no type"}),
        event({"type": 7}),
        event([1]),
        event("text"),
        b"data: {broken\n\n",
        b"event: ping\ndata: {}\n\n",
        b'event: ping\ndata: {"type":"response.output_text.delta"}\n\n',
    ],
)
def test_responses_output(frame: bytes) -> None:
    assert read(R, CREATED + frame).output


def test_responses_identity_and_usage() -> None:
    usage = {
        "input_tokens": 12,
        "output_tokens": 3,
        "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    done = {"id": "other", "model": "m1-2026", "output": [{}], "usage": usage}
    seen = read(R, CREATED + typed("response.completed", response=done))
    assert (seen.response_id, seen.model) == ("r1", "m1-2026")
    assert seen.terminal == SuccessTerminal("completed")
    assert seen.usage == {
        "input_tokens": 12,
        "output_tokens": 3,
        "total_tokens": 15,
        "cached_input_tokens": 4,
        "cache_creation_input_tokens": 2,
        "reasoning_output_tokens": 1,
    }


def test_responses_failure_keeps_its_event_and_usage() -> None:
    payload = {
        "type": "response.failed",
        "response": {"error": None, "usage": {"input_tokens": 10}},
        "error": {"code": "x"},
    }
    seen = read(R, event(payload, "response.failed"))
    assert seen.terminal == FailureTerminal(R, "failed", payload, "response.failed")
    assert seen.usage == {"input_tokens": 10}


@pytest.mark.parametrize(
    ("reason", "terminal"),
    [
        ("max_output_tokens", SuccessTerminal("incomplete", "max_output_tokens", empty=True)),
        (None, SuccessTerminal("incomplete", "", empty=True)),
        ("adapter_eof", None),
        ("missing_terminal_event", None),
        ("upstream_stall_timeout", None),
    ],
)
def test_responses_incomplete(reason: str | None, terminal: Terminal | None) -> None:
    seen = read(R, typed("response.incomplete", response={"incomplete_details": {"reason": reason}}))
    if terminal is None:
        assert result(seen.terminal) == (False, "incomplete")
    else:
        assert seen.terminal == terminal


def test_an_error_object_in_place_of_an_event_fails_a_responses_stream() -> None:
    payload = {"error": {"code": "context_length_exceeded"}}
    seen = read(R, event(payload))
    assert not seen.output
    assert seen.terminal == FailureTerminal(R, "error", payload)


@pytest.mark.parametrize(
    ("dialect", "first", "second"),
    [
        (R, typed("response.completed", response={}), typed("error", message="late")),
        (R, typed("error", message="first"), typed("response.completed", response={})),
        (C, event({"choices": [{"finish_reason": "stop"}]}), event({"error": {"message": "late"}})),
        (C, event({"error": {"message": "first"}}), b"data: [DONE]\n\n"),
        (M, typed("message_delta", delta={"stop_reason": "end_turn"}), typed("error", error={})),
        (M, typed("error", error={"type": "api_error"}), typed("message_stop")),
        (G, event({"candidates": [{"finishReason": "STOP"}]}), event({"error": {"code": 500}})),
    ],
)
def test_the_first_terminal_decides(dialect: Dialect, first: bytes, second: bytes) -> None:
    alone = read(dialect, first)
    assert read(dialect, first + second).terminal == alone.terminal
    assert not read(dialect, first + second).output


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": []},
        {},
        {"choices": [], "usage": {"prompt_tokens": 3}},
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"content": "", "tool_calls": None}, "finish_reason": None}]},
        {"choices": [{"delta": None}, None, 7]},
        {"choices": "x", "error": None},
    ],
)
def test_chat_before_output(chunk: object) -> None:
    seen = read(C, event(chunk))
    assert not seen.output
    assert seen.terminal == FailureTerminal(C, "eof")


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"reasoning_content": "x"},
        {"reasoning": "x"},
        {"refusal": "x"},
        {"tool_calls": [{"index": 0}]},
        {"function_call": {"name": "f"}},
    ],
)
def test_chat_output(delta: object) -> None:
    assert read(C, ROLE + event({"choices": [{"delta": delta}]})).output


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        ({"error": {"code": 502}, "choices": []}, {"code": 502}),
        ({"error": "text"}, "text"),
        ({"choices": [{"finish_reason": "error", "error": {"message": "m"}}]}, {"message": "m"}),
        ({"choices": [{"finish_reason": "error"}]}, None),
        ({"object": "error", "message": "m", "code": 400}, None),
    ],
)
@pytest.mark.parametrize("after_output", [False, True])
def test_chat_failures(chunk: dict[str, object], error: object, after_output: bool) -> None:
    before = event({"choices": [{"delta": {"content": "x"}}]}) if after_output else ROLE
    seen = read(C, before + event(chunk))
    assert seen.output is after_output
    assert isinstance(seen.terminal, FailureTerminal)
    assert seen.terminal.kind == "error"
    assert seen.terminal.event.get("error") == error


def test_chat_error_event_without_error_member() -> None:
    seen = read(C, event({"message": "m"}, "error"))
    assert seen.terminal == FailureTerminal(C, "error", {"message": "m"}, "error")


@pytest.mark.parametrize("data", [b"data: {oops\n\n", b"data: 7\n\n", b'data: "x"\n\n', b"data: []\n\n"])
def test_chat_mangled_data_fails_before_output_only(data: bytes) -> None:
    assert read(C, ROLE + data).terminal == FailureTerminal(C, "malformed")
    after = read(C, event({"choices": [{"delta": {"content": "x"}}]}) + data + b"data: [DONE]\n\n")
    assert after.terminal == SuccessTerminal("completed")


def test_chat_usage_follows_the_finish_reason() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    content = event({"id": "c1", "model": "m1", "choices": [{"delta": {"content": "x"}}], "usage": None})
    finish = event({"choices": [{"delta": {}, "finish_reason": "length"}]})
    seen = read(C, content + finish + event({"choices": [], "usage": usage}) + b"data: [DONE]\n\n")
    assert seen.terminal == SuccessTerminal("incomplete", "length")
    assert seen.usage == {
        "input_tokens": 9,
        "output_tokens": 4,
        "total_tokens": 13,
        "cached_input_tokens": 5,
        "reasoning_output_tokens": 2,
    }
    assert (seen.model, seen.response_id) == ("m1", "c1")


def test_chat_done_alone_is_an_empty_success() -> None:
    assert read(C, b"data: [DONE]").terminal == SuccessTerminal("completed", empty=True)


@pytest.mark.parametrize(
    "frame",
    [
        START,
        typed("ping"),
        typed("content_block_start", content_block={"type": "text", "text": ""}),
        typed("content_block_start", content_block={"type": "thinking", "thinking": "", "signature": ""}),
        typed("content_block_delta", delta={"type": "text_delta", "text": ""}),
        typed("content_block_delta", delta={"type": "thinking_delta", "thinking": ""}),
        typed("content_block_stop", index=0),
        typed("message_delta", delta={"stop_reason": None}),
        event({"type": "ping"}),
        b"event: content_block_delta\ndata: {broken\n\n",
        b"event: content_block_start\n\n",
        b": waiting\n\n",
    ],
)
def test_messages_before_output(frame: bytes) -> None:
    seen = read(M, frame)
    assert not seen.output
    assert seen.terminal == FailureTerminal(M, "eof")


@pytest.mark.parametrize(
    "frame",
    [
        typed("content_block_start", content_block={"type": "text", "text": "x"}),
        typed("content_block_start", content_block={"type": "tool_use", "input": {}}),
        typed("content_block_start", content_block={"type": "server_tool_use"}),
        typed("content_block_start", content_block={"type": "redacted_thinking", "data": ""}),
        typed("content_block_start"),
        typed("content_block_delta", delta={"type": "text_delta", "text": "x"}),
        typed("content_block_delta", delta={"type": "thinking_delta", "thinking": "x"}),
        typed("content_block_delta", delta={"type": "input_json_delta", "partial_json": ""}),
        typed("content_block_delta", delta={"type": "signature_delta", "signature": ""}),
        typed("content_block_delta", delta={"type": ["odd"]}),
        typed("message_start", message={"content": [{"type": "text", "text": "resumed"}]}),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}}),
        event({"type": "ping", "delta": {"type": "text_delta", "text": "x"}}, "content_block_delta"),
        typed("future_event"),
    ],
)
def test_messages_output(frame: bytes) -> None:
    assert read(M, START + frame).output


@pytest.mark.parametrize(
    ("frame", "terminal"),
    [
        (typed("message_stop"), SuccessTerminal("completed", empty=True)),
        (b"event: message_stop\n\n", SuccessTerminal("completed", empty=True)),
        (
            typed("message_delta", delta={"stop_reason": "end_turn"}),
            SuccessTerminal("completed", "end_turn", empty=True),
        ),
        (
            typed("message_delta", delta={"stop_reason": "refusal"}),
            SuccessTerminal("incomplete", "refusal", empty=True),
        ),
        (event({"error": {"type": "x"}}, "error"), FailureTerminal(M, "error", {"error": {"type": "x"}}, "error")),
        (event({"type": "error"}), FailureTerminal(M, "error", {"type": "error"})),
        (b"event: error\ndata: broken\n\n", FailureTerminal(M, "error", {}, "error")),
        (b"event: error\n\n", FailureTerminal(M, "error", {}, "error")),
    ],
)
def test_messages_terminals(frame: bytes, terminal: Terminal) -> None:
    assert read(M, START + frame).terminal == terminal
    text = typed("content_block_delta", delta={"type": "text_delta", "text": "x"})
    after = read(M, START + text + frame)
    assert after.output
    assert after.terminal is not None
    assert after.terminal.kind == terminal.kind


def test_messages_stop_reason_error_is_a_failure() -> None:
    assert result(read(M, typed("message_delta", delta={"stop_reason": "error"})).terminal) == (False, "error")


def test_messages_usage_is_merged() -> None:
    start = typed(
        "message_start", message={"usage": {"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 3}}
    )
    text = typed("content_block_delta", delta={"type": "text_delta", "text": "x"})
    delta = typed("message_delta", delta={"stop_reason": "end_turn"}, usage={"input_tokens": None, "output_tokens": 7})
    assert read(M, start + text + delta).usage == {"input_tokens": 25, "output_tokens": 7, "cached_input_tokens": 3}
    assert read(M, start + text).usage == {"input_tokens": 25, "output_tokens": 1, "cached_input_tokens": 3}
    assert read(M, text).usage is None


@pytest.mark.parametrize(
    ("chunk", "output", "terminal"),
    [
        ({"candidates": [{"content": {"parts": [{"text": ""}]}}]}, False, FailureTerminal(G, "eof")),
        ({"candidates": [{"content": {"parts": [{"text": "x", "thought": True}]}}]}, True, FailureTerminal(G, "eof")),
        ({"candidates": [{"content": {"parts": [{"thoughtSignature": "s"}]}}]}, False, FailureTerminal(G, "eof")),
        ({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]}, True, FailureTerminal(G, "eof")),
        ({"candidates": [{"finishReason": "STOP"}]}, False, SuccessTerminal("completed", "STOP", empty=True)),
        ({"candidates": [{"finishReason": "SAFETY"}]}, False, SuccessTerminal("incomplete", "SAFETY", empty=True)),
        ({"candidates": [{"finishReason": "FINISH_REASON_UNSPECIFIED"}]}, False, FailureTerminal(G, "eof")),
        ({"promptFeedback": {"blockReason": "OTHER"}}, False, SuccessTerminal("incomplete", "OTHER", empty=True)),
        ({"error": {"code": 503}}, False, FailureTerminal(G, "error", {"error": {"code": 503}})),
    ],
)
def test_gemini(chunk: object, output: bool, terminal: Terminal) -> None:
    seen = read(G, event(chunk))
    assert (seen.output, seen.terminal) == (output, terminal)


def test_gemini_mangled_data() -> None:
    assert read(G, b"data: {oops\n\n").terminal == FailureTerminal(G, "malformed")
    assert read(G, b"data: [DONE]\n\n").terminal == FailureTerminal(G, "eof")


def test_gemini_usage_and_identity() -> None:
    seen = read(G, STREAMS["gemini.full.sse"])
    assert (seen.model, seen.response_id) == ("gemini-3-pro", "g-s1")
    assert seen.usage == {
        "input_tokens": 1200,
        "output_tokens": 116,
        "total_tokens": 1380,
        "cached_input_tokens": 900,
        "reasoning_output_tokens": 64,
    }


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_stream_without_a_byte_has_ended_early(dialect: Dialect) -> None:
    seen = read(dialect, b"")
    assert facts(seen) == (False, FailureTerminal(dialect, "eof"), None, None, None)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_closing_twice_and_feeding_after_the_end_change_nothing(dialect: Dialect) -> None:
    seen = read(dialect, b"")
    seen.feed(STREAMS[f"{dialect}.full.sse"])
    seen.close()
    assert seen.terminal == FailureTerminal(dialect, "eof")


PIECES = st.sampled_from(
    [
        b"event: error\n", b"event: message_start\n", b"event: message_delta\n", b"event: content_block_delta\n",
        b'data: {"type":"error","error":[]}\n\n', b'data: {"type":["x"],"response":7,"choices":{"a":1}}\n\n',
        b'data: {"type":"response.created","response":{"output":{},"model":4,"id":[]}}\n\n', b"data: null\n\n",
        b'data: {"choices":[{"delta":[1],"finish_reason":{}}],"usage":[1],"message":"x","delta":"y"}\n\n',
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":"5","output_tokens":-1}}}\n\n',
        b'data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":{}}}}\n\n',
        b'data: {"candidates":[{"content":{"parts":[1,{"text":[]}]},"finishReason":3}],"usageMetadata":7}\n\n',
        b'data: {"type":"content_block_start","content_block":[]}\n\n', b"\xff\xfe\x00",
        b"data: " + b"[" * 3000 + b"\n\n",
    ]
)  # fmt: skip


@given(st.sampled_from(list(Dialect)), st.lists(PIECES | st.binary(max_size=30), max_size=8))
@settings(max_examples=200)
def test_hostile_input_never_raises(dialect: Dialect, pieces: list[bytes]) -> None:
    seen = inspector(dialect)
    for piece in pieces:
        seen.feed(piece)
    seen.close()
    assert seen.terminal is not None
    assert seen.usage is None or all(type(count) is int and count >= 0 for count in seen.usage.values())


class CountingInspector(ResponsesInspector):
    """Counts the frames that are parsed."""

    parsed = 0

    def _parse(self, data: bytes) -> dict[str, object] | None:
        self.parsed += 1
        parsed = super()._parse(data)
        return None if parsed is None else dict(parsed)


def test_after_output_only_candidates_for_a_terminal_are_parsed() -> None:
    seen = CountingInspector()
    seen.feed(CREATED + typed("response.output_text.delta", delta="x"))
    assert seen.parsed == 2
    for _ in range(100):
        seen.feed(typed("response.output_text.delta", delta="quite ordinary text"))
    assert seen.parsed == 2
    seen.feed(typed("response.output_text.delta", delta='"error" and response.failed are words'))
    assert seen.terminal is None
    seen.feed(typed("response.completed", response={}))
    assert seen.terminal == SuccessTerminal("completed")
    parsed = seen.parsed
    seen.feed(typed("response.failed"))
    assert seen.parsed == parsed


LONG = "z" * 5000


@pytest.mark.parametrize(
    ("kind", "frame", "output", "terminal"),
    [
        (R, typed("response.completed", response={"x": LONG}), False, (True, "completed")),
        (R, typed("response.failed", response={"x": LONG}), False, (False, "failed")),
        (R, typed("response.created", response={"x": LONG}), False, (False, "eof")),
        (R, typed("response.output_item.done", item={"x": LONG}), True, (False, "eof")),
        (R, event({"x": LONG}, "response.completed"), False, (True, "completed")),
        (M, typed("message_start", message={"x": LONG}), False, (False, "eof")),
        (M, typed("content_block_start", content_block={"x": LONG}), True, (False, "eof")),
        (C, event({"choices": [{"delta": {"content": LONG}}]}), True, (False, "eof")),
        (G, event({"candidates": [{"content": {"parts": [{"text": LONG}]}}]}), True, (False, "eof")),
    ],
)
def test_a_frame_over_the_limit_counts_by_its_type(
    kind: Dialect, frame: bytes, output: bool, terminal: tuple[bool, str]
) -> None:
    seen = type(inspector(kind))(1000)
    for start in range(0, len(frame), 300):
        seen.feed(frame[start : start + 300])
    seen.close()
    assert seen.output is output
    assert result(seen.terminal) == terminal


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (b'event: a\ndata: {"type":"b","x":1', "b"),
        (b'event: a\ndata: { "type" : "b"', "b"),
        (b'event: a\ndata: {"x":"y","type":"b"', "a"),
        (b"event: a\ndata: x", "a"),
        (b"data: x", ""),
    ],
)
def test_leading_type(frame: bytes, kind: str) -> None:
    assert leading_type(parse_frame(frame)) == kind
