"""Writes a synthetic day into a usage ledger and times the answers of the API and the command line."""

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from combos.admin.ledger import BATCH
from combos.admin.ledger_file import Batch, open_for_writing, prune
from combos.admin.usage_query import Filters, reading
from combos.admin.usage_view import Wanted, usage
from combos.core.limits import LEDGER_BYTES_DEFAULT
from combos.core.usage_windows import Range, Window

DAY_MS = 86_400_000
START_MS = 1_790_812_800_000  # a midnight, UTC
BOUND_S = 1.0
OUTCOMES = ("success",) * 17 + ("terminal", "exhausted", "cancelled")


def documents(count: int, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Records spread evenly over the day; one in five hopped."""
    for number in range(count):
        hops = int(draw.random() < 0.2)
        attempts = [attempt(ordinal, draw, failed=ordinal < hops) for ordinal in range(hops + 1)]
        yield {
            "version": 1,
            "requestId": f"{number:032x}",
            "timestamp": START_MS + number * DAY_MS // count,
            "combo": f"combo{draw.randrange(5)}",
            "requestedModel": "combo/any",
            "resolvedModel": None,
            "inboundProtocol": draw.choice(("responses", "messages", "chat")),
            "outcome": draw.choice(OUTCOMES),
            "reason": None,
            "status": 200,
            "durationMs": draw.randrange(500, 60_000),
            "firstOutputMs": 400,
            "waitsMs": [],
            "usageStatus": "reported",
            "usage": None,
            "spend": {"sends": hops + 1},
            "attempts": attempts,
        }


def attempt(ordinal: int, draw: random.Random, *, failed: bool) -> dict[str, Any]:
    provider = draw.randrange(4)
    usage = {
        "inputTokens": draw.randrange(100, 100_000),
        "outputTokens": draw.randrange(10, 4_000),
        "totalTokens": 1_000,
        "cacheReadInputTokens": 50,
        "cacheCreationInputTokens": None,
        "reasoningOutputTokens": None,
    }
    return {
        "ordinal": ordinal,
        "provider": f"provider{provider}",
        "model": f"model{provider}-{draw.randrange(3)}",
        "dialect": "responses",
        "account": None,
        "served": not failed,
        "status": 503 if failed else 200,
        "result": "completed",
        "rule": "status-retryable" if failed else None,
        "verdict": "hop" if failed else None,
        "cooldownMs": None,
        "cooldownSource": None,
        "errorCode": None,
        "upstreamError": None,
        "startedMs": 0,
        "durationMs": 1_000,
        "firstOutputMs": None if failed else 400,
        "sendCount": 1,
        "dropped": [],
        "usageStatus": "unreported" if failed else "reported",
        "usage": None if failed else usage,
        "costUsd": None if failed else 0.01,
    }


def write(path: Path, count: int) -> float:
    """Fill the ledger in batches, as the writer does; gives the seconds."""
    connection = open_for_writing(path)
    batch: list[dict[str, Any]] = []
    spent = 0.0
    for document in documents(count, random.Random(7)):
        batch.append(document)
        if len(batch) == BATCH:
            spent += stored(connection, batch)
            batch = []
    spent += stored(connection, batch) if batch else 0.0
    started = time.perf_counter()
    prune(connection, 16 * LEDGER_BYTES_DEFAULT)
    connection.close()
    return spent + time.perf_counter() - started


def stored(connection: Any, records: list[dict[str, Any]]) -> float:
    started = time.perf_counter()
    batch = Batch()
    for record in records:
        batch.add(record)
    batch.write(connection)
    return time.perf_counter() - started


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "usage.sqlite"
        written = write(path, count)
        print(f"writing: {count} records, {written / count * 1e6:.1f} µs each, {path.stat().st_size / 1e6:.0f} MB")
        windows = {"whole day": (0, 0), "cut at both ends": (421_000, 123_000)}
        worst = 0.0
        for name, (late, early) in windows.items():
            window = Window(START_MS + late, START_MS + DAY_MS - early)
            started = time.perf_counter()
            with reading(path) as connection:
                answer = usage(connection, Wanted(Range.ALL, window, Filters(), START_MS + DAY_MS))
            took = time.perf_counter() - started
            worst = max(worst, took)
            print(f"{name}: {answer['summary']['requests']} requests added up in {took:.3f} s")
    if worst >= BOUND_S:
        raise SystemExit(f"slower than {BOUND_S} s")


if __name__ == "__main__":
    main()
