"""Clients elsewhere that have the proxy ask its own listener, or itself: there they would be of this machine."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.connection import Client

from e2e.test_modes import free_ports, socks
from ports import free_port
from rawclient import Answer, Talk, answer_of, ask, request_bytes, talk
from rawserver import Again, Expect, RawServer, Send, response
from stage import Case, Stage, stage, until
from wires import C

NAMES = ["127.0.0.1", "localhost", "any.localhost", "LOCALHOST.", "127.1", "2130706433", "0x7f000001", "0.0.0.0"]
NAMES += ["inward.test", "::ffff:127.0.0.1"]
"""Ways to say where the listener is. Some mean it as they stand, others once they are resolved."""


class Elsewhere:
    """Lets every client of a port seem to come from another machine."""

    def client_connected(self, client: Client) -> None:
        client.peername = ("192.0.2.2", 40_000)


@pytest.fixture(autouse=True)
def _resolving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that says of `inward.test` what its owner wants."""
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        return real("127.0.0.1" if host in ("inward.test", b"inward.test") else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@asynccontextmanager
async def listening(
    confdir: Path, *, is_elsewhere: bool = True, **options: Any
) -> AsyncIterator[tuple[Stage, int, Case]]:
    """A proxy whose listener serves a combo, and a provider for model ids without a name before them."""
    case, port = Case(C, alpha=C.answers("alpha-ok")), options.pop("listener", 0) or free_port()
    mine: Mapping[str, Any] = {"combos_admin_listen": f"127.0.0.1:{port}"}
    addons: Sequence[object] = [Elsewhere()] if is_elsewhere else []
    async with stage(confdir, case, before=addons, combos_options=mine, **options) as on:
        await until(lambda: on.combos.admin_address is not None)
        document = json.loads(on.service.config.path.read_text())
        on.service.config.adopt({**document, "defaultProvider": case.provider("alpha")})
        yield on, port, case


def written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def request_to(port: int) -> bytes:
    """In origin form, as the listener would take it. At the port, the id alone is none of the addon's business."""
    fields = [(b"Host", b"127.0.0.1:%d" % port), (b"Content-Type", b"application/json")]
    return request_bytes("POST", C.path, fields, json.dumps(C.request("m1")).encode())


async def is_served(raw: Talk) -> bool:
    """Whether what comes next on the connection is a good answer; its end is none."""
    try:
        return (await raw.head())[0] == 200
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


@asynccontextmanager
async def connected(through: int, place: str) -> AsyncIterator[tuple[Talk, int]]:
    """A tunnel that was asked for, and the status of the answer."""
    async with talk(through, f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()) as raw:
        yield raw, (await raw.head())[0]


async def forwarded(through: int, place: str, method: str, path: str, body: bytes = b"") -> Answer:
    return await ask(through, method, f"http://{place}{path}", body=body, host=place.encode())


@pytest.mark.parametrize("host", NAMES)
async def test_no_stranger_is_relayed_to_the_listener(confdir: Path, host: str) -> None:
    """By a plain request, in a tunnel, and in a tunnel whose content is not taken for HTTP."""
    async with listening(confdir) as (on, port, case):
        place = written(host, port)
        bare = json.dumps(C.request("m1")).encode()
        for method, path, body in (("POST", C.path, bare), ("GET", "/v1/models", b""), ("GET", "/healthz", b"")):
            answer = await forwarded(on.port, place, method, path, body)
            assert answer.status in (403, 502)
            assert b"combo" not in answer.body.replace(b"combos", b"")
        for lead in (b"", b"\r\n"):
            async with connected(on.port, place) as (raw, status):
                assert status in (200, 403)
                if status == 200:
                    raw.writer.write(lead + request_to(port))
                    assert not await is_served(raw)
        assert case.calls == []


async def test_what_is_refused_says_so_in_its_own_dialect(confdir: Path) -> None:
    async with listening(confdir) as (on, port, _):
        place = written("127.0.0.1", port)
        asked = await forwarded(on.port, place, "POST", "/v1/messages", b'{"model":"m1"}')
        assert (asked.status, asked.json()["type"], asked.json()["error"]["type"]) == (403, "error", "permission_error")
        async with connected(on.port, place) as (_raw, status):
            assert status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "inward.test", "127.1"])
async def test_no_stranger_is_relayed_by_socks(confdir: Path, host: str) -> None:
    async with listening(confdir, mode=["socks5"]) as (on, port, case):
        for lead in (b"", b"\r\n"):
            async with socks(on.port, host, port) as raw:
                raw.writer.write(lead + request_to(port))
                assert not await is_served(raw)
        assert case.calls == []


