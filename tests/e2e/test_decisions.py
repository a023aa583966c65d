"""Decisions in a running proxy: choice, failure, hop, cancellation, an ordinary model as judge."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from combos.core.cooldowns import CooldownKey
from combos.decision.decide import Question
from combos.engine.record import DecisionRecord
from rawserver import Again, ClientGone, Connection, Expect, RawServer, Request, Send, Signal, closed_port, response
from stage import Case, Stage, stage, until
from systemone import Behaviour, SystemOne, choosing, closing, hanging, options, sending
from wires import WIRES, C, M, R, Wire, error

LIMIT_S = 10
LADDER = {"reasoningEfforts": ["low", "medium", "high"]}


def decided(
    wire: Wire,
    *,
    provider: str | None = "tev",
    combo: Mapping[str, Any] | None = None,
    adapters: Mapping[str, str] | None = None,
    **stubs: Any,
) -> Case:
    """A combo of strategy jev over the stubs `alpha` and `beta`, which have a ladder."""
    method = {"decisionProvider": provider} if provider else {}
    answers = {"alpha": wire.answers("alpha-ok"), "beta": wire.answers("beta-ok")} | stubs
    adapters = adapters or {}
    return Case(
        wire,
        combo={"strategy": "jev", **method, **(combo or {})},
        providers={name: {**LADDER, "adapter": adapters.get(name, wire.adapter)} for name in answers},
        **answers,
    )


def services(*found: SystemOne) -> dict[str, Any]:
    names = ("tev", "tev2")
    rows = {name: _row(service.url) for name, service in zip(names, found, strict=False)}
    return {"providers": rows}


def _row(url: str) -> dict[str, Any]:
    return {"adapter": "jev-decision", "baseUrl": url, "allowPrivateNetwork": True, "defaultModel": "tev1:4b"}


def decision_of(case: Case) -> DecisionRecord:
    assert case.record is not None
    assert case.record.decision is not None
    return case.record.decision


def effort_in(request: Request, wire: Wire) -> object:
    document = json.loads(request.body)
    match wire.name:
        case "R":
            return document.get("reasoning", {}).get("effort")
        case "C":
            return document.get("reasoning_effort")
        case _:
            return (document.get("thinking") or {}).get("budget_tokens")


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_the_chosen_pair_is_dispatched(wire: Wire, confdir: Path) -> None:
    case = decided(wire)
    async with SystemOne() as service, stage(confdir, case, document=services(service)) as on:
        answer = await on.ask(case)
        assert b"beta-ok" in answer.body
        assert case.calls == ["beta"]
        assert effort_in(case.requests[0], wire) == (16_384 if wire is M else "high")
        decision = decision_of(case)
        assert (decision.gate, decision.backend, decision.target) == ("apply", "systemone", f"{case.id}-beta/m2")
        assert options(service.documents[0]) == [
            f"{case.id}-{key}:{effort}" for key in ("alpha/m1", "beta/m2") for effort in LADDER["reasoningEfforts"]
        ]
        assert service.documents[0]["state"]["task"] == "hi"
        (flow,) = on.flows
        assert flow.metadata["combos"]["decision"]["gate"] == "apply"
        assert "systemone apply" in flow.comment


async def test_the_effort_reaches_a_target_of_another_dialect(confdir: Path) -> None:
    case = decided(R, beta=C.answers("beta-ok"), adapters={"beta": C.adapter})
    async with SystemOne() as service, stage(confdir, case, document=services(service)) as on:
        answer = await on.ask(case, reasoning={"effort": "low"})
    assert b"beta-ok" in answer.body
    assert b"response.completed" in answer.body
    assert effort_in(case.requests[0], C) == "high"


async def test_a_caller_shows_nothing_of_itself_to_the_service(confdir: Path) -> None:
    case = decided(R)
    headers = [(b"Authorization", b"Bearer CANARY"), (b"Cookie", b"CANARY"), (b"session_id", b"CANARY")]
    async with SystemOne() as service, stage(confdir, case, document=services(service)) as on:
        await on.ask(case, headers=headers, metadata={"user": "CANARY"}, instructions="CANARY")
        assert b"CANARY" not in service.requests[0].head + service.requests[0].body


async def test_after_a_decision_a_hop_asks_nobody_again(confdir: Path) -> None:
    refused = error(429, {"error": {"message": "slow down"}})
    case = decided(R, beta=refused, combo={"defaultEffort": "low"})
    async with SystemOne() as service, stage(confdir, case, document=services(service)) as on:
        answer = await on.ask(case)
        assert b"alpha-ok" in answer.body
        assert case.calls == ["beta", "alpha"]
        assert [effort_in(request, R) for request in case.requests] == ["high", "low"]
        assert len(service.requests) == 1
        assert on.cooling(case) == {"beta/m2": 60_000}
        assert decision_of(case).target == f"{case.id}-beta/m2"


FAILURES: dict[str, tuple[Behaviour, str]] = {
    "closes": (closing, "network"),
    "redirects": (sending(response(302, b"", [(b"Location", b"/other")])), "redirect"),
    "fails": (sending(response(500, b"no")), "http"),
    "babbles": (sending(response(200, b"no json")), "malformed"),
    "invents": (choosing("other/m:low"), "invalid"),
    "hangs": (hanging(), "timeout"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_decision_that_fails_is_never_seen_by_the_client(
    name: str, confdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour, gate = FAILURES[name]
    monkeypatch.setattr(Question, "deadline_ms", 100 if gate == "timeout" else 5_000)
    case = decided(R)
    async with SystemOne(behaviour) as service, stage(confdir, case, document=services(service)) as on:
        answer = await on.ask(case)
        assert (answer.status, case.calls) == (200, ["alpha"])
        assert effort_in(case.requests[0], R) == "medium"
        assert (decision_of(case).gate, decision_of(case).effort) == (gate, "medium")
        assert len(service.requests) == 1


async def test_without_a_key_typesafe_is_not_asked(confdir: Path) -> None:
    case = decided(R, provider=None)
    async with stage(confdir, case) as on:
        on.service.environ = {}
        assert (await on.ask(case)).status == 200
    assert (case.calls, decision_of(case).gate, decision_of(case).backend) == (["alpha"], "missing_key", "typesafe")


async def is_cancelled(on: Stage, case: Case) -> None:
    await until(lambda: case.record is not None)
    assert case.record is not None
    assert (case.record.outcome, case.record.status) == ("cancelled", 499)
    assert (case.record.attempts, case.record.decision, case.calls) == ([], None, [])
    assert on.cooling(case) == {}


async def test_a_client_that_leaves_during_a_decision(confdir: Path) -> None:
    begun, left = asyncio.Event(), asyncio.Event()
    case = decided(R)
    async with (
        SystemOne(hanging(begun, left)) as service,
        stage(confdir, case, document=services(service)) as on,
        on.talk(case) as client,
    ):
        await asyncio.wait_for(begun.wait(), LIMIT_S)
        client.leave()
        await asyncio.wait_for(left.wait(), LIMIT_S)
        await is_cancelled(on, case)


async def test_a_hanging_decision_holds_nobody_else_up(confdir: Path) -> None:
    begun = asyncio.Event()
    held, free = decided(R), decided(R, provider="tev2")
    async with (
        SystemOne(hanging(begun)) as slow,
        SystemOne() as quick,
        stage(confdir, held, free, document=services(slow, quick)) as on,
        on.talk(held),
    ):
        await asyncio.wait_for(begun.wait(), LIMIT_S)
        assert (await on.ask(free)).status == 200
        assert held.calls == []


def judge(wire: Wire) -> RawServer:
    """A provider whose model picks beta with low effort."""

    async def serve(connection: Connection) -> None:
        request = await connection.request()
        key = re.findall(rb"c\d+-beta/m2:low", request.body)[0].decode()
        connection.writer.write(wire.answers(json.dumps({"choice": key})))
        await connection.writer.drain()

    return RawServer([Again([serve])])


def provider_at(server: RawServer, wire: Wire = R) -> dict[str, Any]:
    return {
        "adapter": wire.adapter,
        "baseUrl": f"{server.url}/v1",
        "apiKey": "own",
        "allowPrivateNetwork": True,
        "liveModels": False,
    }


def judged(route: str) -> Case:
    return decided(R, provider=None, combo={"decisionModel": route})


@pytest.mark.parametrize("wire", [R, C, M], ids=lambda wire: wire.name)
async def test_an_ordinary_model_decides(wire: Wire, confdir: Path) -> None:
    case = judged("judge/m")
    async with judge(wire) as server:
        document = {"providers": {"judge": provider_at(server, wire)}}
        async with stage(confdir, case, document=document) as on:
            answer = await on.ask(case, headers=[(b"Authorization", b"Bearer CANARY")], instructions="CANARY")
    assert b"beta-ok" in answer.body
    assert case.calls == ["beta"]
    assert effort_in(case.requests[0], R) == "low"
    (asked,) = server.requests
    assert b"CANARY" not in asked.head + asked.body
    assert b"own" in asked.head
    decision = decision_of(case)
    assert (decision.gate, decision.backend, decision.effort) == ("apply", "model", "low")
    assert len(case.records) == 1
    assert case.records[0].attempts[0].provider == f"{case.id}-beta", "the judge's send is none of the request's"


async def test_the_judge_may_be_a_combo_that_hops(confdir: Path) -> None:
    case = judged("combo/plain")
    async with judge(R) as up, RawServer([Again([Expect(), Send(response(503, b"{}"))])]) as down:
        document = {
            "providers": {"down": provider_at(down), "up": provider_at(up)},
            "combos": {"plain": {"targets": [{"provider": "down", "model": "m"}, {"provider": "up", "model": "m"}]}},
        }
        async with stage(confdir, case, document=document) as on:
            assert (await on.ask(case)).status == 200
            left = on.service.state.cooldowns.remaining(CooldownKey("plain", "down/m"), on.clock.mono_ms)
    assert (case.calls, decision_of(case).gate) == (["beta"], "apply")
    assert (len(down.requests), len(up.requests)) == (1, 1)
    assert left == 60_000


async def test_a_judge_that_is_down_fails_open(confdir: Path) -> None:
    case = judged("judge/m")
    down = RawServer([Again([Expect(), Send(response(503, b"{}"))])])
    async with down, stage(confdir, case, document={"providers": {"judge": provider_at(down)}}) as on:
        assert (await on.ask(case)).status == 200
    assert (case.calls, decision_of(case).gate) == (["alpha"], "http")


async def test_a_method_is_tried_through_the_management_api(confdir: Path) -> None:
    case = decided(R, provider=None)
    with closed_port() as free:
        listen = {"combos_admin_listen": f"127.0.0.1:{free}"}
    picks = RawServer([Again([Expect(), Send(R.answers('{"choice":"probe/decision:high"}'))])])
    async with (
        SystemOne() as service,
        picks,
        stage(
            confdir,
            case,
            document={"providers": {"tev": _row(service.url), "judge": provider_at(picks)}},
            combos_options=listen,
        ) as on,
        aiohttp.ClientSession() as session,
    ):
        await until(lambda: on.combos.admin_address is not None)
        assert on.combos.admin_address is not None
        host, port = on.combos.admin_address
        token = (on.service.config.path.parent / "admin-api-token").read_text().strip()
        headers = {"X-Combos-API-Key": token}
        url = f"http://{host}:{port}/api/combos/decision-test"
        for body, backend in (({"decisionProvider": "tev"}, "systemone"), ({"decisionModel": "judge/m"}, "model")):
            async with session.post(url, json=body, headers=headers) as answer:
                told = await answer.json()
            assert (told["ok"], told["backend"], told["gate"], told["effort"]) == (True, backend, "apply", "high")
        async with session.post(url, json={"decisionModel": case.model}, headers=headers) as answer:
            assert answer.status == 400
    assert case.calls == []


async def test_a_client_that_leaves_while_a_model_decides(confdir: Path) -> None:
    begun, left = asyncio.Event(), asyncio.Event()
    case = judged("judge/m")
    server = RawServer([Expect(), Signal(begun), ClientGone(left)])
    async with (
        server,
        stage(confdir, case, document={"providers": {"judge": provider_at(server)}}) as on,
        on.talk(case) as client,
    ):
        await asyncio.wait_for(begun.wait(), LIMIT_S)
        client.leave()
        await asyncio.wait_for(left.wait(), LIMIT_S)
        await is_cancelled(on, case)
