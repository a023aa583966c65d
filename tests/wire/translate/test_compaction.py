"""Compaction turns on targets that cannot compact: the request that is asked instead, and the answer it becomes."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from combos.core.facts import Dialect
from combos.wire.sse import SseFramer, parse_frame
from combos.wire.translate import (
    AnswerError,
    Compaction,
    Context,
    StreamTranslator,
    TranslatedRequest,
    Unsupported,
    scrub,
    translate_request,
    translate_response,
)
from combos.wire.translate.compaction import PREFIX, RECENT_CHARACTERS
from oracle_answers import digest_stream
from oracle_lint import lint_stream
from translations import CASES, DIALECTS, GIVEN, Json, profile, read

R, C, M, G = DIALECTS
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
HISTORY = [
    {"type": "additional_tools", "tools": [{"type": "function", "name": "f"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "First."}, IMAGE]},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": [IMAGE]},
    {"type": "message", "role": "user", "content": "Second."},
]
TRIGGER: Json = {
    "model": "combo/main",
    "stream": True,
    "tools": [{"type": "web_search"}, {"type": "code_interpreter"}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "text": {"verbosity": "low"},
    "input": [*HISTORY, {"type": "compaction_trigger"}],
}
COMPACT: Json = {"model": "combo/main", "input": HISTORY, "instructions": "Be brief."}
TEXTS = {R: "responses.loose", C: "chat.full", M: "messages.crlf", G: "gemini.full"}


def plan(document: Json, target: Dialect, *, compact: bool = False, **flags: Any) -> TranslatedRequest:
    return translate_request(document, R, target, profile(target, **flags), replace(GIVEN, compact=compact))


def run(raw: bytes, target: Dialect, known: Context) -> bytes:
    translator = StreamTranslator(R, target, known)
    return translator.feed(raw) + translator.finish()


def stream_of(target: Dialect) -> bytes:
    return next(read(case) for case in CASES if case["file"] == f"streams/{TEXTS[target]}.sse")


@pytest.mark.parametrize("target", DIALECTS)
def test_the_turn_asks_for_a_summary_without_tools_or_images(target: Dialect) -> None:
    planned = plan(TRIGGER, target)
    text = planned.body.decode()
    assert planned.context.compaction is Compaction.TRIGGER
    assert "hand-off summary" in text
    assert "[image omitted]" in text
    for gone in ("image/png", "compaction_trigger", "additional_tools", "web_search", "verbosity"):
        assert gone not in text
    assert not {"tools", "tool_choice", "text"} & set(json.loads(text))


@pytest.mark.parametrize("target", DIALECTS)
def test_a_streamed_summary_becomes_exactly_one_compaction_item(target: Dialect) -> None:
    out = run(stream_of(target), target, plan(TRIGGER, target).context)
    events = [json.loads(parse_frame(frame).data or b"null") for frame in SseFramer().feed(out)]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    final = events[-1]["response"]
    said = digest_stream(target.value, stream_of(target))["text"]
    assert lint_stream("responses", out) == []
    assert [item["type"] for item in items] == ["compaction"]
    assert final["output"] == items
    assert base64.b64decode(items[0]["encrypted_content"].removeprefix(PREFIX)).decode() == said
    assert not [event for event in events if event["type"].endswith("delta")]


@pytest.mark.parametrize("name", ["messages.cut-off", "messages.overloaded", "messages.refusal", "messages.redacted"])
def test_a_broken_or_empty_summary_fails(name: str) -> None:
    raw = next(read(case) for case in CASES if case["file"] == f"streams/{name}.sse")
    got = digest_stream("responses", run(raw, M, plan(TRIGGER, M).context))
    assert (got["finish"], got["calls"], got["builtin"]) == ("error", [], [])


@pytest.mark.parametrize("target", DIALECTS)
def test_the_unary_endpoint_answers_with_a_history(target: Dialect) -> None:
    planned = plan(COMPACT, target, compact=True)
    body = next(read(case) for case in CASES if case["file"] == f"responses/{target.value}.full.json")
    answer = json.loads(translate_response(body, R, target, planned.context))
    texts = [item["content"][0]["text"] for item in answer["output"]]
    assert planned.stream is False
    assert texts == [
        "First.",
        "Second.",
        "Summary of the conversation so far:\n\nI will look up the tide and the vessel.",
    ]
    assert set(answer) == {"output"}


@pytest.mark.parametrize("name", ["truncated", "refusal"])
def test_the_unary_endpoint_never_answers_with_less(name: str) -> None:
    known = plan(COMPACT, M, compact=True).context
    body = next(read(case) for case in CASES if case["file"] == f"responses/messages.{name}.json")
    with pytest.raises(AnswerError) as caught:
        translate_response(body, R, M, known)
    assert caught.value.status == 502


def test_a_trigger_that_is_not_streamed() -> None:
    known = plan(TRIGGER, M).context
    bodies = {
        name: next(read(c) for c in CASES if c["file"] == f"responses/messages.{name}.json")
        for name in ("full", "truncated")
    }
    answer = json.loads(translate_response(bodies["full"], R, M, known))
    assert [item["type"] for item in answer["output"]] == ["compaction"]
    with pytest.raises(AnswerError, match="no usable summary"):
        translate_response(bodies["truncated"], R, M, known)


def test_the_unary_endpoint_reads_a_stream_as_well() -> None:
    known = plan({"input": "Hi"}, M, compact=True).context
    answer = json.loads(translate_response(stream_of(M), R, M, known))
    assert [item["content"][0]["text"][:7] for item in answer["output"]] == ["Hi", "Summary"]


def test_recent_messages_are_bounded_and_newest_first() -> None:
    long = [{"role": "user", "content": str(number) * (RECENT_CHARACTERS // 2)} for number in range(3)]
    recent = plan({"input": [*long]}, M, compact=True).context.recent
    assert [item["content"][0]["text"][0] for item in recent] == ["1", "2"]


def test_a_target_that_compacts_by_itself_is_asked_to() -> None:
    planned = plan(TRIGGER, R, canonical=True)
    assert planned.context.compaction is None
    assert json.loads(planned.body)["input"] == TRIGGER["input"]
    unary = plan(COMPACT, R, compact=True, canonical=True)
    assert json.loads(unary.body)["input"][-1] == {"type": "compaction_trigger"}
    made = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    answer = json.loads(translate_response(json.dumps({"output": [made]}).encode(), R, R, unary.context))
    assert answer["output"][-1] == made
    assert len(answer["output"]) == 3
    assert unary.stream, "the native backend only streams"
    event = {"type": "response.output_item.done", "item": made}
    raw = b"data: " + json.dumps(event).encode() + b"\n\ndata: [1]\n\n"
    assert json.loads(translate_response(raw, R, R, unary.context)) == answer


def test_a_replayed_summary_is_text_for_every_target() -> None:
    encoded = PREFIX + base64.b64encode("Später: größer".encode()).decode()
    document = {"input": [{"type": "compaction", "encrypted_content": encoded}, {"role": "user", "content": "Go"}]}
    for target in DIALECTS:
        body = json.loads(plan(document, target).body)
        assert "Später: größer" in json.dumps(body, ensure_ascii=False)
        assert PREFIX not in json.dumps(body)


@pytest.mark.parametrize("blob", ["gAAAAB", PREFIX + "***", PREFIX + base64.b64encode(b"\xff").decode(), None])
def test_a_foreign_compaction_is_refused_elsewhere_and_noted_in_a_summary(blob: str | None) -> None:
    item = {"type": "compaction", "encrypted_content": blob}
    with pytest.raises(Unsupported, match="compaction item"):
        plan({"input": [item]}, M)
    assert scrub({"input": [item]}, R, profile(R)) == {}
    body = plan({"input": [item, {"type": "compaction_trigger"}]}, M).body.decode()
    assert "compacted by another provider" in body


def test_agent_messages_are_lowered_for_all_but_their_own_backend() -> None:
    envelope = {"type": "input_text", "text": "Message Type: NEW_TASK"}
    sealed = {"type": "encrypted_content", "encrypted_content": "gAAAA"}
    document = {"input": [{"type": "agent_message", "content": [envelope, sealed]}]}
    assert scrub(document, R, profile(R, canonical=True)) == {}
    lowered = scrub(document, R, profile(R))["input"]
    assert lowered[0]["content"][0]["text"] == "Message Type: NEW_TASK\n[encrypted content]"
    assert "[encrypted content]" in plan(document, M).body.decode()
    with pytest.raises(Unsupported, match="encrypted"):
        plan({"input": [{"type": "agent_message", "content": [sealed]}]}, M)
