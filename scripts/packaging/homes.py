"""A home of its own for one way of installing, and a proxy that was started from it."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from built import ROOT

LIMIT_S = 60
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
    process = subprocess.Popen(
        [str(part) for part in (*command, "-p", "0", "--set", "combos_admin_listen=")],
        env=home.environ,
        cwd=home.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    timer = threading.Timer(LIMIT_S, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if "combos: serving" in line:
                break
        found = re.search(r"proxy listening at \S*?:(\d+)", "".join(lines))
        assert found, "it did not start:\n" + "".join(lines)
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
        timer.cancel()
    assert process.returncode == 0, "".join(lines) + rest
    assert "Traceback" not in "".join(lines) + rest, rest


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
