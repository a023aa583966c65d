"""Measures one process and two behind one port, with and without shared state, and prints where the time goes.

Load generator, upstream, balancer and state server run on the same machine and take their share of its cores: what is
printed as milliseconds per request says what each needs, whatever the machine.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import load
import proxies
from certificates import self_signed

_CHAT = "/v1/chat/completions"
_PLACES = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
_HAPROXY = """global
  maxconn 8192
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen combos
  bind 127.0.0.1:{front}
  balance leastconn
{servers}
"""


@dataclass(frozen=True)
class Setup:
    """How clients reach how many processes."""

    name: str
    processes: int
    is_balanced: bool = False
    is_shared: bool = False

    @property
    def base(self) -> str:
        """The setup it is compared with."""
        return "proxy port, 1 process" if self.is_balanced or self.name.startswith("proxy") else "listener, 1 process"


SETUPS = (
    Setup("listener, 1 process", 1),
    Setup("listener, 1 process, shared state", 1, is_shared=True),
    Setup("listener, 2 processes", 2),
    Setup("listener, 2 processes, shared state", 2, is_shared=True),
    Setup("proxy port, 1 process", 1),
    Setup("balancer, 2 processes", 2, is_balanced=True),
    Setup("balancer, 2 processes, shared state", 2, is_balanced=True, is_shared=True),
)
JOBS = (("JSON 1 KB, c=32", False, 1600), ("SSE 50 chunks, c=32", True, 640))


@dataclass
class Sample:
    """One run: requests a second, and milliseconds of processor time per request of everybody who takes part."""

    rate: float
    p50: float
    errors: int
    cpu_ms: dict[str, float]


@dataclass
class Running:
    """A setup that runs. `others` are processes beside the proxies, by what they are."""

    setup: Setup
    port: int
    proxies: list[proxies.Proxy]
    others: dict[str, proxies.Proxy] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    async def measure(self, job: load.Job, upstream: proxies.Proxy) -> Sample:
        parts = {"proxies": self.proxies, "upstream": [upstream], **{name: [one] for name, one in self.others.items()}}
        before = {name: sum(proxy.cpu_s() for proxy in part) for name, part in parts.items()}
        own = time.process_time()
        result = await load.run(job)
        count = max(1, len(result.whole)) / 1000
        spent = {name: (sum(proxy.cpu_s() for proxy in part) - before[name]) / count for name, part in parts.items()}
        spent["load"] = (time.process_time() - own) / count
        return Sample(result.rate, result.percentile(0.5), result.errors, spent)


def program(*names: str) -> str | None:
    return next(filter(None, (shutil.which(name, path=_PLACES) for name in names)), None)


@contextmanager
def running(*command: str) -> Iterator[proxies.Proxy]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield proxies.Proxy(process, 0, 0.0)
    finally:
        process.kill()
        process.wait()


def listeners(port: int) -> int:
    """How many sockets listen on a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


async def until_listening(port: int, count: int) -> None:
    for _ in range(3000):
        if listeners(port) == count:
            return
        await asyncio.sleep(0.01)
    raise RuntimeError(f"nobody listens on port {port}")


async def start(
    setup: Setup, stack: ExitStack, work: Path, urls: tuple[str, str], state: proxies.Proxy | None
) -> Running:
    """Start a setup. Its processes share a configuration and a ledger, as they would on one machine."""
    home = work / setup.name.replace(" ", "-").replace(",", "")
    home.mkdir()
    front = proxies.free_port()
    by_listener = setup.name.startswith("listener")
    options = [f"combos_served_at=127.0.0.1:{front}"]
    options += ["combos_reuse_port=true"] if by_listener else []
    options += [f"combos_state=unix://{work}/s"] if setup.is_shared else []
    made = []
    for _ in range(setup.processes):
        listen = f"127.0.0.1:{front}" if by_listener else ""
        made.append(await proxies.with_addon(home, *urls, *options, listen=listen))
        stack.callback(made[-1].stop)
    found = Running(setup, front if by_listener or setup.is_balanced else made[0].port, made)
    if by_listener:
        await until_listening(front, setup.processes)
    if setup.is_balanced:
        servers = "\n".join(f"  server p{n} 127.0.0.1:{proxy.port}" for n, proxy in enumerate(made))
        config = home / "haproxy.cfg"
        config.write_text(_HAPROXY.format(front=front, servers=servers))
        found.others["balancer"] = stack.enter_context(running(program("haproxy") or "", "-db", "-f", str(config)))
        await until_listening(front, 1)
    if setup.is_shared and state is not None:
        found.others["state"] = state
    return found


