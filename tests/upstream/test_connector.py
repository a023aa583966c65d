"""The pool: which connections are kept, which are closed, and which dead ones are replaced."""

import asyncio
import gc
import weakref

import pytest

from combos.core.facts import TransportFault
from combos.upstream.connector import Protocol
from combos.upstream.session import Upstream, UpstreamSettings
from exchanges import PATIENT, body_of, exchange, fault_of_exchange, outbound
from rawserver import (
    LAST_CHUNK,
    Again,
    ClientGone,
    Close,
    Expect,
    RawServer,
    Reset,
    Send,
    Signal,
    Stall,
    Step,
    chunk,
    event_head,
    head,
    response,
)

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]


async def test_connections_are_kept_for_everybody(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        for name in ("one", "two"):
            await exchange(upstream, outbound(server.url, name=name))
        assert server.connections == 1


async def test_a_body_that_arrived_whole_keeps_its_connection_unread(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            assert answer.status == 200
        await exchange(upstream, outbound(server.url))
        assert server.connections == 1


LAST = {
    "length": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    "chunks": b"HTTP/1.1 200 OK\r\nConnection: Close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"{}") + LAST_CHUNK,
    "nothing": b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    "an older version": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("split", [None, 1])
@pytest.mark.parametrize("kind", LAST)
async def test_the_last_answer_of_a_connection_closes_it(upstream: Upstream, kind: str, split: int | None) -> None:
    """Who has said that it is the last may wait for the other end to close."""
    gone = asyncio.Event()
    async with RawServer([Expect(), Send(LAST[kind], split), ClientGone(gone)], SERVE) as server:
        answer = await upstream.send(outbound(server.url), PATIENT)
        assert await body_of(answer) == (b"" if kind == "nothing" else b"{}")
        await asyncio.wait_for(gone.wait(), 10)
        await exchange(upstream, outbound(server.url))
        assert server.connections == 2


async def test_an_unfinished_answer_is_closed_at_once(upstream: Upstream) -> None:
    gone = asyncio.Event()
    async with RawServer([Expect(), Send(event_head() + chunk(b"x")), ClientGone(gone)], SERVE) as server:
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            assert await answer.read_some() == b"x"
        await asyncio.wait_for(gone.wait(), 5)
        await exchange(upstream, outbound(server.url))
        assert server.connections == 2


async def stale_pool(upstream: Upstream, server: RawServer, release: asyncio.Event, size: int = 1) -> None:
    """Fill the pool with connections whose other ends will act as soon as they get a second request."""
    answers = [await upstream.send(outbound(server.url), PATIENT) for _ in range(size)]
    release.set()
    for answer in answers:
        await body_of(answer)
    assert server.connections == size


@pytest.mark.parametrize("end", [Close(), Reset()], ids=["close", "reset"])
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_dead_pooled_connection_is_replaced(upstream: Upstream, end: Step, method: str) -> None:
    release = asyncio.Event()
    once = [Expect(), Send(head(200, [(b"Content-Length", b"2")])), Stall(release), Send(b"{}"), Expect(), end]
    async with RawServer(once, once, once, once, once, SERVE) as server:
        await stale_pool(upstream, server, release, size=5)
        assert await exchange(upstream, outbound(server.url, method=method)) == (200, b"{}")
        assert server.connections == 6, "one dead connection is enough to distrust the others"
        assert len(server.requests) == 7


async def test_an_earlier_answer_that_is_read_late_is_no_sign_of_life(upstream: Upstream) -> None:
    """Its connection may serve the next request before somebody takes what it said to the last one."""
    asked, closing = asyncio.Event(), asyncio.Event()
    once = [Expect(), Send(response(200, b"{}")), Expect(), Signal(asked), Stall(closing), Close()]
    async with RawServer(once, SERVE) as server:
        first = await upstream.send(outbound(server.url), PATIENT)
        second = asyncio.ensure_future(exchange(upstream, outbound(server.url)))
        await asyncio.wait_for(asked.wait(), 10)
        assert await body_of(first) == b"{}"
        closing.set()
        assert await second == (200, b"{}")
        assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_the_replacement_is_not_replaced(upstream: Upstream, method: str) -> None:
    release = asyncio.Event()
    once = [Expect(), Send(head(200, [(b"Content-Length", b"2")])), Stall(release), Send(b"{}"), Expect(), Close()]
    async with RawServer(once, [Expect(), Close()]) as server:
        await stale_pool(upstream, server, release)
        fault = await fault_of_exchange(upstream, outbound(server.url, method=method))
        assert fault is not None
        assert fault.fault is TransportFault.CLOSED
        assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_fresh_connection_is_never_replaced(upstream: Upstream, method: str) -> None:
    async with RawServer([Expect(), Close()]) as server:
        fault = await fault_of_exchange(upstream, outbound(server.url, method=method))
        assert fault is not None
        assert fault.fault is TransportFault.CLOSED
        assert server.connections == 1


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize("end", [Close(), Reset()], ids=["close", "reset"])
@pytest.mark.parametrize("size", [1, 5, 8, 12, 16, 17, len(_HEAD) - 1])
async def test_a_pooled_connection_that_began_to_answer_is_not_replaced(
    upstream: Upstream, end: Step, size: int
) -> None:
    """Whoever said a byte has the request and works on it: to send it again is to pay for it twice."""
    has_come = asyncio.Event()
    once = [Expect(), Send(response(200, b"{}")), Expect(), Send(_HEAD[:size]), Stall(has_come), end]
    async with RawServer(once, SERVE) as server:
        await exchange(upstream, outbound(server.url))
        waiting = asyncio.ensure_future(fault_of_exchange(upstream, outbound(server.url)))
        async with asyncio.timeout(10):
            while not any(protocol.has_spoken for protocol in _busy(upstream)):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.001)
        has_come.set()
        fault = await waiting
        assert fault is not None
        assert fault.fault in (TransportFault.CLOSED, TransportFault.RESET)
        assert server.connections == 1


def _busy(upstream: Upstream) -> list[Protocol]:
    """The connections that are in use."""
    connector = upstream._connector
    assert connector is not None
    waiting = {link.protocol for links in connector.idle._waiting.values() for _, link in links}
    return [made for made in connector._acquired if isinstance(made, Protocol) and made not in waiting]


@pytest.mark.parametrize("size", [None, 1, 8, 20])
async def test_an_answer_that_nobody_asked_for_is_never_taken(upstream: Upstream, size: int | None) -> None:
    """Nor what it began with: the rest of it would be taken for the next answer."""
    spoken = asyncio.Event()
    unasked = response(200, b"stale")[:size]
    script = [
        Expect(),
        Send(response(200, b"{}")),
        Stall(spoken),
        Send(unasked),
        Signal(told := asyncio.Event()),
        ClientGone(),
    ]
    async with RawServer(script, SERVE) as server:
        await exchange(upstream, outbound(server.url))
        spoken.set()
        await told.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


WHOLE = {
    "length": response(200, b"{}"),
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"{}") + LAST_CHUNK,
    "nothing": b"HTTP/1.1 204 No Content\r\n\r\n",
}


@pytest.mark.parametrize("size", [None, 1, 8, 20])
@pytest.mark.parametrize("kind", WHOLE)
async def test_nor_is_one_that_comes_at_once_with_the_answer_before_it(
    upstream: Upstream, kind: str, size: int | None
) -> None:
    unasked = b"HTTP/1.1 200 OK\r\nX-Stale: " if size is None else response(200, b"stale")[:size]
    script = [Expect(), Send(WHOLE[kind] + unasked), Again([Expect(), Send(response(200, b"stale"))])]
    async with RawServer(script, SERVE) as server:
        await exchange(upstream, outbound(server.url))
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("method", ["POST", "HEAD"])
async def test_an_answer_and_nothing_more_leaves_its_connection_usable(
    upstream: Upstream, kind: str, method: str
) -> None:
    whole = WHOLE[kind].partition(b"\r\n\r\n")
    script = [Again([Expect(), Send(b"".join(whole if method == "POST" else whole[:2]))])]
    async with RawServer(script) as server:
        for _ in range(3):
            await exchange(upstream, outbound(server.url, method=method))
        assert server.connections == 1


async def test_a_pooled_connection_keeps_nothing_of_the_request_that_opened_it(upstream: Upstream) -> None:
    """Its callbacks remember in which task it was opened, and a cancelled task remembers where it was."""

    class Flow:
        pass

    flows: list[weakref.ref[Flow]] = []
    answered = asyncio.Event()

    async def ask(url: str) -> None:
        flow = Flow()
        flows.append(weakref.ref(flow))
        await exchange(upstream, outbound(url))
        answered.set()
        await asyncio.Event().wait()

    async with RawServer(SERVE) as server:
        task = asyncio.create_task(ask(server.url))
        await answered.wait()
        task.cancel()
        await asyncio.wait([task])
        del task
        gc.collect()
        assert flows[0]() is None
        await exchange(upstream, outbound(server.url))
        assert server.connections == 1


async def test_what_was_held_back_goes_on_and_nothing_else_does() -> None:
    asked: list[str] = []

    class Transport(asyncio.Transport):
        def pause_reading(self) -> None:
            asked.append("pause")

        def resume_reading(self) -> None:
            asked.append("resume")

    protocol = Protocol(asyncio.get_running_loop())
    protocol.connection_made(Transport())
    protocol.set_response_params(read_until_eof=True, auto_decompress=False)
    protocol.data_received(event_head() + chunk(b"x"))
    _, content = await protocol.read()
    assert content.read_nowait() == b"x"
    assert asked == []
    piece = b"x" * 65_536
    while "pause" not in asked:
        protocol.data_received(chunk(piece))
    protocol.data_received(chunk(b"the last") + LAST_CHUNK)
    assert set(asked) == {"pause"}
    body = b""
    while not content.at_eof():
        body += content.read_nowait()
    assert body.strip(b"x") == b"the last"
    assert asked[-1] == "resume"
    resumed = asked.count("resume")
    protocol.resume_reading()
    assert asked.count("resume") == resumed


async def test_the_local_address_is_used() -> None:
    upstream = Upstream(UpstreamSettings(local_address="127.0.0.9"))
    peers: list[object] = []

    async def note(connection) -> None:
        peers.append(connection.writer.get_extra_info("peername")[0])

    async with RawServer([note, *SERVE]) as server:
        await exchange(upstream, outbound(server.url))
        await upstream.close()
    assert peers == ["127.0.0.9"]
