"""The commands that ask a running proxy, against the real management API on a real port."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from adminstage import Stage, stage
from combos.admin.runtime_file import RuntimeFile
from combos.cli.main import main
from combos.core.facts import Cooldown, Scope, Verdict
from combos.engine.state import PickedFrom
from configs import TARGET, document, provider


class Running:
    """A management API in a thread of its own."""

    def __init__(self, path: Path, made: Any) -> None:
        self.path = path
        self.stage: Stage | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(made)))
        self._thread.start()
        assert self._started.wait(10)

    async def _serve(self, made: Any) -> None:
        async with stage(self.path, made, environ={}) as self.stage:
            await self.stage.server.start("127.0.0.1", 0)
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            self._started.set()
            await self._stop.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def cool(self, combo: str, ms: int) -> None:
        assert self.stage is not None
        found = self.stage.live.registry.combos[combo]
        origin = PickedFrom(found, self.stage.live.registry.generation)
        verdict, cooldown = Verdict("rate_limited", hop=True, scope=Scope.TARGET), Cooldown(ms, "retry-after")
        self.stage.state.cool(origin, found.targets[0], verdict, cooldown, 429, self.stage.now[0])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = document(
        providers={"alpha": provider(apiKey="k"), "beta": provider(apiKey="k")},
        combos={"main": {"targets": [TARGET, {"provider": "beta", "model": "m2"}]}},
    )
    found = Running(tmp_path / "config.json", made)
    yield found
    found.close()


def ocx(path: Path, *arguments: str, **variables: str) -> Result:
    environ = {"COMBOS_CONFIG": str(path), "http_proxy": "http://127.0.0.1:9", "COMBOS_ADMIN_TOKEN": None, **variables}
    return CliRunner().invoke(main, list(arguments), env=environ, prog_name="ocx")


def test_health_and_readiness(running: Running) -> None:
    done = ocx(running.path, "health")
    assert done.exit_code == 0
    assert done.stdout.startswith("ok  http://127.0.0.1:")
    assert json.loads(ocx(running.path, "health", "--json").stdout)["service"] == "combos"
    assert ocx(running.path, "ready").stdout == "ready  1 combo\n"
    assert json.loads(ocx(running.path, "ready", "--wait", "--json").stdout)["ready"] is True


def test_state_and_cooldowns(running: Running) -> None:
    assert ocx(running.path, "cooldowns").stderr == "No target is cooling.\n"
    running.cool("main", 30_000)
    assert ocx(running.path, "cooldowns").stdout == "main  alpha/m1  30.0 s  rate_limited  retry-after\n"
    (row,) = json.loads(ocx(running.path, "cooldowns", "--json").stdout)["cooldowns"]
    assert (row["target"], row["leftMs"], row["until"]) == ("alpha/m1", 30_000, 1_700_000_030_000)
    assert ocx(running.path, "state").stdout.splitlines() == [
        "main  alpha/m1   cooling 30.0 s (rate_limited by retry-after)  0",
        "main  → beta/m2  ready                                         0",
    ]
    assert json.loads(ocx(running.path, "state", "main", "--json").stdout)["combos"][0]["next"] == "beta/m2"
    done = ocx(running.path, "state", "mian")
    assert (done.exit_code, done.stderr) == (1, 'Error: unknown combo: mian; did you mean "main"?\n')
    assert ocx(running.path, "cooldowns", "clear", "--target", "beta/m2").stderr == "0 cooldowns cleared.\n"
    assert ocx(running.path, "cooldowns", "clear", "--combo", "main", "--json").stdout == (
        '{"success": true, "cleared": 1}\n'
    )


def test_explain_asks_the_running_proxy(running: Running) -> None:
    running.cool("main", 30_000)
    done = ocx(running.path, "explain", "main")
    assert done.stdout.splitlines() == [
        "combo/main: failover",
        "  alpha/m1: cooling 30.0 s (rate_limited by retry-after)",
        "  beta/m2: ready",
        "  next request: beta/m2",
    ]
    assert done.stderr == ""
    assert json.loads(ocx(running.path, "explain", "main", "--json").stdout)["source"] == "live"
    done = ocx(running.path, "explain", "main", "--offline")
    assert "next request: alpha/m1, then beta/m2" in done.stdout
    done = ocx(running.path, "explain", "nope")
    assert (done.exit_code, done.stderr) == (1, "Error: unknown combo: nope\nTry: ocx combo list\n")


def test_explain_knows_a_combo_that_the_running_proxy_has_not_read_yet(running: Running) -> None:
    made = json.loads(running.path.read_text())
    made["combos"]["new"] = made["combos"]["main"]
    running.path.write_text(json.dumps(made))
    done = ocx(running.path, "explain", "new")
    assert done.stdout.startswith("combo/new: failover\n")
    assert "From the file" in done.stderr
    assert json.loads(ocx(running.path, "explain", "new", "--json").stdout)["source"] == "file"


def test_a_provider_is_tested_by_the_running_proxy(running: Running) -> None:
    done = ocx(running.path, "provider", "test", "alpha", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == "connection_refused: connection refused"
    assert done.stderr == "Error: alpha: connection_refused: connection refused\n"


def test_another_token_is_another_proxy(running: Running) -> None:
    token = running.path.parent / "admin-api-token"
    token.write_text("ocx_admin_other")
    done = ocx(running.path, "state")
    takes = f"Error: the proxy at {_url(running)} takes another admin token than that of "
    assert (done.exit_code, done.stderr) == (1, f"{takes}{token}\n")
    done = ocx(running.path, "cooldowns", COMBOS_ADMIN_TOKEN="canary")
    assert (done.exit_code, done.stderr) == (1, f"{takes}COMBOS_ADMIN_TOKEN\n")
    assert "From the file" in ocx(running.path, "explain", "main").stderr


def _url(running: Running) -> str:
    assert running.stage is not None
    host, port = running.stage.server.address or ("", 0)
    return f"http://{host}:{port}"


@pytest.mark.parametrize(("text", "fault"), [(None, "is gone"), ("{", "is not valid")])
def test_why_the_file_is_not_in_force_is_said(running: Running, text: str | None, fault: str) -> None:
    assert running.stage is not None
    running.path.unlink() if text is None else running.path.write_text(text)
    running.stage.live.reload()
    done = ocx(running.path, "ready")
    assert done.stdout == f"ready  1 combo  (the file {fault}; the last good configuration is in force)\n"


def test_nobody_answers(tmp_path: Path) -> None:
    file = RuntimeFile(tmp_path)
    file.write("127.0.0.1", 1)
    for command in (["health"], ["ready"], ["ready", "--wait", "--timeout", "0.3"]):
        done = ocx(tmp_path / "config.json", *command)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "http://127.0.0.1:1 does not answer: Connection refused" in done.stderr
        assert done.stderr.endswith("Try: ocx run\n")
    file.remove()


def test_where_no_proxy_runs_every_command_says_so_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for command in ASKING:
        assert f"no proxy is running for {path}\nTry: ocx run\n" in ocx(path, *command).stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"port": "x", "hostname": "h"}'])
def test_an_odd_runtime_file_is_as_none(tmp_path: Path, text: str) -> None:
    file = RuntimeFile(tmp_path)
    file.write("127.0.0.1", 1)
    file.path.write_text(text)
    assert "no proxy is running" in ocx(tmp_path / "config.json", "state").stderr
    file.remove()


def test_a_provider_is_tested_from_here_when_no_proxy_runs(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    row = provider(baseUrl="http://127.0.0.1:1/v1", allowPrivateNetwork=True, authMode="local")
    path.write_text(json.dumps(document(providers={"alpha": row, "beta": provider()})))
    done = ocx(path, "provider", "test", "alpha")
    assert done.exit_code == 1
    assert "refused" in done.stderr
    done = ocx(path, "provider", "test", "beta")
    assert "no credentials" in done.stderr


ASKING = (["health"], ["ready"], ["state"], ["cooldowns"], ["cooldowns", "clear"])


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://x", "https://127.0.0.1:1", "http://h:abc", "http://[::1", "http://a b"]
)
def test_a_variable_that_holds_no_address(running: Running, url: str) -> None:
    for command in ASKING:
        done = ocx(running.path, *command, COMBOS_ADMIN_URL=url)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "COMBOS_ADMIN_URL must be an address such as http://127.0.0.1:10100" in done.stderr


class Foreign:
    """Something else on the port: one answer for every connection, and what it was sent."""

    def __init__(self, answer: bytes) -> None:
        self.heard: list[bytes] = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            client, _ = self._socket.accept()
            with client:
                heard = client.recv(65_536)
                if not heard:
                    return
                self.heard.append(heard)
                client.sendall(self._answer)

    def close(self) -> None:
        socket.create_connection(self._socket.getsockname()).close()
        self._thread.join()
        self._socket.close()


@pytest.mark.parametrize(
    "command",
    [
        ["state"],
        ["cooldowns"],
        ["cooldowns", "clear"],
        ["explain", "main"],
        ["dashboard", "--print"],
        ["provider", "test", "alpha"],
        ["provider", "quota"],
    ],
)
def test_after_a_crash_whoever_has_the_port_is_not_shown_the_token(tmp_path: Path, command: list[str]) -> None:
    """The file of a killed proxy still names its port."""
    (tmp_path / "admin-api-token").touch(0o600)
    (tmp_path / "admin-api-token").write_text("ocx_admin_x")
    (tmp_path / "config.json").write_text(json.dumps(document()))
    foreign = Foreign(b"HTTP/1.1 200 OK\r\nServer: combos\r\nConnection: close\r\n\r\n{}")
    port = int(foreign.url.rpartition(":")[2])
    (tmp_path / "runtime-port.json").write_text(json.dumps({"pid": 1, "port": port, "hostname": "127.0.0.1"}))
    try:
        done = ocx(tmp_path / "config.json", *command)
        assert "ocx_admin_x" not in done.output
        assert foreign.heard == []
    finally:
        foreign.close()


@pytest.mark.parametrize(
    ("head", "body", "says"),
    [
        ("HTTP/1.1 200 OK", "{}", "is not the management API"),
        ("HTTP/1.1 200 OK\r\nServer: nginx", '{"combos": [], "status": "ok"}', "is not the management API"),
        ("HTTP/1.1 200 OK\r\nServer: combos", "<html>", "does not answer"),
        ("HTTP/1.1 302 Found\r\nLocation: {other}/x", "", "status 302"),
        ("HTTP/1.1 500 Oh", "<html>", "status 500"),
        ("SSH-2.0-OpenSSH", "", "does not answer"),
    ],
)
def test_something_else_answers(tmp_path: Path, head: str, body: str, says: str) -> None:
    (tmp_path / "admin-api-token").touch(0o600)
    (tmp_path / "admin-api-token").write_text("ocx_admin_x")
    other = Foreign(b"HTTP/1.1 200 OK\r\nServer: combos\r\nConnection: close\r\n\r\n{}")
    answer = f"{head}\r\nConnection: close\r\n\r\n{body}".replace("{other}", other.url)
    foreign = Foreign(answer.encode())
    try:
        for command in ASKING:
            done = ocx(tmp_path / "config.json", *command, COMBOS_ADMIN_URL=foreign.url)
            assert (done.exit_code, done.stdout) == (1, "")
            assert says in done.stderr
        assert (len(foreign.heard), other.heard) == (len(ASKING), [])
    finally:
        foreign.close()
        other.close()
