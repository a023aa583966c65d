"""The bytes of one answer on the connection to its client: the head, the framing of the body, the end or the break.

Writes to the connection directly: what goes out together is one write, and nothing is copied into other shapes first.
What the answer says is not its business.
"""

import re
import socket
import struct
from collections.abc import Sequence

from aiohttp.http import HttpVersion10

from combos.admin.asked import Request
from combos.core.facts import Headers
from combos.upstream.writes import Writes
from combos.wire.reasons import reason_of

_CHUNKED = b"chunked"
_COLON = b": ".join
_LINE = b"\r\n"
_BREAKS = re.compile(rb"[\r\n\0]")
_FRAMING = frozenset((b"transfer-encoding", b"content-length"))
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset


class ClientWire:
    """One answer. `more` are header fields that are added to it; `keeps` says whether the connection can take another
    request afterwards, `begun` whether the answer has a head already.

    Pieces wait until `flush`, and then for the next pass of the event loop where they can: see `Writes`. After
    `break_off`, or when the client is gone, everything further is dropped. A body that is not as long as its head
    says costs the connection: what follows on it would be taken for a part of the other answer.
    """

    def __init__(self, request: Request, more: Headers = (), writes: Writes | None = None) -> None:
        self._request = request
        self._writes = writes or Writes()
        self._more = more
        self._pieces: list[bytes] = []
        self._chunked = False
        self._until_close = False
        self._left: int | None = None  # bytes of an announced length that are still to come
        self.begun = False
        self.keeps = request.keep_alive

    @property
    def is_open(self) -> bool:
        """Whether the client is still there and nothing was broken off."""
        transport = self._request.transport
        return transport is not None and not transport.is_closing()

    def head(self, status: int, reason: bytes, fields: Sequence[tuple[bytes, bytes]], *, bodiless: bool) -> None:
        """Begin. Without a length and without chunks the body ends with the connection."""
        self.begun = True
        framing = {known: value for name, value in fields if (known := name.lower()) in _FRAMING}
        self._chunked = not bodiless and framing.get(b"transfer-encoding", b"").lower() == _CHUNKED
        self._until_close = not (bodiless or self._chunked or b"content-length" in framing)
        if not (bodiless or self._chunked or self._until_close):
            self._left = _length(framing[b"content-length"])
        self.keeps &= not self._until_close
        lines = [b"HTTP/1.1 %d %b" % (status, reason or reason_of(status)), *map(_COLON, fields)]
        if self._more:
            lines.extend(map(_COLON, self._more))
        if not self.keeps:
            lines.append(b"connection: close")
        elif self._request.version == HttpVersion10:
            lines.append(b"connection: keep-alive")
        self._pieces.append(_joined(status, lines))

    def chunk(self, data: bytes) -> None:
        """A piece of the body; an empty one is none."""
        if data:
            if self._left is not None:
                self._left -= len(data)
            self._pieces.append(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    @property
    def is_full(self) -> bool:
        """Whether the client has to read before more is written."""
        return self._request.protocol.writing_paused

    def end(self) -> None:
        """The body is complete."""
        if self._chunked:
            self._pieces.append(b"0\r\n\r\n")
        self.keeps &= not self._left

    def flush(self) -> None:
        """Send what waits."""
        pieces, self._pieces = self._pieces, []
        transport = self._request.transport
        if transport is None or transport.is_closing():
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not self.keeps or self._is_pressed():
            self._writes.now()  # also what waits of this answer: nothing is left to be sent perhaps
            if data:
                transport.write(data)
        elif data:
            self._writes.soon(transport, data)

    def _is_pressed(self) -> bool:
        """Whether the connection may be written to by somebody else, or closed, before the event loop has gone round:
        the HTTP server turns to requests that are there already as soon as this one is answered.

        Relied upon: `RequestHandler._messages` holds them, and behind a request for an upgrade `_message_tail` does as
        long as `_upgraded` is set; `_close` is set when the server ends. Where one is missing nothing is put off.
        """
        http = self._request.protocol
        try:
            return bool(http._messages or http._message_tail or http._upgraded or http._close)
        except AttributeError:
            return True

    async def drain(self) -> None:
        """Return when the client has room for more. Raises `ConnectionError` when it is gone.

        Relied upon: `_drain_helper` is what the writers of the HTTP server wait with.
        """
        await self._request.protocol._drain_helper()

    def break_off(self) -> None:
        """Close the connection after what was sent, without an end of the body.

        A body that ends with the connection is reset: a close would be its end.
        """
        self.keeps = False
        self.flush()
        self._writes.now()
        transport = self._request.transport
        if transport is not None and not transport.is_closing():
            if self._until_close and (raw := transport.get_extra_info("socket")) is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            transport.close()


def _joined(status: int, lines: list[bytes]) -> bytes:
    """The head. Other addons make answers too: what would break a line of it is left out."""
    head, inner = _LINE.join(lines), len(lines) - 1
    if head.count(b"\r") != inner or head.count(b"\n") != inner or 0 in head:
        first, *others = lines
        first = b"HTTP/1.1 %d " % status if _BREAKS.search(first) else first
        head = _LINE.join([first, *(line for line in others if not _BREAKS.search(line))])
    return head + _LINE + _LINE


def _length(value: bytes) -> int:
    """Bytes of the body that a Content-Length announces; -1, which no body has, when it cannot be read."""
    return int(value) if value.isdigit() else -1
