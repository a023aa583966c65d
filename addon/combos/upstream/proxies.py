"""Which proxy stands between us and a target: the provider's own, else the one of mitmproxy's upstream mode, else none.

It reads configuration values and URLs only. Proxy credentials become one header and never stay in a URL, because URLs
end up in pool keys and messages.
"""

import base64
import contextlib
import ipaddress
from dataclasses import field
from urllib.parse import unquote

from multidict import CIMultiDict
from yarl import URL

from combos.core.facts import TransportFault
from combos.core.registry import Provider
from combos.core.values import dataclass
from combos.upstream.faults import UpstreamFault
from combos.upstream.selfloop import is_loopback_name, numeric


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """A proxy: `http(s)://[user:password@]host:port`; `authorization` is a whole `Proxy-Authorization` value."""

    url: str = field(repr=False)
    authorization: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ProxyRoute:
    """A proxy to use. `headers` go to the proxy: with CONNECT for TLS targets, with the request itself otherwise."""

    url: URL
    headers: CIMultiDict[str] = field(repr=False)


def route_for(target: URL, provider: Provider, default: ProxySettings | None) -> ProxyRoute | None:
    """The proxy for a target, or None. Raises `UpstreamFault` for a proxy URL that cannot be used.

    `noProxy` of the provider exempts from both. Targets on this machine do not go through the default proxy.
    """
    host, port = target.host or "", target.port or 0
    if _is_exempt(host, port, provider.config.no_proxy):
        return None
    if provider.config.proxy is not None:
        return _route(provider.config.proxy, None)
    if default is None or _is_this_machine(host):
        return None
    return _route(default.url, default.authorization)


def _is_this_machine(host: str) -> bool:
    address = numeric(host)
    return is_loopback_name(host) if address is None else address.is_loopback


def _is_exempt(host: str, port: int, no_proxy: str | tuple[str, ...] | None) -> bool:
    if no_proxy is None:
        return False
    rules = no_proxy.replace(",", " ").split() if isinstance(no_proxy, str) else no_proxy
    return any(_exempts(rule.strip().lower(), host.lower().rstrip("."), port) for rule in rules)


def _exempts(rule: str, host: str, port: int) -> bool:
    """`*`, a network, an address, or a domain (with everything below it), each with an optional `:port`."""
    if rule == "*":
        return True
    address = numeric(host)
    if address is not None:
        with contextlib.suppress(ValueError):  # no network: an address with a port, or a domain
            return address in ipaddress.ip_network(rule.strip("[]"), strict=False)
    name, colon, suffix = rule.rpartition(":")
    if colon and suffix.isdigit():
        return int(suffix) == port and _exempts(name, host, port)
    domain = rule.removeprefix("*").lstrip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _route(text: str, authorization: str | None) -> ProxyRoute:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UpstreamFault(TransportFault.CONNECT_FAILED, "the proxy must be an http or https URL with a host")
    if authorization is None and url.raw_user is not None:
        credentials = f"{unquote(url.raw_user)}:{unquote(url.raw_password or '')}"
        authorization = "Basic " + base64.b64encode(credentials.encode()).decode()
    headers: CIMultiDict[str] = CIMultiDict()
    if authorization is not None:
        headers["Proxy-Authorization"] = authorization
    return ProxyRoute(url.with_user(None), headers)
