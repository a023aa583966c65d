"""The proxy between the official SDKs and mock providers that others wrote: what they take for each wire format."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai

from mocks import Mock, aimock, llmock
from stage import Stage, stage

ADAPTERS = ("openai-responses", "openai-chat", "anthropic", "google")
CLIENTS = ("responses", "chat", "messages", "gemini")
FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "high water", "hasToolResult": False, "toolName": "tide"},
            "response": {"toolCalls": [{"id": "call_1", "name": "tide", "arguments": {"port": "Vesna"}}]},
        },
        {
            "match": {"userMessage": "high water", "hasToolResult": True},
            "response": {"content": "At noon, as the table says."},
        },
        {
            "match": {"userMessage": "hello", "model": "limited"},
            "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
        },
        {"match": {"userMessage": "hello"}, "response": {"content": "Good day, 東京 ✓ and all."}},
    ]
}


@pytest.fixture(scope="module")
def first() -> Iterator[Mock]:
    with llmock() as mock:
        yield mock


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mock]:
    path = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    path.write_text(json.dumps(FIXTURES))
    with aimock(path) as mock:
        yield mock


def document(mock: Mock) -> dict[str, Any]:
    """A combo for each adapter of the mock."""
    combos = {f"via-{name}": {"targets": [{"provider": name, "model": "m1"}]} for name in mock.bases}
    return {"providers": mock.providers(), "combos": combos}


class Sdks:
    """The official libraries, with the proxy as their base URL."""

    def __init__(self, on: Stage) -> None:
        base = f"http://127.0.0.1:{on.port}"
        self._http = httpx2.AsyncClient()
        self.openai = openai.AsyncOpenAI(api_key="mine", base_url=f"{base}/v1", max_retries=0)
        self.anthropic = anthropic.AsyncAnthropic(api_key="mine", base_url=base, max_retries=0)
        options = genai.types.HttpOptions(base_url=base, httpx_async_client=self._http)
        self.google = genai.Client(api_key="mine", http_options=options).aio

    async def close(self) -> None:
        await self.openai.close()
        await self.anthropic.close()
        await self.google.aclose()
        await self._http.aclose()

    async def say(self, client: str, model: str, text: str, *, stream: bool) -> str:
        """The text of the answer, through the library's own accumulator where it has one."""
        return str(await getattr(self, f"_{client}")(model, text, stream))

    async def _responses(self, model: str, text: str, stream: bool) -> str:
        if not stream:
            return (await self.openai.responses.create(model=model, input=text)).output_text
        async with self.openai.responses.stream(model=model, input=text) as events:
            return (await events.get_final_response()).output_text

    async def _chat(self, model: str, text: str, stream: bool) -> str | None:
        said: Any = [{"role": "user", "content": text}]
        if not stream:
            made = await self.openai.chat.completions.create(model=model, messages=said)
            return made.choices[0].message.content
        async with self.openai.chat.completions.stream(model=model, messages=said) as events:
            return (await events.get_final_completion()).choices[0].message.content

    async def _messages(self, model: str, text: str, stream: bool) -> str:
        said: Any = [{"role": "user", "content": text}]
        if not stream:
            made = await self.anthropic.messages.create(model=model, max_tokens=99, messages=said)
        else:
            async with self.anthropic.messages.stream(model=model, max_tokens=99, messages=said) as events:
                made = await events.get_final_message()
        return "".join(block.text for block in made.content if block.type == "text")

    async def _gemini(self, model: str, text: str, stream: bool) -> str:
        if not stream:
            return (await self.google.models.generate_content(model=model, contents=text)).text or ""
        chat = self.google.chats.create(model=model)
        return "".join([chunk.text or "" async for chunk in await chat.send_message_stream(text)])


@asynccontextmanager
async def sdks(on: Stage) -> AsyncIterator[Sdks]:
    made = Sdks(on)
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_llmock_answers_every_client_over_every_adapter(
    client: str, stream: bool, first: Mock, confdir: Path
) -> None:
    async with stage(confdir, document=document(first)) as on, sdks(on) as ask:
        for adapter in ADAPTERS:
            assert "You said: hello" in await ask.say(client, f"combo/via-{adapter}", "hello", stream=stream), adapter


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_aimock_answers_every_client_over_every_adapter(
    client: str, stream: bool, second: Mock, confdir: Path
) -> None:
    async with stage(confdir, document=document(second)) as on, sdks(on) as ask:
        for adapter in ADAPTERS:
            said = await ask.say(client, f"combo/via-{adapter}", "hello", stream=stream)
            assert said == "Good day, 東京 ✓ and all.", adapter


