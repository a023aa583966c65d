"""One answer of an upstream while its body is read: bytes as they arrive, time limits, a definite end.

It reads and never interprets: codings, events and statuses are bytes and numbers here. Every breakage leaves as an
`UpstreamFault`; cancellation closes the socket at once.
"""

import math

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from combos.core.facts import Headers, TransportFault
from combos.core.pools import PoolNote
from combos.upstream.connector import Link
from combos.upstream.deadlines import Deadlines
from combos.upstream.faults import Phase, UpstreamFault, fault_of
from combos.upstream.sending import Beginning, has_sent_all

_VAGUE = (TransportFault.TRUNCATED, TransportFault.CLOSED)


class Answer:
    """The head of an answer and its body to be read. `headers` are raw, in wire order, duplicates kept.

    Until `at` somebody waits for bytes; infinity while nobody does.
    """

    __slots__ = (
        "_closed",
        "_content",
        "_deadlines",
        "_expired",
        "_idle_s",
        "_link",
        "_loop",
        "_protocol",
        "_received",
        "_sending",
        "_total_at",
        "_until_close",
        "_where",
        "at",
        "headers",
        "peername",
        "pool",
        "status",
    )

    def __init__(self, link: Link, beginning: Beginning, deadlines: Deadlines, idle_ms: int) -> None:
        head, content, self._sending = beginning
        self.status: int = head.code
        self.headers: Headers = head.raw_headers
        self.peername = link.peername
        self.pool: PoolNote | None = None
        self.at = math.inf
        self._link: Link | None = link
        self._protocol = link.protocol
        self._content = content
        self._where = link.way.where
        self._deadlines = deadlines
        self._loop = link.loop
        self._idle_s = idle_ms / 1000
        self._total_at = math.inf
        self._expired = False
        self._received = 0
        self._closed = False
        self._until_close = False
        if content.is_eof():  # there is no body, or all of it is here
            self._arrived_whole()
            return
        content.on_eof(self._arrived_whole)
        link.on_lost = self._lost
        # A body without length or chunks lasts until the connection closes.
        names = head.headers
        self._until_close = "Content-Length" not in names and "Transfer-Encoding" not in names

    def limit(self, idle_ms: int, total_ms: int | None = None) -> None:
        """From now on wait at most `idle_ms` for the next bytes and `total_ms` for the whole rest (None: any time)."""
        self._idle_s = idle_ms / 1000
        self._total_at = math.inf if total_ms is None else self._loop.time() + total_ms / 1000
        if self.at != math.inf:
            self._arm()

    async def read_some(self) -> bytes:
        """What has arrived, or the next bytes; `b""` at the clean end and after it. Raises `UpstreamFault`."""
        data = self.arrived()
        if data is not None:
            return data
        self._arm()
        try:
            data = await self._content.readany()
        except Exception as exc:
            raise self._fail(exc) from None  # the cause carries the request's headers
        except BaseException:
            self.close()
            raise
        finally:
            self.at = math.inf
        self._received += len(data)
        if not data:
            self._end()
        return data

    def arrived(self) -> bytes | None:
        """As `read_some`, for what can be had without waiting; None when there is nothing yet."""
        if self._closed:
            return b""
        content = self._content
        try:
            data = self._unread()
        except Exception as exc:
            raise self._fail(exc) from None  # the cause carries the request's headers
        if data:
            self._received += len(data)
            return data
        if not content.is_eof():
            return None
        self._end()
        return b""

    def close(self) -> None:
        """Let go of the answer: its connection is pooled if the body has arrived whole, else closed at once."""
        if self._closed:
            return
        self._closed = True
        self._deadlines.discard(self)
        link, self._link = self._link, None
        if link is not None:
            self._stop_sending()
            link.abort()
            if self._content.exception() is None:
                self._content.set_exception(aiohttp.ClientConnectionError("closed by its reader"))

    def expire(self) -> None:
        """The time for the next bytes, or for all of them, is up; bytes whose reader is about to run are in time."""
        content = self._content
        if self.at != math.inf and content.total_bytes == self._received and not content.is_eof():
            self._expired = True
            content.set_exception(TimeoutError())

    def _arrived_whole(self) -> None:
        """The connection serves the next request, unless this one is still being sent."""
        link, self._link = self._link, None
        if link is None:
            return
        transport = link.protocol.transport
        if self._stop_sending() or transport is None or not has_sent_all(transport):
            link.close()
        else:
            link.release()

    def _stop_sending(self) -> bool:
        """Send nothing more of the request; whether something was left."""
        return self._sending is not None and self._sending.cancel()

    def _unread(self) -> bytes:
        content = self._content
        broken = content.exception()
        if broken is None:
            if self._total_at != math.inf and self._total_at <= self._loop.time():
                self._expired = True
                raise TimeoutError
            return content.read_nowait() if content.total_bytes > self._received else b""
        # The reader refuses to hand out what came before a breakage; those bytes are part of the answer.
        content.set_exception(None)  # type: ignore[arg-type]
        try:
            data = content.read_nowait()
        finally:
            content.set_exception(broken)
        if not data:
            raise broken
        return data

    def _arm(self) -> None:
        self.at = min(self._loop.time() + self._idle_s, self._total_at)
        self._deadlines.add(self)

    def _lost(self) -> None:
        """The connection is gone. Whoever comes later to read is told by the reader itself."""
        content = self._content
        if self.at != math.inf and not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientConnectionError("connection lost"))

    def _end(self) -> None:
        """A body that lasts until the connection closes is whole only if it was closed in order."""
        broken = self._protocol.exception() if self._until_close else None
        if isinstance(broken, OSError):
            raise self._fail(broken) from None
        self.close()

    def _fail(self, exc: Exception) -> UpstreamFault:
        lost = self._protocol.exception()
        self.close()
        if self._expired:
            return fault_of(TimeoutError(), Phase.BODY, self._where)
        fault = fault_of(exc, Phase.BODY, self._where)
        if fault.fault in _VAGUE and isinstance(lost, OSError | HttpProcessingError):
            # The body is cut short in every case; why is known to the connection alone.
            return fault_of(lost, Phase.BODY, self._where)
        return fault
