"""Where a provider may be: the grammar of base URLs and the classes of addresses.

Judges what is written and addresses that somebody else resolved. It resolves nothing itself.
"""

import re
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network


class Destination(StrEnum):
    """Class of a host or address."""

    PUBLIC = "public"
    PRIVATE = "private"
    FORBIDDEN = "forbidden"


_METADATA_HOSTS = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# First match wins. Forbidden: nothing a provider could live at, and what cloud hosts trust blindly.
_RULES: tuple[tuple[str, Destination, tuple[Network, ...]], ...] = (
    (
        "metadata",
        Destination.FORBIDDEN,
        _networks(
            "169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128"
        ),
    ),
    ("link-local", Destination.FORBIDDEN, _networks("169.254.0.0/16", "fe80::/10")),
    ("unspecified", Destination.FORBIDDEN, _networks("0.0.0.0/8", "::/128")),
    ("loopback", Destination.PRIVATE, _networks("127.0.0.0/8", "::1/128")),
    ("private", Destination.PRIVATE, _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    ("unique local", Destination.PRIVATE, _networks("fc00::/7")),
    ("shared (CGNAT)", Destination.PRIVATE, _networks("100.64.0.0/10")),
    (
        "documentation",
        Destination.PRIVATE,
        _networks("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    ),
    ("benchmark", Destination.PRIVATE, _networks("198.18.0.0/15", "2001:2::/48")),
    ("multicast", Destination.PRIVATE, _networks("224.0.0.0/4", "ff00::/8")),
    ("reserved", Destination.PRIVATE, _networks("192.0.0.0/24", "240.0.0.0/4", "fec0::/10")),
)

_NAT64 = ip_network("64:ff9b::/96")
PLAIN_HTTP = frozenset({"loopback", "private", "unique local"})
"""Names of the rules whose addresses a decision service may have without TLS."""
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*")
# What resolvers read as an IPv4 address although it is none in writing: 127.1, 0x7f000001, 2130706433.
_NUMERIC_HOST = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)(?:\.(?:0[xX][0-9A-Fa-f]*|[0-9]+))*")
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\<>\"^`|{}]")


def classify_address(address: Address) -> tuple[str, Destination]:
    """Name of the rule and class of a resolved address; addresses wrapped in IPv6 count as what they wrap."""
    address = _unwrapped(address)
    for name, destination, networks in _RULES:
        if any(address.version == network.version and address in network for network in networks):
            return name, destination
    return "public", Destination.PUBLIC


def classify_host(host: str) -> tuple[str, Destination]:
    """Name of the rule and class of a host as written. A name that has to be resolved counts as public."""
    name = host.rstrip(".").lower()
    if name in _METADATA_HOSTS:
        return "metadata", Destination.FORBIDDEN
    if name == "localhost" or name.endswith(".localhost"):
        return "loopback", Destination.PRIVATE
    address = literal_address(name)
    return classify_address(address) if address else ("public", Destination.PUBLIC)


def literal_address(host: str) -> Address | None:
    """The address that a host literally is."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def base_url_fault(url: str, *, allow_private: bool) -> str | None:
    """Why a text cannot be a provider's base URL, or None. The URL itself is not repeated: it may hold a key."""
    parts = split_url(url)
    if isinstance(parts, str):
        return parts
    rule, destination = classify_host(parts.hostname or "")
    if destination is Destination.FORBIDDEN:
        return f"points at a {rule} address, which is never allowed"
    if destination is Destination.PRIVATE and not allow_private:
        return f"points at a {rule} address; that needs allowPrivateNetwork: true"
    return None


def decision_url_fault(url: str, *, allow_private: bool) -> str | None:
    """The stricter rule of decision services: HTTPS, or plain HTTP to this machine or an opted-in private network."""
    parts = split_url(url)
    if isinstance(parts, str) or parts.scheme == "https":
        return None  # the general rule speaks about malformed URLs
    rule, _ = classify_host(parts.hostname or "")
    if rule in PLAIN_HTTP and allow_private:
        return None
    return (
        "must use https, except to a literal loopback, private or unique local address with allowPrivateNetwork: true"
    )


def is_systemone_url(url: str) -> bool:
    """Whether a URL's path is that of a System One endpoint."""
    parts = split_url(url)
    return not isinstance(parts, str) and parts.path.rstrip("/").endswith("/systemone")


def proxy_url_fault(url: str) -> str | None:
    """Why a text cannot be an egress proxy. User and password are allowed here."""
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port != 0
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        return "must be a URL http://host:port or https://host:port"
    return None


def split_url(url: str) -> SplitResult | str:
    """The parts of an http(s) URL without userinfo, query and fragment; else what is wrong with it."""
    if _UNSAFE.search(url):
        return "holds a character that a URL cannot hold, or an unfilled {placeholder}"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be a URL beginning with https:// or http:// and a host"
    if "@" in parts.netloc:
        return "must not hold a user name or password"
    if "?" in url or "#" in url:
        return "must not have a query or a fragment"
    return _port_fault(parts) or _host_fault(parts.hostname or "") or parts


def _port_fault(parts: SplitResult) -> str | None:
    try:
        is_valid = parts.port != 0 and not parts.netloc.endswith(":")
    except ValueError:
        is_valid = False
    return None if is_valid else "must have a port from 1 to 65535, or none"


def _host_fault(host: str) -> str | None:
    if literal_address(host) is not None:
        return None
    if _NUMERIC_HOST.fullmatch(host.rstrip(".")):
        return "must write an IPv4 address as four decimal numbers"
    return None if _HOST_NAME.fullmatch(host.removesuffix(".")) else "has no valid host name (ASCII letters, xn-- form)"


def _unwrapped(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
