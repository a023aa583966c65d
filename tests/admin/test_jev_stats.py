"""Statistics of decisions: counts by gate, method and model, averages with and without samples."""

from pathlib import Path
from typing import Any

import pytest

from combos.admin import jev_stats
from combos.admin.jev_stats import decision_statistics
from combos.admin.ledger_file import open_for_writing
from combos.admin.usage_query import reading
from combos.admin.usage_record import usage_document
from combos.core.usage_windows import Range, Window
from combos.engine.record import Outcome, TurnRecord
from records import AT, append, attempt, decision, failure, registry, turn

PRICES = registry()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "usage.sqlite"


def statistics(path: Path, *rows: TurnRecord, combo: str | None = "main") -> dict[str, Any]:
    connection = open_for_writing(path)
    append(connection, [usage_document(record, PRICES, AT) for record in rows])
    connection.close()
    with reading(path) as ledger:
        return decision_statistics(ledger, combo, Range.ALL, Window(None), AT)


def test_picks_are_decisions_and_attempts_are_sends(path: Path) -> None:
    shown = statistics(
        path,
        turn(attempt(), decision=decision()),
        turn(failure(sends=2), attempt(1, "beta", "m2"), decision=decision(effort="low", confidence=0.4)),
        turn(
            attempt(),
            decision=decision(gate="timeout", effort=None, confidence=None, probability=None, usage=None),
            outcome=Outcome.TERMINAL,
            status=400,
        ),
        turn(attempt()),
    )
    assert shown["summary"] == {
        "decisions": 3, "appliedDecisions": 2, "failOpenDecisions": 1, "successfulRequests": 2,
        "requestsWithModelFallback": 1, "modelAttempts": 5, "measuredModelAttempts": 3, "modelInputTokens": 75,
        "modelOutputTokens": 21, "modelReasoningTokens": 0, "modelCacheReadTokens": 0, "modelCacheWriteTokens": 0,
        "modelTotalTokens": 96, "decisionUsageReported": 2, "decisionInputTokens": 800, "decisionOutputTokens": 12,
        "decisionTotalTokens": 812, "averageLatencyMs": 200.0, "averageConfidence": 0.6,
        "averageChosenProbability": 0.9,
    }  # fmt: skip
    assert shown["gates"] == [{"gate": "apply", "decisions": 2}, {"gate": "timeout", "decisions": 1}]
    assert [row["backend"] for row in shown["backends"]] == ["typesafe", "systemone", "model", "unknown"]
    assert shown["backends"][0] == {"backend": "typesafe", "decisions": 3, "applied": 2, "averageLatencyMs": 200.0}
    assert shown["backends"][1] == {"backend": "systemone", "decisions": 0, "applied": 0, "averageLatencyMs": None}
    first, second = shown["models"]
    assert (first["provider"], first["picks"], first["appliedPicks"], first["failOpenPicks"]) == ("alpha", 3, 2, 1)
    assert (first["attempts"], first["measuredAttempts"], first["inputTokens"]) == (4, 2, 50)
    assert first["efforts"] == [
        {"effort": None, "picks": 1}, {"effort": "high", "picks": 1}, {"effort": "low", "picks": 1},
    ]  # fmt: skip
    assert (second["provider"], second["picks"], second["attempts"], second["efforts"]) == ("beta", 0, 1, [])
    assert (shown["comboId"], shown["since"], shown["snapshotWindowEnd"]) == ("main", None, AT)


def test_without_a_decision_averages_are_null(path: Path) -> None:
    shown = statistics(path, turn(attempt()))
    assert (shown["summary"]["decisions"], shown["summary"]["averageLatencyMs"]) == (0, None)
    assert (shown["gates"], shown["models"]) == ([], [])


def test_combos_are_told_apart(path: Path) -> None:
    rows = (turn(attempt(), decision=decision()), turn(attempt(), combo="other", decision=decision()))
    assert statistics(path, *rows, combo="other")["summary"]["decisions"] == 1
    with reading(path) as ledger:
        everything = decision_statistics(ledger, None, Range.ALL, Window(None), AT)
    assert everything["summary"]["decisions"] == 2


def test_too_many_models_end_in_one_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jev_stats, "MODELS_MAX", 3)
    rows = [turn(attempt(model=f"m{n}"), decision=decision(model=f"m{n}")) for n in range(5)]
    shown = statistics(path, *rows, rows[0])["models"]
    assert [row["model"] for row in shown] == ["m0", "m1", ""]
    assert (shown[2]["overflow"], shown[2]["picks"], shown[2]["attempts"]) == (True, 3, 3)
    assert shown[2]["efforts"] == [{"effort": "high", "picks": 3}]
