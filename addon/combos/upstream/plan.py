"""What an exchange needs before anything is sent: the way to the target and the bytes of the request, all checked.

Refuses destinations: another host than the provider's, a forbidden network, the proxy itself. Sends nothing.
"""

import re
import ssl
from collections.abc import Iterator
from dataclasses import field

import aiohttp
from yarl import URL

from combos.core.config_provider import Adapter
from combos.core.facts import Headers, TransportFault
from combos.core.registry import Provider
from combos.core.values import dataclass
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
_METHOD = re.compile(r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+")  # a token of RFC 9110
_FORBIDDEN = bytes({*range(0x20), 0x7F} - {0x09})  # what would end a line of the head, or is not printed

_WAYS_MAX = 1_024  # URLs with a query of the client's own are without number


@dataclass(frozen=True, slots=True)
class Way:
    """How a URL of a provider is reached. `where` names host and port in messages; `target` is what the request line
    asks for, `extra` what a proxy wants to read beside it; `opening` is what a connection is opened for."""

    provider: Provider
    where: str
    host: bytes
    target: bytes
    extra: Headers = field(repr=False)
    allow_private: bool
    only_private: bool
    is_direct: bool
    opening: aiohttp.ClientRequest


@dataclass(frozen=True, slots=True)
class Plan:
    """A request that may be sent."""

    way: Way
    method: str
    head: bytes = field(repr=False)
    body: bytes = field(repr=False)


class Ways:
    """The ways of one set of settings. A way that was found to be allowed is remembered with its provider."""

    def __init__(self, guard: Guard, contexts: TlsContexts, proxy: ProxySettings | None) -> None:
        self._guard = guard
        self._contexts = contexts
        self._proxy = proxy
        self._known: dict[str, Way] = {}

    def to(self, url: str, provider: Provider) -> Way:
        """The way to a URL of the provider. Inside the event loop only. Raises `UpstreamFault`."""
        way = self._known.get(url)
        if way is None or way.provider is not provider:
            way = self._find(url, provider)
            if len(self._known) >= _WAYS_MAX:
                self._known.clear()
            self._known[url] = way
        return way

    def _find(self, text: str, provider: Provider) -> Way:
        url = _url_of(text, provider)
        host, port = url.host or "", url.port or 0
        where = f"{host} port {port}"
        allow_private = provider.config.allow_private_network
        # A decision service without TLS: what is decided from, and a key, stay within private networks.
        only_private = url.scheme == "http" and provider.config.adapter is Adapter.JEV_DECISION
        self._guard.admit(host, port, allow_private=allow_private, only_private=only_private)
        proxy = route_for(url, provider, self._proxy)
        if proxy is not None:
            if only_private:
                raise UpstreamFault(
                    TransportFault.CONNECT_FAILED, f"{where}: a decision service without TLS, behind a proxy"
                )
            self._guard.admit_own(proxy.url.host or "", proxy.url.port or 0)
        is_forwarded = proxy is not None and url.scheme == "http"
        return Way(
            provider=provider,
            where=where,
            host=(url.host_port_subcomponent or "").encode(),
            target=(str(url.with_fragment(None)) if is_forwarded else url.raw_path_qs).encode(),
            extra=_extra(proxy) if is_forwarded else (),
            allow_private=allow_private,
            only_private=only_private,
            is_direct=proxy is None,
            opening=self._opening(url, host, where, proxy),
        )

    def _opening(self, url: URL, host: str, where: str, proxy: ProxyRoute | None) -> aiohttp.ClientRequest:
        """What aiohttp's pool is asked with. It is never sent: the pool looks at address, TLS context and proxy."""
        has_tls = "https" in (url.scheme, proxy and proxy.url.scheme)
        context = _context_for(host, where, self._contexts) if has_tls else True
        if proxy is None:
            return aiohttp.ClientRequest("GET", url, ssl=context)
        headers = proxy.headers.copy()
        # aiohttp adds this field when it opens a connection, and it counts when one is looked for.
        headers["Host"] = url.host_port_subcomponent or ""
        return aiohttp.ClientRequest("GET", url, ssl=context, proxy=proxy.url, proxy_headers=headers)


def plan_for(request: OutboundRequest, secrets: Headers, ways: Ways) -> Plan:
    """Check a request and prepare it. Raises `UpstreamFault`."""
    way = ways.to(request.url, request.provider)
    return Plan(way, request.method, _head(request, way, secrets), request.body)


def _url_of(text: str, provider: Provider) -> URL:
    """The request's URL, which must lie on the provider's own origin: its credentials go nowhere else."""
    try:
        url, base = URL(text, encoded=True), URL(provider.config.base_url, encoded=True)
        same = (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
    except ValueError as exc:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, "the target URL is not valid") from exc
    # A space would end the target in the request line, and what follows it would be read as the protocol's version.
    if url.scheme not in ("http", "https") or not url.host or " " in text:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, "the target URL is not valid")
    if not same or url.raw_user is not None:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, f"{url.host} is not the host of provider {provider.name}")
    return url


def _extra(proxy: ProxyRoute | None) -> Headers:
    return () if proxy is None else tuple((name.encode(), value.encode()) for name, value in proxy.headers.items())


def _head(request: OutboundRequest, way: Way, secrets: Headers) -> bytes:
    """The request line and the header fields, as they go out. Raises `UpstreamFault` for what would break them."""
    fields = [(b"Host", way.host), *_kept(request.headers, secrets), *secrets]
    fields += [(b"Accept-Encoding", b"identity"), *way.extra]
    if request.body or request.method not in ("GET", "HEAD"):
        fields.append((b"Content-Length", b"%d" % len(request.body)))
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), way.target), *(b"%b: %b" % field for field in fields)]
    written = b"".join(lines)
    if not _METHOD.fullmatch(request.method) or len(written.translate(None, _FORBIDDEN)) != len(written):
        raise UpstreamFault(TransportFault.CONNECT_FAILED, f"{way.where}: a header holds what no header may hold")
    head = b"\r\n".join((*lines, b"\r\n"))
    return head if head.isascii() else b"\r\n".join(map(_as_utf8, head.split(b"\r\n")))


def _kept(headers: Headers, secrets: Headers) -> Iterator[tuple[bytes, bytes]]:
    replaced = _OWNED.union([name.lower() for name, _ in secrets]) if secrets else _OWNED
    return (field for field in headers if field[0].lower() not in replaced)


def _as_utf8(line: bytes) -> bytes:
    """Valid UTF-8 goes out unchanged, other bytes as their Latin-1 characters."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1").encode()
    return line


def _context_for(host: str, where: str, contexts: TlsContexts) -> ssl.SSLContext:
    try:
        return contexts.for_host(host)
    except TlsError as exc:
        raise UpstreamFault(TransportFault.TLS, f"{where}: {exc}") from exc
