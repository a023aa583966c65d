"""Proxies between us and a target: which one is used, what it sees, and its refusals."""

import ssl
from collections.abc import AsyncIterator, Callable

import pytest
from yarl import URL

from authority import Authority
from combos.core.facts import TransportFault
from combos.upstream.faults import UpstreamFault
from combos.upstream.proxies import ProxySettings, route_for
from combos.upstream.session import Upstream, UpstreamSettings
from combos.upstream.tls import TlsSettings
from exchanges import PATIENT, body_of, exchange, fault_of_exchange, outbound, provider
from rawserver import Again, Close, Connection, Expect, RawServer, Reset, Send, Step, head, response

type Make = Callable[..., Upstream]

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]
DEFAULT = ProxySettings("http://default.example:3128")


class Tunnel:
    """Answers CONNECT and then speaks TLS itself, as the target would at the other end."""

    def __init__(self, authority: Authority, name: str) -> None:
        self.context = authority.server(name)

    async def __call__(self, connection: Connection) -> None:
        await Expect()(connection)
        await Send(head(200, reason="Connection established"))(connection)
        below = connection.writer.transport
        try:
            await connection.writer.start_tls(self.context)
        except ssl.SSLError:
            below.abort()
            raise
        await Again([Expect(), Send(response(200, b"{}"))])(connection)


@pytest.fixture
async def upstream_by() -> AsyncIterator[Make]:
    """Makes a session with a default proxy and closes it."""
    made: list[Upstream] = []

    def make(proxy: ProxySettings | None, tls: TlsSettings | None = None) -> Upstream:
        made.append(Upstream(UpstreamSettings(tls=tls or TlsSettings(), proxy=proxy)))
        return made[-1]

    yield make
    for upstream in made:
        await upstream.close()


async def test_http_targets_are_asked_for_by_their_whole_url(upstream_by: Make) -> None:
    async with RawServer(SERVE) as proxy:
        upstream = upstream_by(ProxySettings(proxy.url, "Basic dXNlcjpwdw=="))
        for _ in range(2):
            await exchange(upstream, outbound("http://vendor.example:81", path="/v1/x?y"))
        assert proxy.connections == 1
    request = proxy.requests[1]
    assert request.target == "http://vendor.example:81/v1/x?y"
    assert request.header("host") == "vendor.example:81"
    assert request.all("proxy-authorization") == ["Basic dXNlcjpwdw=="]


async def test_https_targets_are_tunnelled(authority: Authority, upstream_by: Make) -> None:
    async with RawServer([Tunnel(authority, "vendor.example")]) as proxy:
        secret = proxy.url.replace("//", "//us%40er:p%3Aw@")
        upstream = upstream_by(ProxySettings(secret), TlsSettings(trusted_ca=str(authority.ca_file)))
        for _ in range(2):
            await exchange(upstream, outbound("https://vendor.example"), ((b"Authorization", b"Bearer k"),))
        assert proxy.connections == 1, "tunnels are pooled"
    connect, first, _ = proxy.requests
    assert (connect.method, connect.target) == ("CONNECT", "vendor.example:443")
    assert connect.header("proxy-authorization") == "Basic dXNAZXI6cDp3"
    assert connect.header("authorization") is None
    assert first.header("proxy-authorization") is None
    assert first.header("authorization") == "Bearer k"


async def test_an_https_proxy(authority: Authority, upstream_by: Make) -> None:
    async with RawServer(SERVE, tls=authority.server("127.0.0.1")) as proxy:
        upstream = upstream_by(ProxySettings(proxy.url), TlsSettings(trusted_ca=str(authority.ca_file)))
        assert await exchange(upstream, outbound("http://vendor.example")) == (200, b"{}")
    assert proxy.requests[0].target == "http://vendor.example/chat/completions"


async def test_a_certificate_is_checked_through_the_tunnel(authority: Authority, upstream_by: Make) -> None:
    async with RawServer([Tunnel(authority, "somebody.example")]) as proxy:
        upstream = upstream_by(ProxySettings(proxy.url), TlsSettings(trusted_ca=str(authority.ca_file)))
        fault = await fault_of_exchange(upstream, outbound("https://vendor.example"))
    assert fault is not None
    assert fault.fault is TransportFault.TLS


REFUSALS: dict[str, list[Step]] = {
    "407": [Expect(), Send(response(407, b"who?"))],
    "502": [Expect(), Send(response(502, b"no"))],
    "closed": [Expect(), Close()],
    "reset": [Expect(), Reset()],
    "no HTTP": [Expect(), Send(b"nonsense\r\n\r\n")],
}


