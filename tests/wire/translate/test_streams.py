"""Streams in detail: interleaved blocks, lenient servers, freeform input, broken calls, Codex's refusals."""

import json

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import AnswerError, StreamTranslator, translate_response
from combos.wire.translate.ir import Tool
from oracle_answers import digest_answer, digest_stream
from oracle_lint import lint_stream
from translations import DIALECTS, Json, context, stream

R, C, M, G = DIALECTS


def sse(*payloads: Json | str) -> bytes:
    texts = (payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads)
    return b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)


def chunk(reason: str | None = None, **delta: object) -> Json:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def call(index: int, text: str, **first: object) -> Json:
    return {"index": index, **first, "function": {"arguments": text, **({"name": "f"} if first else {})}}


def kinds(out: bytes) -> list[str]:
    events = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
    return [event.get("type", "") for event in events]


def test_text_reaches_a_messages_client_as_it_comes() -> None:
    translator = StreamTranslator(M, C, context(M, C))
    assert b"text_delta" in translator.feed(sse(chunk(content="Hel")))
    assert b'"lo"' in translator.feed(sse(chunk(content="lo")))
    first = translator.feed(sse(chunk(tool_calls=[call(0, '{"a"', id="x")])))
    assert b"content_block_stop" in first, "text is closed by the first call"
    assert b"partial_json" in first, "and the call streams at once"
    second = translator.feed(sse(chunk(tool_calls=[call(1, "{}", id="y")])))
    assert second == b"", "the next one waits for its turn"
    out = translator.feed(sse(chunk(tool_calls=[call(0, ":1}")]), chunk("tool_calls"), "[DONE]"))
    assert out.count(b"event: content_block_start") == 1
    assert b'"stop_reason":"tool_use"' in out


def test_text_after_calls_is_kept_in_order() -> None:
    raw = sse(chunk(tool_calls=[call(0, "{}", id="x")]), chunk(content="After."), chunk("stop"), "[DONE]")
    for client in (R, M, G):
        out = stream(raw, client, C)
        assert lint_stream(client.value, out) == []
        got = digest_stream(client.value, out)
        assert (got["text"], len(got["calls"]), got["finish"]) == ("After.", 1, "tool_calls")


