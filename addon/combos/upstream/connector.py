"""aiohttp's connection pool with what an exchange must know of it: whether a connection is new, and where it leads.

It watches `connect` and resolves names under the destination rules. What a failure means is decided by others.
"""

import asyncio
import socket
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.resolver import ThreadedResolver
from aiohttp.tracing import Trace

from combos.upstream.destination import Guard
from combos.upstream.faults import Phase

_DNS_TTL_S = 10  # aiohttp's own default: short enough for DNS fail-over of a vendor
_KEEPALIVE_S = 60.0  # most vendors keep idle connections for at least a minute; dead ones are retried anyway


class Protocol(ResponseHandler):
    """aiohttp's, that also knows whether anything has arrived since somebody last took the connection."""

    has_spoken = False
    link: "Link | None" = None

    def data_received(self, data: bytes) -> None:
        """Bytes from the other end, or none: aiohttp's own way to go on, also when an earlier answer is read late."""
        self.has_spoken = self.has_spoken or bool(data)
        super().data_received(data)


class Link:
    """One connection: tells whoever reads from it when it is lost.

    aiohttp wakes no reader when it closes a connection itself, as it does after a broken chunk.
    """

    __slots__ = ("_on_lost", "judged", "peername")

    def __init__(self, protocol: ResponseHandler) -> None:
        transport = protocol.transport
        self.peername = None if transport is None else peer_of(transport.get_extra_info("peername"))
        self.judged: tuple[Guard, bool, bool] | None = None
        self._on_lost: Callable[[], None] | None = None
        if protocol.closed is not None:
            protocol.closed.add_done_callback(self._lost)

    def attach(self, on_lost: Callable[[], None]) -> None:
        """From now on tell `on_lost`, and nobody else."""
        self._on_lost = on_lost

    def detach(self, on_lost: Callable[[], None]) -> None:
        """Do not tell `on_lost` any more; a later reader stays attached."""
        if self._on_lost == on_lost:
            self._on_lost = None

    def _lost(self, closed: "asyncio.Future[None]") -> None:
        if not closed.cancelled():
            closed.exception()  # taken notice of, else asyncio reports it
        if self._on_lost is not None:
            self._on_lost()


class Watch:
    """What one try to send learns on its way through the pool. `direct` is false when a proxy stands between."""

    __slots__ = (
        "allow_private",
        "direct",
        "fresh_only",
        "link",
        "on_connected",
        "only_private",
        "phase",
        "protocol",
        "reused",
    )

    def __init__(
        self,
        on_connected: Callable[[], None],
        *,
        allow_private: bool,
        direct: bool,
        fresh_only: bool,
        only_private: bool = False,
    ) -> None:
        self.on_connected = on_connected
        self.allow_private = allow_private
        self.only_private = only_private
        self.direct = direct
        self.fresh_only = fresh_only
        self.phase = Phase.CONNECT
        self.reused = False
        self.protocol: ResponseHandler | None = None
        self.link: Link | None = None

    def judge(self, guard: Guard, host: str, port: int) -> None:
        """Raises `UpstreamFault` for an address that this try may not be sent to."""
        guard.admit(host, port, allow_private=self.allow_private, only_private=self.only_private)

    def forget_maker(self) -> None:
        """The try is over. The callbacks of its connection keep this object as long as the connection lives, and with
        it the clock, the task and, where that was cancelled, everything that stood in its frames."""
        self.on_connected = _nobody_waits

    def abort(self) -> None:
        """Close the socket now, whatever still waits to be written to it."""
        if self.protocol is not None:
            self.protocol.abort()

    @property
    def was_stale(self) -> bool:
        """Whether a pooled connection was lost without a byte in answer to this try."""
        return self.reused and self.phase is Phase.HEAD and not getattr(self.protocol, "has_spoken", False)

    @property
    def peername(self) -> tuple[str, int] | None:
        """Address and port of the other end, once connected."""
        return None if self.link is None else self.link.peername


def _nobody_waits() -> None:
    """Told instead of a clock that has been stopped."""


# Holds the try that the current task is in: aiohttp offers no per-request argument that reaches `connect`.
CURRENT_WATCH: ContextVar[Watch] = ContextVar("combos_upstream_watch")


def peer_of(peername: object) -> tuple[str, int] | None:
    """Address and port of a socket name of either IP family."""
    return (peername[0], peername[1]) if isinstance(peername, tuple) and len(peername) >= 2 else None


class GuardedResolver(AbstractResolver):
    """The system's resolver in a thread; refuses a name when any of its addresses is refused."""

    def __init__(self, guard: Callable[[], Guard]) -> None:
        self._guard = guard
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """As aiohttp's; raises `UpstreamFault` for a refused address, `OSError` when the name is not resolved."""
        answers = await self._inner.resolve(host, port, family)
        watch, guard = CURRENT_WATCH.get(), self._guard()
        for answer in answers:
            if watch.direct:
                watch.judge(guard, answer["host"], port)
            else:
                guard.admit_own(answer["host"], port)
        return answers

    async def close(self) -> None:
        await self._inner.close()


class Connector(aiohttp.TCPConnector):
    """A pool without limits, shared by all clients, that reports to the current `Watch`."""

    def __init__(self, guard: Callable[[], Guard], local_address: str | None) -> None:
        super().__init__(
            limit=0,
            resolver=GuardedResolver(guard),
            ttl_dns_cache=_DNS_TTL_S,
            keepalive_timeout=_KEEPALIVE_S,
            local_addr=None if local_address is None else (local_address, 0),
        )
        kind: type[ResponseHandler] = Protocol
        self._factory = partial(kind, loop=asyncio.get_running_loop())
        self._guard = guard

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        """As aiohttp's, but a pooled connection that spoke out of turn is dropped, and a stale pool is emptied."""
        watch = CURRENT_WATCH.get()
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if not isinstance(protocol, Protocol):
                raise aiohttp.ClientConnectionError("the connection was closed by its pool")
            watch.link = protocol.link
            watch.reused = watch.link is not None
            if not watch.reused or not (watch.fresh_only or protocol.should_close):
                break
            protocol.abort()
            connection.close()
        if watch.link is None:
            watch.link = protocol.link = Link(protocol)
        watch.protocol = protocol
        protocol.has_spoken = False
        self._judge_peer(connection, watch, watch.link)
        watch.phase = Phase.HEAD
        watch.on_connected()
        return connection

    def _judge_peer(self, connection: Connection, watch: Watch, link: Link) -> None:
        """The last word on a destination: a pooled connection may have been opened for a provider with more rights."""
        peer = link.peername
        if peer is None or not watch.direct:
            return
        guard = self._guard()
        judged = (guard, watch.allow_private, watch.only_private)
        if link.judged == judged:
            return
        try:
            watch.judge(guard, *peer)
            link.judged = judged
        except BaseException:
            watch.abort()
            connection.close()
            raise
