"""An addon that watches the event loop it runs in: how long a pass took at most, and how long a garbage collection.

Loaded with `-s` beside what is measured. As long as there is a file named like `$BENCH_PROBE` with `.ask` behind it, it
puts what it has seen into `$BENCH_PROBE`, removes the question and begins anew. Times come in pairs: on the clock, and
of the processor. A pass that is long on the clock alone waited for a processor.
"""

import asyncio
import gc
import json
import os
import time
from pathlib import Path

TICK_S = 0.002


class Probe:
    """Keeps the longest of each kind, in milliseconds."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._began = (0.0, 0.0)
        self._task: asyncio.Task[None] | None = None

    def running(self) -> None:
        """Hook: the event loop runs."""
        gc.callbacks.append(self._collected)
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        told = Path(os.environ["BENCH_PROBE"])
        asked = question(told)
        while True:
            if asked.exists():
                self._tell(told, asked)
            wall, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_S)
            self._longest("pass", time.perf_counter() - wall - TICK_S)
            self._longest("pass_cpu", time.thread_time() - cpu)

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        now = (time.perf_counter(), time.thread_time())
        if phase == "start":
            self._began = now
        else:
            self._longest("collection", now[0] - self._began[0])
            self._longest("collection_cpu", now[1] - self._began[1])

    def _longest(self, name: str, seconds: float) -> None:
        self._seen[name] = max(self._seen.get(name, 0.0), seconds * 1000)

    def _tell(self, told: Path, asked: Path) -> None:
        seen, self._seen = self._seen, {}
        told.write_text(json.dumps(seen))
        asked.unlink()


def question(told: Path) -> Path:
    """The file that asks for what has been seen."""
    return told.with_suffix(".ask")


addons = [Probe()]
