"""Reasoning state through a client of another format and back: what the target gets is what it made, to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from rawclient import Answer
from rawserver import event_stream, response
from stage import Case, stage
from translations import CORPUS
from wires import C, M, R, Wire, error

NAMES = {"R": "responses", "M": "messages"}
QUESTION = {"role": "user", "content": "When can we leave?"}
TOOLS: dict[str, Any] = {
    "R": {"tools": [{"type": "function", "name": n, "parameters": {}} for n in ("tide_table", "vessel_lookup")]},
    "M": {"tools": [{"name": n, "input_schema": {}} for n in ("tide_table", "vessel_lookup")]},
}


def made(target: Wire, name: str, *, stream: bool) -> bytes:
    """An answer of the corpus."""
    if not stream:
        return response(200, (CORPUS / f"responses/{NAMES[target.name]}.{name}.json").read_bytes())
    return event_stream((CORPUS / f"streams/{NAMES[target.name]}.{name}.sse").read_bytes())


def output_of(client: Wire, answer: Answer) -> list[Any]:
    """What a client keeps of an answer for its history."""
    if answer.header("content-type") == "application/json":
        whole: list[Any] = answer.json()["output" if client is R else "content"]
        return whole
    events = [json.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    if client is R:
        final: list[Any] = events[-1]["response"]["output"]
        return final
    return blocks_of(events)


def blocks_of(events: list[Any]) -> list[Any]:
    """The content blocks of a Messages stream, as the SDK accumulates them."""
    blocks: list[Any] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        if event["type"] != "content_block_delta":
            continue
        delta, block = event["delta"], blocks[event["index"]]
        for field in ("text", "thinking", "signature"):
            if field in delta:
                block[field] = block.get(field, "") + delta[field]
        if "partial_json" in delta:
            block["json"] = block.get("json", "") + delta["partial_json"]
    for block in blocks:
        if "json" in block:
            block["input"] = json.loads(block.pop("json"))
    return blocks


def follow(client: Wire, output: list[Any]) -> dict[str, Any]:
    """The history of the next request: the answer, and a result for every call."""
    if client is R:
        calls = [item["call_id"] for item in output if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls]
        return {"input": [QUESTION, *output, *results]}
    calls = [block["id"] for block in output if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call, "content": "ok"} for call in calls]
    answered = [{"role": "user", "content": results}] if results else [QUESTION]
    return {"messages": [QUESTION, {"role": "assistant", "content": output}, *answered]}


def thoughts(wire: Wire, name: str, *, of: dict[str, Any] | None = None) -> list[Any]:
    """The reasoning of an answer of the corpus, or in the request `of`, as its provider knows it."""
    document = of or json.loads((CORPUS / f"responses/{NAMES[wire.name]}.{name}.json").read_text())
    if wire is R:
        items = document["input" if of else "output"]
        return [item for item in items if item.get("type") == "reasoning"]
    contents = [turn["content"] for turn in document["messages"]] if of else [document["content"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("client", "target"), [(R, M), (M, R)], ids=lambda wire: wire.name)
async def test_state_comes_back_to_its_maker_to_the_byte(
    client: Wire, target: Wire, stream: bool, confdir: Path
) -> None:
    beta = [made(target, "full", stream=stream), target.answers("done", stream=stream)]
    case = Case(client, beta=beta, providers={"beta": {"adapter": target.adapter}})
    async with stage(confdir, case) as on:
        first = await on.ask(case, stream=stream, **TOOLS[client.name])
        history = follow(client, output_of(client, first))
        assert "cmb1." in json.dumps(history), "the client holds it sealed"
        await on.ask(case, stream=stream, **TOOLS[client.name], **history)
        sent = json.loads(case.requests[-1].body)
        want = thoughts(target, "full")
        assert want
        assert thoughts(target, "full", of=sent) == [
            {key: value for key, value in thought.items() if key != "status"} for thought in want
        ]


async def test_redacted_thoughts_come_back_too(confdir: Path) -> None:
    beta = [made(M, "redacted", stream=True), M.answers("done")]
    case = Case(R, beta=beta, providers={"beta": {"adapter": M.adapter}})
    tools = [{"type": "function", "name": name, "parameters": {}} for name in ("plot", "delete")]
    async with stage(confdir, case) as on:
        history = follow(R, output_of(R, await on.ask(case, tools=tools)))
        await on.ask(case, **history)
        sent = thoughts(M, "", of=json.loads(case.requests[-1].body))
        raw = (CORPUS / "streams/messages.redacted.sse").read_text()
        hidden = [json.loads(line[6:]) for line in raw.splitlines() if "redacted_thinking" in line and line[0] == "d"]
        assert [block["data"] for block in sent if block["type"] == "redacted_thinking"] == [
            event["content_block"]["data"] for event in hidden
        ]


@pytest.mark.parametrize(("client", "target"), [(R, M), (M, R)], ids=lambda wire: wire.name)
async def test_a_target_between_gets_none_and_loses_none(client: Wire, target: Wire, confdir: Path) -> None:
    """The maker is down for the second turn; on the third one it finds its state where it was."""
    down = error(503, {"error": {"message": "down"}})
    alpha = [made(target, "full", stream=True), down, target.answers("done")]
    rows = {"alpha": {"adapter": target.adapter}, "beta": {"adapter": C.adapter}}
    case = Case(client, alpha=alpha, beta=C.answers("between"), providers=rows)
    async with stage(confdir, case) as on:
        output = output_of(client, await on.ask(case, **TOOLS[client.name]))
        history = follow(client, output)
        answer = await on.ask(case, **TOOLS[client.name], **history)
        assert case.calls == ["alpha", "alpha", "beta"]
        blobs = [value for thought in thoughts(target, "full") for value in thought.values() if len(value) > 40]
        assert not [blob for blob in blobs if str(blob).encode() in case.requests[-1].body]
        assert b"cmb1." not in case.requests[-1].body
        on.clock.advance(600_000)
        later = output_of(client, answer)
        field = "input" if client is R else "messages"
        turn = later if client is R else [{"role": "assistant", "content": later}]
        history[field] += [*turn, {"role": "user", "content": "And now?"}]
        await on.ask(case, **TOOLS[client.name], **history)
        assert case.calls[-1] == "alpha"
        assert thoughts(target, "full", of=json.loads(case.requests[-1].body)) == thoughts(target, "full")
