"""Destinations after names are resolved: which answers are refused, and that nothing connects before."""

import asyncio
import socket

import pytest

from combos.core.facts import TransportFault
from combos.upstream.destination import Guard
from combos.upstream.faults import UpstreamFault
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.session import Upstream, UpstreamSettings
from exchanges import exchange, fault_of_exchange, outbound
from rawserver import Again, Expect, RawServer, Send, response

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and what they resolve to; other names do not exist. `lookups` of the loop are counted under ''."""
    table: dict[str, list[str]] = {"": []}

    async def getaddrinfo(host: str, port: int, **keywords: object) -> list[object]:
        table[""].append(host)
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in table[host]
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return table


async def refusal(upstream: Upstream, url: str, **fields: object) -> UpstreamFault:
    fault = await fault_of_exchange(upstream, outbound(url, **fields))
    assert fault is not None
    return fault


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.1.1", "fe80::1", "0.0.0.0", "fd00:ec2::254"])
@pytest.mark.parametrize("allowed", [True, False])
async def test_never_allowed(upstream: Upstream, names: dict[str, list[str]], address: str, allowed: bool) -> None:
    names["vendor.example"] = [address]
    fault = await refusal(upstream, "http://vendor.example", allow_private_network=allowed)
    assert fault.fault is TransportFault.CONNECT_FAILED
    assert "never allowed" in fault.detail


PRIVATE = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("address", PRIVATE)
async def test_private_without_permission(upstream: Upstream, names: dict[str, list[str]], address: str) -> None:
    names["vendor.example"] = [address]
    fault = await refusal(upstream, "http://vendor.example", allow_private_network=False)
    assert fault.fault is TransportFault.CONNECT_FAILED
    assert "needs allowPrivateNetwork" in fault.detail


async def test_one_bad_answer_spoils_all(upstream: Upstream, names: dict[str, list[str]]) -> None:
    async with RawServer(SERVE) as server:
        names["vendor.example"] = ["127.0.0.1", "169.254.169.254"]
        fault = await refusal(upstream, f"http://vendor.example:{server.port}")
        assert fault.fault is TransportFault.CONNECT_FAILED
        assert server.connections == 0


async def test_literals_are_judged_without_resolving(upstream: Upstream, names: dict[str, list[str]]) -> None:
    async with RawServer(SERVE) as server:
        assert (await refusal(upstream, server.url, allow_private_network=False)).fault is TransportFault.CONNECT_FAILED
        assert (await refusal(upstream, "http://metadata.google.internal")).fault is TransportFault.CONNECT_FAILED
        assert server.connections == 0
        assert names[""] == []


async def test_the_connection_goes_to_the_checked_address_and_is_remembered(
    upstream: Upstream, names: dict[str, list[str]]
) -> None:
    async with RawServer(SERVE) as server:
        names["vendor.example"] = ["127.0.0.1"]
        request = outbound(f"http://vendor.example:{server.port}")
        await exchange(upstream, request)
        names["vendor.example"] = ["169.254.169.254"]
        await exchange(upstream, request)
        assert names[""] == ["vendor.example"]
        assert server.requests[0].header("host") == f"vendor.example:{server.port}"


async def test_a_pooled_connection_lends_no_permission(upstream: Upstream, names: dict[str, list[str]]) -> None:
    async with RawServer(SERVE) as server:
        names["vendor.example"] = ["127.0.0.1"]
        url = f"http://vendor.example:{server.port}"
        await exchange(upstream, outbound(url))
        fault = await refusal(upstream, url, allow_private_network=False)
        assert fault.fault is TransportFault.CONNECT_FAILED
        assert len(server.requests) == 1


async def test_a_name_of_the_proxy_itself(names: dict[str, list[str]]) -> None:
    async with RawServer(SERVE) as proxy:
        upstream = Upstream(UpstreamSettings(listening=(("127.0.0.1", proxy.port),)))
        names["me.example"] = ["127.0.0.1"]
        fault = await refusal(upstream, f"http://me.example:{proxy.port}")
        assert fault.fault is TransportFault.SELF_LOOP
        assert (await refusal(upstream, "http://a.example", proxy=f"http://me.example:{proxy.port}")).fault is (
            TransportFault.SELF_LOOP
        )
        await upstream.close()
        assert proxy.connections == 0


async def test_unresolved_names(upstream: Upstream, names: dict[str, list[str]]) -> None:
    assert (await refusal(upstream, "http://nobody.example")).fault is TransportFault.DNS


async def test_simultaneous_lookups_share_their_refusal(upstream: Upstream, names: dict[str, list[str]]) -> None:
    names["vendor.example"] = ["169.254.169.254"]
    faults = await asyncio.gather(*(refusal(upstream, "http://vendor.example") for _ in range(5)))
    assert {fault.fault for fault in faults} == {TransportFault.CONNECT_FAILED}


def test_public_addresses_and_names_pass() -> None:
    guard = Guard(OwnAddresses([("", 8080)]))
    for host in ("8.8.8.8", "2606:4700::1111", "vendor.example"):
        guard.admit(host, 443, allow_private=False)


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("10.1.2.3", True),
        ("192.168.0.9", True),
        ("fd12::1", True),
        ("8.8.8.8", False),
        ("vendor.example", False),
        ("100.64.0.1", False),
        ("192.0.2.1", False),
        ("169.254.1.1", False),
    ],
)
def test_without_tls_a_decision_service_is_near(host: str, admitted: bool) -> None:
    guard = Guard(OwnAddresses())
    if admitted:
        guard.admit(host, 80, allow_private=True, only_private=True)
        with pytest.raises(UpstreamFault, match="allowPrivateNetwork"):
            guard.admit(host, 80, allow_private=False, only_private=True)
    else:
        with pytest.raises(UpstreamFault, match="refused"):
            guard.admit(host, 80, allow_private=True, only_private=True)
