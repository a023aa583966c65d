"""What the Python programs share: turns are asked for on standard input, one line of JSON each, and told on the output.

A turn names its model and says whether it streams. What came of it: the final text, and why it failed if it did. A
stream that ends without saying how it ended has not failed as far as a library can tell: its text says `SILENT`.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

DESCRIPTION = "Runs a command and gives its output."
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SILENT = "SILENT"


@dataclass
class Turn:
    """A turn to be taken."""

    model: str
    stream: bool


def shell(command: str) -> str:
    """The tool."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


def take(turn: Callable[[Turn], str]) -> None:
    """Take the turns that standard input asks for."""
    # A stream that a library has left is closed by the collector, in the middle of whatever runs: where that holds the
    # lock of httpcore's pool, which is not reentrant, the program waits for itself for ever.
    gc.disable()
    for line in sys.stdin:
        asked = json.loads(line)
        started, said = time.monotonic(), {"text": "", "failed": ""}
        try:
            said["text"] = turn(Turn(asked["model"], asked["stream"]))
        except Exception as error:  # whatever the library raises is what its user sees
            said["failed"] = f"{type(error).__name__}: {error}"[:600]
        told: dict[str, Any] = {**said, "seconds": time.monotonic() - started}
        print(json.dumps(told), flush=True)
