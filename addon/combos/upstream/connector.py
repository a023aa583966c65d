"""The connections to targets: opened by aiohttp, kept between requests, and what a request must know of them.

It resolves names under the destination rules, and judges where a connection leads before anybody may use it. What a
failure means is decided by others.
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

from combos.upstream.destination import Guard, Rights
from combos.upstream.idle import Idle
from combos.upstream.plan import Way

_DNS_TTL_S = 10  # aiohttp's own default: short enough for DNS fail-over of a vendor
_NO_LIMITS = aiohttp.ClientTimeout(total=None)  # time is kept by whoever asks


class Protocol(ResponseHandler):
    """aiohttp's, that also knows whether anything has arrived since the last answer was complete.

    Relied upon: whoever holds the connection back calls `pause_reading`. The reader of a body asks for `resume_reading`
    after every read, which costs as much as the read itself; where nothing was held back there is nothing to resume.
    Every request has a parser of its own, whose `feed_eof` gives the answer that has only begun.
    """

    has_spoken = False
    _is_held = False

    def has_begun_another(self) -> bool:
        """Whether the last answer was followed at once by a part of one that nobody asked for. Between requests only:
        what is there of it is read, and the rest of it would be taken for the next answer."""
        parser = self._parser
        try:
            return parser is not None and parser.feed_eof() is not None
        except Exception:  # it has begun something else
            return True

    def data_received(self, data: bytes) -> None:
        """Bytes from the other end, or none: aiohttp's own way to go on, also when an earlier answer is read late."""
        if data:
            self.has_spoken = True
        super().data_received(data)

    def pause_reading(self) -> None:
        """Take nothing more until `resume_reading`."""
        self._is_held = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on, if something is held back."""
        if self._is_held:
            self._is_held = False
            super().resume_reading(resume_parser)


class Link:
    """One connection from its opening to its end: where it leads, and who uses it. `reused`: not for the first time.

    Whoever reads from it sets `on_lost`: aiohttp wakes no reader when it closes a connection itself, as it does after a
    broken chunk. Until `at` somebody waits for the head of an answer.
    """

    __slots__ = (
        "_head_s",
        "_idle",
        "_is_late",
        "_judged",
        "at",
        "connection",
        "loop",
        "on_lost",
        "peername",
        "protocol",
        "reused",
        "way",
    )

    def __init__(self, connection: Connection, protocol: Protocol, way: Way, idle: "Idle[Link]") -> None:
        transport = protocol.transport
        self.connection = connection
        self.protocol = protocol
        self.way = way
        self.peername = None if transport is None else peer_of(transport.get_extra_info("peername"))
        self.reused = False
        self.at = 0.0
        self._head_s = 0.0
        self._is_late = False
        self.loop = asyncio.get_running_loop()
        self.on_lost: Callable[[], None] | None = None
        self._judged: Rights | None = None
        self._idle = idle
        if protocol.closed is not None:
            protocol.closed.add_done_callback(self._lost)

    @property
    def is_usable(self) -> bool:
        """Whether it can take a request: it is open, and has said nothing that nobody asked for."""
        protocol = self.protocol
        is_silent = not protocol.has_spoken and protocol.is_connected() and not protocol.should_close
        return is_silent and not protocol.has_begun_another()

    def judge(self, rights: Rights) -> None:
        """The last word on a destination: the connection may have been opened for a provider with more rights.

        Raises `UpstreamFault`, and then the connection is closed.
        """
        if rights is self._judged or rights == self._judged:
            return
        if self.peername is not None and self.way.is_direct:
            try:
                rights.judge(*self.peername)
            except BaseException:
                self.abort()
                raise
        self._judged = rights

    def begin(self, head_ms: int) -> None:
        """A request is about to be sent; the head of its answer may take this long."""
        self._head_s = head_ms / 1000
        self.restart()

    def restart(self) -> None:
        """From now on the head may take its full time."""
        self.at = self.loop.time() + self._head_s
        self._is_late = False

    def expire(self) -> None:
        """The time for the head is up; one that has arrived is in time, if it is no interim one."""
        if len(self.protocol):
            self._is_late = True
        else:
            self.protocol.set_exception(TimeoutError())

    def pass_over(self) -> None:
        """What has arrived was an interim head, which gives no more time. Raises TimeoutError when the time is up."""
        if self._is_late and not len(self.protocol):
            raise TimeoutError

    def release(self) -> None:
        """The next request may use it, unless the other end has said that this was the last one."""
        if self.protocol.should_close:
            self.close()
            return
        self.on_lost = None
        self.reused = True
        self.protocol.has_spoken = False
        self._idle.keep(self.way.key, self)

    def distrust(self) -> None:
        """It was dead: close those that have waited beside it."""
        self._idle.distrust(self.way.key)

    def close(self) -> None:
        """Close it in order."""
        self.on_lost = None
        self.connection.close()

    def abort(self) -> None:
        """Close the socket now, whatever still waits to be written to it."""
        self.on_lost = None
        self.protocol.abort()
        self.connection.close()

    def _lost(self, closed: "asyncio.Future[None]") -> None:
        if not closed.cancelled():
            closed.exception()  # taken notice of, else asyncio reports it
        if self.on_lost is not None:
            self.on_lost()


# Holds what the current task opens a connection for: aiohttp hands no argument on to the resolver. The connection's
# callbacks keep the context, and with it this, as long as it lives: nothing of a request may be in it.
CURRENT_WAY: ContextVar[Way] = ContextVar("combos_upstream_way")


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
        way, guard = CURRENT_WAY.get(), self._guard()
        for answer in answers:
            if way.is_direct:
                way.rights.by(guard).judge(answer["host"], port)
            else:
                guard.admit_own(answer["host"], port)
        return answers

    async def close(self) -> None:
        await self._inner.close()


class Connector(aiohttp.TCPConnector):
    """Opens connections without a limit, for all clients. They come back to `idle`, and not to aiohttp's own pool: what
    it makes and looks up for each use costs a fifth of an exchange."""

    def __init__(self, guard: Callable[[], Guard], local_address: str | None) -> None:
        super().__init__(
            limit=0,
            resolver=GuardedResolver(guard),
            ttl_dns_cache=_DNS_TTL_S,
            local_addr=None if local_address is None else (local_address, 0),
        )
        kind: type[ResponseHandler] = Protocol
        self._factory = partial(kind, loop=asyncio.get_running_loop())
        self._guard = guard
        self.idle: Idle[Link] = Idle()

    def kept(self, way: Way) -> Link | None:
        """A connection that has served a request on such a way and waits for the next, if there is one.

        Raises `UpstreamFault` when it leads where this one may not go.
        """
        link = self.idle.take(way.key)
        if link is not None:
            link.judge(way.rights)
        return link

    async def open(self, way: Way) -> Link:
        """A new connection. Raises what aiohttp raises, and `UpstreamFault` when it leads where it may not."""
        token = CURRENT_WAY.set(way)
        try:
            connection = await self.connect(way.opening, [], _NO_LIMITS)
        finally:
            CURRENT_WAY.reset(token)
        protocol = connection.protocol
        if not isinstance(protocol, Protocol):
            raise aiohttp.ClientConnectionError("the connection was closed by its pool")
        link = Link(connection, protocol, way, self.idle)
        link.judge(way.rights.by(self._guard()))
        return link
