"""Events of a Messages stream."""

import pytest

from combos.wire.dialect import FailureTerminal, SuccessTerminal, Terminal
from streams import M, event, read, result, typed

START = typed("message_start", message={"id": "m_a", "model": "m1", "content": [], "usage": {"input_tokens": 25}})


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
