"""Input made to exhaust the process: bombs in every coding and direction, endless lines, deep nesting, floods.

The process is a real one, so that its memory can be read. The largest amount it ever held is compared with what the
bombs would have become; the bounds are far above what is needed and far below that.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest

from combos.wire.zstd import compress as zstd
from e2e.proxyprocess import ProxyProcess, mitmdump, process_with
from ports import free_port
from rawclient import answer_of, request_bytes, talk
from rawserver import LAST_CHUNK, Send, chunk, event_head, response
from stage import Case, document_of, stubs
from wires import WIRES, C, M, R, Wire

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")

MIB = 1024 * 1024
ROOM_KB = 400 * 1024
"""Kilobytes that the process may grow by. Every bomb unfolds to more than twice that."""

ZEROS = bytes(64 * MIB)
MANY = 16


def deflated() -> bytes:
    """One stream of 1 GiB: zlib's frame cannot be repeated."""
    engine = zlib.compressobj(1)
    return b"".join([*(engine.compress(ZEROS) for _ in range(MANY)), engine.flush()])


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(ZEROS, 1) * MANY,
    "deflate": deflated,
    "br": lambda: brotli.compress(ZEROS * MANY, quality=1),
    "zstd": lambda: zstd(ZEROS, 1) * MANY,
    "gzip, gzip": lambda: gzip.compress(gzip.compress(ZEROS, 1) * MANY, 1),
    "zstd, gzip": lambda: gzip.compress(zstd(ZEROS, 1) * MANY, 1),
}


def held_kb(proxy: ProxyProcess) -> int:
    """The most memory that the process has ever held."""
    status = Path(f"/proc/{proxy.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


async def test_a_request_that_unfolds_is_refused_and_costs_little(tmp_path: Path, confdir: Path) -> None:
    case, admin = Case(R, alpha=R.answers("fine", stream=False)), free_port()
    async with stubs(case) as server:
        made = document_of([case], server.url, {"maxInboundBodyBytes": MIB})
        async with mitmdump(tmp_path, confdir, document=made, admin=f"127.0.0.1:{admin}") as proxy:
            assert (await proxy.ask(case, stream=False)).status == 200
            before = held_kb(proxy)
            for coding, make in BOMBS.items():
                bomb = make()[: MIB - 1] if coding == "deflate" else make()
                for port in (proxy.port, admin):
                    fields = [(b"Host", b"127.0.0.1:%d" % port), (b"Content-Encoding", coding.encode())]
                    async with talk(port, request_bytes("POST", "/v1/responses", fields, bomb)) as started:
                        assert (await answer_of(started)).status in (400, 413), coding
            assert held_kb(proxy) - before < ROOM_KB, held_kb(proxy) - before
            assert (await proxy.ask(case, stream=False)).status == 200
    assert case.calls == ["alpha", "alpha"]


def coded(status: int, coding: str, body: bytes, kind: bytes) -> bytes:
    return response(status, body, [(b"Content-Type", kind), (b"Content-Encoding", coding.encode())])


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "zstd, gzip"])
async def test_an_answer_that_unfolds_costs_little(coding: str, tmp_path: Path, confdir: Path) -> None:
    bomb = BOMBS[coding]()
    kinds = [(200, b"application/json"), (200, b"text/event-stream"), (500, b"application/json"), (400, b"text/html")]
    cases = [
        Case(wire, alpha=coded(status, coding, bomb, kind), beta=wire.answers("fine"))
        for wire in WIRES[:1]
        for status, kind in kinds
    ]
    calm = Case(R, alpha=R.answers("fine"))
    async with process_with(tmp_path, confdir, [*cases, calm]) as (proxy, _):
        await proxy.ask(calm)
        before = held_kb(proxy)
        for case in cases:
            await proxy.ask(case)
        assert held_kb(proxy) - before < ROOM_KB, held_kb(proxy) - before
        assert b"fine" in (await proxy.ask(calm)).body


