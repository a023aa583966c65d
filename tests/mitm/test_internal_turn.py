"""The turn of a decision: routed like any request, with nothing of a caller, and let go of at any time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from combos.core.cooldowns import CooldownKey
from combos.core.facts import Headers
from combos.core.registry import Provider, Registry
from combos.decision.gates import Closed, Gate
from combos.decision.model import ModelReply, read_reply, request_body
from combos.decision.options import Candidate, options_of
from combos.engine.request import TurnOptions
from combos.engine.state import EngineState
from combos.mitm.dispatch import clock
from combos.mitm.internal_turn import Surroundings, invoke
from combos.upstream.credentials import auth_headers, usable
from combos.upstream.pool import PooledUpstream
from combos.upstream.session import Upstream
from decisions import registry, target
from rawserver import (
    Again,
    ClientGone,
    Expect,
    RawServer,
    Send,
    Signal,
    chunk,
    event_head,
    event_stream,
    head,
    response,
)
from wires import C, M, R, Wire

OPTIONS = options_of((Candidate("p", "a", ("low",)), Candidate("q", "b")))
CHOICE = '{"choice":"q/b:none"}'
STATE = {"task": "x"}


def provider(url: str, wire: Wire = R, **fields: Any) -> dict[str, Any]:
    return {"adapter": wire.adapter, "baseUrl": f"{url}/v1", "allowPrivateNetwork": True, "apiKey": "own", **fields}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    session = Upstream()
    yield session
    await session.close()


type Ask = Callable[..., Any]


@pytest.fixture
def ask(upstream: Upstream) -> Ask:
    """Run the internal turn for a model of a registry."""

    def unusable(row: Provider) -> str | None:
        return usable(row, {}, forwardable=False)

    def credentials(row: Provider) -> Headers:
        return auth_headers(row, {}, None)

    async def run(made: Registry, model: str, state: EngineState | None = None) -> ModelReply:
        state = state or EngineState()
        pooled = PooledUpstream(upstream, state.pools, state.quota, lambda _: (), clock)
        around = Surroundings(pooled, state, lambda: made, unusable, credentials, lambda: 0.0, clock)
        return await invoke(around, TurnOptions(), made, request_body(model, None, OPTIONS, STATE))

    return run


def serving(data: bytes) -> RawServer:
    return RawServer([Again([Expect(), Send(data)])])


@pytest.mark.parametrize("wire", [R, C, M], ids=lambda wire: wire.name)
async def test_a_model_of_any_dialect_answers(ask: Ask, wire: Wire) -> None:
    async with serving(wire.answers(CHOICE)) as server:
        reply = await ask(registry(providers={"here": provider(server.url, wire)}), "here/m")
    assert read_reply(reply, OPTIONS).choice == "q/b:none"
    (request,) = server.requests
    assert CHOICE not in request.body.decode()
    assert "q/b:none" in request.body.decode()


async def test_the_request_has_its_own_credentials_and_headers_only(ask: Ask) -> None:
    async with serving(R.answers(CHOICE)) as server:
        await ask(registry(providers={"here": provider(server.url)}), "here/m")
    (request,) = server.requests
    names = sorted(name.lower().decode() for name, _ in request.headers)
    expected = ["accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "user-agent"]
    assert names == expected
    assert request.header("authorization") == "Bearer own"
    document = json.loads(request.body)
    assert (document["model"], document["stream"], document["store"], document["tools"]) == ("m", True, False, [])


async def test_an_answer_that_is_not_streamed_is_read_as_well(ask: Ask) -> None:
    async with serving(R.answers(CHOICE, stream=False)) as server:
        reply = await ask(registry(providers={"here": provider(server.url)}), "here/m")
    assert reply.streamed is False
    assert read_reply(reply, OPTIONS).choice == "q/b:none"


async def test_it_hops_and_cools_like_any_request(ask: Ask) -> None:
    state = EngineState()
    async with serving(response(503, b"{}")) as down, serving(R.answers(CHOICE)) as up:
        made = registry(
            providers={"down": provider(down.url), "up": provider(up.url)},
            combos={"plain": {"targets": [target("down/m"), target("up/m")]}},
        )
        reply = await ask(made, "combo/plain", state)
    assert read_reply(reply, OPTIONS).choice == "q/b:none"
    assert 59_000 < state.cooldowns.remaining(CooldownKey("plain", "down/m"), clock().mono_ms) <= 60_000


@pytest.mark.parametrize("model", ["nobody/m", "combo/nobody", "login/m"])
async def test_routes_that_cannot_be_asked(ask: Ask, model: str) -> None:
    login = {"adapter": "openai-responses", "baseUrl": "https://chatgpt.com/backend-api/codex", "authMode": "forward"}
    with pytest.raises(Closed, match=Gate.MISSING_KEY):
        await ask(registry(providers={"login": login}), model)


async def test_a_combo_that_decides_is_refused(ask: Ask) -> None:
    reply = await ask(registry(), "combo/main")
    assert reply.status == 400
    with pytest.raises(Closed, match="http"):
        read_reply(reply, OPTIONS)


@pytest.mark.parametrize(
    ("data", "gate"),
    [
        (response(500, b"{}"), "http"),
        (response(302, b"", [(b"Location", b"/x")]), "http"),
        (event_stream(*R.start(), R.busy()), "http"),
        (event_head() + b"".join(map(chunk, [*R.start(), *R.begin_text(), R.delta("x")])), "malformed"),
        (event_stream(*R.start(), *R.begin_text(), *[R.delta("x" * 9_000)] * 8, *R.finish("x")), "malformed"),
        (R.answers("no json"), "malformed"),
        (R.answers('{"choice":"other"}'), "invalid"),
    ],
    ids=["500", "302", "failed", "cut", "large", "prose", "unlisted"],
)
async def test_what_goes_wrong_is_a_gate(ask: Ask, data: bytes, gate: str) -> None:
    async with RawServer([Expect(), Send(data)]) as server:
        with pytest.raises(Closed, match=f"^{gate}$"):
            read_reply(await ask(registry(providers={"here": provider(server.url)}), "here/m"), OPTIONS)


HALVES = (b"", event_head() + chunk(R.start()[0]), head(200, [(b"Content-Length", b"99")]))


@pytest.mark.parametrize("sent", HALVES, ids=["nothing", "stream", "whole"])
async def test_a_cancelled_turn_lets_go_of_its_target_and_cools_nothing(ask: Ask, sent: bytes) -> None:
    reached, left, state = asyncio.Event(), asyncio.Event(), EngineState()
    async with RawServer([Expect(), Send(sent), Signal(reached), ClientGone(left)]) as server:
        made = registry(providers={"here": provider(server.url)}, combos={"plain": {"targets": [target("here/m")]}})
        task = asyncio.create_task(ask(made, "combo/plain", state))
        await asyncio.wait_for(reached.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(left.wait(), 5)
    assert len(state.cooldowns) == 0


async def test_a_wait_for_a_cooldown_is_slept_through(ask: Ask) -> None:
    serve = [Again([Expect(), Send(R.answers(CHOICE))])]
    async with RawServer([Expect(), Send(response(503, b"{}"))], serve) as server:
        combo = {"targets": [target("here/m")], "waitForCooldownMs": 60_000, "cooldownMs": 20}
        reply = await ask(registry(providers={"here": provider(server.url)}, combos={"plain": combo}), "combo/plain")
    assert read_reply(reply, OPTIONS).choice == "q/b:none"
    assert len(server.requests) == 2
