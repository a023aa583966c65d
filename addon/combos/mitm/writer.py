"""The response of one flow, written piece by piece: head, chunks, end, or the whole at once, or a reset.

Decides the framing (length, chunked, until close, none) and holds the writer back while the client does not read.
Where the pieces go is the sink's business: the live stream of a client, or a buffer for flows that have none.
"""

import time
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from mitmproxy.http import HTTPFlow, Request, Response

from combos.core.facts import Headers
from combos.mitm.internals import (
    ErrorCode,
    HttpEvent,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    made_headers,
    made_response,
    parse_content_length,
    store_content,
)

type Responder = Callable[[HTTPFlow, "ResponseWriter"], Awaitable[None]]
"""Makes the answer of a flow; a client that leaves cancels it."""

# Framing belongs to the connection to the client, never to whoever made the response (RFC 9110, 7.6.1).
_CONNECTION_HEADERS = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_CHUNKED = (b"transfer-encoding", b"chunked")
_LENGTH = b"content-length"
_FRAMING_HEADERS = _CONNECTION_HEADERS | {_LENGTH}
_UNSAFE = b"\r\n\0"


class Sink(Protocol):
    """Takes the events of one response."""

    async def put(self, events: tuple[HttpEvent, ...], *, wait: bool = True) -> None:
        """Hand the events over; return when they are dealt with. CancelledError: nobody takes them any more."""

    async def whole(self, response: Response, body: bytes) -> None:
        """Take a whole response; the flow's own `content` is not set yet. As `put` otherwise."""

    async def drain(self) -> None:
        """Return when more may be written without piling up."""


