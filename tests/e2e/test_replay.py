"""`previous_response_id` through the real proxy: the second turn is answered elsewhere and knows the first one."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from rawclient import Answer
from stage import Case, Stage, stage
from wires import C, M, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
PARENT = [(b"x-codex-parent-thread-id", b"thread-1")]


def moving(target: Wire, *, stream: bool = True) -> Case:
    """Alpha answers the first turn and is down for the second one; beta speaks its own format."""
    alpha = [R.answers("alpha-said", stream=stream), DOWN]
    beta = target.answers("beta-said", stream=stream)
    return Case(R, alpha=alpha, beta=beta, providers={"beta": {"adapter": target.adapter}})


def told(answer: Answer) -> str:
    """The response id in a stream or a whole answer."""
    if answer.header("content-type") == "application/json":
        return str(answer.json()["id"])
    first = next(line for line in answer.body.split(b"\n") if line.startswith(b"data: "))
    return str(json.loads(first[6:])["response"]["id"])


def sent(case: Case, stub: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(case.requests_of(stub)[-1].body)
    return body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("target", [R, C, M], ids=lambda wire: wire.name)
async def test_turn_two_on_another_target_knows_turn_one(target: Wire, stream: bool, confdir: Path) -> None:
    case = moving(target, stream=stream)
    async with stage(confdir, case) as on:
        first = await on.ask(case, stream=stream)
        second = await on.ask(case, stream=stream, previous_response_id=told(first), input="and now?")
        assert (second.status, case.calls) == (200, ["alpha", "alpha", "beta"])
        assert b"beta-said" in second.body
        for stub in ("alpha", "beta"):
            assert b"previous_response_id" not in case.requests_of(stub)[-1].body
        history = json.dumps(sent(case, "beta"))
        assert history.index("hi") < history.index("alpha-said") < history.index("and now?")


async def test_the_bytes_of_the_client_stay(confdir: Path) -> None:
    case = moving(R)
    async with stage(confdir, case) as on:
        body = b'{"model": "%s", "stream":true,  "input": [ {"role":"user", "content":"hi", "n": 1.0} ]}'
        first = await on.ask(case, body % case.model.encode())
        follow = b'{"model": "%s", "stream":true,  "x" : 1e2, "previous_response_id":"%s", "input": [ {"a":2.50} ]}'
        await on.ask(case, follow % (case.model.encode(), told(first).encode()))
        sent_on = case.requests_of("beta")[-1].body
        assert sent_on.startswith(b'{"model": "m2", "stream":true,  "x" : 1e2, "input": [{"role":"user", ')
        assert b'"content":"hi", "n": 1.0}' in sent_on
        assert sent_on.endswith(b',{"a":2.50}]}')


@pytest.mark.parametrize("target", [C, M], ids=lambda wire: wire.name)
async def test_a_translated_answer_is_gone_on_from_by_the_sdk(target: Wire, confdir: Path) -> None:
    case = Case(R, alpha=target.answers("alpha-said"), providers={"alpha": {"adapter": target.adapter}})
    async with stage(confdir, case) as on, sdk(on) as client:
        previous: Any = openai.omit
        for number in range(3):
            asked = client.responses.stream(model=case.model, input=f"question {number}", previous_response_id=previous)
            async with asked as events:
                previous = (await events.get_final_response()).id
        history = json.dumps(sent(case, "alpha")["messages"])
        assert [history.count(f"question {number}") for number in range(3)] == [1, 1, 1]
        assert history.count("alpha-said") == 2


def sdk(on: Stage) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="mine", base_url=f"http://127.0.0.1:{on.port}/v1", max_retries=0)


async def test_another_thread_another_caller_and_an_unknown_id(confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-said"))
    async with stage(confdir, case) as on:
        known = told(await on.ask(case, headers=PARENT))
        other = [(b"x-codex-parent-thread-id", b"thread-2")]
        caller = [*PARENT, (b"authorization", b"Bearer somebody-else")]
        for headers, previous in ((other, known), ((), known), (caller, known), (PARENT, "resp_unknown")):
            answer = await on.ask(case, headers=headers, previous_response_id=previous)
            assert (answer.status, answer.json()["error"]["code"]) == (400, "previous_response_not_found")
            assert on.cooling(case) == {}
        assert case.calls == ["alpha"], "nothing was asked"
        assert (await on.ask(case, headers=PARENT, previous_response_id=known)).status == 200
