"""mitmdump as users start it: with and without a configuration, and what it answers."""

import asyncio
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from e2e.proxyprocess import ADDON, MITMDUMP, environment, mitmdump, process_with
from ports import free_port
from rawclient import ask
from rawserver import event_stream
from stage import Asker, Case, document_of, stubs, until
from wires import WIRES, C, M, R, error

DOWN = error(503, {"error": {"message": "down"}})


async def test_the_demonstration_hops_without_a_file(tmp_path: Path, confdir: Path) -> None:
    async with mitmdump(tmp_path, confdir) as proxy:
        for wire in WIRES:
            case = Case(wire)
            case.id = "demo"
            streamed = await proxy.ask(case)
            whole = await proxy.ask(case, stream=False)
            assert (streamed.status, whole.status) == (200, 200)
            assert streamed.header("content-type") == "text/event-stream"
        assert "built-in demonstration" in proxy.log
        await proxy.line(r"demo: sim-down\S* 503 → sim-up\S* 200 \(1 hop")


async def test_hops_stops_and_refusals_in_one_process(tmp_path: Path, confdir: Path) -> None:
    hops = [Case(wire, alpha=DOWN, beta=wire.answers("beta-ok")) for wire in WIRES]
    streams = [
        Case(wire, alpha=event_stream(*wire.start(), wire.busy()), beta=wire.answers("beta-ok")) for wire in WIRES
    ]
    stops = [Case(wire, alpha=error(418, {"error": {"message": "no"}}), beta=DOWN) for wire in WIRES]
    cooled = [Case(wire, alpha=DOWN) for wire in WIRES]
    all_cases = [*hops, *streams, *stops, *cooled]
    async with process_with(tmp_path, confdir, all_cases) as (proxy, _):
        for case, answer in zip([*hops, *streams], await proxy.ask_all([*hops, *streams]), strict=True):
            assert case.calls == ["alpha", "beta"]
            assert (answer.status, answer.body) == (200, b"".join(case.wire.ok("beta-ok")))
        for case, answer in zip(stops, await proxy.ask_all(stops), strict=True):
            assert case.calls == ["alpha"]
            assert (answer.status, answer.json()) == (418, {"error": {"message": "no"}})
        assert [answer.status for answer in await proxy.ask_all(cooled)] == [503] * 3
        for answer in await proxy.ask_all(cooled):
            assert answer.status == 503
            assert answer.header("retry-after") in ("59", "60")
            assert b"combo_unavailable" in answer.body
        assert [case.calls for case in cooled] == [["alpha"]] * 3
        # The log has one line for each, which names the way it took.
        for case in hops:
            await proxy.line(f"{case.id}: {case.id}-alpha/m1 503 → {case.id}-beta/m2 200 \\(1 hop")


async def test_the_proxys_own_address(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok", stream=False))
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        page = await ask(proxy.port, "GET", "/")
        assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8")
        assert b"Combos" in page.body
        empty = await ask(proxy.port, "HEAD", "/")
        assert (empty.status, empty.body) == (200, b"")
        for method, path in (("GET", "/nowhere"), ("POST", "/v1/embeddings"), ("GET", "/v1/responses/resp_1")):
            missing = await ask(proxy.port, method, path)
            assert missing.status == 404
            assert missing.json()["error"]["type"] == "invalid_request_error"
        named = await ask(proxy.port, "GET", "/nowhere", host=b"localhost:%d" % proxy.port)
        assert named.status == 404
        for wire in (R, C, M):
            asked = Case(wire)
            asked.id = "no-such"
            refused = await proxy.ask(asked)
            assert refused.status == 404
            fault = refused.json()["error"]
            assert fault["type"] in ("invalid_request_error", "not_found_error")
            assert "no-such" in fault["message"]
            if wire is not M:
                assert fault["code"] == "model_not_found"
            unknown = await proxy.ask(asked, model="no-such-model")
            assert unknown.status == 404
            assert "no-such-model" in unknown.json()["error"]["message"]
        assert (await proxy.ask(case, stream=False)).status == 200


async def test_a_file_named_by_option_and_by_variable(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    elsewhere = tmp_path / "elsewhere"
    async with process_with(elsewhere, confdir, [case]) as (_, _server):
        named = str(elsewhere / "config.json")
        async with mitmdump(tmp_path / "a", confdir, "--set", f"combos_config={named}") as by_option:
            assert b"alpha-ok" in (await by_option.ask(case)).body
        async with mitmdump(tmp_path / "b", confdir, environ={"COMBOS_CONFIG": named}) as by_variable:
            assert b"alpha-ok" in (await by_variable.ask(case)).body


async def test_mitmweb(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with stubs(case) as server:
        made, page = document_of([case], server.url, {}), free_port()
        options = ["--no-web-open-browser", "--web-port", str(page), "--set", "web_password=page-word"]
        async with mitmdump(tmp_path, confdir, *options, document=made, tool="mitmweb") as proxy:
            answer = await proxy.ask(case)
            assert (case.calls, answer.body) == (["alpha", "beta"], b"".join(R.ok("beta-ok")))
            shown = await ask(page, "GET", "/flows", headers=[(b"Authorization", b"Bearer page-word")])
            comments = [flow["comment"] for flow in shown.json()]
            assert any("→" in comment and case.id in comment for comment in comments)
            assert len(comments) == 3, "the request and its two attempts"
            assert b"alpha-key" not in shown.body


async def test_the_terminal_interface(tmp_path: Path, confdir: Path) -> None:
    """On a terminal of its own; it is left with `q` and `y`, as a user does."""
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with stubs(case) as server:
        (tmp_path / "config.json").write_text(json.dumps(document_of([case], server.url, {})))
        asker = Asker()
        asker.port = free_port()
        async with terminal(tmp_path, confdir, asker.port) as (process, keys, screen):
            await until(lambda: b"Flows" in screen, 30)
            await until(lambda: is_listening(asker.port), 30)
            answer = await asker.ask(case)
            assert (case.calls, answer.body) == (["alpha", "beta"], b"".join(R.ok("beta-ok")))
            await until(lambda: b"POST" in screen, 30)
            os.write(keys, b"qy")
            assert await asyncio.wait_for(process.wait(), 30) == 0
            assert b"Traceback" not in screen


@asynccontextmanager
async def terminal(
    home: Path, confdir: Path, port: int
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int, bytearray]]:
    """mitmproxy's terminal interface: its process, where to type, and what it has drawn."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    command = [str(MITMDUMP.with_name("mitmproxy")), "-s", str(ADDON), "-p", str(port), "--listen-host", "127.0.0.1"]
    process = await asyncio.create_subprocess_exec(
        *(*command, "--set", f"confdir={confdir}", "--set", "combos_admin_listen="),
        env={**environment(), "COMBOS_HOME": str(home), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    screen, loop = bytearray(), asyncio.get_running_loop()
    loop.add_reader(ours, lambda: screen.extend(read_terminal(ours)))
    try:
        yield process, ours, screen
    finally:
        loop.remove_reader(ours)
        os.close(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()


def read_terminal(handle: int) -> bytes:
    try:
        return os.read(handle, 65_536)
    except OSError:  # the other end is gone
        return b""


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
