"""Which addresses are the proxy's own, and whose connections may lead there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mitmproxy.addons.proxyauth import ProxyAuth
from mitmproxy.connection import Client, Server
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.test import taddons, tflow, tutils

from combos.admin.live_config import LiveConfig
from combos.mitm import claims, relays
from combos.mitm.options import AttemptFlows, Settings
from combos.mitm.relays import Relays
from combos.mitm.service import Service
from combos.upstream.selfloop import OwnAddresses

LISTENER = ("127.0.0.1", 10_100)
OWN = ("0.0.0.0", 8_080)


class Host:
    """Stands for the addon."""

    service: Service | None = None


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    made = Host()
    settings = Settings("", None, AttemptFlows.AUTO, 65_536, 1_000, 2_000, 3_000)
    made.service = service = Service(LiveConfig(tmp_path / "config.json"), settings)
    service.own, service.listener = OwnAddresses([OWN]), OwnAddresses([LISTENER])
    with taddons.context():
        yield made
    await service.close()


def stranger(mode: str = "regular") -> Client:
    client = tflow.tclient_conn()
    client.peername, client.proxy_mode = ("192.0.2.7", 4_000), ProxyMode.parse(mode)
    return client


def connection(client: Client, address: tuple[str, int]) -> ServerConnectionHookData:
    return ServerConnectionHookData(Server(address=address), client)


def request(address: tuple[str, int], client: Client) -> HTTPFlow:
    name, port = address
    flow = tflow.tflow(req=tutils.treq(method=b"POST", path=b"/v1/messages", host=name, port=port))
    flow.client_conn = client
    return flow


INWARD = [LISTENER, ("localhost", 10_100), ("::ffff:127.0.0.1", 10_100), ("0.0.0.0", 10_100)]
INWARD += [("127.0.0.1", 8_080), ("127.9.9.9", 8_080), ("a.localhost.", 8_080)]
OUTWARD = [("127.0.0.1", 11_434), ("192.0.2.50", 10_100), ("192.0.2.50", 8_080), ("name.test", 10_100), ("::1", 10_100)]


@pytest.mark.parametrize(("address", "is_shut"), [(a, True) for a in INWARD] + [(a, False) for a in OUTWARD])
def test_addresses_of_the_proxy_are_shut_to_strangers(host: Host, address: tuple[str, int], is_shut: bool) -> None:
    guard, closed = Relays(host, "machine"), []
    before, after = connection(stranger(), address), connection(stranger(), ("name.test", address[1]))
    after.server.peername = address
    guard.server_connect(before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relays, "close_server", lambda *pair: closed.append(pair))
        guard.server_connected(after)
    assert (bool(before.server.error), bool(closed)) == (is_shut, is_shut)


@pytest.mark.parametrize("mode", ["local", "wireguard"])
@pytest.mark.parametrize("address", INWARD)
def test_they_are_open_to_whom_the_place_admits(host: Host, mode: str, address: tuple[str, int]) -> None:
    near = tflow.tclient_conn()
    for client in (near, stranger(mode)):
        made = connection(client, address)
        Relays(host, "machine").server_connect(made)
        flow = request(address, client)
        Relays(host, "machine").request(flow)
        assert (made.server.error, flow.response) == (None, None)


def test_a_login_opens_them_for_the_connection_that_showed_it(host: Host) -> None:
    guard, client = Relays(host, "machine"), stranger()
    flow = request(LISTENER, client)
    flow.metadata["proxyauth"] = ("user", "pass")
    guard.request(flow)
    for whose, is_open in ((client, True), (stranger(), False)):
        made = connection(whose, LISTENER)
        guard.server_connect(made)
        assert (made.server.error is None) is is_open


def test_the_login_of_a_tunnel_opens_them(host: Host) -> None:
    client = stranger("socks5")
    made, other = connection(client, LISTENER), connection(stranger("socks5"), LISTENER)
    logins = ProxyAuth()
    logins.authenticated[client] = ("user", "pass")
    with taddons.context(logins):
        for data in (made, other):
            Relays(host, "machine").server_connect(data)
    assert (made.server.error is None, other.server.error is None) == (True, False)


@pytest.mark.parametrize(
    ("address", "statuses"),
    [
        (LISTENER, (403, 403)),
        (("name.test", 10_100), (403, 403)),
        (("name.test", 8_080), (403, 403)),
        (("127.1", 8_080), (403, 403)),
        (("127.0.0.1", 8_080), (None, 403)),  # a request there is answered here, a tunnel would leave
        (("machine.lan", 8_080), (None, 403)),
        (("192.0.2.50", 10_100), (None, None)),
        (("name.test", 443), (None, None)),
    ],
)
def test_behind_a_further_proxy_a_name_may_mean_anything(
    host: Host, address: tuple[str, int], statuses: tuple[int | None, int | None]
) -> None:
    guard = Relays(host, "machine")
    whole, tunnel = (request(address, stranger("upstream:http://127.0.0.1:3128")) for _ in range(2))
    guard.request(whole)
    guard.http_connect(tunnel)
    assert tuple(flow.response and flow.response.status_code for flow in (whole, tunnel)) == statuses


def test_what_needs_no_connection_is_left_alone(host: Host) -> None:
    guard = Relays(host, "machine")
    at_listener, again, answered = (request(LISTENER, stranger()) for _ in range(3))
    claims.enter_at_listener(at_listener)
    again.is_replay = "request"
    answered.response = made = tutils.tresp()
    for flow in (at_listener, again, answered):
        guard.request(flow)
    assert (at_listener.response, again.response, answered.response) == (None, None, made)


def test_without_a_configuration_nothing_is_shut() -> None:
    guard, made, flow = Relays(Host(), "machine"), connection(stranger(), LISTENER), request(LISTENER, stranger())
    with taddons.context():
        guard.server_connect(made)
        guard.request(flow)
    assert (made.server.error, flow.response) == (None, None)
