"""Chunks of a Chat Completions stream."""

import pytest

from combos.wire.dialect import FailureTerminal, SuccessTerminal
from streams import C, event, read

ROLE = event({"id": "c1", "model": "m1", "choices": [{"delta": {"role": "assistant", "content": ""}}]})


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
