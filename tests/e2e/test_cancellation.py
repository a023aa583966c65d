"""A client that leaves, in every phase of a request: the target is let go at once and nothing else happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mitm.harness import h2_client
from rawclient import Talk, talk
from rawserver import ClientGone, RawServer, Send, Signal, Step, chunk, event_head, head
from stage import Case, Stage, stage, until
from wires import WIRES, R, Wire, error

pytestmark = pytest.mark.usefixtures("entrance")

LIMIT_S = 10


async def happened(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), LIMIT_S)


async def is_cancelled(on: Stage, case: Case, calls: list[str]) -> None:
    """The record says so, nothing is cooled, nobody else was asked, and no target's connection is open."""
    await until(lambda: case.record is not None)
    assert case.record is not None
    assert (case.record.outcome, case.record.status) == ("cancelled", 499)
    assert case.calls == calls
    assert on.cooling(case) == {}
    assert len(case.records) == 1
    await until(lambda: not on.server.live)


@asynccontextmanager
async def waiting(
    confdir: Path, *before: Step, wire: Wire = R, stream: bool = True
) -> AsyncIterator[tuple[Stage, Case, Talk, asyncio.Event, asyncio.Event]]:
    """A request whose target has sent `before` and then says nothing; tells `reached` and the client's `gone`."""
    reached, gone = asyncio.Event(), asyncio.Event()
    case = Case(wire, alpha=[*before, Signal(reached), ClientGone(gone)], beta=wire.answers("beta-ok"))
    async with stage(confdir, case) as on, on.talk(case, stream=stream) as client:
        await happened(reached)
        yield on, case, client, reached, gone


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_while_the_head_is_awaited(wire: Wire, confdir: Path) -> None:
    async with waiting(confdir, wire=wire) as (on, case, client, _, gone):
        client.leave()
        await happened(gone)
        await is_cancelled(on, case, ["alpha"])


async def test_in_the_prefix(confdir: Path) -> None:
    begun = Send(event_head() + b"".join(map(chunk, R.start())))
    async with waiting(confdir, begun) as (on, case, client, _, gone):
        client.leave()
        await happened(gone)
        await is_cancelled(on, case, ["alpha"])


async def test_in_the_middle_of_the_stream(confdir: Path) -> None:
    events = [*R.start(), *R.begin_text(), R.delta("Half an")]
    begun = Send(event_head() + b"".join(map(chunk, events)))
    async with waiting(confdir, begun) as (on, case, client, _, gone):
        await client.head()
        await client.until(b"Half an")
        client.leave()
        await happened(gone)
        await is_cancelled(on, case, ["alpha"])


async def test_in_a_whole_json_answer(confdir: Path) -> None:
    part = head(200, [(b"Content-Type", b"application/json"), (b"Content-Length", b"1000")]) + b'{"id": "half'
    async with waiting(confdir, Send(part), stream=False) as (on, case, client, _, gone):
        client.leave()
        await happened(gone)
        await is_cancelled(on, case, ["alpha"])


async def test_in_an_error_body(confdir: Path) -> None:
    part = head(503, [(b"Content-Type", b"application/json"), (b"Content-Length", b"1000")]) + b'{"error": '
    async with waiting(confdir, Send(part)) as (on, case, client, _, gone):
        client.leave()
        await happened(gone)
        await is_cancelled(on, case, ["alpha"])


async def test_while_the_second_target_is_awaited(confdir: Path) -> None:
    reached, gone = asyncio.Event(), asyncio.Event()
    case = Case(R, alpha=error(503, {}), beta=[Signal(reached), ClientGone(gone)], gamma=R.answers("gamma-ok"))
    async with stage(confdir, case) as on, on.talk(case) as client:
        await happened(reached)
        client.leave()
        await happened(gone)
        await until(lambda: case.record is not None)
        assert case.record is not None
        assert case.record.outcome == "cancelled"
        assert case.calls == ["alpha", "beta"]
        # What alpha said before stands; the client's leaving adds nothing.
        assert on.cooling(case) == {"alpha/m1": 60_000}


