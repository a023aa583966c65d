"""Events of a Responses stream."""

import pytest

from combos.wire.dialect import FailureTerminal, SuccessTerminal, Terminal
from streams import R, event, read, result, typed

CREATED = typed("response.created", response={"id": "r1", "model": "m1", "output": []})


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
