"""Usage as it is shown: sums with what is unknown beside them, rows per combo, provider, model and day."""

from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from combos.admin.ledger_file import open_for_writing
from combos.admin.usage_query import Filters, reading
from combos.admin.usage_record import usage_document
from combos.admin.usage_view import Wanted, usage
from combos.core.usage_windows import Range, Window
from combos.engine.record import Outcome, TurnRecord
from records import AT, append, attempt, failure, registry, turn

DAY_MS = 86_400_000
PRICES = registry()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "usage.sqlite"


def write(path: Path, *rows: tuple[TurnRecord, int]) -> None:
    connection = open_for_writing(path)
    append(connection, [usage_document(record, PRICES, at) for record, at in rows])
    connection.close()


def view(path: Path, filters: Filters = Filters(), zone: Any = UTC, window: Window = Window(None)) -> dict[str, Any]:  # noqa: B008
    with reading(path) as connection:
        return usage(connection, Wanted(Range.ALL, window, filters, AT, zone))


def test_a_hop_counts_for_both_targets_and_once_as_a_request(path: Path) -> None:
    write(path, (turn(waits_ms=[500]), AT))
    shown = view(path)
    assert shown["summary"] == {
        "requests": 1, "outcomes": {"success": 1}, "requestsWithFallback": 1, "hops": 1, "waitedMs": 500,
        "averageDurationMs": 3_000.0, "attempts": 2, "sends": 2, "served": 1, "failed": 1, "measuredAttempts": 1,
        "pricedAttempts": 1, "inputTokens": 25, "outputTokens": 7, "totalTokens": 32, "cacheReadTokens": 0,
        "cacheWriteTokens": 0, "reasoningTokens": 0, "costUsd": 0.00019, "averageFirstOutputMs": 100.0,
    }  # fmt: skip
    (combo,) = shown["combos"]
    assert (combo["combo"], combo["requests"], combo["attempts"]) == ("main", 1, 2)
    rows = {(row["provider"], row["model"]): row for row in shown["models"]}
    failed, served = rows["alpha", "m1"], rows["beta", "m2"]
    assert (failed["failed"], failed["inputTokens"], failed["costUsd"]) == (1, None, None)
    assert (served["served"], served["inputTokens"], served["costUsd"]) == (1, 25, 0.00019)
    assert {row["provider"] for row in shown["providers"]} == {"alpha", "beta"}


def test_nothing_measured_is_unknown_and_nothing_asked_is_zero(path: Path) -> None:
    write(path, (turn(attempt(usage=None)), AT))
    summary = view(path)["summary"]
    assert (summary["inputTokens"], summary["costUsd"], summary["measuredAttempts"]) == (None, None, 0)
    empty = view(path, Filters(combo="nobody"))
    assert (empty["summary"]["requests"], empty["summary"]["averageDurationMs"]) == (0, None)
    assert (empty["combos"], empty["models"], empty["days"]) == ([], [], [])


def test_a_request_that_nobody_could_serve_is_a_row_of_its_combo(path: Path) -> None:
    record = turn(outcome=Outcome.UNAVAILABLE, status=503)
    record.attempts.clear()
    write(path, (record, AT))
    (combo,) = view(path)["combos"]
    assert (combo["combo"], combo["requests"], combo["attempts"], combo["outcomes"]) == (
        "main", 1, 0, {"unavailable": 1},
    )  # fmt: skip


def test_rows_are_ordered_by_requests_and_direct_ones_have_no_combo(path: Path) -> None:
    write(path, (turn(attempt(), combo=None), AT), (turn(), AT), (turn(), AT))
    assert [(row["combo"], row["requests"]) for row in view(path)["combos"]] == [("main", 2), (None, 1)]


def test_days_are_local(path: Path) -> None:
    write(path, (turn(), AT), (turn(), AT + DAY_MS // 2 - 1), (turn(), AT + DAY_MS // 2))
    assert [(row["day"], row["requests"]) for row in view(path)["days"]] == [("2026-10-01", 2), ("2026-10-02", 1)]
    berlin = view(path, zone=ZoneInfo("Europe/Berlin"))["days"]
    assert [(row["day"], row["requests"]) for row in berlin] == [("2026-10-01", 1), ("2026-10-02", 2)]


def test_requests_are_unknown_where_only_attempts_can_be_told_apart(path: Path) -> None:
    write(path, (turn(), AT))
    shown = view(path, Filters(provider="beta"))
    assert (shown["summary"]["requests"], shown["summary"]["attempts"]) == (None, 1)
    assert [row["model"] for row in shown["models"]] == ["m2"]
    assert view(path, Filters(model="m1"))["summary"]["failed"] == 1


def test_a_send_more_than_attempts_shows(path: Path) -> None:
    write(path, (turn(failure(sends=3), attempt(1, "beta", "m2")), AT))
    assert (view(path)["summary"]["attempts"], view(path)["summary"]["sends"]) == (2, 4)


def test_the_window_is_told(path: Path) -> None:
    shown = view(path, window=Window(5, 10))
    assert (shown["range"], shown["since"], shown["until"], shown["generatedAt"]) == ("all", 5, 10, AT)
