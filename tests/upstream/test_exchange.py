"""Reading an answer: time limits while it is read, cancellation at every await, nothing left behind."""

import asyncio
import contextlib
import gc
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from combos.core.facts import TransportFault
from combos.engine.commands import Timeouts
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream
from exchanges import PATIENT, body_of, exchange, fault_of_exchange, outbound
from rawserver import (
    LAST_CHUNK,
    Again,
    ClientGone,
    Close,
    Connection,
    Expect,
    PauseReading,
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

STARTED = [Expect(), Send(event_head() + chunk(b"1"))]


async def fault_of_read(answer: Answer) -> TransportFault:
    with pytest.raises(UpstreamFault) as caught:
        await asyncio.wait_for(answer.read_some(), 5)
    return caught.value.fault


async def test_a_shorter_limit_counts_from_now_on(upstream: Upstream) -> None:
    async with RawServer([*STARTED, Stall()]) as server, upstream.open(outbound(server.url), PATIENT) as answer:
        assert await answer.read_some() == b"1"
        answer.limit(30)
        assert await fault_of_read(answer) is TransportFault.IDLE_TIMEOUT


async def test_a_limit_may_change_while_somebody_reads(upstream: Upstream) -> None:
    async with RawServer([*STARTED, Stall()]) as server, upstream.open(outbound(server.url), PATIENT) as answer:
        assert await answer.read_some() == b"1"
        reading = asyncio.ensure_future(fault_of_read(answer))
        await asyncio.sleep(0)
        answer.limit(30)
        assert await reading is TransportFault.IDLE_TIMEOUT


async def test_a_longer_limit_replaces_a_shorter_one(upstream: Upstream) -> None:
    more = asyncio.Event()
    script = [*STARTED, Stall(more), Send(chunk(b"2") + LAST_CHUNK)]
    async with RawServer(script) as server, upstream.open(outbound(server.url), Timeouts(5_000, 5_000, 30)) as answer:
        assert await answer.read_some() == b"1"
        reading = asyncio.ensure_future(answer.read_some())
        await asyncio.sleep(0)
        answer.limit(5_000)
        asyncio.get_running_loop().call_later(0.06, more.set)
        assert await reading == b"2"


async def test_silence_counts_only_while_somebody_waits_for_bytes(upstream: Upstream) -> None:
    more = asyncio.Event()
    script = [*STARTED, Stall(more), Send(chunk(b"2") + LAST_CHUNK)]
    async with RawServer(script) as server, upstream.open(outbound(server.url), Timeouts(5_000, 5_000, 40)) as answer:
        assert await answer.read_some() == b"1"
        await asyncio.sleep(0.06)  # a slow client keeps us from reading
        asyncio.get_running_loop().call_later(0.02, more.set)
        assert await body_of(answer) == b"2"


async def test_every_byte_starts_the_silence_anew(upstream: Upstream) -> None:
    async def drip(connection: Connection) -> None:
        for _ in range(6):
            await asyncio.sleep(0.02)
            await Send(chunk(b"."))(connection)
        await Send(LAST_CHUNK)(connection)

    async with (
        RawServer([*STARTED, drip]) as server,
        upstream.open(outbound(server.url), Timeouts(5_000, 5_000, 80)) as answer,
    ):
        assert await body_of(answer) == b"1......"


async def test_bytes_that_arrive_with_the_limit_are_in_time(upstream: Upstream) -> None:
    def block(connection: Connection) -> None:
        connection.writer.write(chunk(b"2") + LAST_CHUNK)
        time.sleep(0.05)  # timer and bytes are noticed in the same turn of the loop

    async def late(connection: Connection) -> None:
        asyncio.get_running_loop().call_later(0.01, block, connection)
        await ClientGone()(connection)

    script = [*STARTED, late]
    timeouts = Timeouts(5_000, 5_000, 30)
    async with RawServer(script) as server, upstream.open(outbound(server.url), timeouts) as answer:
        assert await body_of(answer) == b"12"


async def test_the_total_limit_ends_even_a_busy_stream(upstream: Upstream) -> None:
    async def flood(connection: Connection) -> None:
        while True:
            await Send(chunk(b"x" * 10))(connection)

    async with (
        RawServer([Expect(), Send(event_head()), flood]) as server,
        upstream.open(outbound(server.url), PATIENT) as answer,
    ):
        answer.limit(5_000, 40)
        with pytest.raises(UpstreamFault) as caught:
            await asyncio.wait_for(body_of(answer), 5)
        assert caught.value.fault is TransportFault.IDLE_TIMEOUT


async def test_the_total_limit_ends_a_silent_stream_and_none_lifts_it(upstream: Upstream) -> None:
    async with (
        RawServer([*STARTED, Stall()], [*STARTED, Send(LAST_CHUNK)]) as server,
        upstream.open(outbound(server.url), PATIENT) as answer,
    ):
        answer.limit(5_000, 30)
        assert await answer.read_some() == b"1"
        assert await fault_of_read(answer) is TransportFault.IDLE_TIMEOUT
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            answer.limit(5_000, 1)
            answer.limit(5_000, None)
            await asyncio.sleep(0.01)
            assert await body_of(answer) == b"1"


async def test_an_expired_answer_closes_its_connection(upstream: Upstream) -> None:
    gone = asyncio.Event()
    async with RawServer([*STARTED, ClientGone(gone)]) as server:
        answer = await upstream.send(outbound(server.url), Timeouts(5_000, 5_000, 20))
        assert await answer.read_some() == b"1"
        assert await fault_of_read(answer) is TransportFault.IDLE_TIMEOUT
        await asyncio.wait_for(gone.wait(), 5)


async def test_a_slow_reader_holds_the_sender_back(upstream: Upstream) -> None:
    sent = 0

    async def flood(connection: Connection) -> None:
        nonlocal sent
        for _ in range(640):
            connection.writer.write(b"x" * 65536)
            await connection.writer.drain()
            sent += 65536

    script = [Expect(), Send(head(200, [(b"Content-Length", str(640 * 65536).encode())])), flood, ClientGone()]
    async with RawServer(script) as server, upstream.open(outbound(server.url), PATIENT) as answer:
        last = -1
        while last != sent:  # until nothing moves any more
            last = sent
            await asyncio.sleep(0.03)
        assert sent < 320 * 65536
        assert len(await body_of(answer)) == 640 * 65536


MARKS = (65_536, 131_072, 262_144, 524_288, 786_432)
"""Sizes at which a socket's buffer, a piece that is read at once, or a reader is full."""


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("split", [None, 41_762], ids=["at once", "in pieces"])
@pytest.mark.parametrize("size", [mark + more for mark in MARKS for more in (-1, 0, 1)])
async def test_a_body_that_is_read_late_arrives_whole_and_its_connection_serves_on(
    upstream: Upstream, size: int, split: int | None, *, is_chunked: bool
) -> None:
    body = b"x" * size
    framed = chunk(body) + LAST_CHUNK if is_chunked else body
    framing = (b"Transfer-Encoding", b"chunked") if is_chunked else (b"Content-Length", str(size).encode())
    turn = Again([Expect(), Send(head(503, [framing])), Send(framed, split)])
    async with RawServer([turn]) as server:
        for _ in range(2):
            async with upstream.open(outbound(server.url), PATIENT) as answer:
                for _ in range(50):  # as much as is taken meanwhile waits to be read
                    await asyncio.sleep(0)
                assert await asyncio.wait_for(body_of(answer), 10) == body
        assert server.connections == 1


async def test_what_has_arrived_is_told_from_what_has_not(upstream: Upstream) -> None:
    more = asyncio.Event()
    script = [*STARTED, Stall(more), Send(chunk(b"2") + LAST_CHUNK)]
    async with RawServer(script) as server, upstream.open(outbound(server.url), PATIENT) as answer:
        assert [answer.arrived(), answer.arrived()] == [b"1", None]
        more.set()
        assert await answer.read_some() == b"2"
        assert [answer.arrived(), await answer.read_some(), answer.arrived()] == [b""] * 3


# --- cancellation ---------------------------------------------------------------------------------------------------

type Act = Callable[[Upstream, RawServer], Awaitable[object]]


async def send_only(upstream: Upstream, server: RawServer) -> None:
    await upstream.send(outbound(server.url), PATIENT)


async def send_tls(upstream: Upstream, server: RawServer) -> None:
    await upstream.send(outbound(server.url.replace("http:", "https:")), PATIENT)


async def send_much(upstream: Upstream, server: RawServer) -> None:
    await upstream.send(outbound(server.url, body=b"x" * 8_000_000), PATIENT)


async def read_on(upstream: Upstream, server: RawServer) -> None:
    async with upstream.open(outbound(server.url), PATIENT) as answer:
        await body_of(answer)


async def read_without_context(upstream: Upstream, server: RawServer) -> None:
    await body_of(await upstream.send(outbound(server.url), PATIENT))


async def send_through_proxy(upstream: Upstream, server: RawServer) -> None:
    await upstream.send(outbound("https://vendor.example", proxy=server.url), PATIENT)


class ReadAfter:
    """Read what a paused connection holds, up to its end, once `event` is set."""

    def __init__(self, event: asyncio.Event, gone: asyncio.Event) -> None:
        self.event = event
        self.gone = gone

    async def __call__(self, connection: Connection) -> None:
        await self.event.wait()
        connection.writer.transport.resume_reading()
        await ClientGone(self.gone)(connection)


class Stage:
    """The events of one cancellation: the script has come to its stop, the client was cancelled, the socket is gone."""

    def __init__(self) -> None:
        self.here, self.cancelled, self.gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def stop(self) -> list[Step]:
        return [Signal(self.here), ClientGone(self.gone)]

    def stop_reading(self) -> list[Step]:
        return [PauseReading(), Signal(self.here), ReadAfter(self.cancelled, self.gone)]


STOPS: dict[str, tuple[Callable[[Stage], list[Step]], Act]] = {
    "TLS handshake": (lambda stage: stage.stop(), send_tls),
    "answer of a proxy": (lambda stage: [Expect(), *stage.stop()], send_through_proxy),
    "TLS handshake through a proxy": (lambda stage: [Expect(), Send(head(200)), *stage.stop()], send_through_proxy),
    "writing the request": (lambda stage: stage.stop_reading(), send_much),
    "waiting for the head": (lambda stage: [Expect(), *stage.stop()], send_only),
    "inside the head": (lambda stage: [Expect(), Send(b"HTTP/1.1 200 OK\r\n"), *stage.stop()], send_only),
    "after an interim answer": (lambda stage: [Expect(), Send(head(100)), *stage.stop()], send_only),
    "waiting for the body": (lambda stage: [Expect(), Send(event_head()), *stage.stop()], read_on),
    "inside the body": (lambda stage: [*STARTED, *stage.stop()], read_on),
    "inside the body, nobody closes": (lambda stage: [*STARTED, *stage.stop()], read_without_context),
}


@pytest.mark.parametrize(("script", "act"), STOPS.values(), ids=STOPS)
async def test_cancellation_closes_the_socket_at_once(
    upstream: Upstream, script: Callable[[Stage], list[Step]], act: Act
) -> None:
    stage = Stage()
    async with RawServer(script(stage)) as server:
        task = asyncio.ensure_future(act(upstream, server))
        await asyncio.wait_for(stage.here.wait(), 5)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stage.cancelled.set()
        await asyncio.wait_for(stage.gone.wait(), 5)
        assert server.connections == 1


async def test_cancellation_while_a_name_is_resolved(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def getaddrinfo(*arguments: object, **keywords: object) -> list[object]:
        asked.set()
        await answer.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    task = asyncio.ensure_future(upstream.send(outbound("http://slow.example"), PATIENT))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer.set()
    await asyncio.sleep(0)


async def test_cancellation_while_tcp_connects(upstream: Upstream) -> None:
    before = open_files()
    with full_backlog() as port:
        task = asyncio.ensure_future(upstream.send(outbound(f"http://127.0.0.1:{port}"), PATIENT))
        await asyncio.sleep(0.02)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert open_files() <= before + POOL_FILES


async def test_a_tcp_connection_that_is_never_accepted_is_a_connect_timeout(upstream: Upstream) -> None:
    with full_backlog() as port:
        fault = await fault_of_exchange(upstream, outbound(f"http://127.0.0.1:{port}"), Timeouts(40, 5_000, 5_000))
    assert fault is not None
    assert fault.fault is TransportFault.CONNECT_TIMEOUT


@contextlib.contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose queue of connections is full: the kernel drops further attempts."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]


# --- leaks ----------------------------------------------------------------------------------------------------------

POOL_FILES = 1  # the thread pool of the event loop may have opened one


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts files by /proc")
async def test_nothing_is_left_behind() -> None:
    endings: list[list[Step]] = [
        [Expect(), Send(response(200, b"{}"))],
        [Expect(), Close()],
        [Expect(), Reset()],
        [*STARTED, Close()],
        [*STARTED, Reset()],
        [*STARTED, ClientGone()],
        [Expect(), ClientGone()],
        [Expect(), Send(event_head() + chunk(b"1") + b"zz\r\n"), ClientGone()],
    ]
    tasks, files = asyncio.all_tasks(), open_files()
    upstream = Upstream()
    async with RawServer(*endings * 4, [Again([Expect(), Send(response(200, b"{}"))])]) as server:
        for _ in range(60):
            await fault_of_exchange(upstream, outbound(server.url), Timeouts(1_000, 15, 15))
    await upstream.close()
    for _ in range(10):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks
    assert open_files() == files


async def test_a_pool_of_dead_connections_is_emptied_in_time(upstream: Upstream) -> None:
    script = [Expect(), Send(response(200, b"{}")), Close()]
    async with RawServer(script) as server:
        for _ in range(5):
            await exchange(upstream, outbound(server.url))
        assert server.connections == 5
