"""Usage as the API and the command line show it: totals, and rows per combo, provider, model and day.

Averages are null without a sample, costs null where nothing could be priced; how many attempts were measured and priced
stands beside every sum, because an unknown count is not a zero.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from combos.admin.usage_query import Filters, WindowSums
from combos.admin.usage_sums import NANO, TURNS, USES
from combos.core.usage_windows import Range, Window, local_day
from combos.core.values import dataclass

type Json = dict[str, Any]
type Sums = Mapping[str, Any]

_TOKENS = (
    ("inputTokens", "input"),
    ("outputTokens", "output"),
    ("totalTokens", "total"),
    ("cacheReadTokens", "cache_read"),
    ("cacheWriteTokens", "cache_write"),
    ("reasoningTokens", "reasoning"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. `zone` is whose days the rows per day are; None is the machine's own."""

    range: Range
    window: Window
    filters: Filters
    now_ms: int
    zone: tzinfo | None = None


def usage(connection: sqlite3.Connection | None, wanted: Wanted) -> Json:
    """The whole answer."""
    sums = WindowSums(connection, wanted.window)
    turns = sums.by(TURNS, ("bucket", "combo", "outcome"), wanted.filters)
    uses = sums.by(USES, ("bucket", "combo", "provider", "model"), wanted.filters)
    # Sums of requests know no provider: with such a filter only attempts are counted.
    narrow = wanted.filters.provider is not None or wanted.filters.model is not None
    turns = [] if narrow else turns
    return {
        "range": wanted.range.value,
        "since": wanted.window.since,
        "until": wanted.window.until,
        "generatedAt": wanted.now_ms,
        "summary": {**_requests(turns, narrow), **_attempts(uses)},
        "combos": _rows(("combo",), turns, uses, narrow),
        "providers": _rows(("provider",), (), uses),
        "models": _rows(("provider", "model"), (), uses),
        "days": _days(turns, uses, wanted.zone, narrow),
    }


def _rows(by: Sequence[str], turns: Iterable[Sums], uses: Iterable[Sums], narrow: bool = False) -> list[Json]:
    groups: dict[tuple[Any, ...], tuple[list[Sums], list[Sums]]] = {}
    for index, rows in enumerate((turns, uses)):
        for row in rows:
            groups.setdefault(tuple(row[name] for name in by), ([], []))[index].append(row)
    counted = "combo" in by or "day" in by
    made = [
        {
            **{name: value or None for name, value in zip(by, key, strict=True)},
            **(_requests(of_turns, narrow) if counted else {}),
            **_attempts(of_uses),
        }
        for key, (of_turns, of_uses) in groups.items()
    ]
    return sorted(made, key=lambda row: (-(row.get("requests") or 0), -row["attempts"], *(row[n] or "" for n in by)))


def _days(turns: Sequence[Sums], uses: Sequence[Sums], zone: tzinfo | None, narrow: bool) -> list[Json]:
    days: dict[int, str] = {}

    def dated(rows: Sequence[Sums]) -> list[Sums]:
        for bucket in {row["bucket"] for row in rows} - days.keys():
            days[bucket] = local_day(bucket, zone)
        return [{**row, "day": days[row["bucket"]]} for row in rows]

    rows = _rows(("day",), dated(turns), dated(uses), narrow)
    return sorted(rows, key=lambda row: str(row["day"]))


def _requests(rows: Sequence[Sums], narrow: bool = False) -> Json:
    """Counts of requests; null where they cannot be told."""
    if narrow:
        unknown = ("requests", "requestsWithFallback", "hops", "waitedMs", "averageDurationMs")
        return {"outcomes": {}, **dict.fromkeys(unknown)}
    requests = _total(rows, "requests")
    outcomes: dict[str, int] = {}
    for row in rows:
        outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + row["requests"]
    return {
        "requests": requests,
        "outcomes": dict(sorted(outcomes.items())),
        "requestsWithFallback": _total(rows, "hopped"),
        "hops": _total(rows, "hops"),
        "waitedMs": _total(rows, "waited_ms"),
        "averageDurationMs": _average(_total(rows, "duration_ms"), requests),
    }


def _attempts(rows: Sequence[Sums]) -> Json:
    attempts, measured, priced = (_total(rows, name) for name in ("attempts", "measured", "priced"))
    first = _total(rows, "first_outputs")
    return {
        "attempts": attempts,
        "sends": _total(rows, "sends"),
        "served": _total(rows, "served"),
        "failed": _total(rows, "failed"),
        "measuredAttempts": measured,
        "pricedAttempts": priced,
        **{name: _total(rows, column) if measured else None for name, column in _TOKENS},
        "costUsd": round(_total(rows, "cost_nano") / NANO, 6) if priced else None,
        "averageFirstOutputMs": _average(_total(rows, "first_output_ms"), first),
    }


def _total(rows: Iterable[Sums], name: str) -> int:
    return int(sum(row[name] for row in rows))


def _average(total: float, count: int) -> float | None:
    return round(total / count, 3) if count else None