def test_a_finish_without_done_is_complete() -> None:
    got = digest_stream("messages", stream(sse(chunk(content="a"), chunk("length")), M, C))
    assert (got["finish"], got["text"]) == ("length", "a")


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": 5, "completion_tokens": 2}, {"prompt_tokens": 5.0, "completion_tokens": 2}]
)
def test_a_late_usage_chunk_is_used_and_the_last_one_wins(usage: Json) -> None:
    early = {**chunk(content="a"), "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    raw = sse(early, chunk("stop"), {"id": "c", "choices": [], "usage": usage}, "[DONE]")
    got = digest_stream("responses", stream(raw, R, C))["usage"]
    assert (got["input_total"], got["output"]) == (5, 2)


def test_chat_usage_only_for_those_who_asked() -> None:
    raw = sse({"type": "message_start", "message": {}}, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert b"usage" not in stream(raw, C, M, context(C, M, include_usage=False))
    assert b'"choices":[],"usage":{' in stream(raw, C, M, context(C, M, include_usage=True))


def test_other_choices_and_unknown_events_are_passed_over() -> None:
    other = {"id": "c", "choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    raw = sse(chunk(content="yes"), other, {"object": "weird"}, "[]", chunk("stop"), "[DONE]")
    assert digest_stream("responses", stream(raw, R, C))["text"] == "yes"


def test_done_ends_chat_streams_only() -> None:
    raw = sse({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}, "[DONE]")
    tail = sse({"candidates": [], "usageMetadata": {"promptTokenCount": 3}})
    assert digest_stream("chat", stream(raw + tail, C, G))["usage"]["input_total"] == 3


@pytest.mark.parametrize("fault", ["MALFORMED_FUNCTION_CALL", "OTHER", "UNEXPECTED_TOOL_CALL"])
def test_gemini_reasons_that_are_faults(fault: str) -> None:
    raw = sse({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": fault}]})
    assert digest_stream("responses", stream(raw, R, G))["error"] == "server_error"
    with pytest.raises(AnswerError, match=fault):
        translate_response(raw.removeprefix(b"data: "), R, G, context(R, G))


def test_a_blocked_prompt_is_a_refusal() -> None:
    raw = sse({"promptFeedback": {"blockReason": "SAFETY"}})
    assert digest_stream("messages", stream(raw, M, G))["finish"] == "content_filter"


def test_gemini_calls_without_id_get_one() -> None:
    part = {"functionCall": {"name": "f", "args": {"a": 1}}}
    raw = sse({"candidates": [{"content": {"parts": [part, part]}, "finishReason": "STOP"}]})
    calls = digest_stream("chat", stream(raw, C, G))["calls"]
    assert len({call_id for call_id, _name, _said in calls}) == 2
    assert all(call_id.startswith("call_") for call_id, _name, _said in calls)


def test_messages_clients_get_ids_they_accept() -> None:
    raw = sse(chunk(tool_calls=[call(0, "{}", id="functions.f:0")]), chunk("tool_calls"), "[DONE]")
    assert digest_stream("messages", stream(raw, M, C))["calls"][0][0] == "functions_f_0"
    assert digest_stream("responses", stream(raw, R, C))["calls"][0][0] == "functions.f:0"


@pytest.mark.parametrize(
    ("text", "said"), [("[1]", {"_raw": "[1]"}), ("  ", {}), ('"x"', {"_raw": '"x"'}), ('{"a":1}', {"a": 1})]
)
def test_messages_clients_get_objects_only(text: str, said: Json) -> None:
    raw = sse(chunk(tool_calls=[call(0, text, id="x")]), chunk("tool_calls"), "[DONE]")
    out = stream(raw, M, C)
    assert lint_stream("messages", out) == []
    assert json.loads(digest_stream("messages", out)["calls"][0][2]) == said


def test_custom_calls_of_the_model_are_functions_for_clients_without_them() -> None:
    custom = {"index": 0, "id": "x", "type": "custom", "custom": {"name": "p", "input": 'a"b'}}
    raw = sse(chunk(tool_calls=[custom]), chunk("tool_calls"), "[DONE]")
    assert digest_stream("messages", stream(raw, M, C))["calls"] == [["x", "p", '{"input": "a\\"b"}']]
    assert digest_stream("responses", stream(raw, R, C))["calls"] == [["x", "p", 'raw:a"b']]


def test_a_chat_client_gets_its_custom_tool_back_from_a_json_only_target() -> None:
    block = {"type": "tool_use", "id": "x", "name": "p", "input": {"input": "a\nb"}}
    body = json.dumps({"content": [block], "stop_reason": "tool_use"}).encode()
    got = json.loads(translate_response(body, C, M, context(C, M, Tool("p", freeform=True))))
    assert digest_answer("chat", got)["calls"] == [["x", "p", "raw:a\nb"]]


def test_a_broken_stream_never_completes_a_call() -> None:
    """Clients run a call as soon as its item is done; text that came is kept."""
    raw = sse(chunk(content="Hm."), chunk(tool_calls=[call(0, '{"a"', id="x")]))
    out = stream(raw, R, C)
    events = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: ")]
    done = [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"]
    assert done == ["message"]
    assert events[-1]["type"] == "response.failed"


REFUSED = sse(
    {"type": "message_start", "message": {}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Sorry"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "Because."}}},
)


def test_codex_is_told_of_a_refusal_in_words() -> None:
    plain = digest_stream("responses", stream(REFUSED, R, M))
    codex = digest_stream("responses", stream(REFUSED, R, M, context(R, M, codex=True)))
    assert (plain["finish"], plain["text"]) == ("content_filter", "Sorry")
    assert (codex["finish"], codex["text"]) == ("stop", "SorryBecause.")


def response_events(*events: Json) -> bytes:
    return sse(*events, {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": {}}})


def test_responses_items_without_deltas_are_read_from_their_end() -> None:
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Whole."}]}
    calls = {"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": "{}"}
    thought = {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "Hm."}]}
    raw = response_events(*({"type": "response.output_item.done", "item": entry} for entry in (thought, item, calls)))
    got = digest_stream("chat", stream(raw, C, R))
    assert (got["reasoning"], got["text"], got["calls"]) == ("Hm.", "Whole.", [["c", "f", "{}"]])


def test_responses_output_only_in_the_terminal_event() -> None:
    output = [
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Late."}, {"type": "refusal", "refusal": "No."}],
        }
    ]
    raw = sse({"type": "response.completed", "response": {"status": "completed", "output": output}})
    got = digest_stream("chat", stream(raw, C, R))
    assert (got["text"], got["refusal"]) == ("Late.", "No.")


def test_summary_parts_are_joined_with_a_blank_line() -> None:
    deltas = [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": n, "delta": text}
        for n, text in ((0, "a"), (0, "b"), (1, "c"))
    ]
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "r"}}
    done = {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {"type": "reasoning", "id": "r", "encrypted_content": "gAAA"},
    }
    assert digest_stream("messages", stream(response_events(added, *deltas, done), M, R))["reasoning"] == "ab\n\nc"


def test_a_text_that_the_deltas_cut_short_is_completed() -> None:
    raw = response_events(
        {"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "Ha"},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Half."}]},
        },
    )
    assert digest_stream("messages", stream(raw, M, R))["text"] == "Half."


@pytest.mark.parametrize(
    ("word", "finish"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("steered", "length"), ("new", "stop")],
)
def test_incomplete_responses(word: str, finish: str) -> None:
    response = {"status": "incomplete", "incomplete_details": {"reason": word}, "output": []}
    raw = sse({"type": "response.incomplete", "response": response})
    assert digest_stream("chat", stream(raw, C, R))["finish"] == finish


@pytest.mark.parametrize(
    ("target", "body"),
    [
        (R, {"status": "failed", "error": {"code": "server_error", "message": "x"}}),
        (R, {"status": "cancelled"}),
        (R, {"error": {"message": "x", "code": "rate_limit_exceeded"}}),
        (C, {"error": {"message": "x"}}),
        (C, {"choices": []}),
        (M, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
        (G, {"candidates": []}),
    ],
)
@pytest.mark.parametrize("client", DIALECTS)
def test_failed_whole_answers_raise(client: Dialect, target: Dialect, body: Json) -> None:
    if client is not target:
        with pytest.raises(AnswerError) as caught:
            translate_response(json.dumps(body).encode(), client, target, context(client, target))
        assert caught.value.status == 502


def test_the_settings_a_client_sent_are_echoed() -> None:
    echo = {"instructions": "Be brief.", "tools": [{"type": "web_search"}], "metadata": {"a": "b"}, "top_p": 0.5}
    raw = sse(chunk(content="a"), chunk("stop"), "[DONE]")
    document = json.loads(translate_response(raw, R, C, context(R, C, echo=echo)))
    assert {key: document[key] for key in echo} == echo
    assert (document["store"], document["previous_response_id"]) == (False, None)


def test_a_claude_answer_for_codex_step_by_step() -> None:
    raw = sse(
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
    assert [kind.removeprefix("response.") for kind in kinds(stream(raw, R, M))] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def no_arguments(target: Dialect, text: str) -> bytes:
    """A target's stream with one call whose arguments come to `text`: nothing, or an empty object."""
    if target is C:
        return sse(chunk(tool_calls=[call(0, text, id="x")]), chunk("tool_calls"), "[DONE]")
    if target is G:
        part: Json = {"functionCall": {"name": "f"} if not text else {"name": "f", "args": {}}}
        return sse({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    if target is M:
        block = {"type": "tool_use", "id": "x", "name": "f", "input": {}}
        return sse(
            {"type": "message_start", "message": {"id": "m", "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
            {"type": "message_stop"},
        )
    item = {"type": "function_call", "id": "fc_1", "call_id": "x", "name": "f", "arguments": ""}
    done = {**item, "arguments": text}
    return sse(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [done]}},
    )


@pytest.mark.parametrize("text", ["", "{}"])
@pytest.mark.parametrize(("client", "target"), [(a, b) for a in DIALECTS for b in DIALECTS if a is not b], ids=str)
def test_a_call_without_arguments_has_an_empty_object_in_every_stream(
    client: Dialect, target: Dialect, text: str
) -> None:
    out = stream(no_arguments(target, text), client, target)
    assert lint_stream(client.value, out) == []
    if client in (R, C):
        pieces = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
        assert _joined_arguments(client, pieces) == "{}"
    (found,) = digest_stream(client.value, out)["calls"]
    assert found[1] == "f"


def _joined_arguments(client: Dialect, events: list[Json]) -> str:
    if client is R:
        (done,) = [event for event in events if event["type"] == "response.function_call_arguments.done"]
        return str(done["arguments"])
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    return "".join(one["function"].get("arguments", "") for delta in deltas for one in delta.get("tool_calls", []))
