"""Where the pieces of an answer go at the listener: through the hooks of a flow's way, onto the client's connection.

Follows what mitmproxy does for a response on one of its own ports: who has set `stream`, how stream functions, kills
and changed bodies count, and which hook fires before what is sent.
"""

import asyncio
import time
from collections.abc import Iterable

from mitmproxy import ctx
from mitmproxy.connection import ConnectionState
from mitmproxy.flow import Error
from mitmproxy.http import HTTPFlow, Response

from combos.admin.client_wire import ClientWire
from combos.mitm.hooks import Fire
from combos.mitm.internals import (
    HttpErrorHook,
    HttpEvent,
    HttpResponseHeadersHook,
    HttpResponseHook,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)

_BODILESS = frozenset((204, 304))
_FRAMING = frozenset((b"transfer-encoding", b"content-length"))


class ListenerSink:
    """Takes one answer. What `fire` leaves to be awaited ends when nobody holds the flow back any more.

    `hooked` says whether the last hook of the flow was fired.
    """

    def __init__(self, flow: HTTPFlow, wire: ClientWire, fire: Fire) -> None:
        self.hooked = False
        self._flow = flow
        self._wire = wire
        self._fire = fire
        self._body = bytearray()
        self._keeps_all = False
        self._streams = False

    async def put(self, events: tuple[HttpEvent, ...], *, wait: bool = True) -> None:  # noqa: ARG002 - nothing queues here
        """Send the events. CancelledError: the client is gone, or the flow was killed."""
        if len(events) == 1 and isinstance(piece := events[0], ResponseData) and self._relays_unchanged():
            # By far the most: a piece of a stream that nobody changes or keeps.
            self._wire.chunk(piece.data)
            self._wire.flush()
            return
        for event in events:
            if self._flow.error is not None:
                await self.kill()
            match event:
                case ResponseData(data=data):
                    self._data(data)
                case ResponseHeaders(response=response, end_stream=is_all):
                    await self._head(response, is_all=is_all)
                case ResponseEndOfMessage():
                    await self._end()
                case ResponseProtocolError(message=message):
                    await self._error(message)
        self._wire.flush()

    async def drain(self) -> None:
        """Wait for the client's socket."""
        if not self._wire.is_full:
            return
        try:
            await self._wire.drain()
        except ConnectionError:
            raise asyncio.CancelledError from None

    async def whole(self, response: Response, body: bytes) -> None:
        """Send a response that is there as a whole. CancelledError as for `put`."""
        if self._flow.error is not None:
            await self.kill()
        waited = await self._head(response, is_all=not body)
        if self._streams:  # another addon wants to see it piece by piece
            self._data(body)
            await self._end()
        else:
            response = self._response
            response.data.content = body
            await self._finish(response, follows=not waited)
        self._wire.flush()

    async def given(self, response: Response) -> None:
        """Send a response that an addon has set in a hook of the request."""
        waited = await self._head(response, is_all=True)
        await self._finish(self._response, follows=not waited)
        self._wire.flush()

    async def kill(self) -> None:
        """Somebody killed the flow: close the connection and give the answer up. Raises CancelledError."""
        await self._give_up()
        self._wire.break_off()
        raise asyncio.CancelledError

    async def left(self) -> None:
        """The client has gone before its answer was complete."""
        self._flow.error = self._flow.error or Error("Client disconnected.")
        client = self._flow.client_conn
        client.state, client.timestamp_end = ConnectionState.CLOSED, time.time()
        await self._give_up()

    async def _head(self, response: Response, *, is_all: bool) -> bool:
        """Answers whether the hook had to be waited for."""
        self._flow.response = response
        if (waiting := self._fire(HttpResponseHeadersHook, self._flow)) is not None:
            await waiting
        if self._flow.error is not None:
            await self.kill()
        response = self._response  # another one by now, perhaps
        self._streams = bool(response.stream) and not is_all
        if self._streams:
            self._keeps_all = ctx.options.store_streamed_bodies
            self._wire.head(response.status_code, response.data.reason, response.headers.fields, bodiless=False)
        return waiting is not None

    def _relays_unchanged(self) -> bool:
        flow = self._flow
        is_plain = flow.response is not None and flow.response.stream is True
        return is_plain and self._streams and not self._keeps_all and flow.error is None

    def _data(self, data: bytes) -> None:
        if not self._streams:
            self._body += data
            return
        for piece in _changed(self._response, data):
            if self._keeps_all:
                self._body += piece
            self._wire.chunk(piece)

    async def _end(self) -> None:
        response = self._response
        if self._streams and callable(response.stream):
            self._data(b"")
        if self._keeps_all or not self._streams:
            response.data.content = bytes(self._body)
        await self._finish(response)

    async def _finish(self, response: Response, *, follows: bool = False) -> None:
        response.data.timestamp_end = time.time()
        self.hooked = True
        if (waiting := self._fire(HttpResponseHook, self._flow, follows=follows)) is not None:
            await waiting
        if self._flow.error is not None:
            await self.kill()
        if not self._streams:
            self._send_whole(self._response)
        self._wire.end()

    async def _error(self, message: str) -> None:
        """As on a port of the proxy: a page before the head, a break after it; the error hook in either case."""
        self._flow.error = self._flow.error or Error(message)
        await self._give_up()
        if self._streams:
            self._wire.break_off()
            return
        self._wire.keeps = False
        self._send_whole(Response.make(502, message, {"content-type": "text/plain"}))
        self._wire.end()

    async def _give_up(self) -> None:
        if not self.hooked:
            self.hooked = True
            if (waiting := self._fire(HttpErrorHook, self._flow)) is not None:
                await waiting

    def _send_whole(self, response: Response) -> None:
        data = response.data
        body = data.content or b""
        bodiless = data.status_code in _BODILESS or self._flow.request.data.method.upper() == b"HEAD"
        if not bodiless:
            _measure(response, body)
        self._wire.head(data.status_code, data.reason, data.headers.fields, bodiless=bodiless)
        if not bodiless:
            self._wire.chunk(body)

    @property
    def _response(self) -> Response:
        response = self._flow.response
        if response is None:
            raise RuntimeError("a piece of a response without its head")
        return response


def _measure(response: Response, body: bytes) -> None:
    """Have the head say how long the body is: an addon may have replaced either."""
    headers, length = response.data.headers, b"%d" % len(body)
    framing = [(known, value) for name, value in headers.fields if (known := name.lower()) in _FRAMING]
    if framing == [(b"content-length", length)]:
        return
    if any(name == b"transfer-encoding" for name, _ in framing):
        headers.pop("content-length", None)
    else:
        headers["content-length"] = str(len(body))


def _changed(response: Response, data: bytes) -> Iterable[bytes]:
    """What becomes of a piece of a streamed body: another addon may have set a function."""
    if not callable(response.stream):
        return (data,)
    made = response.stream(data)
    return (made,) if isinstance(made, bytes) else made
