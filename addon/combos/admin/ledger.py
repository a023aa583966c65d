"""The usage ledger: one record per logical request, appended by a thread of its own, in a database beside the config.

A record is handed over without waiting and is on disk within a quarter of a second; a killed process loses at most
what it had not yet committed and leaves a whole database behind. While the file cannot be written (a full disk, another
process's lock), records wait in memory. The oldest records, then the oldest sums, go when the file reaches its size. It
stores and never interprets; what is summed is decided in `usage_sums`.
"""

import contextlib
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from combos.admin.regular_file import open_regular
from combos.admin.usage_record import stored_text, usage_document
from combos.admin.usage_sums import NEWER, SCHEMA_VERSION, TABLES, Sums
from combos.core.registry import Registry
from combos.core.values import dataclass
from combos.engine.record import TurnRecord

type Document = dict[str, Any]

logger = logging.getLogger(__name__)

LEDGER_NAME = "usage.sqlite"
WAITING_MAX = 20_000
"""Records that may wait for the disk; beyond it they are lost, and counted."""
KEPT_MAX = 5_000
"""Records that are kept in memory while the file cannot be written: some 20 MB."""
BATCH = 500
GATHER_S = 0.2
"""How long a first record waits for others: waking the thread for each costs the event loop more than the record."""
RETRY_S = 5.0
"""How long a file that could not be written is left alone."""
IDLE_S = 1.0
"""How long the file stays open when nothing comes."""
_CHECK_EVERY = 500  # records between two looks at the file's size
_BUSY_MS = 5_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A finished request with the prices of its time."""

    record: TurnRecord
    registry: Registry
    epoch_ms: int


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place in the queue somebody waits for, and whether everything before it is on disk then."""

    reached: threading.Event
    written: threading.Event


@dataclass(slots=True)
class _Taken:
    """What came out of the queue. `is_last`: nothing came for a while, or the ledger is being closed."""

    entries: list[Entry] = field(default_factory=list)
    marks: list[_Mark] = field(default_factory=list)
    is_last: bool = False
    is_closing: bool = False


