"""Which connections the proxy makes to itself, and for whom.

What the proxy relays to the addon's listener, or to one of its own ports, arrives there from this machine and would be
taken for one of its clients. So it is relayed for clients that are admitted by where they are, or by `proxyauth`, and
for nobody else: a configured key admits a request, while a connection may carry anything.

What the client wrote is judged before anything is connected, the address that a name has led to when it is. Behind a
further proxy (mode `upstream`) nobody here learns that address, so names with one of the ports in question are refused.
"""

from typing import Protocol
from weakref import WeakSet

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import UpstreamMode
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from combos.core import errors
from combos.core.facts import Dialect
from combos.mitm import access, attempt_flows, claims, model_details, own_address, recognition
from combos.mitm.internals import close_server, is_authenticated
from combos.mitm.service import Service
from combos.upstream.selfloop import numeric


class Host(Protocol):
    """The addon, as the hooks see it."""

    service: Service | None


class Relays:
    """A sub-addon with the hooks of connections. It comes before the one that claims requests."""

    def __init__(self, host: Host, machine: str) -> None:
        self._host = host
        self._machine = machine
        self._authenticated: WeakSet[Client] = WeakSet()

    def http_connect(self, flow: HTTPFlow) -> None:
        """Hook: a tunnel is asked for."""
        if not self._is_let_in(flow) and self._leads_inward(flow, may_be_base_url=False):
            flow.response = own_address.refused(errors.forbidden(access.RELAY_REFUSAL), Dialect.CHAT)

    def request(self, flow: HTTPFlow) -> None:
        """Hook: a request is complete. What is answered here anyway needs no connection."""
        if self._is_let_in(flow) or flow.response or flow.is_replay or attempt_flows.is_attempt(flow):
            return
        if not claims.is_at_listener(flow) and self._leads_inward(flow, may_be_base_url=True):
            dialect = recognition.turn_surface(flow) or model_details.dialect_of(flow)
            flow.response = own_address.refused(errors.forbidden(access.RELAY_REFUSAL), dialect)

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Hook: an address is about to be connected to, whatever led to it."""
        if not self._is_known(data.client) and self._is_own(data.server.address):
            data.server.error = access.RELAY_REFUSAL

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Hook: the name was resolved, nothing is sent yet."""
        if not self._is_known(data.client) and self._is_own(data.server.peername):
            data.server.error = access.RELAY_REFUSAL
            close_server(data.client, data.server)

    def _is_let_in(self, flow: HTTPFlow) -> bool:
        if "proxyauth" in flow.metadata:
            self._authenticated.add(flow.client_conn)
        return self._is_known(flow.client_conn)

    def _is_known(self, client: Client) -> bool:
        return access.is_from_here(client) or client in self._authenticated or is_authenticated(client)

    def _is_own(self, address: tuple[str | int, ...] | None) -> bool:
        service = self._host.service
        if service is None or address is None:
            return False
        host, port = str(address[0]), int(address[1])
        return service.listener.holds(host, port) or service.own.holds(host, port)

    def _leads_inward(self, flow: HTTPFlow, *, may_be_base_url: bool) -> bool:
        service, host, port = self._host.service, flow.request.host, flow.request.port
        if service is None:
            return False
        if service.listener.holds(host, port):
            return True
        if not isinstance(flow.client_conn.proxy_mode, UpstreamMode):
            return False
        if recognition.is_base_url(flow, service.own, self._machine):
            return not may_be_base_url
        return numeric(host) is None and (service.listener.listens_on(port) or service.own.listens_on(port))
