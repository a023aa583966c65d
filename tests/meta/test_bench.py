"""The benchmarks run; what they measure is for people to read."""

import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "scripts" / "bench"
# Python 3.12.1 complains of each connection that is open when mitmdump ends, with the addon or without it.
_ASYNCIO = re.compile(
    r"^Exception in callback StreamReaderProtocol\.connection_made\..*?^asyncio\.exceptions\.CancelledError\n",
    re.DOTALL | re.MULTILINE,
)


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, BENCH / script, *arguments], cwd=BENCH, capture_output=True, text=True, check=False
    )
    said = _ASYNCIO.sub("", done.stderr)
    assert "Traceback" not in said, said
    return done.stdout


def test_selection_reports_every_strategy() -> None:
    printed = run("selection.py", "2000")
    for name in ("failover", "round-robin", "random", "least-used", "reset-window", "jev", "whole"):
        assert name in printed


def test_engine_times_the_parts_of_a_request() -> None:
    printed = run("engine.py", "2")
    for name in ("whole", "stream", "made", "sent", "answered"):
        assert name in printed


def test_overhead_compares_with_plain_mitmdump() -> None:
    printed = run("overhead.py", "--rounds", "1", "--only", "one hop, c=1", "--share", "0.05")
    assert "plain" in printed
    assert "throughput ratio" in printed
    assert "errors 0" in printed
    assert "errors 1" not in printed


def test_translate_times_requests_and_streams_of_every_pair() -> None:
    printed = run("translate.py", "1")
    assert printed.count("MB/s") == 2 * 12
    assert printed.count("chunks/s") == 12
    for client, target in (("responses", "gemini"), ("chat", "messages"), ("gemini", "chat")):
        assert f"{client} to {target}" in printed


def test_scale_says_what_everybody_needs() -> None:
    printed = run("scale.py", "--rounds", "1", "--share", "0.02", "--only", "listener, 1 process")
    assert "processors" in printed
    assert printed.count("CPU ms/request: proxies") == printed.count("errors 0") > 1


def test_streams_tells_delays_of_chunks_and_what_held_the_loop_up() -> None:
    printed = run("streams.py", "--streams", "3", "--pace", "20", "--opened", "100", "--hold", "0.5")
    for row in ("direct", "plain", "combos"):
        assert f"  {row}" in printed
    assert printed.count("longest collection") == 2
    assert printed.count("cut 0") == 3
    assert "longest delay, ms" in printed
