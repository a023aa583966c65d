"""What a page in a browser can reach at the listener: foreign origins, rebound names, preflights, upgrades, forms."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ports import free_port
from rawclient import Answer, answer_of, request_bytes, talk
from rawserver import Pairs
from stage import Case, Stage, stage, until
from wires import R

OK = R.answers("fine", stream=False)
KNOWN = "https://known.example"


@asynccontextmanager
async def listener(confdir: Path, case: Case) -> AsyncIterator[tuple[Stage, int]]:
    """A proxy that serves models at its listener, and that port."""
    port = free_port()
    options = {"combos_admin_listen": f"127.0.0.1:{port}"}
    document = {"corsAllowOrigins": [KNOWN]}
    async with stage(confdir, case, combos_options=options, document=document) as on:
        await until(lambda: on.combos.admin_address is not None)
        yield on, port


async def asked(port: int, case: Case, fields: Pairs, method: str = "POST", path: str = "/v1/responses") -> Answer:
    body = json.dumps(R.request(case.model, stream=False)).encode() if method == "POST" else b""
    own = [] if any(name == b"Host" for name, _ in fields) else [(b"Host", b"127.0.0.1:%d" % port)]
    async with talk(port, request_bytes(method, path, [*own, *fields], body)) as started:
        return await answer_of(started, bodiless=method == "HEAD")


FOREIGN = (
    "https://evil.example", "http://evil.example:10100", "null", "https://localhost.evil.example", "file://",
    "https://127.0.0.1.evil.example", "http://[::1", "https://known.example.evil.example", "http://known.example",
    "https://evil.example/http://127.0.0.1", "https://127.0.0.1@evil.example",
)  # fmt: skip
REBOUND = (
    "evil.example", "evil.example:10100", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1@evil.example",
    "evil.example@127.0.0.1", "", "[::1", "0x7f.1.evil.example", "ocx.local.evil.example",
)  # fmt: skip


def may_read(answer: Answer) -> bool:
    return answer.header("access-control-allow-origin") is not None


async def test_pages_of_other_sites_are_refused_and_can_read_nothing(confdir: Path) -> None:
    case = Case(R, alpha=OK)
    async with listener(confdir, case) as (_, port):
        for origin in FOREIGN:
            for kind in (
                b"application/json",
                b"text/plain",
                b"application/x-www-form-urlencoded",
                b"multipart/form-data",
            ):
                fields = [(b"Origin", origin.encode()), (b"Content-Type", kind)]
                refused = await asked(port, case, fields)
                assert refused.status == 403, origin
                assert not may_read(refused)
            listed = await asked(port, case, [(b"Origin", origin.encode())], "GET", "/v1/models")
            assert not may_read(listed)
        assert case.calls == []


async def test_a_name_that_was_rebound_to_this_machine_is_not_served(confdir: Path) -> None:
    case = Case(R, alpha=OK)
    async with listener(confdir, case) as (_, port):
        for host in REBOUND:
            for path, method in (
                ("/v1/responses", "POST"),
                ("/v1/models", "GET"),
                ("/api/combos", "GET"),
                ("/", "GET"),
            ):
                answer = await asked(port, case, [(b"Host", host.encode())], method, path)
                assert answer.status in (400, 401, 403), (host, path)
                assert case.model.encode() not in answer.body
        assert case.calls == []


async def test_a_whole_address_in_the_request_line_counts_and_not_the_host_field(confdir: Path) -> None:
    case = Case(R, alpha=OK)
    async with listener(confdir, case) as (_, port):
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", f"a@127.0.0.1:{port}", "[::1"):
            refused = await asked(port, case, [], path=f"http://{host}/v1/responses")
            assert refused.status in (400, 403), host
        assert case.calls == []
        own = await asked(port, case, [(b"Host", b"evil.example")], path=f"http://127.0.0.1:{port}/v1/responses")
        assert own.status == 200


async def test_two_hosts_are_one_too_many(confdir: Path) -> None:
    case = Case(R, alpha=OK)
    async with listener(confdir, case) as (_, port):
        for hosts in ((b"127.0.0.1", b"evil.example"), (b"evil.example", b"127.0.0.1")):
            answer = await asked(port, case, [(b"Host", host) for host in hosts])
            assert answer.status in (400, 403)
        assert case.calls == []


async def test_a_preflight_tells_foreign_pages_nothing(confdir: Path) -> None:
    case = Case(R, alpha=OK)
    async with listener(confdir, case) as (_, port):
        for path in ("/v1/responses", "/v1/models", "/api/combos"):
            for origin in FOREIGN:
                fields = [
                    (b"Origin", origin.encode()),
                    (b"Access-Control-Request-Method", b"POST"),
                    (b"Access-Control-Request-Headers", b"authorization, x-combos-api-key"),
                    (b"Access-Control-Request-Private-Network", b"true"),
                ]
                answer = await asked(port, case, fields, "OPTIONS", path)
                assert not may_read(answer)
                assert answer.header("access-control-allow-private-network") is None
                assert answer.header("access-control-allow-credentials") is None
            known = await asked(port, case, [(b"Origin", KNOWN.encode()), *fields[1:]], "OPTIONS", path)
            assert (known.status, known.header("access-control-allow-origin")) == (204, KNOWN)
        assert case.calls == []


async def test_the_page_that_is_named_is_served_and_may_read(confdir: Path) -> None:
    case = Case(R, alpha=OK)
    async with listener(confdir, case) as (_, port):
        answer = await asked(port, case, [(b"Origin", KNOWN.encode())])
        assert (answer.status, answer.header("access-control-allow-origin")) == (200, KNOWN)
        assert answer.header("access-control-allow-credentials") is None


@pytest.mark.parametrize("path", ["/v1/responses", "/api/events", "/v1/realtime"])
async def test_no_upgrade_of_a_foreign_page_is_taken(path: str, confdir: Path) -> None:
    case = Case(R, alpha=OK)
    fields = [
        (b"Origin", b"https://evil.example"),
        (b"Connection", b"Upgrade"),
        (b"Upgrade", b"websocket"),
        (b"Sec-WebSocket-Version", b"13"),
        (b"Sec-WebSocket-Key", b"AAAAAAAAAAAAAAAAAAAAAA=="),
    ]
    async with listener(confdir, case) as (_, port):
        answer = await asked(port, case, fields, "GET", path)
        assert answer.status in (400, 401, 403, 404, 426)
        assert not may_read(answer)
    assert case.calls == []
