"""The lines at start-up."""

import logging
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import taddons

from combos.admin.live_config import LiveConfig
from combos.mitm import announce
from combos.mitm.internals import listening_modes
from combos.mitm.options import AttemptFlows, Settings
from combos.mitm.service import Service
from configs import document
from mitm.harness import running_proxy

SETTINGS = Settings("", None, AttemptFlows.AUTO, 0, 1, 1, 1)


async def lines(
    listening: Sequence[tuple[str, int] | None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_demo: bool = False,
    mode: str = "regular",
) -> list[tuple[int, str]]:
    modes = tuple((ProxyMode.parse(mode), address) for address in listening)
    monkeypatch.setattr(announce, "listening_modes", lambda: modes)
    caplog.set_level(logging.INFO)
    config = LiveConfig(Path("/somewhere/config.json"))
    config.adopt(document())
    with taddons.context(loadcore=True):
        service = Service(config, SETTINGS)
        announce.started(service, is_demo=is_demo)
        await service.upstream.close()
    return [(record.levelno, record.getMessage()) for record in caplog.records if "combos" in record.getMessage()]


async def test_what_is_served_and_where(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await lines([("127.0.0.1", 8080)], caplog, monkeypatch)
    texts = [text for _, text in found]
    assert texts[0] == "combos: serving combo/main from /somewhere/config.json"
    assert any("http://127.0.0.1:8080/v1" in text for text in texts)
    assert any("mitmproxy-ca-cert.pem" in text for text in texts)
    assert not [text for level, text in found if level >= logging.WARNING]


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.1.2"])
async def test_exposure_is_a_warning(
    host: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await lines([(host, 8080)], caplog, monkeypatch)
    (warning,) = [text for level, text in found if level == logging.WARNING]
    assert "beyond this machine" in warning
    assert "apiKeys" in warning
    shown = host if host == "192.168.1.2" else "127.0.0.1"
    assert any(f"http://{shown}:8080/v1" in text for _, text in found)


async def test_an_ipv6_address_is_written_as_in_a_url(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await lines([("::1", 8080)], caplog, monkeypatch)
    assert any("http://[::1]:8080/v1" in text for _, text in found)
    assert not [text for level, text in found if level >= logging.WARNING]


async def test_the_demonstration_says_what_it_is(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await lines([("127.0.0.1", 8080)], caplog, monkeypatch, is_demo=True)
    assert "built-in demonstration" in found[0][1]


BASE_URL, PROXY, SOCKS, OTHER = "base URL http://", "HTTPS_PROXY=http://", "ALL_PROXY=socks5h://", "vendors' hosts"
WAYS = {
    "regular": [BASE_URL, PROXY],
    "upstream:http://192.0.2.1:3128": [BASE_URL, PROXY],
    "reverse:https://api.openai.test": [BASE_URL],
    "reverse:tcp://192.0.2.1:5432": [],
    "reverse:dns://192.0.2.1:53": [],
    "socks5": [SOCKS],
    "transparent": [OTHER],
    "wireguard": [OTHER],
    "local": [OTHER],
    "local:curl": [OTHER],
    "tun": [OTHER],
    "dns": [],
}
NO_PORT = ("local", "tun")


@pytest.mark.parametrize(("mode", "expected"), WAYS.items())
async def test_each_mode_says_how_its_clients_come(
    mode: str, expected: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = None if mode.startswith(NO_PORT) else ("127.0.0.1", 8080)
    found = await lines([address], caplog, monkeypatch, mode=mode)
    told = [text for _, text in found[1:]]
    assert [way for text in told for way in (BASE_URL, PROXY, SOCKS, OTHER) if way in text] == expected
    assert len(told) == len(expected)
    assert all("127.0.0.1:8080" in text for text in told if address is not None)
    assert all(BASE_URL in text or "mitmproxy-ca-cert.pem" in text for text in told)


def test_every_mode_is_known() -> None:
    """One that mitmproxy adds is to have a line, or to be known as one that serves no models."""
    offered = set(ProxyMode._ProxyMode__types) - {"osproxy"}  # type: ignore[attr-defined]
    assert offered == {mode.partition(":")[0] for mode in WAYS}


async def test_several_modes_are_all_announced(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await lines([("127.0.0.1", 8080), ("127.0.0.1", 8081)], caplog, monkeypatch, mode="socks5")
    assert [text for _, text in found if "socks5h://127.0.0.1:8081" in text]
    assert [text for _, text in found if "socks5h://127.0.0.1:8080" in text]


@pytest.mark.parametrize("mode", ["wireguard", "dns"])
async def test_what_offers_combos_to_nobody_unknown_is_no_exposure(
    mode: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await lines([("0.0.0.0", 51_820)], caplog, monkeypatch, mode=mode)
    assert not [text for level, text in found if level >= logging.WARNING]


async def test_modes_are_found_where_they_listen(confdir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        second = probe.getsockname()[1]
    async with running_proxy(confdir, mode=["regular", f"socks5@127.0.0.1:{second}"]) as proxy:
        first, other = listening_modes()
        assert (first[0].type_name, first[1]) == ("regular", ("127.0.0.1", proxy.port))
        assert (other[0].type_name, other[1]) == ("socks5", ("127.0.0.1", second))
