"""Where a connection may go: every address a name resolves to is judged before and after connecting.

Literal hosts of the configuration are refused when the file is loaded; this module repeats the rules for what names
resolve to, so that a public name cannot lead into a private network. It neither resolves nor connects.
"""

import functools
import ipaddress
from enum import StrEnum

from combos.core.facts import TransportFault
from combos.upstream.faults import UpstreamFault
from combos.upstream.selfloop import Address, OwnAddresses, is_loopback_name, numeric


class Reach(StrEnum):
    """Kinds of addresses, from harmless to never allowed."""

    PUBLIC = "public"
    PRIVATE = "private network"
    LINK_LOCAL = "link-local"
    UNSPECIFIED = "unspecified"
    METADATA = "cloud metadata"


# Endpoints that hand out credentials of the machine: AWS, GCP and Azure (v4, v6), Alibaba, Oracle.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192")
)
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata", "instance-data"})
_NEVER = frozenset({Reach.METADATA, Reach.UNSPECIFIED, Reach.LINK_LOCAL})


def reach_of(address: Address) -> Reach:
    """What kind of address it is. Everything that is not globally routable unicast counts as private."""
    if address in _METADATA:
        return Reach.METADATA
    if address.is_unspecified:
        return Reach.UNSPECIFIED
    if address.is_link_local:
        return Reach.LINK_LOCAL
    if not address.is_global or address.is_multicast:
        return Reach.PRIVATE
    return Reach.PUBLIC


class Guard:
    """Refuses destinations. One per set of settings; remembers what it thought of an address."""

    def __init__(self, own: OwnAddresses) -> None:
        self._own = own
        self._reach = functools.lru_cache(4096)(_reach_of_text)

    def admit_host(self, host: str, port: int, *, allow_private: bool) -> None:
        """Judge the host of a URL as far as that needs no resolving. Raises `UpstreamFault`."""
        if host.rstrip(".").lower() in _METADATA_NAMES:
            raise _refusal(host, port, Reach.METADATA)
        if is_loopback_name(host):
            self.admit_own(host, port)
            return
        self.admit(host, port, allow_private=allow_private)

    def admit(self, address: str, port: int, *, allow_private: bool) -> None:
        """Judge a numeric address; names pass. Raises `UpstreamFault`: `SELF_LOOP`, else `CONNECT_FAILED`."""
        self.admit_own(address, port)
        reach = self._reach(address)
        if reach in _NEVER or (reach is Reach.PRIVATE and not allow_private):
            raise _refusal(address, port, reach)

    def admit_own(self, host: str, port: int) -> None:
        """Refuse the proxy's own addresses only: for proxies between us and a target. Raises `UpstreamFault`."""
        if self._own.holds(host, port):
            raise UpstreamFault(TransportFault.SELF_LOOP, f"{host} port {port} is the proxy itself")


def _reach_of_text(address: str) -> Reach:
    parsed = numeric(address)
    return Reach.PUBLIC if parsed is None else reach_of(parsed)


def _refusal(host: str, port: int, reach: Reach) -> UpstreamFault:
    hint = "; set allowPrivateNetwork to permit it" if reach is Reach.PRIVATE else ""
    return UpstreamFault(TransportFault.CONNECT_FAILED, f"{host} port {port} is refused: {reach} address{hint}")
