"""A client that does not read holds the writer back, and no one else."""

import asyncio
import socket

from mitmproxy.http import HTTPFlow

from combos.mitm.writer import ResponseWriter
from mitm.harness import (
    H1Client,
    h2_client,
)
from mitm.streaming import GET, Answering, Flood, Start, greet, stalled


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
