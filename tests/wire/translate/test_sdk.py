"""Translated answers in the accumulators of the official client libraries, which check order, ids and fields."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from combos.core.facts import Dialect
from combos.wire.translate import translate_response
from translations import CASES, DIALECTS, Json, context, label, read, stream

R, C, M, G = DIALECTS
ENDS_WELL = ("full", "interleaved", "redacted", "crlf", "web-search", "loose", "refusal", "freeform")
STREAMS = [case for case in CASES if case["kind"] == "stream" and case["file"].split(".")[1] in ENDS_WELL]
WHOLE = [case for case in CASES if case["kind"] == "response"]
HI = [{"role": "user", "content": "Hi"}]


def transport(body: bytes, media_type: str) -> httpx2.MockTransport:
    return httpx2.MockTransport(
        lambda _request: httpx2.Response(200, headers={"content-type": media_type}, content=body)
    )


def sdk(client: Dialect, body: bytes, media_type: str) -> tuple[openai.OpenAI, anthropic.Anthropic]:
    http = httpx2.Client(transport=transport(body, media_type))
    return (
        openai.OpenAI(api_key="k", base_url="http://sdk.invalid/v1", http_client=http, max_retries=0),
        anthropic.Anthropic(api_key="k", base_url="http://sdk.invalid", http_client=http, max_retries=0),
    )


def text_of(case: Json, client: Dialect) -> str:
    refusal = case["digest"]["refusal"] if client is M else ""
    return str(case["digest"]["text"] + refusal)


@pytest.mark.parametrize("case", [case for case in STREAMS if case["dialect"] != "responses"], ids=label)
def test_openai_responses_streams(case: Json) -> None:
    body = stream(read(case), R, Dialect(case["dialect"]))
    client, _ = sdk(R, body, "text/event-stream")
    with client.responses.stream(model="m", input="Hi") as events:
        final = list(events)[-1]
    response = final.response
    assert response.output_text == text_of(case, R)
    assert len([item for item in response.output if item.type == "function_call"]) == len(case["digest"]["calls"])
    assert response.usage is not None


@pytest.mark.parametrize("case", [case for case in STREAMS if case["dialect"] != "chat"], ids=label)
def test_openai_chat_streams(case: Json) -> None:
    body = stream(read(case), C, Dialect(case["dialect"]))
    client, _ = sdk(C, body, "text/event-stream")
    with client.chat.completions.stream(model="m", messages=HI) as events:
        final = _completion(events, case)
    if final is None:
        return
    message = final.choices[0].message
    assert (message.content or "") == text_of(case, C)
    assert (message.refusal or "") == case["digest"]["refusal"]
    assert len(message.tool_calls or []) == len(case["digest"]["calls"])


def _completion(events: Any, case: Json) -> Any:
    """The final completion; the library itself raises for a content filter."""
    if case["digest"]["finish"] == "content_filter":
        with pytest.raises(openai.ContentFilterFinishReasonError):
            events.get_final_completion()
        return None
    return events.get_final_completion()


@pytest.mark.parametrize("case", [case for case in STREAMS if case["dialect"] != "messages"], ids=label)
def test_anthropic_streams(case: Json) -> None:
    body = stream(read(case), M, Dialect(case["dialect"]))
    _, client = sdk(M, body, "text/event-stream")
    with client.messages.stream(model="m", max_tokens=9, messages=HI) as events:
        final = events.get_final_message()
    assert "".join(block.text for block in final.content if block.type == "text") == text_of(case, M)
    calls = [block for block in final.content if block.type == "tool_use"]
    assert len(calls) == len(case["digest"]["calls"])
    assert all(isinstance(block.input, dict) for block in calls)


def _responses(body: bytes) -> str:
    client, _ = sdk(R, body, "application/json")
    return client.responses.create(model="m", input="Hi").output_text


def _chat(body: bytes) -> str:
    client, _ = sdk(C, body, "application/json")
    return client.chat.completions.create(model="m", messages=HI).choices[0].message.content or ""


def _messages(body: bytes) -> str:
    _, client = sdk(M, body, "application/json")
    message = client.messages.create(model="m", max_tokens=9, messages=HI)
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.mark.parametrize("case", WHOLE, ids=label)
@pytest.mark.parametrize(("client", "ask"), [(R, _responses), (C, _chat), (M, _messages)])
def test_whole_answers(case: Json, client: Dialect, ask: Callable[[bytes], str]) -> None:
    target = Dialect(case["dialect"])
    if client is not target:
        body = translate_response(read(case), client, target, context(client, target))
        assert ask(body) == text_of(case, client)
        assert json.loads(body)["model"] == context(client, target).model
