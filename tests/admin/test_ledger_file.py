"""The ledger's database: what is stored together, in how many statements, and how its size is kept."""

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from combos.admin import ledger_file
from combos.admin.ledger_file import Batch, open_for_writing, prune
from combos.admin.usage_query import Filters, WindowSums, count, reading, records
from combos.admin.usage_record import usage_document
from combos.admin.usage_sums import TURNS
from combos.core.usage_windows import BUCKET_MS, Window
from records import AT, append, attempt, registry, turn

PRICES = registry()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "usage.sqlite"


def document(ident: str, at: int = AT) -> dict[str, Any]:
    return usage_document(turn(attempt(), id=ident), PRICES, at)


def requests(path: Path) -> int:
    with reading(path) as connection:
        return sum(row["requests"] for row in WindowSums(connection, Window(None)).by(TURNS, (), Filters()))


def fill(connection: sqlite3.Connection, count: int) -> None:
    rows = [document(str(n), AT + n * BUCKET_MS) for n in range(count)]
    for start in range(0, count, 100):
        append(connection, rows[start : start + 100])


def used(connection: sqlite3.Connection) -> int:
    return ledger_file._used(connection)


def test_at_its_size_the_oldest_records_go_and_their_sums_stay(path: Path) -> None:
    connection = open_for_writing(path)
    fill(connection, 400)
    limit = used(connection) * 2 // 3
    prune(connection, limit)
    left = records(connection, 1_000)
    assert used(connection) <= limit
    assert 0 < len(left) < 400
    assert left[0][1]["requestId"] == "399"
    assert [row["requestId"] for _, row in left] == [str(n) for n in range(399, 399 - len(left), -1)]
    connection.close()
    assert requests(path) == 400
    assert path.stat().st_size <= limit


def test_in_the_end_the_oldest_sums_go_too(path: Path) -> None:
    connection = open_for_writing(path)
    fill(connection, 400)
    prune(connection, used(connection) // 20)
    assert count(connection) == 0
    assert 0 <= requests(path) < 400
    connection.close()


def test_a_limit_that_nothing_can_meet_ends(path: Path) -> None:
    connection = open_for_writing(path)
    fill(connection, 20)
    prune(connection, 1)
    assert count(connection) == 0
    connection.close()


def test_a_transaction_that_fails_leaves_nothing_behind(path: Path) -> None:
    connection = open_for_writing(path)
    fine = document("fine")
    with pytest.raises(sqlite3.Error):
        append(connection, [fine, {**fine, "timestamp": AT, "requestId": None}])
    assert count(connection) == 0
    assert requests(path) == 0
    append(connection, [fine])
    assert requests(path) == 1
    connection.close()


def test_a_number_beyond_64_bits_is_kept_as_it_is(path: Path) -> None:
    large = document("large")
    large["attempts"][0]["cooldownMs"] = 2**70
    connection = open_for_writing(path)
    append(connection, [large])
    connection.close()
    with reading(path) as stored:
        ((_, row),) = records(stored, 1)
    assert row["attempts"][0]["cooldownMs"] == 2**70


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 99, 100, 101, 345])
def test_every_record_is_stored_in_its_order_however_many_there_are(path: Path, size: int) -> None:
    draw = random.Random(size)
    made = [
        {**document(f"r{number}", AT + draw.randrange(9)), "status": draw.choice([200, None])} for number in range(size)
    ]
    connection = open_for_writing(path)
    append(connection, made)
    stored = connection.execute("SELECT at, id, combo, outcome, status FROM requests ORDER BY seq").fetchall()
    wanted = [(one["timestamp"], one["requestId"], one["combo"], one["outcome"], one["status"]) for one in made]
    assert stored == wanted
    assert [row for _, row in reversed(records(connection, 1_000))] == made
    connection.close()
    assert requests(path) == size


def test_a_batch_takes_few_statements_and_few_kinds_of_them(path: Path) -> None:
    connection = open_for_writing(path)
    kinds: set[str] = set()
    for size in (345, 99, 500, 7):
        statements: list[str] = []
        executed = Executed(connection, statements)
        append(executed, [document(str(number)) for number in range(size)])  # type: ignore[arg-type]
        assert len(statements) <= size // 100 + 9 + 9
        kinds.update(statements)
    assert len(kinds) <= 3
    assert max(statement.count("?") for statement in kinds) < 999
    connection.close()


def refusing(code: int, count: int, tries: list[str]) -> Any:
    """Connections that are refused `count` times the way into the log."""

    class Refused(sqlite3.Connection):
        def execute(self, statement: str, *more: Any) -> Any:
            if "journal_mode" in statement:
                tries.append(statement)
                if len(tries) <= count:
                    error = sqlite3.OperationalError("refused")
                    error.sqlite_errorcode = code
                    raise error
            return super().execute(statement, *more)

    return Refused


@pytest.mark.parametrize(
    ("code", "count", "wait_ms", "tried"),
    [
        (sqlite3.SQLITE_BUSY, 2, 60_000, 3),
        (sqlite3.SQLITE_BUSY | 1 << 8, 1, 60_000, 2),
        (sqlite3.SQLITE_BUSY, 99, 0, 1),
        (sqlite3.SQLITE_FULL, 1, 60_000, 1),
    ],
)
def test_a_new_file_that_others_make_too_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int, count: int, wait_ms: int, tried: int
) -> None:
    tries: list[str] = []
    connect, kind = sqlite3.connect, refusing(code, count, tries)
    monkeypatch.setattr(ledger_file.sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=kind, **kwargs))
    monkeypatch.setattr(ledger_file, "_BUSY_MS", wait_ms)
    monkeypatch.setattr(ledger_file, "_PAUSE_S", 0.0)
    if tried > count:
        connection = open_for_writing(path)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()
        tried += 1
    else:
        with pytest.raises(sqlite3.OperationalError, match="refused"):
            open_for_writing(path)
    assert len(tries) == tried


class Executed:
    """A connection that notes how records are inserted."""

    def __init__(self, real: sqlite3.Connection, statements: list[str]) -> None:
        self.real = real
        self.statements = statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def execute(self, statement: str, *more: Any) -> Any:
        if statement.startswith("INSERT INTO requests"):
            self.statements.append(statement)
        return self.real.execute(statement, *more)


def test_a_batch_that_could_not_be_written_is_written_later_as_it_was(path: Path) -> None:
    connection = open_for_writing(path)
    batch = Batch()
    for ident in ("one", "two"):
        batch.add(document(ident))
    other = open_for_writing(path)
    connection.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        batch.write(connection)
    other.execute("COMMIT")
    other.close()
    batch.add(document("three"))
    batch.write(connection)
    assert len(batch) == 3
    connection.close()
    assert requests(path) == 3
