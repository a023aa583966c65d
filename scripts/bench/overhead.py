"""Measures the addon against plain mitmdump and prints every ratio beside its bound."""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import load
import proxies
from certificates import self_signed

_CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Case:
    """One measurement: the same job on plain mitmdump and with the addon. Bounds are ratios to plain.

    `listener` sends it to the addon's own listener, past mitmproxy's HTTP layers.
    """

    name: str
    combo: str
    requests: int
    concurrency: int
    stream: bool = False
    tls: bool = False
    listener: bool = False
    least_rate: float | None = None
    most_cpu: float | None = None
    most_first_ms: float | None = None

    def scaled(self, share: float) -> "Case":
        """The same case with fewer or more requests."""
        each = max(1, round(self.requests * share / self.concurrency))
        return replace(self, requests=each * self.concurrency)


CASES = (
    Case("JSON 1 KB, healthy, c=1", "ok", 400, 1, least_rate=0.70),
    Case("JSON 1 KB, healthy, c=32", "ok", 1600, 32, least_rate=0.70),
    Case("JSON 1 KB, one hop, c=1", "hop", 200, 1, least_rate=0.45),
    Case("JSON 1 KB, one hop, c=32", "hop", 800, 32, least_rate=0.45),
    Case("SSE 50 chunks, healthy, c=1", "ok", 100, 1, stream=True, most_cpu=1.1, most_first_ms=3.0),
    Case("SSE 50 chunks, healthy, c=32", "ok", 640, 32, stream=True, most_cpu=1.1),
    Case("SSE 50 chunks, one hop, c=1", "hop", 100, 1, stream=True, least_rate=0.45),
    Case("SSE 50 chunks, one hop, c=32", "hop", 320, 32, stream=True, least_rate=0.45),
    Case("new connections, TLS upstream, c=8", "tls", 320, 8, tls=True, least_rate=1.3),
    Case("listener: JSON 1 KB, healthy, c=1", "ok", 800, 1, listener=True),
    Case("listener: JSON 1 KB, healthy, c=32", "ok", 3200, 32, listener=True, least_rate=4.0),
    Case("listener: JSON 1 KB, one hop, c=32", "hop", 1600, 32, listener=True),
    Case("listener: SSE 50 chunks, healthy, c=1", "ok", 100, 1, stream=True, listener=True, most_cpu=0.5),
    Case("listener: SSE 50 chunks, healthy, c=32", "ok", 640, 32, stream=True, listener=True, most_cpu=0.5),
)


@dataclass
class Sample:
    """One run of one case on one proxy."""

    rate: float
    cpu_ms: float
    p50: float
    p99: float
    first: float
    errors: int


async def measure(proxy: proxies.Proxy, job: load.Job) -> Sample:
    before = proxy.cpu_s()
    result = await load.run(job)
    cpu = (proxy.cpu_s() - before) * 1000 / max(1, len(result.whole))
    first = result.percentile(0.5, result.first)
    return Sample(result.rate, cpu, result.percentile(0.5), result.percentile(0.99), first, result.errors)


def job_for(case: Case, proxy: proxies.Proxy, *, addon: bool) -> load.Job:
    path = _CHAT if addon else f"/ok{_CHAT}"
    model = f"combo/{case.combo}" if addon else "m1"
    port = proxy.listener if addon and case.listener else proxy.port
    return load.Job(port, f"127.0.0.1:{port}", path, model, case.requests, case.concurrency, case.stream, case.tls)


def median(samples: list[Sample]) -> Sample:
    def of(name: str) -> float:
        return statistics.median(getattr(sample, name) for sample in samples)

    errors = sum(sample.errors for sample in samples)
    return Sample(of("rate"), of("cpu_ms"), of("p50"), of("p99"), of("first"), errors)


def bounds(case: Case, plain: Sample, addon: Sample) -> list[tuple[str, float, str, bool]]:
    rows = []
    if case.least_rate is not None:
        ratio = addon.rate / plain.rate
        rows.append(("throughput ratio", ratio, f">= {case.least_rate}", ratio >= case.least_rate))
    if case.most_cpu is not None:
        ratio = addon.cpu_ms / plain.cpu_ms
        rows.append(("CPU ratio", ratio, f"<= {case.most_cpu}", ratio <= case.most_cpu))
    if case.most_first_ms is not None:
        added = addon.first - plain.first
        rows.append(("first chunk added, ms", added, f"<= {case.most_first_ms}", added <= case.most_first_ms))
    return rows


