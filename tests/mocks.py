"""Mock providers that others wrote, as processes of their own: llmock (PyPI) and aimock (npm).

`scripts/clients/mocks` installs them; where they are not, the tests are skipped and say so.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ports import free_port

FOLDER = Path(__file__).parents[1] / ".venv" / "mocks"
LLMOCK = FOLDER / "llmock"
AIMOCK = FOLDER / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
_START_S = 30
_MISSING = "is not installed: ./scripts/clients/mocks installs it"


@dataclass(frozen=True)
class Mock:
    """A mock provider that runs. `bases` are the base URLs of its adapters."""

    url: str
    bases: Mapping[str, str]

    def get(self, path: str) -> Any:
        return self._call(urllib.request.Request(self.url + path))

    def post(self, path: str, document: object) -> Any:
        data = json.dumps(document).encode()
        return self._call(urllib.request.Request(self.url + path, data, {"content-type": "application/json"}))

    def _call(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=_START_S) as answer:
            return json.loads(answer.read() or b"null")

    def providers(self) -> dict[str, Any]:
        """One provider for each adapter, named after it."""
        common = {"apiKey": "k", "allowPrivateNetwork": True, "liveModels": False}
        return {name: {"adapter": name, "baseUrl": self.url + base, **common} for name, base in self.bases.items()}


@contextmanager
def llmock() -> Iterator[Mock]:
    """LLMock, which says what it was asked."""
    if not LLMOCK.is_dir():
        pytest.skip(f"llmock {_MISSING}")
    port = free_port()
    command = [sys.executable, "-m", "llmock.cli", "serve"]
    options = ["--port", str(port), "--response-style", "echo"]
    bases = {"openai-responses": "/v1", "openai-chat": "/v1", "anthropic": "/anthropic", "google": "/gemini"}
    with _running([*command, *options], port, {"PYTHONPATH": str(LLMOCK)}):
        yield Mock(f"http://127.0.0.1:{port}", bases)


@contextmanager
def aimock(fixtures: Path) -> Iterator[Mock]:
    """aimock with these answers; a request that none of them fits gets a 503."""
    if shutil.which("node") is None or not AIMOCK.is_file():
        pytest.skip(f"aimock {_MISSING}")
    port = free_port()
    command = ["node", str(AIMOCK), "-p", str(port), "-f", str(fixtures), "--strict", "--chunk-size", "5"]
    bases = dict.fromkeys(("openai-responses", "openai-chat", "anthropic"), "/v1") | {"google": ""}
    with _running(command, port, {}):
        yield Mock(f"http://127.0.0.1:{port}", bases)


@contextmanager
def _running(command: Sequence[str], port: int, environ: Mapping[str, str]) -> Iterator[None]:
    """The process, from when it accepts connections until it is stopped."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **environ}, **quiet) as process:  # type: ignore[call-overload]
        try:
            _await(process, port)
            yield
        finally:
            process.terminate()


def _await(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(_START_S * 20):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
        time.sleep(0.05)
    raise AssertionError(f"{process.args!r} did not start")
