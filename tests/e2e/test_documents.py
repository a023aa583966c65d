"""What the documents say to type is typed, in a home of its own beside a running proxy, and shows what they say.

A page is one sitting: its commands run in their order, in one home. Commands that need more than this machine are
listed below, each with who tries it instead.
"""

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from e2e.proxyprocess import ProxyProcess, mitmdump
from manual.markup import DOCUMENTS, ROOT, Block, Command, blocks, commands, matches
from ports import free_port

SCRIPTS = r"(?:\./)?scripts/"

# Patterns of commands.
NOT_TYPED = {
    SCRIPTS: "works on the checkout that it lies in; tests/meta and continuous integration",
    "ocx run": "is the proxy that this test starts; tests/cli/test_run.py",
    "mitmdump -s": "is the proxy that this test starts; tests/e2e/test_process.py",
    "mitmweb": "opens a browser; tests/e2e/test_modes.py",
    "ocx dashboard$": "opens a browser; tests/cli/test_flows.py",
    "git clone": "needs the repository's address",
    "cd combos": "follows the clone",
    "pipx|pip install": "needs a wheel and a package index; tests/meta/test_packaging.py builds the wheel",
    "python3 -m pip wheel": "needs a package index; tests/meta/test_packaging.py builds the wheel",
    "python3 -m venv ~|~/combos-venv/bin": "needs a package index",
    "claude": "needs Claude Code; scripts/clients/run",
    "systemctl": "needs systemd; tests/e2e/test_services.py starts what the units start",
    "journalctl": "needs systemd",
    "podman|haproxy": "needs an engine or a balancer; tests/e2e/test_services.py starts what the image starts",
    "python3 -m venv /usr": "writes outside its home",
    "/usr/local/lib/combos/bin": "needs an installation there",
    "install -D|cp /etc/": "writes outside its home",
    "COMBOS_HOME=/var/lib/combos": "needs the service of the machine",
}
LIMIT_S = 60
CHANGES = re.compile(r"^ocx (?:provider (?:add|edit|remove)|combo (?:set|remove))\b")
KEEPS = re.compile(r"^(?:export|cd) ")


def reason_against(line: str) -> str | None:
    """Why a command is not typed here."""
    return next((why for pattern, why in NOT_TYPED.items() if re.match(pattern, line)), None)


def is_typed(block: Block) -> bool:
    return any(reason_against(command.line) is None for command in commands(block))


PAGES = sorted({block.page for block in blocks("console") if is_typed(block)})
CHANGING = sorted({block.page for block in blocks("console") if any(CHANGES.match(c.line) for c in commands(block))})
SITTINGS = [*([page] for page in CHANGING), [page for page in PAGES if page not in CHANGING]]
"""Pages that change the configuration have a proxy of their own."""
SHOWN = "demo: sim-down/chat 503 → sim-up/chat 200 (1 hop, "


class Sitting:
    """A shell in a home of its own, beside a proxy on other ports than the documents name."""

    def __init__(self, proxy: ProxyProcess, home: Path, admin: int) -> None:
        self.proxy = proxy
        self._home = home
        self._ports = {":8080": f":{proxy.port}", ":10100": f":{admin}"}
        self._kept: list[str] = []

    def here(self, text: str) -> str:
        for written, real in self._ports.items():
            text = text.replace(f"127.0.0.1{written}", f"127.0.0.1{real}")
        return text

    async def type(self, command: Command) -> None:
        """Run it; it does, and shows what the page says."""
        line = self.here(command.line)
        if KEEPS.match(line):
            self._kept.append(line)
        done, output = await self._run(line)
        shown = tuple(self.here(row) for row in command.shown)
        assert done == 0, f"{line}\n{output}"
        assert not shown or matches(shown, [row for row in output.splitlines() if row]), f"{line}\n{output}"

    async def python(self, code: str) -> None:
        """Run a program."""
        done, output = await self._run(shlex.join([sys.executable, "-c", self.here(code)]))
        assert done == 0, output
        assert output.strip()

    async def _run(self, line: str) -> tuple[int, str]:
        seen = len(self.proxy.lines)
        done, output = await self._shell(line)
        if done == 0 and CHANGES.match(line):
            await self.proxy.line(r"loaded, \d+ combos? in force", since=seen)
        return done, output

    async def _shell(self, line: str) -> tuple[int, str]:
        script = "\n".join(["set -o pipefail", *self._kept, line])
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", script),
            cwd=self._home / "checkout",
            env=environment(self._home),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(LIMIT_S):
            output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()


def environment(home: Path) -> dict[str, str]:
    """The variables of somebody who has just signed in."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


@asynccontextmanager
async def sitting(home: Path, confdir: Path) -> AsyncIterator[Sitting]:
    """A home with a checkout and mitmproxy's folder in it, and a proxy that serves the demonstration."""
    (home / "checkout").mkdir(parents=True)
    (home / ".mitmproxy").symlink_to(confdir)
    for entry in ("README.md", "addon", "config", "docs", "scripts"):
        (home / "checkout" / entry).symlink_to(ROOT / entry)
    admin = free_port()
    async with mitmdump(home / ".combos", confdir, admin=f"127.0.0.1:{admin}") as proxy:
        await proxy.line("combos: dashboard on")
        yield Sitting(proxy, home, admin)


def steps(page: str) -> Sequence[Block]:
    return [block for block in blocks("console", "python") if block.page == page]


@pytest.mark.parametrize("pages", SITTINGS, ids="+".join)
async def test_what_a_page_says_to_type(pages: Sequence[str], tmp_path: Path, confdir: Path) -> None:
    async with sitting(tmp_path / "home", confdir) as shell:
        for block in [block for page in pages for block in steps(page)]:
            if block.kind == "python":
                await shell.python(block.text)
                continue
            for command in commands(block):
                if reason_against(command.line) is None:
                    await shell.type(command)
        if any(SHOWN in DOCUMENTS[page] for page in pages):
            await shell.proxy.line(re.escape(SHOWN))
    assert undocumented(tmp_path / "home" / ".combos") == []


def undocumented(folder: Path) -> list[str]:
    """Files that the proxy and `ocx` have left, of which the page on operations knows nothing."""
    names = [re.sub(r"-(?:wal|shm)$", "", path.name) for path in folder.iterdir()]
    return [name for name in names if re.search(rf"[`/]{re.escape(name)}\b", DOCUMENTS["docs/operations.md"]) is None]


def test_both_first_pages_show_the_log_of_the_demonstration() -> None:
    assert [page for page, text in DOCUMENTS.items() if SHOWN in text] == ["README.md", "docs/quickstart.md"]


def test_every_reason_is_needed() -> None:
    lines = [command.line for block in blocks("console") for command in commands(block)]
    assert [pattern for pattern in NOT_TYPED if not any(re.match(pattern, line) for line in lines)] == []


def test_every_script_exists() -> None:
    lines = [command.line for block in blocks("console") for command in commands(block)]
    scripts = {line.split()[0] for line in lines if re.match(SCRIPTS, line)}
    assert len(scripts) > 1
    assert [script for script in scripts if not os.access(ROOT / script, os.X_OK)] == []


def test_every_command_exists_or_is_excused() -> None:
    lines = [command.line for block in blocks("console") for command in commands(block)]
    words = {line.split()[0] for line in lines if reason_against(line) is None and not KEEPS.match(line)}
    places = [ROOT, Path(sys.executable).parent]
    assert [
        word for word in words if not (shutil.which(word) or any((place / word).exists() for place in places))
    ] == []