async def test_during_a_cooldown_wait(confdir: Path) -> None:
    """First the wait for the one target to be asked once more, then the wait of a request that found it cooling."""
    case = Case(R, alpha=error(503, {}), combo={"waitForCooldownMs": 600_000})
    async with stage(confdir, case) as on:
        async with on.talk(case) as client:
            await until(lambda: bool(on.cooling(case)))
            client.leave()
            await until(lambda: len(case.records) == 1)
        before = on.clock.reads
        async with on.talk(case) as client:
            await until(lambda: on.clock.reads > before)  # the turn has been started
            client.leave()
            await until(lambda: len(case.records) == 2)
        assert [record.outcome for record in case.records] == ["cancelled", "cancelled"]
        assert [record.waits_ms for record in case.records] == [[60_000], [60_000]]
        assert case.calls == ["alpha"]
        assert on.cooling(case) == {"alpha/m1": 60_000}


async def test_while_a_connection_is_made(confdir: Path) -> None:
    """A TLS target that never answers the handshake: the connection is given up with the client."""
    reached, gone = asyncio.Event(), asyncio.Event()
    async with RawServer([Signal(reached), ClientGone(gone)]) as mute:
        address = mute.url.replace("http:", "https:") + "/v1"
        case = Case(R, urls={"alpha": address}, beta=R.answers("beta-ok"))
        async with stage(confdir, case) as on, on.talk(case) as client:
            await happened(reached)
            client.leave()
            await happened(gone)
            await is_cancelled(on, case, [])


async def test_an_http2_client_resets_its_stream(confdir: Path) -> None:
    reached, gone = asyncio.Event(), asyncio.Event()
    case = Case(R, alpha=[Signal(reached), ClientGone(gone)], beta=R.answers("beta-ok"))
    other = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, other) as on, h2_client(on.proxy, "api.openai.test") as client:
        stream = client.request(R.path, "POST", json.dumps(R.request(case.model)).encode())
        await happened(reached)
        client.conn.reset_stream(stream, 8)
        client.flush()
        await happened(gone)
        await is_cancelled_h2(on, case)
        again = client.request(R.path, "POST", json.dumps(R.request(other.model)).encode())
        await client.until(lambda: again in client.ended)
        assert client.bodies[again] == b"".join(R.ok("alpha-ok"))


async def is_cancelled_h2(on: Stage, case: Case) -> None:
    await until(lambda: case.record is not None)
    assert case.record is not None
    assert (case.record.outcome, case.calls, on.cooling(case)) == ("cancelled", ["alpha"], {})


async def test_a_client_that_has_everything_and_leaves_is_no_cancellation(confdir: Path) -> None:
    """The success event was delivered; whether the last chunk follows is nobody's concern."""
    reached, gone = asyncio.Event(), asyncio.Event()
    events = b"".join(map(chunk, R.ok("alpha-ok")))
    case = Case(R, alpha=[Send(event_head() + events), Signal(reached), ClientGone(gone)])
    async with stage(confdir, case) as on, on.talk(case) as client:
        await client.head()
        await client.until(b"response.completed")
        client.leave()
        await happened(gone)
        await until(lambda: case.record is not None)
        assert case.record is not None
        assert case.record.outcome == "success"
        assert on.cooling(case) == {}


async def test_many_clients_leave_at_once(confdir: Path) -> None:
    cases = [Case(R, alpha=[ClientGone()], beta=R.answers("beta-ok")) for _ in range(30)]
    async with stage(confdir, *cases) as on:
        talks = []
        for case in cases:
            request = on.request(case, stream=True)
            talks.append(talk(on.port, request))
        started = await asyncio.gather(*(opened.__aenter__() for opened in talks))
        await until(lambda: all(case.calls for case in cases))
        for client in started:
            client.leave()
        await until(lambda: all(case.record is not None for case in cases))
        await asyncio.gather(*(opened.__aexit__(None, None, None) for opened in talks))
        assert {case.record.outcome for case in cases if case.record} == {"cancelled"}
        assert {tuple(case.calls) for case in cases} == {("alpha",)}
        await until(lambda: not on.server.live)
        await until(lambda: not on.proxy.handlers)