def report(case: Case, plain: Sample, addon: Sample) -> bool:
    print(f"\n{case.name}")
    for name, sample in (("plain", plain), ("combos", addon)):
        print(
            f"  {name:7} {sample.rate:8.1f} req/s  p50 {sample.p50:7.2f} ms  p99 {sample.p99:7.2f} ms"
            f"  first {sample.first:7.2f} ms  CPU {sample.cpu_ms:6.2f} ms/req  errors {sample.errors}"
        )
    # Where other work takes the processors away, this says more than the clock does.
    if addon.cpu_ms:
        print(f"  {'CPU, plain to combos':24} {plain.cpu_ms / addon.cpu_ms:6.2f}")
    good = plain.errors == addon.errors == 0
    for name, value, bound, holds in bounds(case, plain, addon):
        print(f"  {name:24} {value:6.2f}   bound {bound:8} {'ok' if holds else 'MISSED'}")
        good &= holds
    return good


async def run_case(case: Case, plain: proxies.Proxy, addon: proxies.Proxy, rounds: int) -> bool:
    jobs = {proxy.port: job_for(case, proxy, addon=proxy is addon) for proxy in (plain, addon)}
    for proxy in (plain, addon):
        await measure(proxy, replace(jobs[proxy.port], requests=case.concurrency * 4))
    samples: dict[int, list[Sample]] = {plain.port: [], addon.port: []}
    for _ in range(rounds):
        for proxy in (plain, addon):
            samples[proxy.port].append(await measure(proxy, jobs[proxy.port]))
    return report(case, median(samples[plain.port]), median(samples[addon.port]))


async def memory(plain: proxies.Proxy, addon: proxies.Proxy, count: int = 200) -> bool:
    used = {}
    for proxy, path, model in ((plain, f"/slow{_CHAT}", "m1"), (addon, _CHAT, "combo/slow")):
        job = load.Job(proxy.port, f"127.0.0.1:{proxy.port}", path, model, 1, 1, stream=True)
        warm = await load.hold(job, 20)
        before = proxy.rss_kib()
        held = await load.hold(job, count)
        used[proxy.port] = (proxy.rss_kib() - before) / count
        for writer in warm + held:
            writer.close()
    over = used[addon.port] - used[plain.port]
    print(f"\nmemory per held stream: plain {used[plain.port]:.0f} KiB, combos {used[addon.port]:.0f} KiB")
    print(f"  {'over plain, KiB':24} {over:6.1f}   bound <= 150   {'ok' if over <= 150 else 'MISSED'}")
    return over <= 150


def startup(plain: list[float], addon: list[float]) -> bool:
    ratio = statistics.median(addon) / statistics.median(plain)
    print(f"\nstart-up: plain {statistics.median(plain):.2f} s, combos {statistics.median(addon):.2f} s")
    print(f"  {'ratio':24} {ratio:6.2f}   bound <= 1.4   {'ok' if ratio <= 1.4 else 'MISSED'}")
    return ratio <= 1.4


async def main(rounds: int, only: str, share: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        certificate = self_signed(work)
        server = subprocess.Popen([sys.executable, "upstream.py", str(certificate)], stdout=subprocess.PIPE)
        assert server.stdout is not None
        port, tls_port = (int(part) for part in server.stdout.readline().split())
        plain_url, tls_url = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
        try:
            return await compare(work, plain_url, tls_url, rounds, only, share)
        finally:
            server.kill()
            server.wait()


async def compare(work: Path, plain_url: str, tls_url: str, rounds: int, only: str, share: float) -> bool:
    starts: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for times, start in (
            (starts[0], proxies.plain(work, plain_url)),
            (starts[1], proxies.with_addon(work, plain_url, tls_url)),
        ):
            proxy = await start
            times.append(proxy.startup_s)
            proxy.stop()
    running = [
        await proxies.plain(work, plain_url),
        await proxies.plain(work, tls_url),
        await proxies.with_listener(work, plain_url, tls_url),
    ]
    try:
        plain, plain_tls, addon = running
        cases = [case.scaled(share) for case in CASES if only in case.name]
        results = [await run_case(case, plain_tls if case.tls else plain, addon, rounds) for case in cases]
        if not only:
            results += [await memory(plain, addon), startup(*starts)]
        return all(results)
    finally:
        for proxy in running:
            proxy.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds; the median is shown (default 3)")
    parser.add_argument("--share", type=float, default=1.0, help="share of the requests to send (default 1)")
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    chosen = parser.parse_args()
    sys.exit(0 if asyncio.run(main(chosen.rounds, chosen.only, chosen.share)) else 1)