class Ledger:
    """The writer. `limit` gives the size in bytes that the file may have."""

    def __init__(self, path: Path, limit: Callable[[], int]) -> None:
        self.path = path
        self._limit = limit
        # Two threads lose records: each has a number of its own.
        self._refused = self._unwritten = 0
        self._queue: queue.SimpleQueue[Entry | _Mark | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._warned = False
        # Of the thread alone: records that the file has not taken yet, and when to try again.
        self._kept: list[Document] = []
        self._try_at = 0.0
        self._since_check = _CHECK_EVERY  # the first batch looks at once

    @property
    def lost(self) -> int:
        """How many records could not be written."""
        return self._refused + self._unwritten

    def add(self, entry: Entry) -> None:
        """Hand over a record; never waits for the disk."""
        waiting = self._queue.qsize()
        if waiting >= WAITING_MAX:
            self._refused += 1
            return
        self._put(entry)
        if waiting == BATCH - 1:  # once a batch: whether there is more than one, the thread sees itself
            self._hurry.set()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until everything handed over so far is on disk; False when that takes too long or is not possible."""
        mark = _Mark(threading.Event(), threading.Event())
        self._put(mark)
        self._hurry.set()
        return mark.reached.wait(timeout_s) and mark.written.is_set()

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what is left and let go of the file. A record that comes later opens it again."""
        with self._lock:  # the thread that is asked is the one that is there, and cannot leave before it is asked
            thread = self._thread
            if thread is not None:
                self._queue.put(None)
        if thread is not None:
            self._hurry.set()
            thread.join(timeout_s)

    def _put(self, item: Entry | _Mark) -> None:
        """The thread is there while there is something to write, and a moment longer."""
        with self._lock:
            self._queue.put(item)
            if self._thread is None:
                # Not a daemon: what was handed over before the process ends is written.
                self._thread = threading.Thread(target=self._run, name="combos ledger", daemon=False)
                self._thread.start()

    # -- the thread

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            taken = self._take()
            is_closing = taken.is_closing or not threading.main_thread().is_alive()
            self._keep(self._documents(taken.entries))
            if self._kept and (is_closing or time.monotonic() >= self._try_at):
                connection = self._write(connection)
            for mark in taken.marks:
                if not self._kept:
                    mark.written.set()
                mark.reached.set()
            if is_closing and self._kept:
                self._give_up()
            if taken.is_last and not self._kept and self._leave():
                break
        if connection is not None:
            connection.close()

    def _leave(self) -> bool:
        """Stop serving, unless something has come in meanwhile."""
        with self._lock:
            if self._queue.empty():
                self._thread = None
                return True
            return False

    def _take(self) -> _Taken:
        """Wait for something, then a moment for more, and take up to a batch."""
        taken = _Taken()
        try:
            item = self._queue.get(timeout=IDLE_S)
        except queue.Empty:
            taken.is_last = True
            return taken
        if isinstance(item, Entry) and self._queue.qsize() < BATCH:
            self._hurry.wait(GATHER_S)
        self._hurry.clear()
        while True:
            match item:
                case None:
                    taken.is_last = taken.is_closing = True
                    return taken
                case _Mark():
                    taken.marks.append(item)
                case Entry():
                    taken.entries.append(item)
            if len(taken.entries) >= BATCH or self._queue.empty():
                return taken
            item = self._queue.get_nowait()

    def _documents(self, entries: list[Entry]) -> list[Document]:
        """What is stored of the entries. One of which nothing can be made is lost, not those beside it."""
        made = []
        for one in entries:
            try:
                made.append(usage_document(one.record, one.registry, one.epoch_ms))
            except Exception:  # whatever it is, the other records are to be written
                self._unwritten += 1
                logger.warning("combos: a record of usage could not be made", exc_info=True)
        return made

    def _keep(self, documents: list[Document]) -> None:
        """Up to `KEPT_MAX` wait for the file; beyond it the newest are lost."""
        self._kept += documents
        self._unwritten += max(0, len(self._kept) - KEPT_MAX)
        del self._kept[KEPT_MAX:]

    def _write(self, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Write what is kept; the connection to go on with."""
        try:
            connection = self._append(connection)
        except Exception as error:  # whatever it is, the next records are to be written
            self._failed(error)
            return None
        written, self._kept = len(self._kept), []
        if self._warned:
            self._warned = False
            logger.warning(f"combos: {self.path} is written again; {self.lost} records of usage were lost so far")
        return self._bound(connection, written)

    def _append(self, connection: sqlite3.Connection | None, *, may_begin_anew: bool = True) -> sqlite3.Connection:
        try:
            connection = connection or open_for_writing(self.path)
            append(connection, self._kept)
        except Exception as error:
            if connection is not None:
                connection.close()
            if may_begin_anew and _is_damaged(error) and self._begins_anew(error):
                return self._append(None, may_begin_anew=False)
            raise
        return connection

    def _failed(self, error: Exception) -> None:
        """What may end, a lock or a full disk, costs no record; records that are themselves at fault are lost."""
        self._try_at = time.monotonic() + RETRY_S
        if not isinstance(error, OSError | sqlite3.OperationalError) and not _is_damaged(error):
            self._unwritten += len(self._kept)
            self._kept = []
        self._complain(error)

    def _give_up(self) -> None:
        """The process ends: nobody is left to try again."""
        count, self._kept = len(self._kept), []
        self._unwritten += count
        logger.warning(f"combos: {count} records of usage could not be written to {self.path} and are lost")

    def _begins_anew(self, damage: Exception) -> bool:
        """Whether the damaged file could be moved out of the way."""
        try:
            set_aside(self.path, damage)
        except OSError as error:
            logger.info(f"combos: {self.path} cannot be moved aside: {error.strerror}")
            return False
        return True

    def _bound(self, connection: sqlite3.Connection, added: int) -> sqlite3.Connection | None:
        """Look at the size now and then. What fails here costs no record: they are written."""
        self._since_check += added
        if self._since_check < _CHECK_EVERY:
            return connection
        self._since_check = 0
        try:
            prune(connection, self._limit())
        except sqlite3.Error as error:
            logger.warning(f"combos: {self.path} cannot be kept to its size: {error}")
            connection.close()
            return None
        return connection

    def _complain(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            unexpected = not isinstance(error, sqlite3.Error | OSError)
            reason = error.strerror if isinstance(error, OSError) else error
            logger.warning(
                f"combos: {self.path} cannot be written, records of usage wait in memory: {reason}",
                exc_info=error if unexpected else None,
            )


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The database, made if need be; one that is not readable as such is moved aside. For one thread alone.

    Raises `sqlite3.Error`, `OSError`.
    """
    try:
        return _opened(path)
    except sqlite3.DatabaseError as error:
        if not _is_damaged(error):
            raise  # busy, full, not permitted: nothing is wrong with the file
        set_aside(path, error)
        return _opened(path)


def _is_damaged(error: Exception) -> bool:
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
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


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


def append(connection: sqlite3.Connection, documents: list[Document]) -> None:
    """Store records and what they add to the sums, together."""
    sums = Sums()
    for document in documents:
        sums.add(document)
    with transaction(connection):
        connection.executemany(
            "INSERT INTO requests (at, id, combo, outcome, status, record) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (one["timestamp"], one["requestId"], one["combo"], one["outcome"], one["status"], stored_text(one))
                for one in documents
            ],
        )
        for statement, rows in sums.statements():
            connection.executemany(statement, rows)


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
