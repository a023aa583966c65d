"""The management listener as the addon starts it."""

import logging
import socket
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow, tutils

from combos.mitm import management
from combos.mitm.addon import Combos
from mitm.harness import Proxy, running_proxy, settle
from ports import free_port
from stage import Configured, Deferred


class Flows:
    """What is recorded."""

    def __init__(self) -> None:
        self.seen: list[HTTPFlow] = []

    def response(self, flow: HTTPFlow) -> None:
        self.seen.append(flow)


def running(confdir: Path, addon: Combos, port: int) -> AbstractAsyncContextManager[Proxy]:
    options = {"combos_admin_listen": f"127.0.0.1:{port}"}
    return running_proxy(confdir, Deferred(options), addon, Configured(addon))


@pytest.mark.parametrize("host", ["ocx.local", "OCX.local."])
def test_the_name_leads_to_the_listener(host: str) -> None:
    flow = tflow.tflow(req=tutils.treq(host=host, port=80, scheme=b"http"))
    assert management.forward(flow, ("127.0.0.1", 10100), str)
    assert flow.request.url == "http://127.0.0.1:10100/path"
    assert flow.request.headers["host"] == "127.0.0.1:10100"


def test_an_ipv6_listener() -> None:
    flow = tflow.tflow(req=tutils.treq(host="ocx.local", port=80, scheme=b"http"))
    assert management.forward(flow, ("::1", 10100), str)
    assert flow.request.headers["host"] == "[::1]:10100"


@pytest.mark.parametrize(("host", "address"), [("ocx.local", None), ("example.com", ("127.0.0.1", 1))])
def test_other_names_and_no_listener(host: str, address: tuple[str, int] | None) -> None:
    flow = tflow.tflow(req=tutils.treq(host=host, port=80, scheme=b"http"))
    assert not management.forward(flow, address, str)
    assert flow.request.host == host


def test_a_client_elsewhere_is_not_let_through() -> None:
    flow = tflow.tflow(req=tutils.treq(host="ocx.local", port=80, scheme=b"http"))
    flow.client_conn.peername = ("192.0.2.7", 4000)
    assert not management.forward(flow, ("127.0.0.1", 10100), str)
    assert flow.request.host == "ocx.local"


async def test_health_through_the_listener_and_through_the_proxy(
    confdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMBOS_HOME", str(tmp_path))
    addon, port = Combos(), free_port()
    async with running(confdir, addon, port) as proxy:
        await settle(lambda: addon.admin_address is not None)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/healthz") as direct:
                assert (await direct.json())["status"] == "ok"
            via = f"http://127.0.0.1:{proxy.port}"
            async with session.get("http://ocx.local/healthz", proxy=via) as through:
                assert (await through.json())["port"] == port


@pytest.mark.parametrize("name", ["Authorization", "X-Combos-API-Key", "X-OpenCodex-API-Key"])
async def test_no_recorded_flow_holds_the_token(
    confdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COMBOS_HOME", str(tmp_path))
    monkeypatch.setenv("COMBOS_ADMIN_TOKEN", "canary-3f9d1c77aa")
    addon, flows, port = Combos(), Flows(), free_port()
    options = {"combos_admin_listen": f"127.0.0.1:{port}"}
    async with running_proxy(confdir, Deferred(options), addon, Configured(addon), flows) as proxy:
        await settle(lambda: addon.admin_address is not None)
        scheme = "Bearer " if name == "Authorization" else ""
        async with aiohttp.ClientSession() as session:
            for token, status in (("canary-3f9d1c77aa", 200), ("canary-3f9d1c77aa", 200), ("wrong", 401)):
                shown = {name: scheme + token}
                via = f"http://127.0.0.1:{proxy.port}"
                async with session.get("http://ocx.local/api/combos", proxy=via, headers=shown) as answer:
                    assert answer.status == status
            recorded = [flow.request.headers[name] for flow in flows.seen]
            assert len(set(recorded)) == 3
            assert "canary" not in "".join(recorded)
            for text in recorded:
                async with session.get(f"http://127.0.0.1:{port}/api/combos", headers={name: text}) as answer:
                    assert answer.status == 401


async def test_a_port_in_use_is_one_warning(
    confdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("COMBOS_HOME", str(tmp_path))
    caplog.set_level(logging.WARNING)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        addon = Combos()
        async with running(confdir, addon, port):
            await settle(lambda: "no management" in caplog.text)
            assert caplog.text.count("no management") == 1
            assert addon.admin_address is None


@pytest.mark.parametrize(("text", "mode"), [("", 0o600), ("two words", 0o600), ("ocx_admin_x", 0o644)])
async def test_a_token_that_cannot_be_trusted_is_said_at_the_start(
    confdir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    text: str,
    mode: int,
) -> None:
    token = tmp_path / "admin-api-token"
    token.write_text(text)
    token.chmod(mode)
    monkeypatch.setenv("COMBOS_HOME", str(tmp_path))
    caplog.set_level(logging.WARNING)
    addon, port = Combos(), free_port()
    async with running(confdir, addon, port):
        await settle(lambda: "management answers nobody" in caplog.text)
        assert str(token) in caplog.text
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/api/combos") as answer:
            assert answer.status == 503
    assert "ocx_admin_x" not in caplog.text


async def test_the_address_may_change_while_it_runs(
    confdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMBOS_HOME", str(tmp_path))
    addon, first, second = Combos(), free_port(), free_port()
    async with running(confdir, addon, first) as proxy:
        await settle(lambda: addon.admin_address == ("127.0.0.1", first))
        proxy.master.options.update(combos_admin_listen=f"127.0.0.1:{second}")
        await settle(lambda: addon.admin_address == ("127.0.0.1", second))
        proxy.master.options.update(combos_admin_listen="")
        await settle(lambda: addon.admin_address is None)