@pytest.mark.parametrize(("wire", "begun"), [(R, False), (C, False), (M, True)], ids=["R", "C", "M after output"])
async def test_a_line_without_end_is_passed_on_and_not_held(
    wire: Wire, begun: bool, tmp_path: Path, confdir: Path
) -> None:
    first = b"".join([*wire.start(), *wire.begin_text(), wire.delta("hi")]) if begun else b": \n\n"
    endless = [Send(event_head() + chunk(first)), *(Send(chunk(b"x" * MIB)) for _ in range(110)), Send(LAST_CHUNK)]
    case = Case(wire, alpha=[endless])
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        before = held_kb(proxy)
        async with proxy.talk(case) as started:
            _, fields = await started.head()
            size = 0
            try:
                while data := await started.piece():
                    size += len(data)
            except asyncio.IncompleteReadError:
                assert dict(fields)
        assert size > 100 * MIB
        assert held_kb(proxy) - before < ROOM_KB // 4, held_kb(proxy) - before


DEEP = b'{"model":"combo/x","input":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/messages", "/v1beta/models/combo/x:generateContent")


async def test_deep_nesting_is_an_error_of_the_request(tmp_path: Path, confdir: Path) -> None:
    deep = response(200, b'{"output":' + DEEP + b"}")
    case, admin = Case(R, alpha=deep, beta=R.answers("fine", stream=False)), free_port()
    async with stubs(case) as server:
        made = document_of([case], server.url, {})
        environ = {"COMBOS_ADMIN_TOKEN": "a-token-of-the-test"}
        async with mitmdump(tmp_path, confdir, document=made, admin=f"127.0.0.1:{admin}", environ=environ) as proxy:
            for path in PATHS:
                for port in (proxy.port, admin):
                    fields = [(b"Host", b"127.0.0.1:%d" % port)]
                    async with talk(port, request_bytes("POST", path, fields, DEEP)) as started:
                        assert (await answer_of(started)).status == 400, path
            fields = [(b"Host", b"127.0.0.1:%d" % admin), (b"Authorization", b"Bearer a-token-of-the-test")]
            async with talk(admin, request_bytes("PUT", "/api/combos", fields, DEEP)) as started:
                assert (await answer_of(started)).status == 400
            assert b"fine" in (await proxy.ask(case, stream=False)).body
            (tmp_path / "config.json").write_bytes(DEEP)
            await proxy.line("nested|invalid|kept|cannot")
            assert b"fine" in (await proxy.ask(case, stream=False)).body


async def test_floods_of_fields_and_connections_leave_room_for_others(tmp_path: Path, confdir: Path) -> None:
    case, admin = Case(R, alpha=R.answers("fine", stream=False)), free_port()
    async with stubs(case) as server:
        made = document_of([case], server.url, {})
        async with mitmdump(tmp_path, confdir, document=made, admin=f"127.0.0.1:{admin}") as proxy:
            before = held_kb(proxy)
            idle = [
                await asyncio.open_connection("127.0.0.1", port) for port in (proxy.port, admin) for _ in range(100)
            ]
            for _, writer in idle:
                writer.write(b"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            for port in (proxy.port, admin):
                many = [(b"X-%d" % index, b"y" * 100) for index in range(20_000)]
                long = [(b"X-Long", b"y" * 2 * MIB)]
                for fields in (many, long):
                    own = [(b"Host", b"127.0.0.1:%d" % port), *fields]
                    body = json.dumps(R.request(case.model, stream=False)).encode()
                    async with talk(port, request_bytes("POST", "/v1/responses", own, body)) as started:
                        assert (await answer_of(started)).status in (400, 431)
            assert (await proxy.ask(case, stream=False)).status == 200
            own = [(b"Host", b"127.0.0.1:%d" % admin)]
            async with talk(admin, request_bytes("GET", "/healthz", own, b"")) as started:
                assert (await answer_of(started)).status == 200
            assert held_kb(proxy) - before < ROOM_KB, held_kb(proxy) - before
            for _, writer in idle:
                writer.close()
