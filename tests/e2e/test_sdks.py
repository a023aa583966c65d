"""The official OpenAI, Anthropic and Google SDKs against the proxy: as a base URL, and as a forward proxy."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
from google import genai

from rawserver import event_stream, response
from stage import Case, Stage, stage
from translations import CORPUS
from wires import C, M, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
WAYS = ("base URL", "forward proxy")


def cases(wire: Wire) -> list[Case]:
    """Over a hop: a status, a failure within a stream, a whole answer."""
    failing = event_stream(*wire.start(), wire.busy())
    return [
        Case(wire, alpha=DOWN, beta=wire.answers("beta-ok")),
        Case(wire, alpha=failing, beta=wire.answers("beta-ok")),
        Case(wire, alpha=DOWN, beta=wire.answers("beta-ok", stream=False)),
    ]


@asynccontextmanager
async def openai_client(on: Stage, way: str) -> AsyncIterator[openai.AsyncOpenAI]:
    if way == "base URL":
        base = f"http://127.0.0.1:{on.port}/v1"
        made = openai.AsyncOpenAI(api_key="mine", base_url=base, max_retries=0)
    else:
        http = openai.DefaultAsyncHttpxClient(
            proxy=f"http://127.0.0.1:{on.port}", verify=on.proxy.client_tls("http/1.1")
        )
        made = openai.AsyncOpenAI(
            api_key="mine", http_client=http, base_url="https://api.openai.test/v1", max_retries=0
        )
    async with made as client:
        yield client


@asynccontextmanager
async def anthropic_client(on: Stage, way: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    if way == "base URL":
        base = f"http://127.0.0.1:{on.port}"
        made = anthropic.AsyncAnthropic(api_key="mine", base_url=base, max_retries=0)
    else:
        proxy = f"http://127.0.0.1:{on.port}"
        http = anthropic.DefaultAsyncHttpxClient(proxy=proxy, verify=on.proxy.client_tls("http/1.1"))
        base = "https://api.anthropic.test"
        made = anthropic.AsyncAnthropic(api_key="mine", http_client=http, base_url=base, max_retries=0)
    async with made as client:
        yield client


@asynccontextmanager
async def google_client(on: Stage, way: str) -> AsyncIterator[genai.client.AsyncClient]:
    if way == "base URL":
        http, base = httpx2.AsyncClient(), f"http://127.0.0.1:{on.port}"
    else:
        proxy = f"http://127.0.0.1:{on.port}"
        http = httpx2.AsyncClient(proxy=proxy, verify=on.proxy.client_tls("http/1.1"))
        base = "https://generativelanguage.googleapis.test"
    options = genai.types.HttpOptions(base_url=base, httpx_async_client=http)
    async with http, genai.Client(api_key="mine", http_options=options).aio as client:
        yield client


def hopped(on: Stage, made: list[Case]) -> None:
    for case in made:
        assert case.calls == ["alpha", "beta"]
        assert on.cooling(case) == {"alpha/m1": 60_000}
        assert not [request for request in case.requests if b"mine" in request.head]


@pytest.mark.parametrize("way", WAYS)
async def test_openai_responses(way: str, confdir: Path) -> None:
    made = cases(R)
    async with stage(confdir, *made) as on, openai_client(on, way) as client:
        for case in made[:2]:
            async with await client.responses.create(model=case.model, input="hi", stream=True) as stream:
                events = [event async for event in stream]
            assert [event.type for event in events].count("response.created") == 1
            assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "beta-ok"
            assert events[-1].type == "response.completed"
        whole = await client.responses.create(model=made[2].model, input="hi")
        assert whole.output_text == "beta-ok"
        hopped(on, made)


@pytest.mark.parametrize("way", WAYS)
async def test_openai_chat_completions(way: str, confdir: Path) -> None:
    made = cases(C)
    async with stage(confdir, *made) as on, openai_client(on, way) as client:
        for case in made[:2]:
            asked = client.chat.completions.create(
                model=case.model, messages=[{"role": "user", "content": "hi"}], stream=True
            )
            async with await asked as stream:
                text = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(text) == "beta-ok"
        whole = await client.chat.completions.create(model=made[2].model, messages=[{"role": "user", "content": "hi"}])
        assert whole.choices[0].message.content == "beta-ok"
        hopped(on, made)


@pytest.mark.parametrize("way", WAYS)
async def test_anthropic_messages(way: str, confdir: Path) -> None:
    made = cases(M)
    async with stage(confdir, *made) as on, anthropic_client(on, way) as client:
        for case in made[:2]:
            async with client.messages.stream(
                model=case.model, max_tokens=64, messages=[{"role": "user", "content": "hi"}]
            ) as stream:
                assert "".join([text async for text in stream.text_stream]) == "beta-ok"
                final = await stream.get_final_message()
            assert (final.id, final.stop_reason) == ("m_beta-ok", "end_turn")
        whole = await client.messages.create(
            model=made[2].model, max_tokens=64, messages=[{"role": "user", "content": "hi"}]
        )
        assert [block.text for block in whole.content if block.type == "text"] == ["beta-ok"]
        hopped(on, made)


def google_cases() -> list[Case]:
    """Over a hop to a target of another format, and to one of Google's own; both as a stream and whole."""
    own = {"beta": {"adapter": "google"}}
    events = (CORPUS / "streams" / "gemini.full.sse").read_bytes()
    whole = (CORPUS / "responses" / "gemini.full.json").read_bytes()
    return [
        Case(M, alpha=DOWN, beta=M.answers("beta-ok")),
        Case(C, alpha=DOWN, beta=C.answers("beta-ok", stream=False)),
        Case(R, alpha=DOWN, beta=event_stream(events), providers=own),
        Case(R, alpha=DOWN, beta=response(200, whole), providers=own),
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_google_genai(way: str, confdir: Path) -> None:
    made = google_cases()
    said = json.loads((CORPUS / "manifest.json").read_text())["cases"]
    full = next(case["digest"] for case in said if case["file"] == "streams/gemini.full.sse")
    async with stage(confdir, *made) as on, google_client(on, way) as client:
        for case, text in ((made[0], "beta-ok"), (made[2], full["text"])):
            chat = client.chats.create(model=case.model)
            chunks = [chunk async for chunk in await chat.send_message_stream("hi")]
            parts = [part for content in chat.get_history(curated=True)[1:] for part in content.parts or []]
            assert "".join(part.text or "" for part in parts if not part.thought) == text
            assert chunks[-1].candidates is not None
            assert chunks[-1].candidates[0].finish_reason is not None
        for case, text in ((made[1], "beta-ok"), (made[3], full["text"])):
            answer = await client.models.generate_content(model=case.model, contents="hi")
            candidates = answer.candidates
            assert candidates is not None
            assert candidates[0].content is not None
            parts = candidates[0].content.parts or []
            assert "".join(part.text or "" for part in parts if not part.thought) == text
        hopped(on, made)


@pytest.mark.parametrize("way", WAYS)
async def test_google_genai_is_refused_in_its_own_words(way: str, confdir: Path) -> None:
    cooled = Case(M, alpha=DOWN)
    async with stage(confdir, cooled) as on, google_client(on, way) as client:
        for model, code, status in ((cooled.model, 503, "UNAVAILABLE"), ("combo/none", 404, "NOT_FOUND")):
            with pytest.raises(genai.errors.APIError) as refused:
                await client.models.generate_content(model=model, contents="hi")
            assert (refused.value.code, refused.value.status) == (code, status)


async def test_google_genai_calls_tools_on_a_target_of_another_format(confdir: Path) -> None:
    """The library runs the function itself and sends what it gave: the target sees its own form of both."""
    calls = [{"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Vesna"}'}}]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    asks = {"id": "c", "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}
    case = Case(C, alpha=[error(200, asks), C.answers("noon", stream=False)])

    def tide(port: str) -> str:
        """The next high water."""
        return f"high water of {port}"

    async with stage(confdir, case) as on, google_client(on, "base URL") as client:
        config = genai.types.GenerateContentConfig(tools=[tide])
        answer = await client.models.generate_content(model=case.model, contents="hi", config=config)
        assert answer.text == "noon"
        last = json.loads(case.requests[-1].body)["messages"][-1]
        assert (last["role"], last["tool_call_id"]) == ("tool", "call_1")
        assert "high water of Vesna" in last["content"]


async def test_refusals_are_the_sdks_own_errors(confdir: Path) -> None:
    cooled = Case(R, alpha=DOWN)
    async with stage(confdir, cooled) as on:
        await on.ask(cooled)
        async with openai_client(on, "base URL") as client:
            with pytest.raises(openai.InternalServerError) as unavailable:
                await client.responses.create(model=cooled.model, input="hi")
            assert unavailable.value.code == "combo_unavailable"
            assert unavailable.value.response.headers["retry-after"] == "60"
            with pytest.raises(openai.NotFoundError) as unknown:
                await client.chat.completions.create(model="combo/none", messages=[{"role": "user", "content": "hi"}])
            assert unknown.value.code == "model_not_found"
        async with anthropic_client(on, "base URL") as client:
            with pytest.raises(anthropic.NotFoundError) as missing:
                await client.messages.create(
                    model="combo/none", max_tokens=8, messages=[{"role": "user", "content": "hi"}]
                )
            assert "none" in str(missing.value)


async def test_a_stream_that_breaks_is_an_error_in_the_sdks(confdir: Path) -> None:
    """A truncated stream that ends cleanly is taken for a success by every SDK: it must not end so."""
    chat = Case(C, alpha=event_stream(*C.start(), C.delta("Half an")))
    said = Case(M, alpha=event_stream(*M.start(), *M.begin_text(), M.delta("Half an")))
    async with stage(confdir, chat, said) as on:
        async with openai_client(on, "base URL") as client:
            asked = client.chat.completions.create(
                model=chat.model, messages=[{"role": "user", "content": "hi"}], stream=True
            )
            async with await asked as stream:
                with pytest.raises(openai.APIError):
                    _ = [chunk async for chunk in stream]
        async with anthropic_client(on, "base URL") as client:
            with pytest.raises(anthropic.APIError):
                async with client.messages.stream(
                    model=said.model, max_tokens=64, messages=[{"role": "user", "content": "hi"}]
                ) as stream_:
                    await stream_.get_final_message()
