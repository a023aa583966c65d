"""The official SDKs, each in its own wire format, over targets that speak another one: a tool turn of two steps."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from rawclient import Answer, answer_of, request_bytes, talk
from rawserver import event_stream, response
from stage import Case, Stage, stage
from translations import CORPUS
from wires import C, M, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
CORPUS_NAMES = {"R": "responses", "C": "chat", "M": "messages"}
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}
NAMES = ("tide_table", "vessel_lookup")


def called(wire: Wire, *, stream: bool) -> bytes:
    """An answer with thoughts, text and two calls."""
    name = CORPUS_NAMES[wire.name]
    if not stream:
        return response(200, (CORPUS / f"responses/{name}.full.json").read_bytes())
    events = (CORPUS / f"streams/{name}.full.sse").read_bytes().split(b"\n\n")
    return event_stream(*(one + b"\n\n" for one in events if one.strip()))


def two_steps(client: Wire, target: Wire, *, stream: bool) -> Case:
    """First a target of the client's own format that is down, then one of another format: calls, then an answer."""
    answers = [called(target, stream=stream), target.answers("High water at noon.", stream=stream)]
    return Case(client, alpha=DOWN, beta=answers, providers={"beta": {"adapter": target.adapter}})


def checked(on: Stage, case: Case, target: Wire, results: Sequence[str]) -> None:
    """The down target was asked once, and the other one was told what the tools said."""
    assert case.calls == ["alpha", "beta", "beta"]
    assert on.cooling(case) == {"alpha/m1": 60_000}
    first, second = case.requests_of("beta")
    assert first.target.endswith(target.path.removeprefix("/v1"))
    assert json.loads(first.body)["model"] == "m2"
    assert all(result.encode() in second.body for result in results)
    assert not [request for request in case.requests if b"mine" in request.head]


@asynccontextmanager
async def openai_client(on: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    base = f"http://127.0.0.1:{on.port}/v1"
    async with openai.AsyncOpenAI(api_key="mine", base_url=base, max_retries=0) as client:
        yield client


@asynccontextmanager
async def anthropic_client(on: Stage) -> AsyncIterator[anthropic.AsyncAnthropic]:
    base = f"http://127.0.0.1:{on.port}"
    async with anthropic.AsyncAnthropic(api_key="mine", base_url=base, max_retries=0) as client:
        yield client


async def responses_turn(on: Stage, case: Case, stream: bool) -> str:
    tools: Any = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES]
    history: list[Any] = [{"role": "user", "content": "When can we leave?"}]
    async with openai_client(on) as client:

        async def ask() -> Any:
            if not stream:
                return await client.responses.create(model=case.model, input=history, tools=tools)
            async with client.responses.stream(model=case.model, input=history, tools=tools) as events:
                async for _ in events:
                    pass
                return await events.get_final_response()

        first = await ask()
        calls = [item for item in first.output if item.type == "function_call"]
        assert [call.name for call in calls] == list(NAMES)
        history += [item.to_dict(mode="json") for item in first.output]
        history += [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"{call.name}-said"} for call in calls
        ]
        return str((await ask()).output_text)


async def chat_turn(on: Stage, case: Case, stream: bool) -> str:
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    history: list[Any] = [{"role": "user", "content": "When can we leave?"}]
    async with openai_client(on) as client:

        async def ask() -> Any:
            if not stream:
                made = await client.chat.completions.create(model=case.model, messages=history, tools=tools)
                return made.choices[0].message
            async with client.chat.completions.stream(model=case.model, messages=history, tools=tools) as events:
                async for _ in events:
                    pass
                return (await events.get_final_completion()).choices[0].message

        first = await ask()
        assert [call.function.name for call in first.tool_calls] == list(NAMES)
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in first.tool_calls
        ]
        history.append({"role": "assistant", "content": first.content, "tool_calls": calls})
        history += [
            {"role": "tool", "tool_call_id": call["id"], "content": f"{call['function']['name']}-said"}
            for call in calls
        ]
        return str((await ask()).content)


