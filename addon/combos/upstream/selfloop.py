"""Whether an address is one the proxy itself listens on. A target there would send every request in a circle.

Works on numeric addresses and the names that mean this machine; other names are judged by what they resolve to. It
asks the kernel at most for the route to an address (no packet is sent) and never resolves a name.
"""

import ipaddress
import socket
from collections.abc import Iterable
from functools import lru_cache

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOOPBACKS = ("127.0.0.1", "::1")


@lru_cache(1_024)
def numeric(host: str) -> Address | None:
    """The address a literal means (brackets, zone and IPv4-in-IPv6 undone), or None for a name."""
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback_name(host: str) -> bool:
    """`localhost` and everything below it (RFC 6761)."""
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


def is_local(address: Address) -> bool:
    """Whether the address belongs to this machine."""
    return address.is_loopback or address.is_unspecified or _routes_to_itself(address)


def _routes_to_itself(address: Address) -> bool:
    """Ask the kernel which own address it would use towards this one: for an own address it is that one itself."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return numeric(probe.getsockname()[0]) == address
    except OSError:
        return False  # no route, no own address


class OwnAddresses:
    """The addresses of the proxy: pairs of host (empty, `0.0.0.0` or `::` for all interfaces) and port. A name counts
    as it is written."""

    def __init__(self, listening: Iterable[tuple[str, int]] = ()) -> None:
        self._hosts: dict[int, set[str]] = {}
        for host, port in listening:
            names = _LOOPBACKS if is_loopback_name(host) else (host.strip("[]"),)
            self._hosts.setdefault(port, set()).update(names)

    def holds(self, host: str, port: int) -> bool:
        """Whether `host` (an address, or a name that means this machine) and `port` are the proxy's own."""
        hosts = self._hosts.get(port)
        if hosts is None:
            return False
        if host.rstrip(".").lower() in hosts:
            return True
        if is_loopback_name(host):
            return any(self.holds(address, port) for address in _LOOPBACKS)
        address = numeric(host)
        return address is not None and any(_listens(own, address) for own in hosts)

    def listens_on(self, port: int) -> bool:
        """Whether the proxy listens on the port, at any address."""
        return port in self._hosts


def _listens(own: str, address: Address) -> bool:
    if own in ("", "::"):
        return is_local(address)
    bound = numeric(own)
    if bound is None:
        return False
    if address.is_unspecified:
        return bound.is_loopback or bound.is_unspecified
    if bound.is_unspecified:
        return bound.version == address.version and is_local(address)
    return bound == address
