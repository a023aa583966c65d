"""What an exchange needs before anything is sent: address, headers, TLS context, proxy, all checked.

Refuses destinations: another host than the provider's, a forbidden network, the proxy itself. Sends nothing.
"""

import ssl
from dataclasses import dataclass, field

from multidict import CIMultiDict
from yarl import URL

from combos.core.config_provider import Adapter
from combos.core.facts import Headers, TransportFault
from combos.engine.commands import OutboundRequest
from combos.upstream.destination import Guard
from combos.upstream.faults import UpstreamFault
from combos.upstream.proxies import ProxyRoute, ProxySettings, route_for
from combos.upstream.tls import TlsContexts, TlsError

# Headers that belong to one connection or are made here; a request's own are dropped.
_OWNED = frozenset(
    b"accept-encoding connection content-length expect host keep-alive proxy-authenticate proxy-authorization"
    b" proxy-connection te trailer transfer-encoding upgrade".split()
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A request that may be sent. `where` names host and port in messages."""

    method: str
    url: URL
    headers: CIMultiDict[str] = field(repr=False)
    body: bytes = field(repr=False)
    where: str
    allow_private: bool
    only_private: bool
    context: ssl.SSLContext | bool
    proxy: ProxyRoute | None


def plan_for(
    request: OutboundRequest, secrets: Headers, *, guard: Guard, contexts: TlsContexts, proxy: ProxySettings | None
) -> Plan:
    """Check a request and prepare it. Raises `UpstreamFault`."""
    url = _url_of(request)
    host, port = url.host or "", url.port or 0
    where = f"{host} port {port}"
    allow_private = request.provider.config.allow_private_network
    # A decision service without TLS: what is decided from, and a key, stay within private networks.
    only_private = url.scheme == "http" and request.provider.config.adapter is Adapter.JEV_DECISION
    guard.admit(host, port, allow_private=allow_private, only_private=only_private)
    route = route_for(url, request.provider, proxy)
    if only_private and route is not None:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, f"{where}: a decision service without TLS, behind a proxy")
    headers = _headers_of(request.headers, secrets)
    if route is not None:
        guard.admit_own(route.url.host or "", route.url.port or 0)
        if url.scheme == "http":
            headers.extend(route.headers)
    context = _context_for(host, where, contexts) if "https" in (url.scheme, route and route.url.scheme) else True
    return Plan(request.method, url, headers, request.body, where, allow_private, only_private, context, route)


def _url_of(request: OutboundRequest) -> URL:
    """The request's URL, which must lie on the provider's own origin: its credentials go nowhere else."""
    try:
        url, base = URL(request.url, encoded=True), URL(request.provider.config.base_url, encoded=True)
        same = (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
    except ValueError as exc:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, "the target URL is not valid") from exc
    if url.scheme not in ("http", "https") or not url.host:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, "the target URL is not valid")
    if not same or url.raw_user is not None:
        raise UpstreamFault(
            TransportFault.CONNECT_FAILED, f"{url.host} is not the host of provider {request.provider.name}"
        )
    return url


def _headers_of(headers: Headers, secrets: Headers) -> CIMultiDict[str]:
    replaced = _OWNED.union([name.lower() for name, _ in secrets]) if secrets else _OWNED
    kept = [pair for pair in headers if pair[0].lower() not in replaced]
    kept += secrets
    try:
        pairs = [(name.decode(), value.decode()) for name, value in kept]
    except UnicodeDecodeError:
        pairs = [(_text(name), _text(value)) for name, value in kept]
    pairs.append(("Accept-Encoding", "identity"))
    return CIMultiDict(pairs)


def _text(data: bytes) -> str:
    """aiohttp writes text as UTF-8: valid UTF-8 arrives unchanged, other bytes as their Latin-1 characters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _context_for(host: str, where: str, contexts: TlsContexts) -> ssl.SSLContext:
    try:
        return contexts.for_host(host)
    except TlsError as exc:
        raise UpstreamFault(TransportFault.TLS, f"{where}: {exc}") from exc