REDIRECTED = [
    ("transparent", b""),
    ("transparent", b"\r\n"),
    ("reverse:http://127.0.0.1:{}", b""),
    ("reverse:tcp://localhost:{}", b""),
]


@pytest.mark.parametrize(("mode", "lead"), REDIRECTED)
async def test_no_stranger_is_relayed_where_connections_are_redirected(
    confdir: Path, monkeypatch: pytest.MonkeyPatch, mode: str, lead: bytes
) -> None:
    """Transparent mode, and a reverse proxy for the listener."""
    port = free_port()
    monkeypatch.setattr("mitmproxy.platform.original_addr", lambda _socket: ("127.0.0.1", port))
    async with listening(confdir, mode=[mode.format(port)], listener=port) as (on, _, case):
        async with talk(on.port, lead + request_to(port)) as raw:
            assert not await is_served(raw)
        assert case.calls == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "inward.test", "127.1", "0.0.0.0"])
async def test_no_stranger_is_relayed_to_the_proxy_itself(confdir: Path, host: str) -> None:
    """From where it would be relayed once more, as a client of this machine."""
    async with listening(confdir) as (on, _, case):
        async with connected(on.port, written(host, on.port)) as (raw, status):
            assert status == 200  # TLS may follow, for a client whose base URL this is
            raw.writer.write(b"\r\n" + request_to(on.port))
            assert not await is_served(raw)
        assert case.calls == []
        first, second = free_ports(2)
    modes = [f"regular@127.0.0.1:{first}", f"socks5@127.0.0.1:{second}"]
    async with listening(confdir, mode=modes) as (_, _port, case):
        async with socks(second, host, first) as raw:
            raw.writer.write(b"\r\n" + request_to(first))
            assert not await is_served(raw)
        assert case.calls == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "inward.test", "127.1"])
async def test_no_stranger_is_relayed_over_a_further_proxy(confdir: Path, host: str) -> None:
    """It may be on this machine, and would connect to whatever it is told."""
    async with (
        RawServer([Again([Expect(), Send(response(200, b"relayed"))])]) as further,
        listening(confdir, mode=[f"upstream:{further.url}"]) as (on, port, case),
    ):
        place = written(host, port)
        answer = await forwarded(on.port, place, "POST", C.path, json.dumps(C.request("m1")).encode())
        assert answer.status == 403
        for guarded in (port, on.port):
            async with connected(on.port, written(host, guarded)) as (_raw, status):
                assert status == 403
        assert (await forwarded(on.port, "vendor.test", "GET", "/")).body == b"relayed"
        assert (case.calls, len(further.requests)) == ([], 1)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "inward.test"])
async def test_clients_of_this_machine_are_relayed(confdir: Path, host: str) -> None:
    async with listening(confdir, is_elsewhere=False) as (on, port, case):
        place = written(host, port)
        assert (await forwarded(on.port, f"127.0.0.1:{port}", "GET", "/healthz")).status == 200
        async with connected(on.port, place) as (raw, status):
            assert status == 200
            raw.writer.write(b"\r\n" + request_to(port))
            assert (await answer_of(raw)).status == 200
        assert case.calls == ["alpha"]


async def test_whom_proxyauth_admits_is_relayed(confdir: Path) -> None:
    login = [(b"Proxy-Authorization", b"Basic dXNlcjpwYXNz")]
    async with listening(confdir, proxyauth="user:pass") as (on, port, _):
        place = written("127.0.0.1", port)
        direct = await ask(on.port, "GET", f"http://{place}/healthz", headers=login, host=place.encode())
        assert direct.status == 200
        head = f"CONNECT {place} HTTP/1.1\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n".encode()
        async with talk(on.port, head) as raw:
            assert (await raw.head())[0] == 200
            raw.writer.write(request_bytes("GET", "/healthz", [(b"Host", place.encode())], b""))
            assert (await answer_of(raw)).status == 200


async def test_combos_are_added_to_vendors_lists_for_admitted_clients_only(confdir: Path) -> None:
    theirs = response(200, b'{"object":"list","data":[{"id":"gpt-5.5"}]}', [(b"Content-Type", b"application/json")])
    for is_elsewhere in (True, False):
        async with (
            RawServer([Again([Expect(), Send(theirs)])]) as vendor,
            listening(confdir, is_elsewhere=is_elsewhere) as (on, _, case),
        ):
            document = json.loads(on.service.config.path.read_text())
            document["providers"][case.provider("alpha")]["baseUrl"] = f"{vendor.url}/v1"
            on.service.config.adopt(document)
            listed = await forwarded(on.port, vendor.url.removeprefix("http://"), "GET", "/v1/models")
            assert (case.model.encode() in listed.body) is not is_elsewhere
