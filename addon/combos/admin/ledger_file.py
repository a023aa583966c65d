"""The database file of the usage ledger: how it is made, written to, bounded, and set aside when it is damaged.

For one thread alone. It knows no queue and no clock but that of a damaged file's new name.
"""

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from combos.admin.regular_file import open_regular
from combos.admin.usage_record import stored_text
from combos.admin.usage_sums import NEWER, SCHEMA_VERSION, TABLES, Document, Row, Sums

logger = logging.getLogger(__name__)

_BUSY_MS = 5_000
_PAUSE_S = 0.01  # between two tries to switch a new file
_INSERTION = "INSERT INTO requests (at, id, combo, outcome, status, record) VALUES"
_ROWS = (100, 10, 1)  # rows of a statement: few kinds, so that each is compiled once, and less than 999 values


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The database, made if need be; one that is not readable as such is moved aside. For one thread alone.

    Raises `sqlite3.Error`, `OSError`.
    """
    try:
        return _opened(path)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise  # busy, full, not permitted: nothing is wrong with the file
        set_aside(path, error)
        return _opened(path)


def is_damaged(error: Exception) -> bool:
    """Whether SQLite says that the file itself is at fault. Damage behind a sound first page shows only in use."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code; the rest says where
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def set_aside(path: Path, damage: Exception) -> None:
    """Keep a damaged ledger, with its log, under another name. Raises `OSError`."""
    aside = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%dT%H%M%S')}")
    for suffix in ("-wal", "-shm", ""):  # the log first: a new file must not find an old one's
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    logger.warning(f"combos: the usage ledger was not readable ({damage}); it is kept as {aside.name}")


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(open_regular(path, os.O_RDWR | os.O_CREAT))
    connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _keep_a_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_a_log(connection: sqlite3.Connection) -> None:
    """Write ahead. Of several that switch a new file at the same moment SQLite refuses one without any waiting."""
    until = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _create(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise sqlite3.OperationalError(NEWER)
    if version == SCHEMA_VERSION:
        return
    with transaction(connection):
        connection.execute(
            "CREATE TABLE IF NOT EXISTS requests (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, id TEXT NOT NULL,"
            " combo TEXT, outcome TEXT, status INTEGER, record TEXT NOT NULL)"
        )
        connection.execute("CREATE INDEX IF NOT EXISTS requests_at ON requests (at)")
        for table in TABLES:
            connection.execute(table.creation)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk or a damaged file has ended it
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class Batch:
    """Records that wait for the file, and what they add to the sums: written together."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._sums = Sums()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, document: Document) -> None:
        """Add a record. Nothing of it is kept but its text and its numbers."""
        text = stored_text(document)
        self._sums.add(document)
        self._rows.append(
            (
                document["timestamp"],
                document["requestId"],
                document["combo"],
                document["outcome"],
                document["status"],
                text,
            )
        )

    def write(self, connection: sqlite3.Connection) -> None:
        """Store everything, or nothing. Raises `sqlite3.Error`."""
        with transaction(connection):
            _insert(connection, self._rows)
            for statement, rows in self._sums.statements():
                connection.executemany(statement, rows)


def _insert(connection: sqlite3.Connection, rows: list[Row]) -> None:
    """Many rows with each statement: for each one the thread hands over to the event loop and waits for its turn."""
    start = 0
    for size in _ROWS:
        statement = f"{_INSERTION} {', '.join(['(?, ?, ?, ?, ?, ?)'] * size)}"
        while len(rows) - start >= size:
            connection.execute(statement, [*chain.from_iterable(rows[start : start + size])])
            start += size


def prune(connection: sqlite3.Connection, limit: int) -> None:
    """Forget the oldest tenth again and again until the data are below the limit: records first, then sums."""
    if _used(connection) <= limit:
        return
    while _used(connection) > limit * 9 // 10:
        if not (_forget_records(connection) or _forget_sums(connection)):
            break
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _forget_records(connection: sqlite3.Connection) -> bool:
    with transaction(connection):
        edge = "SELECT min(seq) + (max(seq) - min(seq)) / 10 FROM requests"
        return connection.execute(f"DELETE FROM requests WHERE seq <= ({edge})").rowcount > 0  # noqa: S608


def _forget_sums(connection: sqlite3.Connection) -> bool:
    forgotten = 0
    with transaction(connection):
        for table in TABLES:
            edge = f"SELECT min(bucket) + (max(bucket) - min(bucket)) / 10 FROM {table.name}"  # noqa: S608
            forgotten += connection.execute(f"DELETE FROM {table.name} WHERE bucket <= ({edge})").rowcount  # noqa: S608
    return forgotten > 0


def _used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
