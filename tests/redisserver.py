"""A real Redis or Valkey server for one test: its own folder, socket and port, gone with the test."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

LIMIT_S = 30
"""No single step takes longer; only reached when something hangs."""


def program() -> str:
    """The server's program. Skips the test where there is none: `scripts/servers` installs it."""
    found = next(filter(None, map(shutil.which, ("valkey-server", "redis-server"))), None)
    if found is None:
        pytest.skip("neither valkey-server nor redis-server is on PATH: ./scripts/servers installs it")
    return found


class RedisServer:
    """`url` is the option's value for its socket; `client` talks to it directly."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.socket = folder / "s"
        self.url = f"unix://{self.socket}"
        self._command = [program(), "--unixsocket", str(self.socket), "--dir", str(folder), "--save", ""]
        self._command += ["--appendonly", "no", *(options or ("--port", "0"))]
        self._process: subprocess.Popen[bytes] | None = None
        self.client: Any = Redis(unix_socket_path=str(self.socket))

    async def start(self) -> None:
        self._launch()
        async with asyncio.timeout(LIMIT_S):
            while not self._answers():  # noqa: ASYNC110 - it says nowhere that it listens
                await asyncio.sleep(0.01)

    def _launch(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except RedisError as error:
            return "NOAUTH" in str(error)

    def kill(self) -> None:
        """It dies, and takes everything it knew with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket.unlink(missing_ok=True)

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        self.client.close()


@contextmanager
def redis_server(*options: str) -> Iterator[RedisServer]:
    """A server that is not started yet. Its folder has a short name: paths of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="r") as folder:
        server = RedisServer(Path(folder), *options)
        try:
            yield server
        finally:
            server.close()