async def messages_turn(on: Stage, case: Case, stream: bool) -> str:
    tools: Any = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
    history: list[Any] = [{"role": "user", "content": "When can we leave?"}]
    async with anthropic_client(on) as client:

        async def ask() -> Any:
            if not stream:
                return await client.messages.create(model=case.model, max_tokens=99, messages=history, tools=tools)
            asked = client.messages.stream(model=case.model, max_tokens=99, messages=history, tools=tools)
            async with asked as events:
                return await events.get_final_message()

        first = await ask()
        assert first.stop_reason == "tool_use"
        calls = [block for block in first.content if block.type == "tool_use"]
        assert [call.name for call in calls] == list(NAMES)
        history.append({"role": "assistant", "content": [block.to_dict(mode="json") for block in first.content]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": f"{call.name}-said"} for call in calls]
        history.append({"role": "user", "content": results})
        return "".join(block.text for block in (await ask()).content if block.type == "text")


TURNS = {"R": responses_turn, "C": chat_turn, "M": messages_turn}


@pytest.mark.parametrize("client", [R, C, M], ids=lambda wire: wire.name)
async def test_a_tool_turn_of_two_steps_over_a_hop(client: Wire, confdir: Path) -> None:
    made = [
        (two_steps(client, target, stream=stream), target, stream)
        for target in (R, C, M)
        if target is not client
        for stream in (True, False)
    ]
    async with stage(confdir, *(case for case, _, _ in made)) as on:
        for case, target, stream in made:
            assert await TURNS[client.name](on, case, stream) == "High water at noon."
            checked(on, case, target, [f"{name}-said" for name in NAMES])
            assert case.record is not None
            assert case.record.outcome == "success"


async def test_failures_of_other_formats_are_the_sdks_own(confdir: Path) -> None:
    limited = error(
        429, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, [(b"retry-after", b"7")]
    )
    refused = error(400, {"error": {"type": "invalid_request_error", "message": "bad", "code": "bad_value"}})
    broken = event_stream(*M.start(), *M.begin_text(), M.delta("half"), M.busy())
    cases = [
        Case(C, alpha=limited, providers={"alpha": {"adapter": M.adapter}}),
        Case(M, alpha=refused, providers={"alpha": {"adapter": C.adapter}}),
        Case(C, alpha=broken, providers={"alpha": {"adapter": M.adapter}}),
    ]
    async with stage(confdir, *cases) as on, openai_client(on) as ours, anthropic_client(on) as theirs:
        with pytest.raises(openai.RateLimitError) as slow:
            await ours.chat.completions.create(model=cases[0].model, messages=[{"role": "user", "content": "hi"}])
        assert slow.value.response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.BadRequestError) as bad:
            await theirs.messages.create(
                model=cases[1].model, max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            )
        assert bad.value.type == "invalid_request_error"
        asked = ours.chat.completions.create(
            model=cases[2].model, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        pieces = aiter(await asked)
        assert (await anext(pieces)).choices[0].delta.role == "assistant"
        assert (await anext(pieces)).choices[0].delta.content == "half"
        with pytest.raises(openai.APIError, match="Overloaded"):
            await anext(pieces)


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent?alt=sse"])
@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_a_gemini_client(method: str, version: str, confdir: Path) -> None:
    stream = "alt=sse" in method
    case = Case(C, alpha=DOWN, beta=M.answers("beta-ok", stream=stream), providers={"beta": {"adapter": M.adapter}})
    async with stage(confdir, case) as on:
        answer = await gemini(on, f"/{version}/models/{case.model}:{method}")
        assert answer.status == 200
        lines = (
            [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: ")] if stream else [answer.body]
        )
        found = [json.loads(line)["candidates"][0]["content"].get("parts", []) for line in lines]
        assert "".join(part["text"] for parts in found for part in parts) == "beta-ok"
        assert not [request for request in case.requests if b"mine" in request.head]
        missing = await gemini(on, f"/{version}/models/combo/none:{method}")
        assert (missing.status, missing.json()["error"]["status"]) == (404, "NOT_FOUND")


async def gemini(on: Stage, path: str) -> Answer:
    """What google-genai would send: the model in the path as it stands, the key in a header of its own."""
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    headers = [
        (b"Host", b"127.0.0.1:%d" % on.port),
        (b"Content-Type", b"application/json"),
        (b"x-goog-api-key", b"mine"),
    ]
    async with talk(on.port, request_bytes("POST", path, headers, body)) as started:
        return await answer_of(started)


async def test_the_compaction_of_codex_over_a_chat_target(confdir: Path) -> None:
    case = Case(R, alpha=C.answers("Six metres."), providers={"alpha": {"adapter": C.adapter}})
    async with stage(confdir, case) as on:
        answer = await on.ask(case, input=[{"role": "user", "content": "Depth?"}, {"type": "compaction_trigger"}])
        items = [
            line for line in answer.body.split(b"\n") if line.startswith(b"data: ") and b"output_item.done" in line
        ]
        assert [json.loads(line[6:])["item"]["type"] for line in items] == ["compaction"]
