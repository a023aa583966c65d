"""One answer of an upstream while its body is read: bytes as they arrive, time limits, a definite end.

It reads and never interprets: codings, events and statuses are bytes and numbers here. Every breakage leaves as an
`UpstreamFault`; cancellation closes the socket at once.
"""

import asyncio
import math

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError

from combos.core.facts import Headers, TransportFault
from combos.core.pools import PoolNote
from combos.upstream.connector import Watch
from combos.upstream.faults import Phase, UpstreamFault, fault_of
from combos.upstream.sending import Beginning, has_sent_all

_VAGUE = (TransportFault.TRUNCATED, TransportFault.CLOSED)


class Answer:
    """The head of an answer and its body to be read. `headers` are raw, in wire order, duplicates kept."""

    __slots__ = (
        "_closed",
        "_connection",
        "_content",
        "_deadline",
        "_expired",
        "_idle_s",
        "_loop",
        "_received",
        "_sending",
        "_timer",
        "_total_at",
        "_until_close",
        "_watch",
        "_where",
        "headers",
        "peername",
        "pool",
        "status",
    )

    def __init__(self, connection: Connection, beginning: Beginning, watch: Watch, where: str, idle_ms: int) -> None:
        head, content, self._sending = beginning
        self.status: int = head.code
        self.headers: Headers = head.raw_headers
        self.peername = watch.peername
        self.pool: PoolNote | None = None
        self._connection: Connection | None = connection
        self._content = content
        self._watch = watch
        self._where = where
        self._loop = asyncio.get_running_loop()
        self._idle_s = idle_ms / 1000
        self._total_at = math.inf
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._expired = False
        self._received = 0
        self._closed = False
        content.on_eof(self._arrived_whole)  # at once when there is no body, or all of it is here
        # A body without length or chunks lasts until the connection closes.
        self._until_close = False
        if self._connection is not None:
            if watch.link is not None:
                watch.link.attach(self._lost)
            names = head.headers
            self._until_close = "Content-Length" not in names and "Transfer-Encoding" not in names

    def limit(self, idle_ms: int, total_ms: int | None = None) -> None:
        """From now on wait at most `idle_ms` for the next bytes and `total_ms` for the whole rest (None: any time)."""
        self._idle_s = idle_ms / 1000
        self._total_at = math.inf if total_ms is None else self._loop.time() + total_ms / 1000
        if self._deadline != math.inf:
            self._arm()

    async def read_some(self) -> bytes:
        """What has arrived, or the next bytes; `b""` at the clean end and after it. Raises `UpstreamFault`."""
        if self._closed:
            return b""
        try:
            data = self._arrived() or await self._wait()
        except Exception as exc:
            raise self._fail(exc) from None  # the cause carries the request's headers
        except BaseException:
            self.close()
            raise
        if not data:
            self._end()
        self._received += len(data)
        return data

    def close(self) -> None:
        """Let go of the answer: its connection is pooled if the body has arrived whole, else closed at once."""
        self._closed = True
        self._disarm()
        if self._watch.link is not None:
            self._watch.link.detach(self._lost)
        connection, self._connection = self._connection, None
        if connection is not None:
            self._stop_sending()
            self._watch.abort()
            connection.close()
            if self._content.exception() is None:
                self._content.set_exception(aiohttp.ClientConnectionError("closed by its reader"))

    def _arrived_whole(self) -> None:
        """The connection serves the next request, unless this one is still being sent."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        transport = connection.transport
        if self._stop_sending() or transport is None or not has_sent_all(transport):
            connection.close()
        else:
            connection.release()

    def _stop_sending(self) -> bool:
        """Send nothing more of the request; whether something was left."""
        return self._sending is not None and self._sending.cancel()

    def _arrived(self) -> bytes:
        content = self._content
        broken = content.exception()
        if broken is None:
            if self._total_at <= self._loop.time():
                self._expired = True
                raise TimeoutError
            return content.read_nowait()
        # The reader refuses to hand out what came before a breakage; those bytes are part of the answer.
        content.set_exception(None)  # type: ignore[arg-type]
        try:
            data = content.read_nowait()
        finally:
            content.set_exception(broken)
        if not data:
            raise broken
        return data

    async def _wait(self) -> bytes:
        if self._content.at_eof():
            return b""
        self._arm()
        try:
            return await self._content.readany()
        finally:
            self._deadline = math.inf

    def _arm(self) -> None:
        """One timer serves many reads: it moves only when the deadline comes nearer, else it looks again when due."""
        self._deadline = min(self._loop.time() + self._idle_s, self._total_at)
        if self._timer is None or self._timer.when() > self._deadline:
            self._disarm()
            self._timer = self._loop.call_at(self._deadline, self._due)

    def _due(self) -> None:
        self._timer = None
        content = self._content
        if self._deadline == math.inf or content.total_bytes > self._received or content.is_eof():
            return  # nobody waits, or the bytes came in time and their reader is about to run
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._due)
            return
        self._expired = True
        content.set_exception(TimeoutError())

    def _lost(self) -> None:
        """The connection is gone. Whoever comes later to read is told by the reader itself."""
        content = self._content
        if self._deadline != math.inf and not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientConnectionError("connection lost"))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        """A body that lasts until the connection closes is whole only if it was closed in order."""
        protocol = self._watch.protocol
        broken = protocol.exception() if self._until_close and protocol is not None else None
        if isinstance(broken, OSError):
            raise self._fail(broken) from None
        self.close()

    def _fail(self, exc: Exception) -> UpstreamFault:
        protocol = self._watch.protocol
        lost = None if protocol is None else protocol.exception()
        self.close()
        if self._expired:
            return fault_of(TimeoutError(), Phase.BODY, self._where)
        fault = fault_of(exc, Phase.BODY, self._where)
        if fault.fault in _VAGUE and isinstance(lost, OSError | HttpProcessingError):
            # The body is cut short in every case; why is known to the connection alone.
            return fault_of(lost, Phase.BODY, self._where)
        return fault
