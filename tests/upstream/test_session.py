"""Sending: what goes over the wire, what comes back, which connections are kept and which retried."""

import pytest
from exchanges import PATIENT, outbound
from rawserver import Again, Close, Expect, RawServer, Send, chunk, event_stream, head, response

from combos.core.facts import TransportFault
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream


async def read_all(answer) -> bytes:
    parts = []
    while data := await answer.read_some():
        parts.append(data)
    return b"".join(parts)


async def test_a_whole_exchange(upstream: Upstream) -> None:
    body = b'{"model": "a"}'
    async with RawServer([Again([Expect(), Send(response(201, b'{"ok": 1}'))])]) as server:
        for _ in range(3):
            async with upstream.open(outbound(server.url, body=body), PATIENT) as answer:
                assert answer.status == 201
                assert answer.peername == ("127.0.0.1", server.port)
                assert answer.headers == ((b"Content-Type", b"application/json"), (b"Content-Length", b"9"))
                assert await read_all(answer) == b'{"ok": 1}'
                assert await answer.read_some() == b""
        assert server.connections == 1
        assert [request.body for request in server.requests] == [body] * 3
