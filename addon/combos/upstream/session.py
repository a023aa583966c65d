"""The one pool of connections: sends a request to a target and hands back its answer as soon as the head is there.

It adds credentials, chooses TLS context and proxy, keeps to the destination rules and the time limits, and sends once
more when a pooled connection turned out to be dead. It decides nothing about statuses, hops or cooldowns.
"""

from dataclasses import field
from types import TracebackType

from combos.core.facts import Headers, TransportFault
from combos.core.values import dataclass
from combos.engine.commands import OutboundRequest, Timeouts
from combos.upstream.connector import Connector, Link
from combos.upstream.deadlines import Clock, Deadlines
from combos.upstream.destination import Guard
from combos.upstream.exchange import Answer
from combos.upstream.faults import Phase, UpstreamFault, fault_of, is_disconnect
from combos.upstream.plan import Way, Ways, head_of
from combos.upstream.proxies import ProxySettings
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.sending import send
from combos.upstream.tls import TlsContexts, TlsSettings
from combos.upstream.writes import Writes

_NO_ANSWERS = (101, 407)


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """What the addon takes from mitmproxy's options. `listening`: the proxy's own hosts and ports.

    `local_address` (mitmproxy's `connect_addr`) counts when the first exchange starts.
    """

    tls: TlsSettings = field(default_factory=TlsSettings)
    proxy: ProxySettings | None = None
    listening: tuple[tuple[str, int], ...] = ()
    local_address: str | None = None


class _Stale(Exception):  # noqa: N818 - what has happened, not an error
    """A kept connection was lost without a byte in answer to the request."""


class Opening:
    """`async with upstream.open(…) as answer`."""

    __slots__ = ("_answer", "_arguments", "_upstream")

    def __init__(self, upstream: "Upstream", request: OutboundRequest, timeouts: Timeouts, secrets: Headers) -> None:
        self._upstream = upstream
        self._arguments = (request, timeouts, secrets)
        self._answer: Answer | None = None

    async def __aenter__(self) -> Answer:
        self._answer = await self._upstream.send(*self._arguments)
        return self._answer

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._answer is not None:
            self._answer.close()


class Upstream:
    """Owner of the pool. Make it anywhere; everything else happens inside one running loop."""

    def __init__(self, settings: UpstreamSettings | None = None) -> None:
        self._connector: Connector | None = None
        self._closed = False
        self._deadlines = Deadlines()
        self._writes = Writes()
        self.configure(settings or UpstreamSettings())

    def configure(self, settings: UpstreamSettings) -> None:
        """Use other settings from the next exchange on. Raises `TlsError` and then changes nothing."""
        contexts = TlsContexts(settings.tls)
        contexts.check()
        self._settings = settings
        self._guard = Guard(OwnAddresses(settings.listening))
        self._ways = Ways(self._guard, contexts, settings.proxy)

    def open(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Opening:
        """As `send`, for `async with`, which closes the answer."""
        return Opening(self, request, timeouts, secrets)

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        """Send and wait for the response head. `secrets`: credential headers, in place of headers of the same name.

        A pooled connection that dies before the head is replaced by a new one, once. The caller closes the answer.
        Raises `UpstreamFault`.
        """
        way = self._ways.to(request.url, request.provider)
        head = head_of(request, way, secrets)
        link = None if self._connector is None else self._connector.kept(way)
        if link is not None:
            try:
                return await self._ask(link, head, request, timeouts)
            except _Stale:
                link.distrust()
        return await self._ask(await self._opened(way, timeouts.connect_ms), head, request, timeouts)

    async def close(self) -> None:
        """Close every connection, for good. Exchanges that still run end with a fault."""
        self._closed = True
        connector, self._connector = self._connector, None
        if connector is not None:
            connector.idle.close()
            await connector.close()
        self._deadlines.close()  # who still waits for a connection is told by nobody else

    async def _opened(self, way: Way, connect_ms: int) -> Link:
        """A new connection. Raises `UpstreamFault`."""
        try:
            with Clock(self._deadlines, connect_ms):
                return await self._running_connector().open(way)
        except Exception as exc:
            raise fault_of(exc, Phase.CONNECT, way.where) from None

    async def _ask(self, link: Link, head: bytes, request: OutboundRequest, timeouts: Timeouts) -> Answer:
        """Send on a connection. Raises `_Stale` when it had been dead before, and `UpstreamFault`."""
        link.begin(timeouts.head_ms)
        self._deadlines.add(link)
        try:
            is_bodiless = request.method == "HEAD"
            beginning = await send(
                link.connection,
                head,
                request.body,
                self._writes,
                is_bodiless=is_bodiless,
                on_sent=link.restart,
                on_interim=link.pass_over,
            )
        except Exception as exc:
            link.abort()
            if link.reused and not link.protocol.has_spoken and is_disconnect(exc):
                raise _Stale from None
            # Without its cause: aiohttp's exceptions carry the request's headers, and those carry the credentials.
            raise fault_of(exc, Phase.HEAD, link.way.where) from None
        except BaseException:
            link.abort()
            raise
        finally:
            self._deadlines.discard(link)
        answer = Answer(link, beginning, self._deadlines, timeouts.idle_ms)
        if answer.status in _NO_ANSWERS:
            _refuse(answer, link.way)
        return answer

    def _running_connector(self) -> Connector:
        if self._connector is None:
            if self._closed:
                raise UpstreamFault(TransportFault.CONNECT_FAILED, "shutting down")
            self._connector = Connector(lambda: self._guard, self._settings.local_address)
        return self._connector


def _refuse(answer: Answer, way: Way) -> None:
    """Refuse what is no answer of the target: a switch of protocols, and a proxy that wants credentials."""
    if answer.status == 101:
        answer.close()
        raise UpstreamFault(TransportFault.MALFORMED, f"{way.where}: an unrequested change of protocols")
    if not way.is_direct:
        answer.close()
        raise UpstreamFault(TransportFault.CONNECT_FAILED, f"{way.where}: the proxy wants other credentials")
