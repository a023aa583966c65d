"""The official OpenAI and Anthropic SDKs against the proxy: as a base URL, and as a forward proxy with its CA."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anthropic
import openai
import pytest

from rawserver import event_stream
from stage import Case, Stage, stage
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