def failing_over(mock: Mock, model: str = "m1") -> dict[str, Any]:
    """A combo for each adapter whose first target it is, with this model, and whose second one is the next adapter."""
    following = dict(zip(ADAPTERS, (*ADAPTERS[1:], ADAPTERS[0]), strict=True))
    combos = {
        f"via-{name}": {"targets": [{"provider": name, "model": model}, {"provider": other, "model": "m2"}]}
        for name, other in following.items()
    }
    return {"providers": mock.providers(), "combos": combos}


FAULTS = [
    {"type": "fail", "status": 429, "retry_after": 7},
    {"type": "fail", "status": 503},
    {"type": "fail", "status": 529},
]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_failing_llmock_is_left_for_one_of_another_format(client: str, first: Mock, confdir: Path) -> None:
    for fault in FAULTS:
        async with stage(confdir, document=failing_over(first)) as on, sdks(on) as ask:
            for adapter in ADAPTERS:
                first.post("/_llmock/reset", {})
                first.post("/_llmock/scenario", {"behaviors": [fault]})
                assert "You said: hello" in await ask.say(client, f"combo/via-{adapter}", "hello", stream=True), adapter
                asked = first.get("/_llmock/requests")["requests"]
                assert [request["status"] for request in asked] == [fault["status"], 200]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_rate_limited_aimock_is_left_for_one_of_another_format(
    client: str, second: Mock, confdir: Path
) -> None:
    async with stage(confdir, document=failing_over(second, "limited")) as on, sdks(on) as ask:
        for adapter in ADAPTERS:
            said = await ask.say(client, f"combo/via-{adapter}", "hello", stream=True)
            assert said == "Good day, 東京 ✓ and all.", adapter


BREAKS = ("disconnect", "truncate", "malformed")


@pytest.mark.parametrize("kind", BREAKS)
async def test_a_stream_that_breaks_is_no_answer_in_any_sdk(kind: str, first: Mock, confdir: Path) -> None:
    """Every library takes a stream that ends early for an answer; behind the proxy none does. `ValueError` is what they
    raise for a line that is no JSON, which reaches them as it is where no format lies between, and `RuntimeError` what
    openai raises for a Responses stream that did not complete."""
    libraries = (openai.APIError, anthropic.APIError, genai.errors.APIError, httpx2.HTTPError)
    async with stage(confdir, document=document(first)) as on, sdks(on) as ask:
        for client in CLIENTS:
            for adapter in ADAPTERS:
                fault = {"type": "stream_fault", "kind": kind, "after_chunks": 3}
                first.post("/_llmock/reset", {})
                first.post("/_llmock/scenario", {"behaviors": [fault]})
                on.service.state.clear_cooldowns()
                with pytest.raises((*libraries, ValueError, RuntimeError)):
                    await ask.say(client, f"combo/via-{adapter}", "hello, is anybody there at all", stream=True)


@pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason")  # aimock's own word, passed on
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", ["first", "second"])
async def test_a_tool_is_called_and_answered(
    adapter: str, name: str, request: pytest.FixtureRequest, confdir: Path
) -> None:
    """google-genai calls the function and sends its result; each mock reads both in its own format."""
    mock: Mock = request.getfixturevalue(name)
    ports: list[str] = []

    def tide(port: str) -> str:
        """The tide table of a port."""
        ports.append(port)
        return "noon"

    async with stage(confdir, document=document(mock)) as on, sdks(on) as ask:
        config = genai.types.GenerateContentConfig(tools=[tide])
        asked = ask.google.models.generate_content
        answer = await asked(model=f"combo/via-{adapter}", contents="tide: when is high water?", config=config)
        assert ports == ["Vesna" if name == "second" else "mock-port"]
        assert answer.text == "At noon, as the table says." if name == "second" else answer.text
