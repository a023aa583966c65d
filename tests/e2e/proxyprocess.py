"""A real mitmdump process with the addon, as a user starts it, with its whole output kept."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rawserver import RawServer
from stage import Asker, Case, document_of, stubs

ADDON = Path(__file__).parents[2] / "addon" / "main.py"
MITMDUMP = Path(sys.executable).with_name("mitmdump")
LIMIT_S = 30
"""Starting takes a second on an idle machine."""

_LISTENING = re.compile(r"proxy listening at \S*?:(\d+)")
_BAD = ("Traceback", "Addon error", "Task was destroyed", "was never awaited", "never retrieved", "Unhandled error")


class ProxyProcess(Asker):
    """The process: `port`, `home` (its configuration and state), `lines` (what it has written so far)."""

    def __init__(self, process: asyncio.subprocess.Process, home: Path, confdir: Path) -> None:
        self.process = process
        self.home = home
        self.confdir = confdir
        self.config = home / "config.json"
        self.ca = confdir / "mitmproxy-ca-cert.pem"
        self.port = 0
        self.lines: list[str] = []
        self._grown = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            async with self._grown:
                self.lines.append(line.decode(errors="replace").rstrip())
                self._grown.notify_all()
        async with self._grown:
            self._grown.notify_all()

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    async def line(self, pattern: str, since: int = 0) -> re.Match[str]:
        """The first line, from number `since` on, in which the pattern is found."""
        async with asyncio.timeout(LIMIT_S), self._grown:
            while True:
                for line in self.lines[since:]:
                    if found := re.search(pattern, line):
                        return found
                assert not self._reading.done(), f"mitmdump ended:\n{self.log}"
                await self._grown.wait()

    async def stop(self) -> None:
        """Interrupt it as a user does, and take the rest of its output."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(LIMIT_S):
            await self.process.wait()
            await self._reading
        found = [bad for bad in _BAD if bad in self.log]
        assert not found, self.log
        assert self.process.returncode == 0, self.log


def _prepare(home: Path, document: Mapping[str, Any] | None) -> None:
    home.mkdir(parents=True, exist_ok=True)
    if document is not None:
        (home / "config.json").write_text(json.dumps(document))


def environment() -> dict[str, str]:
    """This process's, without what would name a configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMBOS_")}
    return {**kept, "PYTHONUNBUFFERED": "1"}


@asynccontextmanager
async def mitmdump(
    home: Path,
    confdir: Path,
    *arguments: str,
    document: Mapping[str, Any] | None = None,
    script: Path = ADDON,
    environ: Mapping[str, str] | None = None,
    tool: str = "mitmdump",
    admin: str = "",
    under: Sequence[str] = (),
) -> AsyncIterator[ProxyProcess]:
    """Start mitmdump with the addon on an ephemeral port; `document` None leaves it without a configuration file.

    `tool` may be another of mitmproxy's; `admin` is where the management listens, by default nowhere; `under` is a
    command that sets something up and then becomes the tool.
    """
    _prepare(home, document)
    options = ["-p", "0", "--listen-host", "127.0.0.1", "--set", f"confdir={confdir}"]
    process = await asyncio.create_subprocess_exec(
        *under,
        str(MITMDUMP.with_name(tool)),
        *("-s", str(script), *options, "--set", f"combos_admin_listen={admin}", *arguments),
        env={**environment(), "COMBOS_HOME": str(home), **(environ or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
    )
    running = ProxyProcess(process, home, confdir)
    try:
        running.port = int((await running.line(_LISTENING.pattern))[1])
        await running.line("combos: serving")
        yield running
    finally:
        await running.stop()


@asynccontextmanager
async def process_with(
    home: Path,
    confdir: Path,
    cases: Sequence[Case],
    *arguments: str,
    document: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[ProxyProcess, RawServer]]:
    """A process whose configuration is that of the cases, and the server of their stub providers."""
    async with stubs(*cases) as server:
        made = document_of(cases, server.url, document or {})
        async with mitmdump(home, confdir, *arguments, document=made, environ=environ) as running:
            yield running, server
