"""Requests on connections: bodies of every size, answers that come before the body is sent, heads that are none."""

import asyncio
import ssl

import aiohttp
import pytest
from aiohttp.connector import Connection
from yarl import URL

from authority import Authority
from combos.upstream.sending import has_sent_all, send
from combos.upstream.session import Upstream, UpstreamSettings
from combos.upstream.tls import TlsSettings
from combos.upstream.writes import Writes
from exchanges import PATIENT, body_of, exchange, outbound
from rawserver import (
    LAST_CHUNK,
    Again,
    ClientGone,
    Expect,
    ExpectHead,
    RawServer,
    Send,
    Signal,
    Stall,
    Step,
    chunk,
    event_head,
    head,
    response,
)
from rawserver import Connection as Served

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]
TOO_MUCH = b"x" * 30_000_000  # more than the buffers of a loopback connection hold


def _nothing() -> None: ...


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request: pytest.FixtureRequest, authority: Authority) -> ssl.SSLContext | None:
    """What the servers speak here."""
    return authority.server("127.0.0.1") if request.param else None


@pytest.fixture
async def trusting(upstream: Upstream, authority: Authority) -> Upstream:
    """A session that takes the servers' certificates."""
    upstream.configure(UpstreamSettings(tls=TlsSettings(trusted_ca=str(authority.ca_file))))
    return upstream


@pytest.fixture
def trust(tls: ssl.SSLContext | None, authority: Authority) -> ssl.SSLContext | bool:
    """What a connection of the bare pool is asked for with."""
    return True if tls is None else ssl.create_default_context(cafile=str(authority.ca_file))


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 1_000_000])
async def test_bodies_of_every_size_arrive_and_keep_their_connection(
    trusting: Upstream, tls: ssl.SSLContext | None, size: int
) -> None:
    async with RawServer(SERVE, tls=tls) as server:
        for _ in range(2):
            await exchange(trusting, outbound(server.url, body=b"x" * size))
        assert [len(request.body) for request in server.requests] == [size, size]
        assert server.connections == 1


async def test_an_answer_before_the_body_is_sent_is_taken_and_ends_the_connection(
    trusting: Upstream, tls: ssl.SSLContext | None
) -> None:
    gone = asyncio.Event()
    async with RawServer([ExpectHead(), Send(response(413, b"{}")), ClientGone(gone)], SERVE, tls=tls) as server:
        assert await exchange(trusting, outbound(server.url, body=TOO_MUCH)) == (413, b"{}")
        assert await exchange(trusting, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


@pytest.mark.parametrize(("body", "is_told"), [(TOO_MUCH, True), (b"short", False)], ids=["long", "short"])
async def test_only_a_body_that_has_to_wait_is_told_of_when_it_is_sent(
    tls: ssl.SSLContext | None, trust: ssl.SSLContext | bool, body: bytes, is_told: bool
) -> None:
    sent = asyncio.Event()
    script = [Expect(), Stall(sent), Send(response(200, b"{}"))] if is_told else [Expect(), Send(response(200, b"{}"))]
    async with RawServer(script, tls=tls) as server, aiohttp.TCPConnector() as pool:
        connection = await _connect(pool, server, trust)
        async with asyncio.timeout(20):
            answer, _, _ = await send(
                connection, _head(body), body, Writes(), is_bodiless=False, on_sent=sent.set, on_interim=_nothing
            )
        connection.close()
        assert answer.code == 200
        assert sent.is_set() is is_told
        assert server.requests[0].body == body


async def test_a_long_body_waits_here_until_the_other_end_takes_it(
    tls: ssl.SSLContext | None, trust: ssl.SSLContext | bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    full, sent, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    script = [ExpectHead(), Send(response(200, b"{}")), Stall(gone)]
    async with RawServer(script, tls=tls) as server, aiohttp.TCPConnector() as pool:
        connection = await _connect(pool, server, trust)
        transport, protocol = connection.transport, connection.protocol
        assert transport is not None
        assert protocol is not None
        assert has_sent_all(transport)
        write = transport.write

        def spy(data: bytes) -> None:
            pieces.append(len(data))
            write(data)

        pause = protocol.pause_writing

        def paused() -> None:
            pause()
            full.set()

        monkeypatch.setattr(transport, "write", spy)
        monkeypatch.setattr(protocol, "pause_writing", paused)
        message = _head(TOO_MUCH)
        async with asyncio.timeout(20):
            _, _, sending = await send(
                connection, message, TOO_MUCH, Writes(), is_bodiless=False, on_sent=sent.set, on_interim=_nothing
            )
        assert sending is not None
        await asyncio.wait_for(full.wait(), 20)
        assert not sending.done()
        assert not sent.is_set()
        assert not has_sent_all(transport)
        assert max(pieces) < 70_000
        assert sum(pieces) < len(TOO_MUCH)
        sending.cancel()
        transport.abort()
        connection.close()
        gone.set()


async def _connect(pool: aiohttp.TCPConnector, server: RawServer, trust: ssl.SSLContext | bool) -> Connection:
    return await pool.connect(aiohttp.ClientRequest("GET", URL(server.url), ssl=trust), [], aiohttp.ClientTimeout())


def _head(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)


async def test_nothing_is_left_behind_when_the_wait_for_an_answer_is_given_up(
    trusting: Upstream, tls: ssl.SSLContext | None
) -> None:
    reached = asyncio.Event()
    async with RawServer([ExpectHead(), Signal(reached), Stall(asyncio.Event())], SERVE, tls=tls) as server:
        waiting = asyncio.ensure_future(trusting.send(outbound(server.url, body=TOO_MUCH), PATIENT))
        await asyncio.wait_for(reached.wait(), 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await exchange(trusting, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


async def test_a_closed_connection_is_not_written_to(tls: ssl.SSLContext | None, trust: ssl.SSLContext | bool) -> None:
    async with RawServer(SERVE, tls=tls) as server, aiohttp.TCPConnector() as pool:
        connection = await _connect(pool, server, trust)
        connection.close()
        with pytest.raises(aiohttp.ClientConnectionResetError):
            await send(
                connection,
                b"GET / HTTP/1.1\r\n\r\n",
                b"",
                Writes(),
                is_bodiless=False,
                on_sent=_nothing,
                on_interim=_nothing,
            )
        assert server.requests == []


async def test_what_is_sent_goes_on_while_the_answer_is_read(trusting: Upstream, tls: ssl.SSLContext | None) -> None:
    body = b"x" * 5_000_000

    async def take_the_body(connection: Served) -> None:
        assert await connection.reader.readexactly(len(body)) == body

    script: list[Step] = [ExpectHead(), Send(event_head() + chunk(b"1")), take_the_body]
    script.append(Send(chunk(b"2") + LAST_CHUNK))
    async with RawServer([*script, *SERVE], tls=tls) as server:
        assert await exchange(trusting, outbound(server.url, body=body)) == (200, b"12")
        assert await exchange(trusting, outbound(server.url)) == (200, b"{}")
        assert server.connections == 1


async def test_an_answer_to_head_has_no_body_whatever_length_it_announces(
    trusting: Upstream, tls: ssl.SSLContext | None
) -> None:
    announced = head(200, [(b"Content-Length", b"5")])
    async with RawServer([Again([Expect(), Send(announced)])], tls=tls) as server:
        for _ in range(2):
            async with trusting.open(outbound(server.url, method="HEAD", body=b""), PATIENT) as answer:
                assert await body_of(answer) == b""
        assert server.connections == 1
