"""Which addresses are the proxy's own."""

import pytest

from combos.core.facts import TransportFault
from combos.upstream import selfloop
from combos.upstream.selfloop import OwnAddresses, is_local, numeric
from combos.upstream.session import Upstream, UpstreamSettings
from exchanges import fault_of_exchange, outbound
from rawserver import RawServer, Stall


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the interfaces 10.0.0.5 and fd00::5."""
    mine = {numeric("10.0.0.5"), numeric("fd00::5")}
    monkeypatch.setattr(selfloop, "_routes_to_itself", lambda address: address in mine)


@pytest.mark.parametrize(
    ("listening", "host", "own"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "LOCALHOST.", True),
        ("127.0.0.1", "proxy.localhost", True),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "::1", False),
        ("127.0.0.1", "10.0.0.5", False),
        ("::1", "[::1]", True),
        ("::1", "localhost", True),
        ("::1", "127.0.0.1", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("", "10.0.0.5", True),
        ("", "fd00::5", True),
        ("", "10.0.0.6", False),
        ("", "8.8.8.8", False),
        ("", "vendor.example", False),
        ("0.0.0.0", "10.0.0.5", True),
        ("0.0.0.0", "127.0.0.9", True),
        ("0.0.0.0", "fd00::5", False),
        ("::", "10.0.0.5", True),
        ("::", "fd00::5", True),
        ("10.0.0.5", "10.0.0.5", True),
        ("10.0.0.5", "127.0.0.1", False),
        ("10.0.0.5", "0.0.0.0", False),
        ("some-name", "127.0.0.1", False),
    ],
)
@pytest.mark.usefixtures("machine")
def test_own_addresses(listening: str, host: str, own: bool) -> None:
    addresses = OwnAddresses([(listening, 8080), ("127.0.0.1", 9999)])
    assert addresses.holds(host, 8080) is own
    assert addresses.holds(host, 8081) is False


def test_without_listeners_nothing_is_ours() -> None:
    assert OwnAddresses().holds("127.0.0.1", 8080) is False


def test_the_kernel_is_asked_about_interfaces() -> None:
    for text, local in (("127.0.0.1", True), ("127.3.2.1", True), ("192.0.2.1", False), ("2001:db8::1", False)):
        address = numeric(text)
        assert address is not None
        assert is_local(address) is local


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_target_that_is_the_proxy_is_refused_unconnected(host: str, scheme: str) -> None:
    async with RawServer([Stall()]) as proxy:
        upstream = Upstream(UpstreamSettings(listening=(("", proxy.port),)))
        fault = await fault_of_exchange(upstream, outbound(f"{scheme}://{host}:{proxy.port}"))
        await upstream.close()
        assert fault is not None
        assert fault.fault is TransportFault.SELF_LOOP
        assert proxy.connections == 0


async def test_a_proxy_that_is_ourselves_is_refused() -> None:
    async with RawServer([Stall()]) as proxy:
        upstream = Upstream(UpstreamSettings(listening=(("127.0.0.1", proxy.port),)))
        fault = await fault_of_exchange(upstream, outbound("https://vendor.example", proxy=proxy.url))
        await upstream.close()
        assert fault is not None
        assert fault.fault is TransportFault.SELF_LOOP
        assert proxy.connections == 0


def test_a_name_is_an_address_as_it_is_written() -> None:
    own = OwnAddresses([("models.example", 443)])
    assert own.holds("Models.Example.", 443)
    assert not own.holds("models.example", 80)
    assert not own.holds("other.example", 443)
    assert not own.holds("127.0.0.1", 443)
