"""Translated answers in the accumulators of the official client libraries, which check order, ids and fields."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai

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


def google(body: bytes, media_type: str) -> genai.Client:
    http = httpx2.Client(transport=transport(body, media_type))
    options = genai.types.HttpOptions(base_url="http://sdk.invalid", httpx_client=http)
    return genai.Client(api_key="k", http_options=options)


def text_of(case: Json, client: Dialect) -> str:
    refusal = case["digest"]["refusal"] if client in (M, G) else ""
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


@pytest.mark.parametrize("case", [case for case in STREAMS if case["dialect"] != "gemini"], ids=label)
def test_google_streams(case: Json) -> None:
    """A chat of the library keeps what it takes for a valid answer, and sends that with the next question."""
    body = stream(read(case), G, Dialect(case["dialect"]))
    with google(body, "text/event-stream") as client:
        chat = client.chats.create(model="m")
        chunks = list(chat.send_message_stream("Hi"))
        history = chat.get_history(curated=True)
    parts = [part for content in history if content.role == "model" for part in content.parts or []]
    assert "".join(part.text or "" for part in parts if not part.thought) == text_of(case, G)
    calls = [part.function_call for part in parts if part.function_call]
    assert [call.name for call in calls] == [name for _id, name, _arguments in case["digest"]["calls"]]
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].candidates is not None
    assert chunks[-1].candidates[0].finish_reason is not None


BROKEN = [case for case in CASES if case["kind"] == "stream" and case not in STREAMS]


@pytest.mark.parametrize("case", BROKEN, ids=label)
@pytest.mark.parametrize("client", DIALECTS)
def test_streams_that_break_are_errors_of_the_libraries(case: Json, client: Dialect) -> None:
    target = Dialect(case["dialect"])
    if client is target:
        return
    body = stream(read(case), client, target)
    ours, theirs = sdk(client, body, "text/event-stream")
    match client:
        case Dialect.RESPONSES:
            with ours.responses.stream(model="m", input="Hi") as told:
                last = list(told)[-1]
            assert last.type == "response.failed"
            assert last.response.error is not None
        case Dialect.CHAT:
            with pytest.raises(openai.APIError), ours.chat.completions.stream(model="m", messages=HI) as chunks:
                list(chunks)
        case Dialect.MESSAGES:
            asked = theirs.messages.stream(model="m", max_tokens=9, messages=HI)
            with pytest.raises(anthropic.APIError), asked as events:
                list(events)
        case Dialect.GEMINI:
            with google(body, "text/event-stream") as third, pytest.raises(genai.errors.APIError):
                list(third.models.generate_content_stream(model="m", contents="Hi"))


def _gemini(body: bytes) -> str:
    with google(body, "application/json") as client:
        answer = client.models.generate_content(model="m", contents="Hi")
    parts = (answer.candidates or [])[0].content.parts or []  # type: ignore[union-attr]
    return "".join(part.text or "" for part in parts if not part.thought)


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
@pytest.mark.parametrize(("client", "ask"), [(R, _responses), (C, _chat), (M, _messages), (G, _gemini)])
def test_whole_answers(case: Json, client: Dialect, ask: Callable[[bytes], str]) -> None:
    target = Dialect(case["dialect"])
    if client is not target:
        body = translate_response(read(case), client, target, context(client, target))
        assert ask(body) == text_of(case, client)
        assert json.loads(body)["modelVersion" if client is G else "model"] == context(client, target).model