class ResponseWriter:
    """Writes one response, from one task at a time.

    Every call raises CancelledError once the client is gone or the flow was killed.

    Attributes: `started` (a head was handed over: the answer can no longer be another one), `finished` (the end or
    an error was), `capture_limit` (how many bytes of a streamed body stay visible in the flow), `captured_all`
    (False once a body outgrew that).
    """

    def __init__(self, flow: HTTPFlow, stream_id: int, sink: Sink) -> None:
        self.started = False
        self.finished = False
        self.capture_limit = 0
        self.captured_all = True
        self._captured = bytearray()
        self._flow = flow
        self._stream_id = stream_id
        self._sink = sink
        self._bodiless = False
        self._remaining: int | None = None

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole response; returns when it is on its way. ValueError: bad status or header."""
        self._check_start(status)
        bodiless = _is_bodiless(self._flow.request, status)
        response = _response(status, _whole_headers(status, headers, len(body), bodiless=bodiless))
        self.started = self.finished = True
        await self._sink.whole(response, b"" if bodiless else body)

    async def head(self, status: int, headers: Headers, first: bytes = b"") -> None:
        """Begin a streamed response, with the first piece of its body if there is one already: one round for both.

        Returns when they are on the wire. ValueError: bad status or header, or `first` is longer than the
        announced content-length. A response without a body (HEAD, 204, 304) is sent at `end`; what is given as
        its body is dropped.
        """
        self._check_start(status)
        self._bodiless = _is_bodiless(self._flow.request, status)
        fields, self._remaining = _streamed_headers(self._flow.request, headers, bodiless=self._bodiless)
        response = _response(status, fields)
        response.stream = not self._bodiless
        head = ResponseHeaders(self._stream_id, response, self._bodiless)
        body = self._body(first)
        self.started = True
        await self._sink.put((head, *body))
        if body:
            await self._sink.drain()

    async def chunk(self, data: bytes) -> None:
        """Send a piece of the body; returns when the client's buffers have room again.

        ValueError: more bytes than the announced content-length.
        """
        self._check_open()
        if body := self._body(data):
            await self._sink.put(body)
            await self._sink.drain()

    async def end(self, last: bytes = b"") -> None:
        """Finish a streamed response, with the last piece of its body if there is one: one round for both.

        Returns when the end is on the wire. ValueError: the body is not as long as announced.
        """
        self._check_open()
        if self._remaining is not None and len(last) < self._remaining and not self._bodiless:
            raise ValueError("the body is shorter than its content-length")
        body = self._body(last)
        self.keep_captured()
        self.finished = True
        await self._sink.put((*body, ResponseEndOfMessage(self._stream_id)))

    async def error(self, message: str, *, wait: bool = True) -> None:
        """Break the response off: a 502 page with `message` before the head, afterwards a reset that shows no end."""
        if self.finished:
            return
        self.keep_captured()
        self.finished = True
        failure = ResponseProtocolError(self._stream_id, message, ErrorCode.GENERIC_SERVER_ERROR)
        await self._sink.put((failure,), wait=wait)

    def keep_captured(self) -> None:
        """Put what was captured so far into the flow."""
        if self.started and self._captured:
            store_content(self._flow, bytes(self._captured))

    def _body(self, data: bytes) -> tuple[HttpEvent, ...]:
        # An empty chunk would be the end of a chunked body on the wire.
        if not data or self._bodiless:
            return ()
        if self._remaining is not None:
            self._remaining -= len(data)
            if self._remaining < 0:
                raise ValueError("the body is longer than its content-length")
        self._capture(data)
        return (ResponseData(self._stream_id, data),)

    def _check_open(self) -> None:
        if not self.started or self.finished:
            raise RuntimeError("a piece of a body outside a started response")

    def _capture(self, data: bytes) -> None:
        if not self.captured_all:
            return
        room = self.capture_limit - len(self._captured)
        self._captured += data[:room]
        self.captured_all = len(data) <= room

    def _check_start(self, status: int) -> None:
        if self.started or self.finished:
            raise RuntimeError("the response has already been started")
        # 1xx are interim or switch the protocol: neither is an answer.
        if not 200 <= status <= 999:
            raise ValueError(f"not a final status: {status}")


def whole_events(stream_id: int, response: Response, body: bytes) -> tuple[HttpEvent, ...]:
    """The events of a response that is there as a whole."""
    data = (ResponseData(stream_id, body),) if body else ()
    return (ResponseHeaders(stream_id, response, not body), *data, ResponseEndOfMessage(stream_id))


class WholeSink:
    """Collects a response and sets it as `flow.response`, for flows whose client has no streamed layer (replays)."""

    def __init__(self, flow: HTTPFlow) -> None:
        self._flow = flow
        self._response: Response | None = None
        self._body = bytearray()

    async def put(self, events: tuple[HttpEvent, ...], *, wait: bool = True) -> None:  # noqa: ARG002 - nothing to wait for
        """Collect the events; the end or an error sets the response."""
        for event in events:
            match event:
                case ResponseHeaders(response=response):
                    self._response = response
                case ResponseData(data=data):
                    self._body += data
                case ResponseEndOfMessage():
                    self._finish()
                case ResponseProtocolError(message=message):
                    self._flow.response = Response.make(502, message, {"content-type": "text/plain"})

    async def whole(self, response: Response, body: bytes) -> None:
        """Set the response."""
        self._response = response
        self._body += body
        self._finish()

    async def drain(self) -> None:
        """Nothing piles up that is not wanted whole."""

    def _finish(self) -> None:
        response = self._response
        if response is None:
            return
        response.headers.pop("transfer-encoding", None)
        if not _is_bodiless(self._flow.request, response.status_code):
            response.headers["content-length"] = str(len(self._body))
        response.stream = False
        response.raw_content = bytes(self._body)
        self._flow.response = response


def _is_bodiless(request: Request, status: int) -> bool:
    return status in (204, 304) or request.data.method.upper() == b"HEAD"


def _response(status: int, fields: list[tuple[bytes, bytes]]) -> Response:
    return made_response(status, made_headers(fields), time.time())


def _own_fields(headers: Headers, without: Collection[bytes] = _CONNECTION_HEADERS) -> list[tuple[bytes, bytes]]:
    """The given fields without those of the connection; ValueError for a field that would break the head."""
    fields = [field for field in headers if field[0].lower() not in without]
    written = b"".join([part for field in fields for part in field])
    if len(written.translate(None, _UNSAFE)) != len(written):
        raise ValueError("a header contains a line break")
    return fields


def _whole_headers(status: int, headers: Headers, length: int, *, bodiless: bool) -> list[tuple[bytes, bytes]]:
    # The length of a 304 or of the answer to a HEAD describes a body that is not sent: the maker knows it better.
    if bodiless and status != 204 and any(name.lower() == _LENGTH for name, _ in headers):
        return _own_fields(headers)
    fields = _own_fields(headers, _FRAMING_HEADERS)
    if status not in (204, 304):
        fields.append((_LENGTH, b"%d" % length))
    return fields


def _streamed_headers(
    request: Request, headers: Headers, *, bodiless: bool
) -> tuple[list[tuple[bytes, bytes]], int | None]:
    """The head's fields and the announced length, None when the end of the body is not known beforehand."""
    fields = _own_fields(headers)
    lengths = [value for name, value in fields if name.lower() == _LENGTH]
    if lengths:
        return fields, parse_content_length(lengths[0])
    # HTTP/1.0 reads until close, HTTP/2 has frames: chunked is for HTTP/1.1 alone.
    if request.is_http11 and not bodiless:
        fields.append(_CHUNKED)
    return fields, None
