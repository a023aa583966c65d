"""One request on one connection of the pool: its bytes go out, the head of its answer comes in.

aiohttp's own request and response objects, made for every kind of use, cost three times what the exchange itself does
(0.08 ms of 0.11 ms). So its pool and its parser are used here, and not its session. Relied upon, and seen to in the
tests of this layer: a connection's `protocol` is told by `set_response_params` that an answer is wanted, `read` gives
the next head with the reader of its body and raises what broke the connection, and `StreamWriter.drain` waits until
the transport takes more.

A long body goes out in pieces. A TLS transport encrypts all it is given at once, which holds the event loop, and then
counts none of it as waiting.
"""

import asyncio
import contextlib
from collections.abc import Callable

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter

from combos.upstream.writes import Writes

type Beginning = tuple[RawResponseMessage, aiohttp.StreamReader, asyncio.Task[None] | None]
"""The head of an answer, the reader of its body, and who still sends the request's body, if that took a task."""

_MAX_HEAD_LINE = 64 * 1024  # vendors send long policy and cookie headers; a hostile head stays bounded
_PIECE = 64 * 1024  # up to here a body is one write with its head; half a millisecond to encrypt


async def send(
    connection: Connection,
    head: bytes,
    body: bytes,
    writes: Writes,
    *,
    is_bodiless: bool,
    on_sent: Callable[[], None],
    on_interim: Callable[[], None],
) -> Beginning:
    """Write a request and wait for the head of its final answer; `is_bodiless`: the answer has none, as for HEAD.

    `on_sent` is called when a body that was not taken at once is sent. That may go on after the head of the answer: the
    caller cancels the task when nobody wants the rest. `on_interim` is called for every head that is passed over, and
    may raise. Raises what aiohttp raises.
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
    sending: asyncio.Task[None] | None = None
    if len(body) <= _PIECE and not protocol.writing_paused:
        writes.soon(protocol.transport, head + body)
    else:
        writes.soon(protocol.transport, head + body[:_PIECE])
        rest = _send_rest(protocol, memoryview(body)[_PIECE:], on_sent)
        sending = asyncio.create_task(rest, name="combos upstream body")
    try:
        while True:  # interim answers are passed over; a change of protocols is none of them
            message, content = await protocol.read()
            if message.code >= 200 or message.code == 101:
                return message, content, sending
            on_interim()
    except BaseException:
        if sending is not None:
            sending.cancel()
        raise


def has_sent_all(transport: asyncio.Transport) -> bool:
    """Whether the socket has taken all that was written. A TLS transport does not count what it has encrypted and
    handed on; the one below it does."""
    layer: asyncio.Transport | None = transport
    while layer is not None:
        if layer.get_write_buffer_size():
            return False
        layer = getattr(getattr(layer, "_ssl_protocol", None), "_transport", None)
    return True


async def _send_rest(protocol: ResponseHandler, rest: memoryview, on_sent: Callable[[], None]) -> None:
    """Write piece by piece, as the transport takes them, and let others run in between."""
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    with contextlib.suppress(ConnectionError):  # whoever waits for the answer is told
        await writer.drain()
        for start in range(0, len(rest), _PIECE):
            if protocol.transport is None or protocol.transport.is_closing():
                return
            protocol.transport.write(rest[start : start + _PIECE])
            await asyncio.sleep(0)
            await writer.drain()
        on_sent()
