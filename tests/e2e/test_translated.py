"""Every client dialect over targets of every other one: a hop, text, failures in streams, refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

from rawserver import event_stream
from stage import Case, stage
from wires import WIRES, C, M, R, Wire, error

PAIRS = [(client, target) for client in WIRES for target in WIRES if client is not target]


def names(value: Any) -> str:
    return value.name if isinstance(value, Wire) else str(value)


def over(client: Wire, target: Wire, **stubs: Any) -> Case:
    """A combo for this client whose targets all speak another dialect."""
    rows = {name: {"adapter": target.adapter} for name in stubs}
    return Case(client, providers=rows, **stubs)


def text_of(wire: Wire, body: bytes) -> str:
    """The text that a client of this dialect reads from a stream."""
    found = []
    for line in body.decode().splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = json.loads(line.removeprefix("data: "))
        match wire.name:
            case "R":
                found.append(event["delta"] if event["type"] == "response.output_text.delta" else "")
            case "C":
                found += [choice["delta"].get("content") or "" for choice in event["choices"]]
            case _:
                delta = event.get("delta", {})
                found.append(delta.get("text", "") if event["type"] == "content_block_delta" else "")
    return "".join(found)


def whole_text(wire: Wire, document: Any) -> str:
    match wire.name:
        case "R":
            return "".join(part["text"] for item in document["output"] for part in item.get("content", []))
        case "C":
            return str(document["choices"][0]["message"]["content"])
        case _:
            return "".join(block["text"] for block in document["content"])


ENDS = {"R": b"response.completed", "C": b"data: [DONE]", "M": b"message_stop"}
PATHS = {"R": "/responses", "C": "/chat/completions", "M": "/messages"}


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=names)
async def test_a_stream_over_a_hop(client: Wire, target: Wire, confdir: Path) -> None:
    down = error(503, {"error": {"message": "down"}})
    statuses = over(client, target, alpha=down, beta=target.answers("beta-ok ✓"))
    failing = event_stream(*target.start(), target.busy())
    streams = over(client, target, alpha=failing, beta=target.answers("beta-ok ✓"))
    async with stage(confdir, statuses, streams) as on:
        for case in (statuses, streams):
            answer = await on.ask(case)
            assert case.calls == ["alpha", "beta"]
            assert (answer.status, answer.header("content-type"), answer.clean) == (200, "text/event-stream", True)
            assert text_of(client, answer.body) == "beta-ok ✓"
            assert ENDS[client.name] in answer.body
            assert on.cooling(case) == {"alpha/m1": 60_000}
            for request, model in zip(case.requests, ("m1", "m2"), strict=True):
                assert request.target.endswith(PATHS[target.name])
                assert json.loads(request.body)["model"] == model
                assert json.loads(request.body)["stream"] is True
                assert b"hi" in request.body


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=names)
async def test_a_whole_answer_over_a_hop(client: Wire, target: Wire, confdir: Path) -> None:
    down = error(429, {"error": {"message": "slow"}}, [(b"Retry-After", b"7")])
    case = over(client, target, alpha=down, beta=target.answers("beta-ok", stream=False))
    async with stage(confdir, case) as on:
        answer = await on.ask(case, stream=False)
        assert case.calls == ["alpha", "beta"]
        assert (answer.status, answer.header("content-type")) == (200, "application/json")
        assert whole_text(client, answer.json()) == "beta-ok"
        assert on.cooling(case) == {"alpha/m1": 7_000}


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=names)
async def test_a_failure_in_the_clients_own_dialect(client: Wire, target: Wire, confdir: Path) -> None:
    fault = {"type": "invalid_request_error", "message": "temperature must be at most 2"}
    document = {"type": "error", "error": fault} if target is M else {"error": fault}
    case = over(client, target, alpha=error(400, document), beta=target.answers("beta-ok"))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert (answer.status, case.calls, on.cooling(case)) == (400, ["alpha"], {})
        told = answer.json()
        assert told["error"]["message"] == "temperature must be at most 2"
        assert (told.get("type") == "error") is (client is M)


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=names)
async def test_a_failure_after_output_is_told_and_never_a_clean_success(
    client: Wire, target: Wire, confdir: Path
) -> None:
    events = [*target.start(), *target.begin_text(), target.delta("Half an"), target.busy()]
    case = over(client, target, alpha=event_stream(*events), beta=target.answers("beta-ok"))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert case.calls == ["alpha"]
        assert text_of_broken(client, answer.body) == "Half an"
        assert ENDS[client.name] not in answer.body
        assert b"error" in answer.body
        assert on.cooling(case) == {"alpha/m1": 60_000}


def text_of_broken(wire: Wire, body: bytes) -> str:
    """The text before the error event, which has a shape of its own."""
    kept = [line for line in body.decode().splitlines() if '"delta"' in line]
    return text_of(wire, "\n".join(kept).encode())


async def test_targets_of_all_dialects_in_one_combo(confdir: Path) -> None:
    down = error(503, {"error": {"message": "down"}})
    rows = {"alpha": {"adapter": C.adapter}, "beta": {"adapter": M.adapter}, "gamma": {"adapter": R.adapter}}
    made = [
        Case(client, providers=rows, alpha=down, beta=event_stream(M.busy()), gamma=R.answers("gamma-ok"))
        for client in WIRES
    ]
    async with stage(confdir, *made) as on:
        for case, answer in zip(made, await on.ask_all(made), strict=True):
            assert case.calls == ["alpha", "beta", "gamma"]
            assert text_of(case.wire, answer.body) == "gamma-ok"
            if case.wire is R:
                assert answer.body == b"".join(R.ok("gamma-ok"))
