"""The usage ledger: one record per logical request, appended by a thread of its own, in a database beside the config.

A record is handed over without waiting and is on disk within a quarter of a second; a killed process loses at most
what it had not yet committed and leaves a whole database behind. While the file cannot be written (a full disk, another
process's lock), records wait in memory. The oldest records, then the oldest sums, go when the file reaches its size. It
stores and never interprets: what is summed is decided in `usage_sums`, how the file is written in `ledger_file`.
"""

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from combos.admin.ledger_file import Batch, is_damaged, open_for_writing, prune, set_aside
from combos.admin.usage_record import usage_document
from combos.core.registry import Registry
from combos.core.values import dataclass
from combos.engine.record import TurnRecord

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
        self._kept = Batch()
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
            self._keep(taken.entries)
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

    def _keep(self, entries: list[Entry]) -> None:
        """Up to `KEPT_MAX` wait for the file; beyond it the newest are lost. One of which nothing can be made is lost,
        not those beside it."""
        for one in entries:
            try:
                if len(self._kept) >= KEPT_MAX:
                    self._unwritten += 1
                else:
                    self._kept.add(usage_document(one.record, one.registry, one.epoch_ms))
            except Exception:  # whatever it is, the other records are to be written
                self._unwritten += 1
                logger.warning("combos: a record of usage could not be made", exc_info=True)

    def _write(self, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Write what is kept; the connection to go on with."""
        try:
            connection = self._append(connection)
        except Exception as error:  # whatever it is, the next records are to be written
            self._failed(error)
            return None
        written, self._kept = len(self._kept), Batch()
        if self._warned:
            self._warned = False
            logger.warning(f"combos: {self.path} is written again; {self.lost} records of usage were lost so far")
        return self._bound(connection, written)

    def _append(self, connection: sqlite3.Connection | None, *, may_begin_anew: bool = True) -> sqlite3.Connection:
        try:
            connection = connection or open_for_writing(self.path)
            self._kept.write(connection)
        except Exception as error:
            if connection is not None:
                connection.close()
            if may_begin_anew and is_damaged(error) and self._begins_anew(error):
                return self._append(None, may_begin_anew=False)
            raise
        return connection

    def _failed(self, error: Exception) -> None:
        """What may end, a lock or a full disk, costs no record; records that are themselves at fault are lost."""
        self._try_at = time.monotonic() + RETRY_S
        if not isinstance(error, OSError | sqlite3.OperationalError) and not is_damaged(error):
            self._unwritten += len(self._kept)
            self._kept = Batch()
        self._complain(error)

    def _give_up(self) -> None:
        """The process ends: nobody is left to try again."""
        count, self._kept = len(self._kept), Batch()
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
