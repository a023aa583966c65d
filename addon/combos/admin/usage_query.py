"""Reads the usage ledger: sums over a window, whole records. For any thread, with or without a running proxy.

Whole quarters of an hour come from the sums; what a window cuts off at its ends is counted record by record.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from combos.admin.regular_file import open_regular
from combos.admin.usage_sums import NEWER, SCHEMA_VERSION, Row, Sums, Table
from combos.core.usage_windows import BUCKET_MS, Window
from combos.core.values import dataclass

type Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filters:
    """What is counted; None is everything. `combo` is an id, `surface` the dialect in which the client asked."""

    combo: str | None = None
    surface: str | None = None
    provider: str | None = None
    model: str | None = None
    decided: bool | None = None

    def matches(self, table: Table, key: Row) -> bool:
        """Whether a row of sums counts."""
        values = dict(zip(table.keys, key, strict=True))
        return all(values.get(name, wanted) == wanted for name, wanted in self.wanted())

    def wanted(self) -> Iterator[tuple[str, Any]]:
        """Columns and the value they must have."""
        pairs = (
            ("combo", self.combo),
            ("surface", self.surface),
            ("provider", self.provider),
            ("model", self.model),
            ("decided", None if self.decided is None else int(self.decided)),
        )
        return ((name, value) for name, value in pairs if value is not None)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """The ledger, to be read only; None when there is none yet. Raises `sqlite3.Error`."""
    if not _is_there(path):
        yield None
        return
    address = f"{path.absolute().as_uri()}?mode=ro{_immutable(path)}"
    connection = sqlite3.connect(address, uri=True, timeout=5, check_same_thread=False)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise sqlite3.OperationalError(NEWER)
        yield connection if version else None
    finally:
        connection.close()


def _immutable(path: Path) -> str:
    """A reader makes files beside the database. In a folder that is read-only it need not: nobody writes there."""
    is_open_elsewhere = path.with_name(f"{path.name}-wal").exists()
    return "" if is_open_elsewhere or os.access(path.parent, os.W_OK) else "&immutable=1"


def _is_there(path: Path) -> bool:
    """Whether there is a file. SQLite would wait for ever for the other end of a pipe. Raises `sqlite3.Error`."""
    try:
        os.close(open_regular(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise sqlite3.OperationalError(error.strerror) from error
    return True


class WindowSums:
    """The sums of one window; what its ends cut off is read once. Without a ledger everything is empty."""

    def __init__(self, connection: sqlite3.Connection | None, window: Window) -> None:
        self._connection = connection
        self._window = window
        self._edges: Sums | None = None

    def by(self, table: Table, columns: Sequence[str], filters: Filters) -> list[Document]:
        """Sums of a table, one row per value of `columns`."""
        if self._connection is None:
            return []
        rows: dict[Row, list[Any]] = {}
        for row in self._connection.execute(*_statement(table, columns, self._window, filters)):
            rows[row[: len(columns)]] = list(row[len(columns) :])
        places = [table.keys.index(name) for name in columns]
        for key, values in self._cut_off(self._connection).of(table):
            if filters.matches(table, key):
                found = rows.setdefault(tuple(key[place] for place in places), [0] * len(table.sums))
                for index, value in enumerate(values):
                    found[index] += value
        return [dict(zip((*columns, *table.sums), (*key, *values), strict=True)) for key, values in rows.items()]

    def _cut_off(self, connection: sqlite3.Connection) -> Sums:
        """What the records in the cut quarters of an hour at both ends add."""
        if self._edges is None:
            self._edges = Sums()
            for part in _cut(self._window):
                for (text,) in connection.execute("SELECT record FROM requests WHERE at >= ? AND at < ?", part):
                    self._edges.add(orjson.loads(text))
        return self._edges


def records(
    connection: sqlite3.Connection | None, limit: int, before: int | None = None, combo: str | None = None
) -> list[tuple[int, Document]]:
    """The latest records with their numbers, newest first; `before` a number continues a list."""
    if connection is None:
        return []
    wanted = [("seq < ?", before), ("combo = ?", combo)]
    clauses = [clause for clause, value in wanted if value is not None]
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    values = [value for _, value in wanted if value is not None]
    found = connection.execute(
        f"SELECT seq, record FROM requests {where} ORDER BY seq DESC LIMIT ?",  # noqa: S608 - clauses of this module
        (*values, limit),
    )
    return [(seq, orjson.loads(text)) for seq, text in found]


def count(connection: sqlite3.Connection | None) -> int:
    """How many records are kept."""
    return 0 if connection is None else int(connection.execute("SELECT count(*) FROM requests").fetchone()[0])


def _statement(table: Table, by: Sequence[str], window: Window, filters: Filters) -> tuple[str, list[Any]]:
    clauses: list[str] = []
    values: list[Any] = []
    if window.since is not None:
        clauses.append("bucket >= ?")
        values.append(_up(window.since))
    if window.until is not None:
        clauses.append("bucket < ?")
        values.append(_down(window.until))
    for name, wanted in filters.wanted():
        if name in table.keys:
            clauses.append(f"{name} = ?")
            values.append(wanted)
    sums = ", ".join(f"sum({name})" for name in table.sums)
    groups = ", ".join(by)
    statement = f"SELECT {groups + ', ' if by else ''}{sums} FROM {table.name}"  # noqa: S608 - names of this package
    statement += f" WHERE {' AND '.join(clauses)}" if clauses else ""
    # Without a group there would be one row of nulls for an empty window.
    statement += f" GROUP BY {groups}" if by else " HAVING count(*) > 0"
    return statement, values


def _cut(window: Window) -> Iterator[tuple[int, int]]:
    """The parts of a window that are no whole buckets."""
    since, until = window.since, window.until
    if since is not None and until is not None and _up(since) > _down(until):
        yield since, until
        return
    if since is not None and since % BUCKET_MS:
        yield since, _up(since)
    if until is not None and until % BUCKET_MS:
        yield _down(until), until


def _up(at: int) -> int:
    return -(-at // BUCKET_MS) * BUCKET_MS


def _down(at: int) -> int:
    return at - at % BUCKET_MS
