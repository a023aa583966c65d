"""The proxy under test: a real mitmdump with the addon and `inside.py`, its log, and a line to its inside."""

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import sys
from collections import deque
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_START_S = 60
_ANSWER_S = 300
"""What holds memory is looked for at length, the more so on a machine with other work to do."""
_COMPLAINTS = 200
_BAD = re.compile(
    r"Traceback|Addon error|Task was destroyed|never awaited|never retrieved|Unhandled|\bERROR\b|failed: "
)


class Proxy:
    """`port`; `complaints`: lines of the log that should not be there."""

    def __init__(self, process: asyncio.subprocess.Process, home: Path) -> None:
        self.process = process
        self.home = home
        self.port = 0
        self.admin = 0
        self.complaints: list[str] = []
        self.leaks = 0
        self._is_bad = False
        self.tail: deque[str] = deque(maxlen=200)
        self._control = 0
        self._ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.home / "config.json"

    @property
    def token(self) -> str:
        """The token of the management."""
        return (self.home / "admin-api-token").read_text().strip()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        with (self.home / "log").open("w") as log:
            while line := await self.process.stdout.readline():
                text = line.decode(errors="replace").rstrip()
                self.tail.append(text)
                self._look(text)
                if "combos:" not in text:
                    log.write(text + "\n")
                    log.flush()
        self._ready.set()

    def _look(self, text: str) -> None:
        if found := re.search(r"proxy listening at \S*?:(\d+)", text):
            self.port = int(found[1])
        if found := re.search(r"soak control (\d+)", text):
            self._control = int(found[1])
        if self.port and self._control and "combos: serving" in "\n".join(self.tail):
            self._ready.set()
        if "canary-key" in text:
            self.leaks += 1
        # What follows a bad line without a time of its own belongs to it.
        self._is_bad = bool(_BAD.search(text)) or (self._is_bad and not text.startswith("["))
        if self._is_bad and len(self.complaints) < _COMPLAINTS:
            self.complaints.append(text)

    async def started(self) -> None:
        """Wait until it listens."""
        async with asyncio.timeout(_START_S):
            await self._ready.wait()
        if self.process.returncode is not None or not self.port:
            raise RuntimeError("\n".join(self.tail))

    def port_of(self, entrance: str) -> int:
        """Where a client comes in."""
        return self.admin if entrance == "listener" else self.port

    async def inside(self, do: str, **asked: Any) -> Any:
        """Ask `inside.py`."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._control, limit=2**22)
        try:
            writer.write(json.dumps({"do": do, **asked}).encode() + b"\n")
            async with asyncio.timeout(_ANSWER_S):
                return json.loads(await reader.readline())
        finally:
            writer.close()

    def client_tls(self, *protocols: str) -> ssl.SSLContext:
        """What a client that trusts the proxy needs."""
        context = ssl.create_default_context(cafile=self.home / "ca" / "mitmproxy-ca-cert.pem")
        context.set_alpn_protocols(list(protocols))
        return context

    async def stop(self) -> int:
        """Interrupt it, as a user does; its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(60):
                await self.process.wait()
                await self._reading
        except TimeoutError:
            self.process.kill()
            raise
        return self.process.returncode or 0


async def start(home: Path, document: dict[str, Any], *, traced: bool = False) -> Proxy:
    """A new process with this configuration and its state in `home`. `traced`: where memory is taken is noted."""
    (home / "config.json").write_text(json.dumps(document))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMBOS_")}
    admin = _free_port()
    settings = (f"confdir={home / 'ca'}", f"combos_admin_listen=127.0.0.1:{admin}", "ssl_insecure=true")
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("mitmdump"),
        *("-s", str(ROOT / "addon" / "main.py"), "-s", str(Path(__file__).with_name("inside.py"))),
        *("--flow-detail", "0", "-p", "0", "--listen-host", "127.0.0.1"),
        *(part for setting in settings for part in ("--set", setting)),
        env={**kept, "COMBOS_HOME": str(home), "PYTHONUNBUFFERED": "1", "PYTHONTRACEMALLOC": "1" if traced else "0"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
    )
    proxy = Proxy(process, home)
    proxy.admin = admin
    await proxy.started()
    return proxy


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
