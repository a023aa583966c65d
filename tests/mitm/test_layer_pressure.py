"""A client that does not read holds the writer back, and no one else."""

import asyncio
import socket
from collections.abc import Callable

import pytest
from mitmproxy.http import HTTPFlow

from combos.mitm.writer import Responder, ResponseWriter
from mitm.harness import (
    H1Client,
    h2_client,
    tunnel,
)
from mitm.streaming import GET, Answering, Flood, Start, Watched, greet, stalled


async def test_a_slow_http1_client_holds_the_writer_back(start: Start) -> None:
    flood = Flood(24 * 2**20)
    proxy = await start(Answering(flood))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**14)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", proxy.port))
    client = H1Client(*await asyncio.open_connection(sock=sock, limit=2**14))
    client.send(GET)
    assert await stalled(flood) < flood.total / 2  # what the kernel's socket buffers take
    await client.head()
    assert len(await client.exactly(flood.total)) == flood.total
    await client.close()


async def test_an_http2_window_holds_the_writer_back_until_it_opens(start: Start) -> None:
    flood = Flood(2**20)
    proxy = await start(Answering(flood))
    async with h2_client(proxy, grant=False) as client:
        stream = client.request("/ours")
        await client.until(lambda: len(client.bodies[stream]) == 65535)
        assert await stalled(flood) <= 2**17
        client.conn.increment_flow_control_window(2**20)
        client.conn.increment_flow_control_window(2**20, stream)
        client.flush()
        await client.until(lambda: stream in client.ended)
        assert len(client.bodies[stream]) == flood.total


async def test_a_closed_http2_window_does_not_hold_back_other_streams(start: Start) -> None:
    async def both(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await (Flood(2**20) if flow.request.path == "/ours/big" else greet)(flow, writer)

    proxy = await start(Answering(both))
    async with h2_client(proxy, grant=False, window=2**12) as client:
        client.request("/ours/big")
        small = client.request("/ours/small")
        await client.until(lambda: small in client.ended)
        assert client.bodies[small] == b"onetwothree"


def at_once(body: bytes) -> Responder:
    """An answer that is there as a whole."""
    return lambda flow, writer: writer.respond(503, (), body)


def with_its_head(body: bytes) -> Responder:
    """An answer whose whole body is there when it begins, as that of an error that is too large to be looked at."""

    async def respond(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(503, (), body)
        await writer.end()

    return respond


def in_pieces(body: bytes) -> Responder:
    """An answer in pieces of unlike sizes."""

    async def respond(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(503, ())
        for begin, end in ((0, 29_516), (29_516, 37_278), (37_278, 38_262), (38_262, len(body))):
            await writer.chunk(body[begin:end])
        await writer.end()

    return respond


async def body_of(client: H1Client) -> bytes:
    """The next answer's body, by its framing."""
    head = await client.head()
    if b"transfer-encoding: chunked" not in head:
        return await client.exactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
    pieces = []
    while piece := await client.chunk():
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 80_024, 131_073, 524_289])
@pytest.mark.parametrize("way", [at_once, with_its_head, in_pieces])
async def test_a_large_answer_reaches_a_client_in_a_tunnel_that_reads_late(
    start: Start, way: Callable[[bytes], Responder], size: int
) -> None:
    watched = Watched(way(b"x" * size))
    proxy = await start(Answering(watched))
    async with tunnel(proxy, "models.test", "http/1.1") as client:
        for _ in range(2):
            watched.entered.clear()
            client.send(b"GET /ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
            await watched.entered.wait()
            for _ in range(50):  # what is sent meanwhile waits to be read
                await asyncio.sleep(0)
            assert await body_of(client) == b"x" * size
