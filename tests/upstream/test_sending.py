"""Requests on connections: bodies of every size, answers that come before the body is sent, heads that are none."""

import asyncio

import aiohttp
import pytest
from yarl import URL

from combos.upstream.sending import send
from combos.upstream.session import Upstream
from combos.upstream.writes import Writes
from exchanges import PATIENT, body_of, exchange, outbound
from rawserver import Again, ClientGone, Expect, ExpectHead, RawServer, Send, Signal, Stall, head, response

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]
TOO_MUCH = b"x" * 30_000_000  # more than the buffers of a loopback connection hold


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 1_000_000])
async def test_bodies_of_every_size_arrive_and_keep_their_connection(upstream: Upstream, size: int) -> None:
    async with RawServer(SERVE) as server:
        for _ in range(2):
            await exchange(upstream, outbound(server.url, body=b"x" * size))
        assert [len(request.body) for request in server.requests] == [size, size]
        assert server.connections == 1


async def test_an_answer_before_the_body_is_sent_is_taken_and_ends_the_connection(upstream: Upstream) -> None:
    gone = asyncio.Event()
    async with RawServer([ExpectHead(), Send(response(413, b"{}")), ClientGone(gone)], SERVE) as server:
        assert await exchange(upstream, outbound(server.url, body=TOO_MUCH)) == (413, b"{}")
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


@pytest.mark.parametrize(("body", "is_told"), [(TOO_MUCH, True), (b"short", False)])
async def test_only_a_body_that_has_to_wait_is_told_of_when_it_is_sent(body: bytes, is_told: bool) -> None:
    sent = asyncio.Event()
    script = [Expect(), Stall(sent), Send(response(200, b"{}"))] if is_told else [Expect(), Send(response(200, b"{}"))]
    async with RawServer(script) as server, aiohttp.TCPConnector() as pool:
        connection = await pool.connect(aiohttp.ClientRequest("GET", URL(server.url)), [], aiohttp.ClientTimeout())
        message = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        async with asyncio.timeout(10):
            answer, _ = await send(connection, message, body, Writes(), is_bodiless=False, on_sent=sent.set)
        connection.close()
        assert answer.code == 200
        assert sent.is_set() is is_told
        assert server.requests[0].body == body


async def test_nothing_is_left_behind_when_the_wait_for_an_answer_is_given_up(upstream: Upstream) -> None:
    reached = asyncio.Event()
    async with RawServer([ExpectHead(), Signal(reached), Stall(asyncio.Event())], SERVE) as server:
        waiting = asyncio.ensure_future(upstream.send(outbound(server.url, body=TOO_MUCH), PATIENT))
        await asyncio.wait_for(reached.wait(), 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


async def test_a_closed_connection_is_not_written_to() -> None:
    async with RawServer(SERVE) as server, aiohttp.TCPConnector() as pool:
        connection = await pool.connect(aiohttp.ClientRequest("GET", URL(server.url)), [], aiohttp.ClientTimeout())
        connection.close()
        with pytest.raises(aiohttp.ClientConnectionResetError):
            await send(connection, b"GET / HTTP/1.1\r\n\r\n", b"", Writes(), is_bodiless=False, on_sent=lambda: None)
        assert server.requests == []


async def test_an_answer_to_head_has_no_body_whatever_length_it_announces(upstream: Upstream) -> None:
    announced = head(200, [(b"Content-Length", b"5")])
    async with RawServer([Again([Expect(), Send(announced)])]) as server:
        for _ in range(2):
            async with upstream.open(outbound(server.url, method="HEAD", body=b""), PATIENT) as answer:
                assert await body_of(answer) == b""
        assert server.connections == 1
