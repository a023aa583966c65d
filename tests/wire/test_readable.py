"""Turns of models as people read them."""

import json

import pytest

from combos.core.facts import Dialect
from combos.wire.readable import answer_lines, read_answer, read_request, request_lines
from combos.wire.translate.ir import Kind
from wires import WIRES, C, M, R, Wire, chunk, sse

DIALECTS = {"R": Dialect.RESPONSES, "C": Dialect.CHAT, "M": Dialect.MESSAGES}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_text_is_joined_and_the_end_named(wire: Wire) -> None:
    events = [*wire.start(), *wire.begin_text(), wire.delta("Hel"), wire.delta("lo"), *wire.finish("Hello")]
    turn = read_answer(DIALECTS[wire.name], b"".join(events))
    assert [passage.text for passage in turn.passages] == ["Hello"]
    assert (turn.end, turn.failure) == ("stop", None)
    lines = list(answer_lines(turn))
    assert lines[0] == "status: completed (stop)"
    assert lines[-2:] == ["", "Hello"]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_whole_answer_reads_the_same(wire: Wire) -> None:
    turn = read_answer(DIALECTS[wire.name], json.dumps(wire.whole("Hello")).encode())
    assert ([passage.text for passage in turn.passages], turn.end) == (["Hello"], "stop")


def test_gemini() -> None:
    parts = [{"text": "Hel"}, {"text": "lo"}, {"functionCall": {"name": "look", "args": {"at": "sky"}}}]
    usage = {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    body = json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()
    lines = list(answer_lines(read_answer(Dialect.GEMINI, body)))
    assert lines[1] == "usage: 4 in, 2 out"
    assert "Hello" in lines
    assert any(line.startswith("── tool call look") for line in lines)
    assert json.loads(lines[-1]) == {"at": "sky"}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_failure_in_the_stream_is_the_status(wire: Wire) -> None:
    turn = read_answer(
        DIALECTS[wire.name], b"".join([*wire.start(), *wire.begin_text(), wire.delta("Hel"), wire.busy()])
    )
    status = next(answer_lines(turn))
    assert turn.end is None
    assert status.startswith("status: failed (")
    assert "usy" in status or "verloaded" in status


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_what_was_kept_in_part_is_shown_as_such(wire: Wire) -> None:
    whole = b"".join([*wire.start(), *wire.begin_text(), wire.delta("The beginning"), *wire.finish("The beginning")])
    turn = read_answer(DIALECTS[wire.name], whole[: whole.index(b"beginning") + 40])
    lines = list(answer_lines(turn))
    assert "no end" in lines[0] or lines[0].startswith("status: failed")
    assert lines[-1] in ("The beginning", "")


def test_tool_calls_reasoning_and_usage() -> None:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":'}}
    rest = {"index": 0, "function": {"arguments": '"sky"}'}}
    usage = {
        "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    events = [
        sse(chunk("x", {"role": "assistant", "reasoning_content": "Hm."})),
        sse(chunk("x", {"tool_calls": [call]})),
        sse(chunk("x", {"tool_calls": [rest]})),
        sse(chunk("x", {}, "tool_calls")),
        sse({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
        b"data: [DONE]\n\n",
    ]
    turn = read_answer(Dialect.CHAT, b"".join(events))
    assert [passage.kind for passage in turn.passages] == [Kind.REASONING, Kind.CALL]
    lines = list(answer_lines(turn))
    assert lines[:2] == ["status: completed (tool_calls)", "usage: 9 in, 5 out, 3 cached, 2 reasoning"]
    assert lines[-2:] == ["── tool call look (call_1)", '{"at":"sky"}']


@pytest.mark.parametrize("body", [b"", b"hello", b"{}", b"[]", b'{"object":"list","data":[]}', b"data: {}\n\n"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_no_turn_is_refused_or_read_as_a_failure(dialect: Dialect, body: bytes) -> None:
    try:
        turn = read_answer(dialect, body)
    except ValueError:
        return
    assert all(passage.text == "" for passage in turn.passages)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_requests(wire: Wire) -> None:
    lines = list(request_lines(read_request(DIALECTS[wire.name], json.dumps(wire.request("m")).encode())))
    assert lines[-2:] == ["── user", "hi"]


def test_a_conversation() -> None:
    look = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
    body = {
        "model": "m",
        "reasoning_effort": "high",
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "See"}, image]},
            {"role": "assistant", "content": None, "tool_calls": [look]},
            {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        ],
    }
    lines = list(request_lines(read_request(Dialect.CHAT, json.dumps(body).encode())))
    assert lines[:2] == ["effort: high", "tools: look"]
    for expected in ("Be brief.", "See", "[image https://x.example/a.png]", "[calls look] {}", "[result of c1] blue"):
        assert expected in lines


def test_a_request_that_is_none() -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        read_request(Dialect.CHAT, b"[]")


def test_wires_are_all_covered() -> None:
    assert {R.name, C.name, M.name} == set(DIALECTS)