@pytest.mark.parametrize("script", REFUSALS.values(), ids=REFUSALS)
async def test_a_refused_tunnel_is_a_failed_connection(upstream_by: Make, script: list[Step]) -> None:
    async with RawServer(script) as proxy:
        upstream = upstream_by(ProxySettings(proxy.url, "Basic c2VjcmV0"))
        fault = await fault_of_exchange(upstream, outbound("https://vendor.example"))
        assert fault is not None
        assert fault.fault is TransportFault.CONNECT_FAILED
        assert fault.detail.startswith("vendor.example port 443")
        assert "c2VjcmV0" not in str(fault)
        assert proxy.connections == 1


async def test_a_407_of_a_proxy_is_no_answer_of_the_target(upstream_by: Make) -> None:
    async with RawServer([Again([Expect(), Send(response(407, b"who?"))])]) as server:
        fault = await fault_of_exchange(upstream_by(ProxySettings(server.url)), outbound("http://vendor.example"))
        assert fault is not None
        assert fault.fault is TransportFault.CONNECT_FAILED
        async with upstream_by(None).open(outbound(server.url), PATIENT) as answer:
            assert answer.status == 407
            assert await body_of(answer) == b"who?"


async def test_the_providers_own_proxy_beats_the_default(upstream_by: Make) -> None:
    async with RawServer(SERVE) as own, RawServer(SERVE) as default:
        upstream = upstream_by(ProxySettings(default.url))
        await exchange(upstream, outbound("http://vendor.example", proxy=own.url))
        await exchange(upstream, outbound("http://vendor.example"))
        assert len(own.requests) == len(default.requests) == 1


async def test_a_proxy_may_lie_in_a_private_network_although_the_provider_may_not(
    upstream_by: Make,
) -> None:
    async with RawServer(SERVE) as proxy:
        request = outbound("http://vendor.example", proxy=f"http://localhost:{proxy.port}", allow_private_network=False)
        assert await exchange(upstream_by(None), request) == (200, b"{}")


@pytest.mark.parametrize(
    ("target", "no_proxy", "exempt"),
    [
        ("https://api.vendor.example", None, False),
        ("https://api.vendor.example", "*", True),
        ("https://api.vendor.example", "vendor.example", True),
        ("https://api.vendor.example", ".vendor.example", True),
        ("https://api.vendor.example", "*.vendor.example", True),
        ("https://api.vendor.example", "a.example, API.vendor.example", True),
        ("https://api.vendor.example", ("a.example", "api.vendor.example:443"), True),
        ("https://api.vendor.example", "api.vendor.example:80", False),
        ("https://api.vendor.example", "ndor.example", False),
        ("https://api.vendor.example", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3:8443", "10.1.2.3:8443", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://[fd00::1]", "fd00::/8", True),
        ("https://[fd00::1]", "[fd00::1]", True),
    ],
)
def test_exemptions(target: str, no_proxy: str | tuple[str, ...] | None, exempt: bool) -> None:
    row = provider(target, no_proxy=no_proxy)
    assert (route_for(URL(target), row, DEFAULT) is None) is exempt


@pytest.mark.parametrize("target", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://a.localhost"])
def test_this_machine_is_reached_without_the_default_proxy(target: str) -> None:
    assert route_for(URL(target), provider(target), DEFAULT) is None
    own = route_for(URL(target), provider(target, proxy="http://own.example:1"), DEFAULT)
    assert own is not None
    assert own.url == URL("http://own.example:1")


@pytest.mark.parametrize("url", ["socks5://p.example:1", "http://", "nonsense", "http://[::1"])
def test_unusable_proxies(url: str) -> None:
    with pytest.raises(UpstreamFault) as caught:
        route_for(URL("https://vendor.example"), provider("https://vendor.example"), ProxySettings(url))
    assert caught.value.fault is TransportFault.CONNECT_FAILED


def test_credentials_stay_out_of_urls_and_reprs() -> None:
    settings = ProxySettings("http://user:pw-secret@p.example:1", "Basic topsecret")
    route = route_for(URL("https://vendor.example"), provider("https://vendor.example"), settings)
    assert route is not None
    assert str(route.url) == "http://p.example:1"
    assert route.headers["Proxy-Authorization"] == "Basic topsecret"
    assert "secret" not in repr(settings) + repr(route.url)
    assert "topsecret" not in repr(route)
