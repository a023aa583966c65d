"""The one pool of connections: sends a request to a target and hands back its answer as soon as the head is there.

It adds credentials, chooses TLS context and proxy, keeps to the destination rules and the time limits, and sends once
more when a pooled connection turned out to be dead. It decides nothing about statuses, hops or cooldowns.
"""

from dataclasses import field
from types import TracebackType

import aiohttp
from aiohttp.connector import Connection

from combos.core.facts import Headers, TransportFault
from combos.core.values import dataclass
from combos.engine.commands import OutboundRequest, Timeouts
from combos.upstream.connector import CURRENT_WATCH, Connector, Watch
from combos.upstream.deadlines import Clock, Deadlines
from combos.upstream.destination import Guard
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault, fault_of, is_disconnect
from combos.upstream.plan import Plan, Ways, plan_for
from combos.upstream.proxies import ProxySettings
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.sending import send
from combos.upstream.tls import TlsContexts, TlsSettings
from combos.upstream.writes import Writes

_NO_LIMITS = aiohttp.ClientTimeout(total=None)  # time is kept here


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """What the addon takes from mitmproxy's options. `listening`: the proxy's own hosts and ports.

    `local_address` (mitmproxy's `connect_addr`) counts when the first exchange starts.
    """

    tls: TlsSettings = field(default_factory=TlsSettings)
    proxy: ProxySettings | None = None
    listening: tuple[tuple[str, int], ...] = ()
    local_address: str | None = None


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
        plan = plan_for(request, secrets, self._ways)
        answer = await self._try(plan, timeouts, fresh_only=False)
        if answer is None:
            answer = await self._try(plan, timeouts, fresh_only=True)
        if answer is None:
            raise UpstreamFault(TransportFault.CLOSED, f"{plan.way.where}: the connection was closed")
        return answer

    async def close(self) -> None:
        """Close every connection, for good. Exchanges that still run end with a fault."""
        self._closed = True
        connector, self._connector = self._connector, None
        if connector is not None:
            await connector.close()
        self._deadlines.close()  # who still waits for a connection is told by nobody else

    async def _try(self, plan: Plan, timeouts: Timeouts, *, fresh_only: bool) -> Answer | None:
        """One send. None: a pooled connection was dead. Raises `UpstreamFault`."""
        way = plan.way
        clock = Clock(self._deadlines, timeouts)
        watch = Watch(
            clock.restart,
            allow_private=way.allow_private,
            only_private=way.only_private,
            direct=way.is_direct,
            fresh_only=fresh_only,
        )
        token = CURRENT_WATCH.set(watch)
        try:
            with clock:
                answer = await self._exchange(plan, watch, clock, timeouts.idle_ms)
        except Exception as exc:
            watch.abort()
            if watch.was_stale and is_disconnect(exc):
                return None
            # Without its cause: aiohttp's exceptions carry the request's headers, and those carry the credentials.
            raise fault_of(exc, watch.phase, way.where) from None
        except BaseException:
            watch.abort()
            raise
        finally:
            watch.forget_maker()
            CURRENT_WATCH.reset(token)
        return _admitted(answer, plan)

    async def _exchange(self, plan: Plan, watch: Watch, clock: Clock, idle_ms: int) -> Answer:
        connection: Connection = await self._running_connector().connect(plan.way.opening, [], _NO_LIMITS)
        try:
            is_bodiless = plan.method == "HEAD"
            beginning = await send(
                connection, plan.head, plan.body, self._writes, is_bodiless=is_bodiless, on_sent=clock.restart
            )
        except BaseException:
            connection.close()
            raise
        return Answer(connection, beginning, watch, plan.way.where, idle_ms)

    def _running_connector(self) -> Connector:
        if self._connector is None:
            if self._closed:
                raise UpstreamFault(TransportFault.CONNECT_FAILED, "shutting down")
            self._connector = Connector(lambda: self._guard, self._settings.local_address)
        return self._connector


def _admitted(answer: Answer, plan: Plan) -> Answer:
    """Refuse what is no answer of the target: a switch of protocols, and a proxy that wants credentials."""
    if answer.status == 101:
        answer.close()
        raise UpstreamFault(TransportFault.MALFORMED, f"{plan.way.where}: an unrequested change of protocols")
    if answer.status == 407 and not plan.way.is_direct:
        answer.close()
        raise UpstreamFault(TransportFault.CONNECT_FAILED, f"{plan.way.where}: the proxy wants other credentials")
    return answer
