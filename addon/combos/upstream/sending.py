"""One request on one connection of the pool: its bytes go out, the head of its answer comes in.

aiohttp's own request and response objects, made for every kind of use, cost three times what the exchange itself does
(0.08 ms of 0.11 ms). So its pool and its parser are used here, and not its session. Relied upon, and seen to in the
tests of this layer: a connection's `protocol` is told by `set_response_params` that an answer is wanted, `read` gives
the next head with the reader of its body and raises what broke the connection, and `StreamWriter.drain` waits until
the transport takes more.
"""

import asyncio
import contextlib
from collections.abc import Callable

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter

from combos.upstream.writes import Writes

type Beginning = tuple[RawResponseMessage, aiohttp.StreamReader]

_MAX_HEAD_LINE = 64 * 1024  # vendors send long policy and cookie headers; a hostile head stays bounded
_AT_ONCE = 64 * 1024  # up to here one write is cheaper than two


async def send(
    connection: Connection,
    head: bytes,
    body: bytes,
    writes: Writes,
    *,
    is_bodiless: bool,
    on_sent: Callable[[], None],
) -> Beginning:
    """Write a request and wait for the head of its final answer; `is_bodiless`: the answer has none, as for HEAD.

    `on_sent` is called when a body that did not fit into the socket's buffer is sent. Raises what aiohttp raises.
    """
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection is closed")
    protocol.set_response_params(
        skip_payload=is_bodiless,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_MAX_HEAD_LINE,
        max_field_size=_MAX_HEAD_LINE,
    )
    _write(protocol.transport, head, body, writes)
    if not protocol.writing_paused:
        return await _final_head(protocol)
    sending = asyncio.create_task(_tell_when_sent(protocol, on_sent), name="combos upstream body")
    try:
        return await _final_head(protocol)
    finally:
        sending.cancel()


def _write(transport: asyncio.Transport, head: bytes, body: bytes, writes: Writes) -> None:
    if len(body) <= _AT_ONCE:
        writes.soon(transport, head + body)
    else:
        transport.write(head)
        transport.write(body)


async def _final_head(protocol: ResponseHandler) -> Beginning:
    """Interim answers are passed over; a change of protocols is none of them."""
    while True:
        head, content = await protocol.read()
        if head.code >= 200 or head.code == 101:
            return head, content


async def _tell_when_sent(protocol: ResponseHandler, on_sent: Callable[[], None]) -> None:
    with contextlib.suppress(ConnectionError):  # whoever waits for the answer is told
        await StreamWriter(protocol, asyncio.get_running_loop()).drain()
        on_sent()
