"""Holds many paced event streams open through one proxy and prints how late chunks arrive, beside plain mitmdump.

Streams are opened one after another; from then on every chunk counts, also while others are still being opened. A
stall is a chunk that was on its way longer than the bound. What a machine's other work adds shows in the row `direct`,
without a proxy, and in the difference between the clock and the processor.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import load
import paced
import probe
import proxies

_BOUND_MS = 100.0
_PROBE = Path(probe.__file__)


@dataclass
class Seen:
    """What arrived at the clients of one run. Times in milliseconds."""

    delays: list[float] = field(default_factory=list)
    longest_gap: float = 0.0
    cut: int = 0

    def percentile(self, share: float) -> float:
        ordered = sorted(self.delays)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass
class Case:
    """How many streams, how often a chunk, how fast they are opened, and how long all are held."""

    streams: int
    pace_ms: int
    opened_per_s: int
    held_s: float


async def _follow(reader: asyncio.StreamReader, seen: Seen) -> None:
    """Read one stream and note when each chunk was sent and when it came."""
    before = None
    while data := await reader.read(65_536):
        now = time.monotonic_ns()
        for piece in data.split(paced.MARK)[1:]:
            seen.delays.append((now - int(piece.split(b" ", 1)[0])) / 1e6)
        if before is not None:
            seen.longest_gap = max(seen.longest_gap, (now - before) / 1e6)
        before = now
    seen.cut += 1


async def hold(job: load.Job, case: Case) -> Seen:
    """Open the streams, hold them, leave."""
    seen, writers, tasks = Seen(), [], []
    begin = time.perf_counter()
    for number in range(case.streams):
        await asyncio.sleep(max(0.0, begin + number / case.opened_per_s - time.perf_counter()))
        reader, writer = await asyncio.open_connection("127.0.0.1", job.port)
        writer.write(job.message())
        writers.append(writer)
        tasks.append(asyncio.create_task(_follow(reader, seen)))
    await asyncio.sleep(case.held_s)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for writer in writers:
        writer.close()
    return seen


async def _probed(told: Path) -> dict[str, float]:
    """What the event loop of the proxy in use has been through since it was asked last."""
    asked = probe.question(told)
    asked.touch()
    async with asyncio.timeout(60):
        while asked.exists():
            await asyncio.sleep(0.01)
    found: dict[str, float] = json.loads(told.read_text())
    return found


def _row(name: str, seen: Seen) -> None:
    p50, p99, longest = (seen.percentile(share) for share in (0.5, 0.99, 1))
    print(
        f"  {name:7} {len(seen.delays):7} chunks  delay p50 {p50:6.1f} ms  p99 {p99:6.1f} ms  longest {longest:6.1f} ms"
        f"  longest gap {seen.longest_gap:7.1f} ms  cut {seen.cut}"
    )


async def through(proxy: proxies.Proxy, job: load.Job, case: Case, name: str, told: Path) -> Seen:
    await hold(job, Case(10, case.pace_ms, 10, 1.0))
    await _probed(told)
    cpu, begin = proxy.cpu_s(), time.perf_counter()
    seen = await hold(job, case)
    share = (proxy.cpu_s() - cpu) / (time.perf_counter() - begin)
    probed = await _probed(told)
    _row(name, seen)
    passed, passed_cpu, collected, collected_cpu = (
        probed.get(kind, 0.0) for kind in ("pass", "pass_cpu", "collection", "collection_cpu")
    )
    loop = f"longest pass {passed:.1f} ms ({passed_cpu:.1f} of the processor)"
    collection = f"longest collection {collected:.1f} ms ({collected_cpu:.1f})"
    print(f"          event loop: {loop}, {collection}; processor {share:.0%}")
    return seen


async def compare(case: Case, work: Path) -> bool:
    server = subprocess.Popen(
        [sys.executable, "paced.py", str(case.pace_ms)], stdout=subprocess.PIPE, cwd=Path(__file__).parent
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    url, told = f"http://127.0.0.1:{port}", work / "probe.json"
    os.environ["BENCH_PROBE"] = str(told)
    running: list[proxies.Proxy] = []
    try:
        _row("direct", await hold(load.Job(port, f"127.0.0.1:{port}", "/v1/chat/completions", "m1", 1, 1, True), case))
        delays = []
        for name, model in (("plain", "m1"), ("combos", "combo/ok")):
            # One after the other: both would answer the same question, and share two processors.
            if name == "plain":
                proxy = await proxies.plain(work, url, "-s", str(_PROBE))
            else:
                proxy = await proxies.with_addon(work, url, url, addons=(_PROBE,))
            running.append(proxy)
            job = load.Job(proxy.port, f"127.0.0.1:{proxy.port}", "/v1/chat/completions", model, 1, 1, True)
            seen = await through(proxy, job, case, name, told)
            proxy.stop()
            delays.append(seen.percentile(1))
        holds = delays[1] <= _BOUND_MS and seen.cut == 0
        print(f"  {'longest delay, ms':24} {delays[1]:6.1f}   bound <= {_BOUND_MS:.0f}   {'ok' if holds else 'MISSED'}")
        return holds
    finally:
        for proxy in running:
            proxy.stop()
        server.kill()
        server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000, help="streams at once (default 1000)")
    parser.add_argument(
        "--pace", type=int, default=500, help="milliseconds between two chunks of a stream (default 500)"
    )
    parser.add_argument("--opened", type=int, default=100, help="streams opened per second (default 100)")
    parser.add_argument("--hold", type=float, default=20.0, help="seconds for which all are held (default 20)")
    asked = parser.parse_args()
    gc.disable()  # it is the proxies' pauses that are to be seen
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    case = Case(asked.streams, asked.pace, asked.opened, asked.hold)
    print(
        f"{case.streams} streams, a chunk every {case.pace_ms} ms, opened {case.opened_per_s}/s, held {case.held_s} s"
    )
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(compare(case, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
