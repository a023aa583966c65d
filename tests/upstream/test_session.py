"""Exchanges from the outside: answers as they are, bytes as they arrive, and the end of the session."""

import asyncio

import aiohttp
import pytest

from combos.core.facts import TransportFault
from combos.engine.commands import Timeouts
from combos.upstream.connector import Link
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream
from exchanges import PATIENT, body_of, exchange, fault_of_exchange, outbound
from rawserver import (
    Again,
    ClientGone,
    Close,
    Expect,
    RawServer,
    Send,
    Signal,
    Stall,
    chunk,
    event_head,
    event_stream,
    head,
    response,
)

HOURS = Timeouts(connect_ms=3_600_000, head_ms=3_600_000, idle_ms=3_600_000)
SERVE = [Again([Expect(), Send(response(200, b"{}"))])]


async def test_an_exchange_as_it_is(upstream: Upstream) -> None:
    async with (
        RawServer([Again([Expect(), Send(response(201, b'{"ok": 1}'))])]) as server,
        upstream.open(outbound(server.url, body=b'{"model": "a"}'), PATIENT) as answer,
    ):
        assert answer.status == 201
        assert answer.peername == ("127.0.0.1", server.port)
        assert answer.headers == ((b"Content-Type", b"application/json"), (b"Content-Length", b"9"))
        assert await body_of(answer) == b'{"ok": 1}'
        assert await answer.read_some() == b""
    assert server.requests[0].body == b'{"model": "a"}'


async def test_a_large_body_arrives_whole(upstream: Upstream) -> None:
    body = bytes(range(256)) * 12_000
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url, body=body))
    assert server.requests[0].body == body


async def test_answers_are_raw(upstream: Upstream) -> None:
    headers = [
        (b"Set-Cookie", b"a=1"),
        (b"x-odd", b"\xff\xfe"),
        (b"Set-Cookie", b"b=2"),
        (b"Content-Encoding", b"gzip"),
    ]
    async with RawServer([Again([Expect(), Send(response(200, b"not gzip", headers))])]) as server:
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            assert answer.headers == (*headers, (b"Content-Length", b"8"))
            assert await body_of(answer) == b"not gzip"
        await exchange(upstream, outbound(server.url))
    assert server.requests[1].header("cookie") is None


@pytest.mark.parametrize("status", [204, 304, 302, 429, 503])
async def test_statuses_are_answers_and_redirects_are_not_followed(upstream: Upstream, status: int) -> None:
    body = b"" if status in (204, 304) else b"{}"
    script = [Again([Expect(), Send(response(status, body, [(b"Location", b"http://127.0.0.1:1/")]))])]
    async with RawServer(script) as server:
        assert await exchange(upstream, outbound(server.url)) == (status, body)
        assert await exchange(upstream, outbound(server.url)) == (status, body)
        assert server.connections == 1


async def test_interim_answers_are_skipped(upstream: Upstream) -> None:
    async with RawServer([Expect(), Send(head(100) + head(103) + response(200, b"{}"))]) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")


@pytest.mark.parametrize("interim", [0, 1, 3])
async def test_interim_answers_at_the_last_moment_give_no_more_time(interim: int, upstream: Upstream) -> None:
    loop, deadlines = asyncio.get_running_loop(), upstream._deadlines
    asked = asyncio.Event()
    async with RawServer([Expect(), Signal(asked), ClientGone()]) as server:
        waiting = asyncio.ensure_future(fault_of_exchange(upstream, outbound(server.url), HOURS))
        await asyncio.wait_for(asked.wait(), 10)
        (link,) = deadlines._running
        assert isinstance(link, Link)
        link.protocol.data_received(head(103) * interim)
        link.at = 0
        deadlines._look(loop)
        fault = await asyncio.wait_for(waiting, 10)
        assert fault is not None
        assert fault.fault is TransportFault.HEAD_TIMEOUT


@pytest.mark.parametrize("interim", [0, 1, 3])
async def test_an_answer_at_the_last_moment_is_in_time(interim: int, upstream: Upstream) -> None:
    loop, deadlines = asyncio.get_running_loop(), upstream._deadlines
    asked = asyncio.Event()
    async with RawServer([Expect(), Signal(asked), ClientGone()]) as server:
        waiting = asyncio.ensure_future(exchange(upstream, outbound(server.url), timeouts=HOURS))
        await asyncio.wait_for(asked.wait(), 10)
        (link,) = deadlines._running
        assert isinstance(link, Link)
        link.protocol.data_received(head(103) * interim + response(200, b"{}"))
        link.at = 0
        deadlines._look(loop)
        assert await asyncio.wait_for(waiting, 10) == (200, b"{}")
        await upstream.close()


async def test_bytes_are_handed_out_as_they_arrive(upstream: Upstream) -> None:
    second = asyncio.Event()
    script = [
        Expect(),
        Send(event_head() + chunk(b"data: 1\n\n")),
        Stall(second),
        Send(chunk(b"data: 2\n\n") + b"0\r\n\r\n"),
    ]
    async with RawServer(script) as server, upstream.open(outbound(server.url), PATIENT) as answer:
        assert await answer.read_some() == b"data: 1\n\n"
        second.set()
        assert await body_of(answer) == b"data: 2\n\n"


@pytest.mark.parametrize("split", [1, 2, 7])
async def test_pieces_of_any_size_make_the_same_answer(upstream: Upstream, split: int) -> None:
    data = event_stream(b"data: 1\n\n", b"data: 2\n\n")
    async with RawServer([Expect(), Send(data, split)]) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"data: 1\n\ndata: 2\n\n")


async def test_a_body_may_last_until_the_connection_closes(upstream: Upstream) -> None:
    async with RawServer([Expect(), Send(head(200) + b"12345"), Close()]) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"12345")


async def test_after_close_nothing_is_sent() -> None:
    upstream = Upstream()
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url))
        await upstream.close()
        fault = await fault_of_exchange(upstream, outbound(server.url))
        assert fault is not None
        assert len(server.requests) == 1
        await upstream.close()


async def test_close_ends_exchanges_that_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream, asked = Upstream(), asyncio.Event()

    async def never(self: aiohttp.TCPConnector, *args: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", never)
    waiting = asyncio.ensure_future(fault_of_exchange(upstream, outbound("http://127.0.0.1:9"), HOURS))
    await asyncio.wait_for(asked.wait(), 5)
    await upstream.close()
    fault = await asyncio.wait_for(waiting, 5)
    assert fault is not None
    assert fault.fault is TransportFault.CONNECT_TIMEOUT


async def test_close_ends_exchanges_that_wait_for_a_head() -> None:
    upstream = Upstream()
    reached = asyncio.Event()
    async with RawServer([Expect(), Signal(reached), Stall()]) as server:
        waiting = asyncio.ensure_future(fault_of_exchange(upstream, outbound(server.url), HOURS))
        await asyncio.wait_for(reached.wait(), 5)
        await upstream.close()
        fault = await asyncio.wait_for(waiting, 5)
        assert fault is not None
        assert fault.fault is TransportFault.CLOSED


async def test_close_ends_running_exchanges() -> None:
    upstream = Upstream()
    async with RawServer([Expect(), Send(event_head() + chunk(b"x")), Stall()]) as server:
        answer = await upstream.send(outbound(server.url), PATIENT)
        assert await answer.read_some() == b"x"
        reading = asyncio.ensure_future(answer.read_some())
        await asyncio.sleep(0)
        await upstream.close()
        with pytest.raises(UpstreamFault) as caught:
            await asyncio.wait_for(reading, 5)
        assert caught.value.fault is TransportFault.CLOSED
