"""What the checks of all clients share: the proxy with its providers, a client's run, and the report."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cells import DIALECTS

from upstream import Script, Step, Upstream

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv" / "bin"
CLIENTS = ROOT / ".venv" / "clients" / "node_modules" / ".bin"
_LISTENING = re.compile(r"proxy listening at \S*?:(\d+)")
_BAD = ("Traceback", "Addon error", "The response of flow")
LIMIT_S = 180


class CheckError(AssertionError):
    """A check found something wrong; the text says what."""


def expect(condition: object, text: str) -> None:
    """Fail the check with this text unless the condition holds."""
    if not condition:
        raise CheckError(text)


@dataclass
class Ran:
    """A client that has ended."""

    status: int
    out: str
    err: str

    @property
    def tail(self) -> str:
        """The end of what it said, for a message."""
        return " | ".join(f"{self.out}\n{self.err}".strip().splitlines()[-4:])[-600:]


@dataclass
class Stage:
    """The running proxy, for the checks of one client. `folder` is theirs and goes away afterwards.

    `tools_only`: the client also asks for titles, without tools, and those are no steps of a script.
    """

    dialect: str
    folder: Path
    upstream: Upstream
    tools_only: bool = False
    combos: dict[str, Any] = field(default_factory=dict)
    providers: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    management_port: int = 0

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self.log: list[str] = []

    @property
    def config(self) -> Path:
        """The configuration file of the proxy."""
        return self.folder / "config.json"

    @property
    def ca(self) -> Path:
        """The certificate authority of the proxy."""
        return self.folder / "mitmproxy" / "mitmproxy-ca-cert.pem"

    def combo(self, combo_id: str, *scripts: Sequence[Step], dialect: str = "", **fields: Any) -> str:
        """Add a combo with one provider for each script; gives `combo/<id>`. Only before the proxy starts."""
        adapter = DIALECTS[dialect or self.dialect]
        names = [f"{combo_id}-{letter}" for letter, _ in zip("abc", scripts, strict=False)]
        for name, script in zip(names, scripts, strict=True):
            self.upstream.scripts[name] = Script(script, self.tools_only)
            base = f"{self.upstream.url}/{name}/v1"
            row = {"adapter": adapter, "baseUrl": base, "apiKey": f"{name}-key", "allowPrivateNetwork": True}
            self.providers[name] = {**row, "liveModels": False, "contextWindow": 200_000}
        self.combos[combo_id] = {"targets": [{"provider": name, "model": "m1"} for name in names], **fields}
        return f"combo/{combo_id}"

    def calls(self, combo_id: str) -> str:
        """Which providers of a combo were asked, in order, as letters."""
        names = [target["provider"] for target in self.combos[combo_id]["targets"]]
        return "".join(request.name[-1] for request in self.upstream.of(*names))

    def bodies(self, combo_id: str) -> list[dict[str, Any]]:
        """What the providers of a combo were sent, in order."""
        names = [target["provider"] for target in self.combos[combo_id]["targets"]]
        return [request.body for request in self.upstream.of(*names)]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the proxy as a user does, and stop it."""
        self.config.write_text(json.dumps({"providers": self.providers, "combos": self.combos}))
        self.management_port = free_port()
        listen = f"127.0.0.1:{self.management_port}"
        options = {"confdir": self.folder / "mitmproxy", "combos_config": self.config, "combos_admin_listen": listen}
        scripts = ["-s", Path(__file__).with_name("world.py"), "-s", ROOT / "addon" / "main.py"]
        command = [BIN / "mitmdump", "-p", "0", "--listen-host", "127.0.0.1", *scripts]
        for name, value in {**options, "world_log": self.folder / "world.jsonl"}.items():
            command += ["--set", f"{name}={value}"]
        environ = {**os.environ, "COMBOS_HOME": str(self.folder), "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            [str(word) for word in command], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            threading.Thread(target=self._read, args=(process,), daemon=True).start()
            try:
                self._wait_for_start(process)
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(LIMIT_S)
        bad = [line for line in self.log if any(word in line for word in _BAD)]
        expect(not bad, "the proxy failed:\n" + "\n".join(self.log[-40:]))

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.log.append(line.rstrip())

    def _wait_for_start(self, process: subprocess.Popen[str]) -> None:
        for _ in range(LIMIT_S * 20):
            found = _LISTENING.search("\n".join(self.log))
            if found and any("combos: serving" in line for line in self.log):
                self.port = int(found[1])
                return
            expect(process.poll() is None, "the proxy ended:\n" + "\n".join(self.log))
            time.sleep(0.05)
        raise CheckError("the proxy did not start")

    def home(self) -> Path:
        """A new home folder for one run of a client."""
        made = self.folder / f"home-{next(self._numbers)}"
        (made / "work").mkdir(parents=True)
        return made

    def world(self) -> list[dict[str, Any]]:
        """What has passed through the proxy so far."""
        log = self.folder / "world.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def environ(self, home: Path, ca_name: str) -> dict[str, str]:
        """The environment of a client that uses the proxy for everything, and trusts it."""
        address = f"http://127.0.0.1:{self.port}"
        proxies = {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": "127.0.0.1,localhost"}
        return {"HOME": str(home), "PATH": os.environ["PATH"], ca_name: str(self.ca), **proxies}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def run_client(
    command: Sequence[object], home: Path, environ: Mapping[str, str], typed: str = "", limit_s: int = LIMIT_S
) -> Ran:
    """Run a client to its end, with this as its standard input."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=home / "work",
            env=dict(environ),
            input=typed,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as slow:
        raise CheckError(f"{Path(words[0]).name} did not end within {limit_s} s: {slow.stderr!r:.600}") from slow
    return Ran(done.returncode, done.stdout, done.stderr)


type Check = Callable[[Stage], None]


def run_checks(client: str, dialect: str, prepare: Callable[[Stage], None], checks: Sequence[Check]) -> int:
    """Run the checks of a client, one line each. Gives the exit status: 0, or 1 if one failed."""
    if not (CLIENTS / client).exists():
        print(f"skipped {client}: it is not installed (./scripts/clients/install)", flush=True)
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="combos-clients-") as folder:
        upstream = Upstream()
        stage = Stage(dialect, Path(folder), upstream, tools_only=dialect == "messages")
        prepare(stage)
        try:
            with stage.running():
                for check in checks:
                    failed += not _passes(client, check, stage)
        except CheckError as wrong:
            failed += 1
            print(f"FAILED  {client}: {wrong}", flush=True)
        finally:
            upstream.close()
    return 1 if failed else 0


def _passes(client: str, check: Check, stage: Stage) -> bool:
    name = f"{client}: {check.__name__.replace('_', ' ')}"
    try:
        check(stage)
    except CheckError as wrong:
        print(f"FAILED  {name}: {wrong}", flush=True)
        return False
    except Exception as wrong:  # a check that breaks has not passed, and the others are still to be run
        print(f"FAILED  {name}: {type(wrong).__name__}: {wrong}", flush=True)
        return False
    print(f"ok      {name}", flush=True)
    return True
