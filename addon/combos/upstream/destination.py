"""Where a connection may go: every address a name resolves to is judged before and after connecting.

Literal hosts of the configuration are refused when the file is loaded; the same rules are applied here to what names
resolve to, so that a public name cannot lead into a private network. It neither resolves nor connects.
"""

import functools
from dataclasses import replace

from combos.core.destinations import PLAIN_HTTP, Destination, classify_host
from combos.core.facts import TransportFault
from combos.core.values import dataclass
from combos.upstream.faults import UpstreamFault
from combos.upstream.selfloop import OwnAddresses


class Guard:
    """Refuses destinations. One per set of settings; remembers what it thought of a host."""

    def __init__(self, own: OwnAddresses) -> None:
        self._own = own
        self._classify = functools.lru_cache(4096)(classify_host)

    def admit(self, host: str, port: int, *, allow_private: bool, only_private: bool = False) -> None:
        """Judge a host as written or a resolved address; a name passes until it is resolved.

        `only_private`: nothing but this machine and private networks will do, and no name but `localhost`.

        Raises `UpstreamFault`: `SELF_LOOP` for the proxy itself, else `CONNECT_FAILED`.
        """
        self.admit_own(host, port)
        rule, destination = self._classify(host)
        if destination is Destination.FORBIDDEN:
            raise _refusal(host, port, f"a {rule} address is never allowed")
        if destination is Destination.PRIVATE and not allow_private:
            raise _refusal(host, port, f"a {rule} address needs allowPrivateNetwork")
        if only_private and rule not in PLAIN_HTTP:
            raise _refusal(host, port, f"a {rule} address needs https")

    def admit_own(self, host: str, port: int) -> None:
        """Refuse the proxy's own addresses only: for proxies between us and a target. Raises `UpstreamFault`."""
        if self._own.holds(host, port):
            raise UpstreamFault(TransportFault.SELF_LOOP, f"{host} port {port}: the target is the proxy itself")


@dataclass(frozen=True, slots=True)
class Rights:
    """Where the requests of a provider may go, by one set of settings; as for `Guard.admit`."""

    guard: Guard
    allow_private: bool
    only_private: bool

    def by(self, guard: Guard) -> "Rights":
        """The same by the settings in force."""
        return self if guard is self.guard else replace(self, guard=guard)

    def judge(self, host: str, port: int) -> None:
        """Raises `UpstreamFault` for an address that a request may not be sent to."""
        self.guard.admit(host, port, allow_private=self.allow_private, only_private=self.only_private)


def _refusal(host: str, port: int, reason: str) -> UpstreamFault:
    return UpstreamFault(TransportFault.CONNECT_FAILED, f"{host} port {port}: refused, {reason}")
