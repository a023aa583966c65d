"""Statistics of decisions: how many, by which method, behind which gate, what was picked and what it used.

Picks count decisions, attempts count physical sends, and the tokens of a decision are never added to those of a model.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from combos.admin.usage_query import Filters, WindowSums
from combos.admin.usage_sums import DECISIONS, USES
from combos.core.usage_windows import Range, Window
from combos.decision.gates import Backend, Gate
from combos.decision.stored import UNKNOWN_BACKEND

MODELS_MAX = 256
"""Rows of models; the last one holds what does not fit."""

type Json = dict[str, Any]
type Sums = Mapping[str, Any]

_APPLY = Gate.APPLY.value
_TOKENS = (
    ("inputTokens", "input"),
    ("outputTokens", "output"),
    ("reasoningTokens", "reasoning"),
    ("cacheReadTokens", "cache_read"),
    ("cacheWriteTokens", "cache_write"),
    ("totalTokens", "total"),
)


def decision_statistics(
    connection: sqlite3.Connection | None, combo: str | None, wanted: Range, window: Window, now_ms: int
) -> Json:
    """The statistics of one combo, or of all."""
    sums = WindowSums(connection, window)
    picks = sums.by(DECISIONS, ("backend", "gate", "provider", "model", "effort"), Filters(combo=combo))
    uses = sums.by(USES, ("provider", "model"), Filters(combo=combo, decided=True))
    return {
        "range": wanted.value,
        "comboId": combo,
        "since": window.since,
        "generatedAt": now_ms,
        "summary": _summary(picks, uses),
        "gates": _gates(picks),
        "backends": _backends(picks),
        "models": _bounded(_models(picks, uses)),
        "snapshotWindowStart": window.since,
        "snapshotWindowEnd": now_ms,
    }


def _summary(picks: Sequence[Sums], uses: Sequence[Sums]) -> Json:
    decisions, applied = _total(picks, "decisions"), _applied(picks)
    reported = _total(picks, "reported")
    return {
        "decisions": decisions,
        "appliedDecisions": applied,
        "failOpenDecisions": decisions - applied,
        "successfulRequests": _total(picks, "succeeded"),
        "requestsWithModelFallback": _total(picks, "changed"),
        "modelAttempts": _total(uses, "sends"),
        "measuredModelAttempts": _total(uses, "measured"),
        **{f"model{name[0].upper()}{name[1:]}": _total(uses, column) for name, column in _TOKENS},
        "decisionUsageReported": reported,
        "decisionInputTokens": _total(picks, "input"),
        "decisionOutputTokens": _total(picks, "output"),
        "decisionTotalTokens": _total(picks, "input") + _total(picks, "output"),
        "averageLatencyMs": _average(picks, "latency_ms", "decisions"),
        "averageConfidence": _average(picks, "confidence", "confidences"),
        "averageChosenProbability": _average(picks, "probability", "probabilities"),
    }


def _gates(picks: Sequence[Sums]) -> list[Json]:
    counts = {gate.value: _total((row for row in picks if row["gate"] == gate.value), "decisions") for gate in Gate}
    return [{"gate": gate, "decisions": count} for gate, count in counts.items() if count]


def _backends(picks: Sequence[Sums]) -> list[Json]:
    made = []
    for name in (*(backend.value for backend in Backend), UNKNOWN_BACKEND):
        rows = [row for row in picks if row["backend"] == name]
        made.append(
            {
                "backend": name,
                "decisions": _total(rows, "decisions"),
                "applied": _applied(rows),
                "averageLatencyMs": _average(rows, "latency_ms", "decisions"),
            }
        )
    return made


def _models(picks: Sequence[Sums], uses: Sequence[Sums]) -> list[Json]:
    pairs = dict.fromkeys((row["provider"], row["model"]) for row in (*picks, *uses))
    rows = [_model(*pair, _of(pair, picks), _of(pair, uses)) for pair in pairs]
    return sorted(rows, key=lambda row: (-row["picks"], -row["attempts"], row["provider"], row["model"]))


def _model(provider: str, model: str, picks: Sequence[Sums], uses: Sequence[Sums]) -> Json:
    count, applied = _total(picks, "decisions"), _applied(picks)
    efforts: dict[str | None, int] = {}
    for row in picks:
        efforts[row["effort"] or None] = efforts.get(row["effort"] or None, 0) + row["decisions"]
    return {
        "provider": provider,
        "model": model,
        "overflow": False,
        "picks": count,
        "appliedPicks": applied,
        "failOpenPicks": count - applied,
        "attempts": _total(uses, "sends"),
        "measuredAttempts": _total(uses, "measured"),
        **{name: _total(uses, column) for name, column in _TOKENS},
        "efforts": _efforts(efforts),
    }


def _bounded(rows: list[Json]) -> list[Json]:
    if len(rows) <= MODELS_MAX:
        return rows
    kept, rest = rows[: MODELS_MAX - 1], rows[MODELS_MAX - 1 :]
    efforts: dict[str | None, int] = {}
    for row in rest:
        for one in row["efforts"]:
            efforts[one["effort"]] = efforts.get(one["effort"], 0) + one["picks"]
    numbers = [name for name, value in rest[0].items() if isinstance(value, int) and not isinstance(value, bool)]
    overflow = {name: sum(row[name] for row in rest) for name in numbers}
    return [*kept, {"provider": "", "model": "", "overflow": True, **overflow, "efforts": _efforts(efforts)}]


def _efforts(picks: Mapping[str | None, int]) -> list[Json]:
    return [
        {"effort": effort, "picks": count}
        for effort, count in sorted(picks.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    ]


def _of(pair: tuple[str, str], rows: Iterable[Sums]) -> list[Sums]:
    return [row for row in rows if (row["provider"], row["model"]) == pair]


def _applied(rows: Iterable[Sums]) -> int:
    return _total((row for row in rows if row["gate"] == _APPLY), "decisions")


def _total(rows: Iterable[Sums], name: str) -> int:
    return int(sum(row[name] for row in rows))


def _average(rows: Sequence[Sums], total: str, count: str) -> float | None:
    counted = _total(rows, count)
    return round(sum(row[total] for row in rows) / counted, 4) if counted else None
