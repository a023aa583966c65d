"""The lines at start-up."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from mitmproxy.test import taddons

from combos.admin.live_config import LiveConfig
from combos.mitm import announce
from combos.mitm.options import AttemptFlows, Settings
from combos.mitm.service import Service
from configs import document

SETTINGS = Settings("", None, AttemptFlows.AUTO, 0, 1, 1, 1)


async def lines(
    listening: Sequence[tuple[str, int]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_demo: bool = False,
) -> list[tuple[int, str]]:
    monkeypatch.setattr(announce, "listen_addresses", lambda: tuple(listening))
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
