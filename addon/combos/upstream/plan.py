"""What an exchange needs before anything is sent: the way to the target and the bytes of the request, all checked.

Refuses destinations: another host than the provider's, a forbidden network, the proxy itself. Sends nothing.
"""

import re
import ssl
from collections.abc import Hashable
from dataclasses import field

import aiohttp
from yarl import URL

from combos.core.config_provider import Adapter
from combos.core.facts import Headers, TransportFault
from combos.core.registry import Provider
from combos.core.values import dataclass
from combos.engine.commands import OutboundRequest
from combos.upstream.destination import Guard, Rights
from combos.upstream.faults import UpstreamFault
from combos.upstream.proxies import ProxyRoute, ProxySettings, route_for
from combos.upstream.tls import TlsContexts, TlsError

# Headers that belong to one connection or are made here; a request's own are dropped.
_OWNED = frozenset(
    b"accept-encoding connection content-length expect host keep-alive proxy-authenticate proxy-authorization"
    b" proxy-connection te trailer transfer-encoding upgrade".split()
)
_BODILESS = frozenset(("GET", "HEAD"))  # no length is stated where there is no body
_METHOD = re.compile(r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+")  # a token of RFC 9110
_FORBIDDEN = bytes({*range(0x20), 0x7F} - {0x09})  # what would end a line of the head, or is not printed

_WAYS_MAX = 1_024  # URLs with a query of the client's own are without number


@dataclass(frozen=True, slots=True)
class Way:
    """How a URL of a provider is reached. `where` names host and port in messages; `begin` and `end` are the parts of
    every head behind the method and behind the fields of a request; `opening` is what a connection is opened for, and
    `key` what such connections have in common."""

    provider: Provider
    where: str
    begin: bytes = field(repr=False)
    end: bytes = field(repr=False)
    rights: Rights
    is_direct: bool
    opening: aiohttp.ClientRequest
    key: Hashable = field(repr=False)


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
        rights = Rights(self._guard, allow_private, only_private)
        rights.judge(host, port)
        proxy = route_for(url, provider, self._proxy)
        if proxy is not None:
            if only_private:
                raise UpstreamFault(
                    TransportFault.CONNECT_FAILED, f"{where}: a decision service without TLS, behind a proxy"
                )
            self._guard.admit_own(proxy.url.host or "", proxy.url.port or 0)
        opening = self._opening(url, host, where, proxy)
        return Way(
            provider=provider,
            where=where,
            begin=_begin(url, proxy, where),
            end=_end(url, proxy, where),
            rights=rights,
            is_direct=proxy is None,
            opening=opening,
            key=opening.connection_key,
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


def _begin(url: URL, proxy: ProxyRoute | None, where: str) -> bytes:
    """The request line behind the method, and the first field."""
    is_forwarded = proxy is not None and url.scheme == "http"
    target = str(url.with_fragment(None)) if is_forwarded else url.raw_path_qs
    lines = [f" {target} HTTP/1.1".encode(), f"Host: {url.host_port_subcomponent or ''}".encode()]
    return b"\r\n".join(_checked(lines, where))


def _end(url: URL, proxy: ProxyRoute | None, where: str) -> bytes:
    """The last fields but the length. A proxy that is asked for the URL itself reads its own there as well."""
    more = proxy.headers.items() if proxy is not None and url.scheme == "http" else ()
    lines = [b"Accept-Encoding: identity", *(f"{name}: {value}".encode() for name, value in more)]
    return b"\r\n".join(_checked(lines, where))


def head_of(request: OutboundRequest, way: Way, secrets: Headers) -> bytes:
    """The request line and the header fields, as they go out; `secrets` in place of fields of the same name.

    Raises `UpstreamFault` for what would break them.
    """
    method, size = request.method, len(request.body)
    if method != "POST" and not _METHOD.fullmatch(method):
        raise _unspeakable(way.where)
    own = [name.lower() for name, _ in secrets]
    lines = [
        b"%b: %b" % field for field in request.headers if (known := field[0].lower()) not in _OWNED and known not in own
    ]
    lines += [b"%b: %b" % field for field in secrets]
    _checked(lines, way.where)
    lines.append(way.end)
    if size or method not in _BODILESS:
        lines.append(b"Content-Length: %d" % size)
    head = b"%b%b\r\n%b\r\n\r\n" % (method.encode(), way.begin, b"\r\n".join(lines))
    return head if head.isascii() else b"\r\n".join(map(_as_utf8, head.split(b"\r\n")))


def _checked(lines: list[bytes], where: str) -> list[bytes]:
    """The lines, if none of them would break a head. Raises `UpstreamFault`."""
    written = b"".join(lines)
    if len(written.translate(None, _FORBIDDEN)) != len(written):
        raise _unspeakable(where)
    return lines


def _unspeakable(where: str) -> UpstreamFault:
    return UpstreamFault(TransportFault.CONNECT_FAILED, f"{where}: a header holds what no header may hold")


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
