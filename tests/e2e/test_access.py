"""Clients that are not this machine: who is served, and what becomes of the key they show."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.http import HTTPFlow

from ports import free_port
from rawclient import answer_of, ask, request_bytes, talk
from rawserver import Again, Expect, RawServer, Send, response
from stage import Case, stage, until
from wires import WIRES, M, R, error

DOWN = error(503, {"error": {"message": "down"}})
TOKEN = b"token-of-the-management"
KEYS = {"apiKeys": ["admission-key", {"key": "other-admission"}]}


class Elsewhere:
    """Lets every client seem to come from another machine."""

    def requestheaders(self, flow: HTTPFlow) -> None:
        flow.client_conn.peername = ("192.168.7.7", 40_000)


def cases() -> list[Case]:
    return [Case(wire, alpha=DOWN, beta=wire.answers("beta-ok")) for wire in WIRES]


async def test_strangers_are_refused_in_their_own_dialect(confdir: Path) -> None:
    made = cases()
    async with stage(confdir, *made, addons=[Elsewhere()], document=KEYS) as on:
        wrong = [(b"Authorization", b"Bearer admission-key-not")]
        for case in made:
            for answer in await asyncio.gather(on.ask(case), on.ask(case, headers=wrong)):
                assert answer.status == 403
                assert answer.json()["error"]["type"] in ("permission_error", "forbidden", "invalid_request_error")
                assert ("type" in answer.json()) == (case.wire is M)
            direct = await on.ask(case, model=f"{case.provider('beta')}/m")
            assert direct.status == 403
            assert case.calls == []
            assert b"admission-key" not in answer.body


HOLDERS: list[tuple[bytes, bytes]] = [
    (b"Authorization", b"Bearer admission-key"),
    (b"x-api-key", b"other-admission"),
    (b"x-goog-api-key", b"admission-key"),
    (b"api-key", b"admission-key"),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda pair: pair[0].decode())
async def test_holders_of_a_key_are_served_and_the_key_stays_here(holder: tuple[bytes, bytes], confdir: Path) -> None:
    made = cases()
    async with stage(confdir, *made, addons=[Elsewhere()], document=KEYS) as on:
        for case in made:
            assert b"beta-ok" in (await on.ask(case, headers=[holder])).body
            assert case.calls == ["alpha", "beta"]
            for request in case.requests:
                assert holder[1].removeprefix(b"Bearer ") not in request.head + request.body


async def test_an_admission_key_is_forwarded_to_nobody(confdir: Path) -> None:
    forward: Mapping[str, Any] = {"alpha": {"authMode": "forward", "apiKey": None}}
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"), providers=forward)
    async with stage(confdir, case, document=KEYS) as on:
        answer = await on.ask(case, headers=[(b"Authorization", b"Bearer admission-key")])
        assert b"beta-ok" in answer.body
        assert case.calls == ["beta"]


async def test_the_token_of_the_management_is_forwarded_to_nobody(
    confdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMBOS_ADMIN_TOKEN", "token-of-the-management")
    forward: Mapping[str, Any] = {"alpha": {"authMode": "forward", "apiKey": None}}
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"), providers=forward)
    port = free_port()
    async with stage(confdir, case, combos_options={"combos_admin_listen": f"127.0.0.1:{port}"}) as on:
        await until(lambda: on.combos.admin_address is not None)
        for entrance in (on.port, port):
            for name, value in ((b"Authorization", b"Bearer token-of-the-management"), (b"x-api-key", TOKEN)):
                fields = [(b"Host", b"127.0.0.1:%d" % entrance), (name, value)]
                body = json.dumps(R.request(case.model)).encode()
                async with talk(entrance, request_bytes("POST", "/v1/responses", fields, body)) as started:
                    assert b"beta-ok" in (await answer_of(started)).body
        assert set(case.calls) == {"beta"}


async def test_whom_proxyauth_admits(confdir: Path) -> None:
    made = cases()
    async with stage(confdir, *made, addons=[Elsewhere()], proxyauth="user:pass") as on:
        for case in made:
            admitted = [(b"Proxy-Authorization", b"Basic dXNlcjpwYXNz")]
            assert b"beta-ok" in (await on.ask(case, headers=admitted)).body
            for request in case.requests:
                assert request.header("proxy-authorization") is None


async def test_other_traffic_of_strangers_is_mitmproxys_business(confdir: Path) -> None:
    async with (
        RawServer([Again([Expect(), Send(response(200, b"{}"))])]) as vendor,
        stage(confdir, *cases(), addons=[Elsewhere()], document=KEYS) as on,
    ):
        host = vendor.url.removeprefix("http://").encode()
        answer = await ask(on.port, "POST", f"{vendor.url}/v1/responses", body=b'{"model":"theirs"}', host=host)
        assert (answer.status, len(vendor.requests)) == (200, 1)


async def test_pages_of_other_sites_are_refused_at_the_proxys_own_address(confdir: Path) -> None:
    made = cases()
    async with stage(confdir, *made, document={"corsAllowOrigins": ["https://trusted.example"]}) as on:
        for case in made:
            plain = [(b"Origin", b"https://evil.example"), (b"Content-Type", b"text/plain")]
            assert (await on.ask(case, headers=plain)).status == 403
            assert case.calls == []
            assert b"beta-ok" in (await on.ask(case, headers=[(b"Origin", b"https://trusted.example")])).body


async def test_a_page_whose_name_was_rebound_to_this_machine_is_not_served(confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with RawServer([Again([Expect(), Send(response(200, b"site"))])]) as site, stage(confdir, case) as on:
        port = site.url.rpartition(":")[2].encode()
        headers = [(b"Origin", b"http://rebound.localhost.example:" + port)]
        answer = await ask(
            on.port,
            "POST",
            "/v1/responses",
            headers=headers,
            body=json.dumps(case.wire.request(case.model)).encode(),
            host=b"127.0.0.1:" + port,
        )
        assert answer.body == b"site"
        assert case.calls == []
