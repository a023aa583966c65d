"""A home of its own for one way of installing, and a proxy that was started from it."""

import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from built import ROOT

LIMIT_S = 120
PROXY = "http://127.0.0.1:8080"
FORGOTTEN = ("COMBOS_", "PIPX_", "UV_TOOL", "VIRTUAL_ENV", "PYTHON")


class Home:
    """An empty home directory, and the environment of somebody who lives there. pip's cache is shared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FORGOTTEN)}
        path = f"{folder}/.local/bin:/usr/local/bin:/usr/bin:/bin"
        self.environ = {**kept, "HOME": str(folder), "PATH": path, "XDG_CACHE_HOME": cache, "PYTHONUNBUFFERED": "1"}

    def run(self, *command: str | Path) -> str:
        """What the command prints. Raises `CalledProcessError`, with everything that it has said."""
        done = subprocess.run(
            [str(part) for part in command],
            env=self.environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def left(self) -> list[str]:
        """What in this home has to do with Combos, but for its own data."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*"))
        ours = (path for path in found if re.search(r"combos|ocx", str(path)) and path.parts[0] != ".combos")
        return sorted(map(str, ours))


@contextmanager
def proxy(home: Home, command: Sequence[str | Path]) -> Iterator[int]:
    """The port of a proxy that is ended by an interrupt, as a user does; without a word of failure in its log."""
    ours, theirs = pty.openpty()  # a script of pipx takes no variable that would make it write at once
    process = subprocess.Popen(
        [str(part) for part in (*command, "-p", "0", "--set", "combos_admin_listen=")],
        env=home.environ,
        cwd=home.folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = open(ours, "rb", buffering=0)  # noqa: SIM115 - closed below
    timer = threading.Timer(LIMIT_S, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    said = b""
    try:
        while b"combos: serving" not in said and (more := read_screen(screen)):
            said += more
        found = re.search(rb"proxy listening at \S*?:(\d+)", said)
        assert found, "it did not start:\n" + said.decode()
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        while more := read_screen(screen):
            said += more
        process.wait()
        timer.cancel()
        screen.close()
    assert process.returncode == 0, said.decode()
    assert b"Traceback" not in said, said.decode()


def read_screen(screen: BinaryIO) -> bytes:
    """What the program has written; nothing once it has ended."""
    try:
        return screen.read(65_536)
    except OSError:
        return b""


def curl_line() -> str:
    """The request of the README."""
    found = re.search(r"^\$ (curl -sN http://127\.0\.0\.1:8080/.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert found, "the README asks nothing"
    return found[1]


def asks_the_demonstration(home: Home, command: Sequence[str | Path]) -> None:
    """Start a proxy and ask it what the README asks. Raises `AssertionError`."""
    with proxy(home, command) as port:
        said = home.run("sh", "-c", curl_line().replace(PROXY, f"http://127.0.0.1:{port}"))
    assert "sim-up" in said, said
    assert said.rstrip().endswith("data: [DONE]"), said
