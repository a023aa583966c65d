"""Who may use the combos: the machine itself, whoever mitmproxy has admitted, and holders of a configured key."""

import hmac
from collections.abc import Collection, Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import LocalMode, WireGuardMode

from combos.core.recall import caller_digest
from combos.upstream.selfloop import is_loopback_name
from combos.wire.fields import Fields

_KEY_HEADERS = (b"x-api-key", b"x-goog-api-key", b"api-key")
_AUTHORIZATION = b"authorization"
_CREDENTIALS = frozenset((*_KEY_HEADERS, _AUTHORIZATION))
_ORIGIN = b"origin"
_NOBODY = caller_digest(b"")

REFUSAL = "Combos are served to this machine and to holders of a configured key"

RELAY_REFUSAL = "Only clients on this machine are relayed to addresses of the proxy itself"

PAGE_REFUSAL = "A page of another site may not use combos; corsAllowOrigins in the configuration names those that may"

_PAGE_SCHEMES = ("http", "https")

# A local capture is this machine; a WireGuard peer has proved a key to mitmproxy.
_ADMITTING_MODES = (LocalMode, WireGuardMode)


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether a peer's address is this machine: 127/8, ::1, and 127/8 written as IPv6."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def presented_keys(fields: Fields) -> list[str]:
    """The keys a request carries, wherever the clients put them."""
    if _CREDENTIALS.isdisjoint(fields.first):
        return []
    keys = [_shown(fields, name) for name in _KEY_HEADERS if name in fields.first]
    scheme, _, token = _shown(fields, _AUTHORIZATION).partition(" ")
    if scheme.lower() == "bearer" and token:
        keys.append(token.strip())
    return keys


def _shown(fields: Fields, name: bytes) -> str:
    """The value of a field, empty when it is absent; a repeated one is one list, as HTTP has it."""
    return b", ".join(fields.every(name)).decode("utf-8", "surrogateescape")


def holds_key(presented: Iterable[str], configured: Iterable[str]) -> bool:
    """Constant-time comparison of every presented key with every configured one."""
    known = [key.encode() for key in configured]
    matches = [hmac.compare_digest(key.encode(errors="surrogateescape"), other) for key in presented for other in known]
    return any(matches)


def is_from_here(client: Client) -> bool:
    """Whether where the client comes from is enough to admit it."""
    return is_loopback(client.peername[0]) or isinstance(client.proxy_mode, _ADMITTING_MODES)


def is_admitted(flow: HTTPFlow, keys: Iterable[str]) -> bool:
    """Whether the flow's client may use combos; `keys` are the configured `apiKeys`, resolved."""
    if is_from_here(flow.client_conn):
        return True
    return "proxyauth" in flow.metadata or holds_key(presented_keys(Fields(flow.request.headers.fields)), keys)


def caller_of(fields: Fields) -> str:
    """A name for the holder of the request's credentials that does not reveal them; one name for all without any."""
    keys = presented_keys(fields)
    return caller_digest("\0".join(keys).encode(errors="surrogateescape")) if keys else _NOBODY


def is_foreign_page(fields: Fields, allowed: Collection[str]) -> bool:
    """Whether a page of another site sends the request; `allowed`: the configured `corsAllowOrigins`.

    Any page that a browser shows can send a POST to a loopback port, and read the answer once its name has been
    rebound to this machine. Programs send no Origin; one without a web scheme belongs to an installed application.
    """
    if _ORIGIN not in fields.first:
        return False
    origin = _shown(fields, _ORIGIN)
    if origin in allowed:
        return False
    scheme, _, rest = origin.partition("://")
    if scheme not in _PAGE_SCHEMES:
        return not rest
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:  # brackets around what is no address: from no browser, and from no page of this machine
        return True
    return not (is_loopback(host) or is_loopback_name(host))
