"""The one client session: sends a request to a target and hands back its answer as soon as the head is there.

It adds credentials, chooses TLS context and proxy, keeps to the destination rules and the time limits, and sends once
more when a pooled connection turned out to be dead. It decides nothing about statuses, hops or cooldowns.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from combos.core.facts import Headers, TransportFault
from combos.engine.commands import OutboundRequest, Timeouts
from combos.upstream.connector import CURRENT_WATCH, Connector, Watch
from combos.upstream.destination import Guard
from combos.upstream.exchange import Answer
from combos.upstream.faults import Phase, UpstreamFault, fault_of, is_disconnect
from combos.upstream.plan import Plan, plan_for
from combos.upstream.proxies import ProxySettings
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.tls import TlsContexts, TlsSettings

_MAX_HEAD_LINE = 64 * 1024  # vendors send long policy and cookie headers; a hostile head stays bounded
_SLOW_BODY = 64 * 1024  # smaller bodies are in the kernel's hands at once
_NO_LIMITS = aiohttp.ClientTimeout(total=None)
_AUTO_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """What the addon takes from mitmproxy's options. `listening`: the proxy's own hosts and ports.

    `local_address` (mitmproxy's `connect_addr`) counts when the first exchange starts.
    """

    tls: TlsSettings = field(default_factory=TlsSettings)
    proxy: ProxySettings | None = None
    listening: tuple[tuple[str, int], ...] = ()
    local_address: str | None = None


class _Body(Payload):
    """Bytes of known length that tell when a long one is sent."""

    _autoclose = True

    def __init__(self, value: bytes, on_sent: Callable[[], None]) -> None:
        super().__init__(value)
        self._size = len(value)
        self._on_sent = on_sent

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Not needed for sending."""
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await writer.write(self._value)
        if len(self._value) > _SLOW_BODY:
            self._on_sent()

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:  # noqa: ARG002
        await self.write(writer)


class _Clock:
    """The limits before the head: first for connecting, then for waiting, anew when a long body has been sent."""

    __slots__ = ("_head_s", "_loop", "_over", "timeout")

    def __init__(self, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._head_s = timeouts.head_ms / 1000
        self._over = False
        self.timeout = asyncio.timeout(timeouts.connect_ms / 1000)

    def restart(self) -> None:
        """From now on the head may take its full time. Does nothing when the wait is over."""
        if not self._over and not self.timeout.expired():
            self.timeout.reschedule(self._loop.time() + self._head_s)

    def stop(self) -> None:
        """The wait is over; a body that is still being sent no longer counts."""
        self._over = True


class _Hidden(Exception):  # noqa: N818
    """Carries a disconnection past aiohttp, which would send an idempotent request again without being asked."""


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as exc:
        raise _Hidden from exc


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
    """Owner of the client session. Make it anywhere; everything else happens inside one running loop."""

    def __init__(self, settings: UpstreamSettings | None = None) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self.configure(settings or UpstreamSettings())

    def configure(self, settings: UpstreamSettings) -> None:
        """Use other settings from the next exchange on. Raises `TlsError` and then changes nothing."""
        contexts = TlsContexts(settings.tls)
        contexts.check()
        self._settings, self._contexts = settings, contexts
        self._guard = Guard(OwnAddresses(settings.listening))

    def open(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Opening:
        """As `send`, for `async with`, which closes the answer."""
        return Opening(self, request, timeouts, secrets)

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        """Send and wait for the response head. `secrets`: credential headers, in place of headers of the same name.

        A pooled connection that dies before the head is replaced by a new one, once. The caller closes the answer.
        Raises `UpstreamFault`.
        """
        plan = plan_for(request, secrets, guard=self._guard, contexts=self._contexts, proxy=self._settings.proxy)
        answer = await self._try(plan, timeouts, fresh_only=False)
        if answer is None:
            answer = await self._try(plan, timeouts, fresh_only=True)
        if answer is None:
            raise UpstreamFault(TransportFault.CLOSED, f"{plan.where}: the connection was closed")
        return answer

    async def close(self) -> None:
        """Close every connection, for good. Exchanges that still run end with a fault."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _try(self, plan: Plan, timeouts: Timeouts, *, fresh_only: bool) -> Answer | None:
        """One send. None: a pooled connection was dead. Raises `UpstreamFault`."""
        clock = _Clock(timeouts)
        watch = Watch(
            clock.restart,
            allow_private=plan.allow_private,
            only_private=plan.only_private,
            direct=plan.proxy is None,
            fresh_only=fresh_only,
        )
        token = CURRENT_WATCH.set(watch)
        try:
            async with clock.timeout:
                response = await self._request(plan, clock)
        except Exception as exc:
            watch.abort()
            if watch.reused and watch.phase is Phase.HEAD and is_disconnect(exc):
                return None
            # Without its cause: aiohttp's exceptions carry the request's headers, and those carry the credentials.
            raise fault_of(exc, watch.phase, plan.where) from None
        except BaseException:
            watch.abort()
            raise
        finally:
            clock.stop()
            CURRENT_WATCH.reset(token)
        return _admitted(Answer(response, watch, plan.where, timeouts.idle_ms), plan)

    async def _request(self, plan: Plan, clock: _Clock) -> aiohttp.ClientResponse:
        bodiless = plan.method in ("GET", "HEAD") and not plan.body
        return await self._running_session().request(
            plan.method,
            plan.url,
            headers=plan.headers,
            data=None if bodiless else _Body(plan.body, clock.restart),
            allow_redirects=False,
            ssl=plan.context,
            proxy=None if plan.proxy is None else plan.proxy.url,
            proxy_headers=None if plan.proxy is None else plan.proxy.headers,
            middlewares=None if plan.method == "POST" else (_send_once,),
        )

    def _running_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            if self._closed:
                raise UpstreamFault(TransportFault.CONNECT_FAILED, "shutting down")
            self._session = aiohttp.ClientSession(
                connector=Connector(lambda: self._guard, self._settings.local_address),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=_NO_LIMITS,
                skip_auto_headers=_AUTO_HEADERS,
                max_line_size=_MAX_HEAD_LINE,
                max_field_size=_MAX_HEAD_LINE,
            )
        return self._session


def _admitted(answer: Answer, plan: Plan) -> Answer:
    """Refuse what is no answer of the target: a switch of protocols, and a proxy that wants credentials."""
    if answer.status == 101:
        answer.close()
        raise UpstreamFault(TransportFault.MALFORMED, f"{plan.where}: an unrequested change of protocols")
    if answer.status == 407 and plan.proxy is not None:
        answer.close()
        raise UpstreamFault(TransportFault.CONNECT_FAILED, f"{plan.where}: the proxy wants other credentials")
    return answer
