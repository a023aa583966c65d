"""What the ledger adds up: three tables of sums by quarter of an hour, and what one record adds to each.

A table is named, keyed and summed by columns that are all written here; the ledger makes its statements from them. The
same function gives the sums of a record when it is written and when a part of a bucket has to be counted anew.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from combos.core.usage_windows import BUCKET_MS
from combos.core.values import dataclass

type Row = tuple[Any, ...]
type Document = Mapping[str, Any]
SCHEMA_VERSION = 1
NEWER = "it was written by a newer version"
NANO = 1_000_000_000
"""Costs are summed as whole billionths of a USD: sums of them do not depend on their order."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns that make a row's key, the first one the bucket, and columns that are summed."""

    name: str
    keys: tuple[str, ...]
    sums: tuple[str, ...]

    @property
    def creation(self) -> str:
        """The statement that makes the table."""
        keys = ", ".join(f"{key} {'INTEGER' if key in ('bucket', 'decided') else 'TEXT'} NOT NULL" for key in self.keys)
        sums = ", ".join(f"{name} NUMERIC NOT NULL" for name in self.sums)
        primary = ", ".join(self.keys)
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({keys}, {sums}, PRIMARY KEY ({primary})) WITHOUT ROWID"

    @property
    def addition(self) -> str:
        """The statement that adds a row of keys and sums."""
        columns = (*self.keys, *self.sums)
        marks = ", ".join("?" * len(columns))
        update = ", ".join(f"{name} = {name} + excluded.{name}" for name in self.sums)
        return (
            f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names of this module
            f" ON CONFLICT ({', '.join(self.keys)}) DO UPDATE SET {update}"
        )


TURNS = Table(
    "turns",
    ("bucket", "combo", "surface", "outcome"),
    ("requests", "duration_ms", "waited_ms", "hops", "hopped", "sends"),
)
USES = Table(
    "uses",
    ("bucket", "combo", "surface", "provider", "model", "decided"),
    (
        "attempts", "sends", "served", "failed", "measured", "input", "output", "cache_read", "cache_write",
        "reasoning", "total", "cost_nano", "priced", "first_output_ms", "first_outputs",
    ),
)  # fmt: skip
DECISIONS = Table(
    "decisions",
    ("bucket", "combo", "backend", "gate", "provider", "model", "effort"),
    (
        "decisions", "latency_ms", "confidence", "confidences", "probability", "probabilities", "reported",
        "input", "output", "succeeded", "changed",
    ),
)  # fmt: skip
TABLES = (TURNS, USES, DECISIONS)


# In the order of the columns of `USES`.
_COUNTS = (
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "reasoningOutputTokens",
    "totalTokens",
)  # fmt: skip
_NO_COUNTS = [0] * len(_COUNTS)
_TOGETHER = 64  # rows of one key that wait to be added up: columns are added up faster than rows


class Sums:
    """Sums in memory, by table and key."""

    def __init__(self) -> None:
        self._rows: dict[Table, dict[Row, list[Row]]] = {table: {} for table in TABLES}

    def add(self, document: Document) -> None:
        """Add one record."""
        for table, key, values in contributions(document):
            rows = self._rows[table].setdefault(key, [])
            rows.append(values)
            if len(rows) == _TOGETHER:
                rows[:] = [_summed(rows)]

    def of(self, table: Table) -> list[tuple[Row, Row]]:
        """Every key of a table with its sums, in the order of the columns."""
        return [(key, _summed(rows)) for key, rows in self._rows[table].items()]

    def statements(self) -> Iterator[tuple[str, list[Row]]]:
        """Statements with their rows."""
        for table in TABLES:
            if rows := self.of(table):
                yield table.addition, [key + values for key, values in rows]


def _summed(rows: list[Row]) -> Row:
    return tuple(map(sum, zip(*rows, strict=True)))


def contributions(document: Document) -> Iterator[tuple[Table, Row, Row]]:
    """What a record adds: table, key, values in the order of the columns. Truth is a one."""
    at = int(document["timestamp"])
    bucket = at - at % BUCKET_MS
    combo, surface = document["combo"] or "", document["inboundProtocol"] or ""
    attempts, decision = document["attempts"], document.get("jevDecision")
    hops = len(attempts) - 1 if attempts else 0
    waited, sends = sum(document["waitsMs"]), document["spend"]["sends"]
    of_turn = (bucket, combo, surface, document["outcome"] or "")
    yield TURNS, of_turn, (1, document["durationMs"] or 0, waited, hops, hops > 0, sends)
    decided = int(decision is not None)
    for attempt in attempts:
        yield USES, (bucket, combo, surface, attempt["provider"], attempt["model"], decided), _use(attempt)
    if decision is not None:
        yield _decision(bucket, document, decision)


def _use(attempt: Document) -> Row:
    usage, cost, first = attempt["usage"], attempt["costUsd"], attempt["firstOutputMs"]
    counts = _NO_COUNTS if usage is None else [usage.get(name) or 0 for name in _COUNTS]
    return (
        1,
        attempt["sendCount"],
        attempt["served"],
        attempt["rule"] is not None,
        usage is not None,
        *counts,
        0 if cost is None else round(cost * NANO),
        cost is not None,
        first or 0,
        first is not None,
    )


def _decision(bucket: int, document: Document, decision: Document) -> tuple[Table, Row, Row]:
    selected, usage = decision["selected"], decision.get("usage")
    confidence, probability = decision.get("confidence"), decision.get("chosenProbability")
    chosen = (selected["provider"], selected["model"])
    changed = any((one["provider"], one["model"]) != chosen for one in document["attempts"] if one["sendCount"])
    status = document["status"] or 0
    return (
        DECISIONS,
        (
            bucket,
            decision["comboId"],
            decision.get("backend") or "unknown",
            decision["gate"],
            *chosen,
            selected.get("effort") or "",
        ),
        (
            1,
            decision["latencyMs"],
            confidence or 0,
            confidence is not None,
            probability or 0,
            probability is not None,
            usage is not None,
            usage["inputTokens"] if usage else 0,
            usage["outputTokens"] if usage else 0,
            200 <= status < 400,
            changed,
        ),
    )
