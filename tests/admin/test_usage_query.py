"""Sums over windows: whole buckets from the sums, cut ones from the records, and both the same as counting by hand."""

import random
from pathlib import Path
from typing import Any

import pytest

from combos.admin import usage_sums
from combos.admin.ledger_file import open_for_writing
from combos.admin.usage_query import Filters, WindowSums, reading, records
from combos.admin.usage_record import usage_document
from combos.admin.usage_sums import DECISIONS, TABLES, TURNS, USES, Sums, contributions
from combos.core.facts import Dialect
from combos.core.usage_windows import BUCKET_MS, Window
from combos.engine.record import Outcome
from records import AT, append, attempt, decision, failure, registry, turn

PRICES = registry()
HOUR = 4 * BUCKET_MS


def documents(count: int = 200) -> list[dict[str, Any]]:
    """Requests of all kinds over four hours."""
    draw = random.Random(3)
    made = []
    for number in range(count):
        at = AT + draw.randrange(4 * HOUR)
        attempts = [attempt()] if draw.random() < 0.5 else [failure(), attempt(1, "beta", "m2")]
        record = turn(
            *attempts,
            id=f"r{number}",
            combo=draw.choice(["main", "other", None]),
            dialect=draw.choice([Dialect.RESPONSES, Dialect.CHAT]),
            outcome=draw.choice([Outcome.SUCCESS, Outcome.TERMINAL]),
            decision=decision() if draw.random() < 0.3 else None,
        )
        made.append(usage_document(record, PRICES, at))
    return made


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "usage.sqlite"
    connection = open_for_writing(path)
    append(connection, documents())
    connection.close()
    return path


def by_hand(table: Any, columns: tuple[str, ...], window: Window, filters: Filters) -> dict[Any, dict[str, float]]:
    found: dict[Any, dict[str, float]] = {}
    for document in documents():
        at = document["timestamp"]
        if (window.since is not None and at < window.since) or (window.until is not None and at >= window.until):
            continue
        for of, key, values in contributions(document):
            if of is table and filters.matches(table, key):
                named = dict(zip(table.keys, key, strict=True))
                row = found.setdefault(tuple(named[name] for name in columns), dict.fromkeys(table.sums, 0))
                for name, value in zip(table.sums, values, strict=True):
                    row[name] += value
    return found


WINDOWS = [
    Window(None),
    Window(AT + HOUR),
    Window(AT + HOUR, AT + 2 * HOUR),
    Window(AT + 1_234_567, AT + 2 * HOUR + 321),
    Window(AT + 100, AT + 200_000),
    Window(AT + BUCKET_MS - 5, AT + BUCKET_MS + 5),
    Window(None, AT + 7_777_777),
    Window(AT + 9 * HOUR),
    Window(AT + 5, AT + 5),
]
FILTERS = [
    Filters(),
    Filters(combo="main"),
    Filters(provider="beta"),
    Filters(model="m1", surface="chat"),
    Filters(decided=True),
    Filters(combo="nobody"),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_sums_are_those_of_the_records(ledger: Path, table: Any, window: Window, filters: Filters) -> None:
    for columns in ((), (table.keys[1],), (table.keys[2], table.keys[1])):
        with reading(ledger) as connection:
            rows = WindowSums(connection, window).by(table, columns, filters)
        found = {tuple(row[name] for name in columns): {name: row[name] for name in table.sums} for row in rows}
        wanted = by_hand(table, columns, window, filters)
        assert found.keys() == wanted.keys()
        for key, sums in wanted.items():
            assert found[key] == pytest.approx(sums)


@pytest.mark.parametrize("together", [2, 3, 10_000])
def test_it_does_not_matter_when_rows_are_added_up(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(usage_sums, "_TOGETHER", together)
    sums = Sums()
    for document in documents():
        sums.add(document)
        assert all(len(rows) < together for found in sums._rows.values() for rows in found.values())
    for table in TABLES:
        found = {key: dict(zip(table.sums, values, strict=True)) for key, values in sums.of(table)}
        wanted = by_hand(table, table.keys, Window(None), Filters())
        assert found.keys() == wanted.keys()
        for key, row in wanted.items():
            assert found[key] == pytest.approx(row)


def test_whole_buckets_are_counted_without_reading_a_record(ledger: Path) -> None:
    with reading(ledger) as connection:
        assert connection is not None
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        for window in (Window(None), Window(AT, AT + HOUR)):
            sums = WindowSums(connection, window)
            sums.by(TURNS, ("outcome",), Filters())
            sums.by(USES, ("provider",), Filters())
    assert len(statements) == 4
    assert not any("FROM requests" in statement for statement in statements)


def test_a_cut_window_reads_the_records_of_its_ends_alone_and_once(ledger: Path) -> None:
    with reading(ledger) as connection:
        assert connection is not None
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        sums = WindowSums(connection, Window(AT + 1, AT + HOUR + 1))
        for table in TABLES:
            sums.by(table, (), Filters())
    asked = [statement for statement in statements if "FROM requests" in statement]
    assert asked == [
        f"SELECT record FROM requests WHERE at >= {AT + 1} AND at < {AT + BUCKET_MS}",
        f"SELECT record FROM requests WHERE at >= {AT + HOUR} AND at < {AT + HOUR + 1}",
    ]


def test_a_million_requests_are_as_many_rows_as_their_keys(tmp_path: Path) -> None:
    """What makes a large day quick to add up: rows of sums do not grow with the requests."""
    connection = open_for_writing(tmp_path / "usage.sqlite")
    rows = []
    for _ in range(3):
        append(connection, documents(50))
        rows.append([connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in TABLES])
    assert rows[0] == rows[1] == rows[2]
    assert connection.execute("SELECT count(*) FROM requests").fetchone()[0] == 150
    connection.close()


def test_records_come_newest_first_page_by_page(ledger: Path) -> None:
    with reading(ledger) as connection:
        first = records(connection, 3)
        second = records(connection, 3, first[-1][0])
        mine = records(connection, 1_000, combo="main")
    numbers = [number for number, _ in (*first, *second)]
    assert numbers == [200, 199, 198, 197, 196, 195]
    assert {row["combo"] for _, row in mine} == {"main"}


def test_decisions_are_counted_with_their_choice(ledger: Path) -> None:
    with reading(ledger) as connection:
        (row,) = WindowSums(connection, Window(None)).by(DECISIONS, ("provider", "model", "effort"), Filters())
    assert (row["provider"], row["model"], row["effort"]) == ("alpha", "m1", "high")
    assert row["decisions"] == sum("jevDecision" in one for one in documents())