def job_for(found: Running, stream: bool, requests: int) -> load.Job:
    return load.Job(found.port, f"127.0.0.1:{found.port}", _CHAT, "combo/ok", requests, 32, stream)


def median(samples: list[Sample]) -> Sample:
    parts = samples[0].cpu_ms
    cpu = {name: statistics.median(sample.cpu_ms[name] for sample in samples) for name in parts}
    rate, p50 = (statistics.median(getattr(sample, name) for sample in samples) for name in ("rate", "p50"))
    return Sample(rate, p50, sum(sample.errors for sample in samples), cpu)


def report(name: str, medians: dict[str, Sample], setups: list[Setup]) -> bool:
    print(f"\n{name}")
    for setup in setups:
        sample = medians[setup.name]
        ratio = sample.rate / medians[setup.base].rate if setup.base in medians else float("nan")
        parts = "  ".join(f"{part} {ms:.2f}" for part, ms in sample.cpu_ms.items())
        rate = f"{sample.rate:8.1f} req/s  ratio {ratio:4.2f}"
        print(f"  {setup.name:36} {rate}  p50 {sample.p50:6.2f} ms  errors {sample.errors}")
        print(f"  {'':36} CPU ms/request: {parts}")
    return not any(sample.errors for sample in medians.values())


async def main(rounds: int, only: str, share: float) -> bool:
    setups = [setup for setup in SETUPS if only in setup.name]
    redis = program("valkey-server", "redis-server")
    missing = [("haproxy", "is_balanced", program("haproxy")), ("a Redis or Valkey server", "is_shared", redis)]
    for what, need, found in missing:
        if found is None:
            print(f"without {what} the setups that need it are left out")
            setups = [setup for setup in setups if not getattr(setup, need)]
    with tempfile.TemporaryDirectory(prefix="b") as folder, ExitStack() as stack:
        work = Path(folder)
        server = subprocess.Popen([sys.executable, "upstream.py", str(self_signed(work))], stdout=subprocess.PIPE)
        stack.callback(server.wait)
        stack.callback(server.kill)
        assert server.stdout is not None
        ports = server.stdout.readline().split()
        urls = (f"http://127.0.0.1:{int(ports[0])}", f"https://127.0.0.1:{int(ports[1])}")
        flags = ("--port", "0", "--unixsocket", f"{work}/s", "--save", "", "--dir", folder)
        state = stack.enter_context(running(redis, *flags)) if redis is not None else None
        found = [await start(setup, stack, work, urls, state) for setup in setups]
        upstream = proxies.Proxy(server, 0, 0.0)
        return all([await compare(found, job, upstream, rounds, share) for job in JOBS])


async def compare(
    found: list[Running], job: tuple[str, bool, int], upstream: proxies.Proxy, rounds: int, share: float
) -> bool:
    name, stream, requests = job
    count = max(1, round(requests * share / 32)) * 32
    for one in found:
        one.samples.clear()
        await load.run(replace(job_for(one, stream, count), requests=128))
    for _ in range(rounds):
        for one in found:
            one.samples.append(await one.measure(job_for(one, stream, count), upstream))
    medians = {one.setup.name: median(one.samples) for one in found}
    return report(name, medians, [one.setup for one in found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; the median is shown (default 5)")
    parser.add_argument("--share", type=float, default=1.0, help="share of the requests to send (default 1)")
    parser.add_argument("--only", default="", help="only setups whose name contains this text")
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} processors, load generator and upstream included")
    sys.exit(0 if asyncio.run(main(chosen.rounds, chosen.only, chosen.share)) else 1)
