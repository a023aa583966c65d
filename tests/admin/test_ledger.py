"""The ledger's file: what is written, when, how large it grows, and what happens when it cannot be."""

import errno
import os
import queue
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from combos.admin import ledger as module
from combos.admin import ledger_file
from combos.admin.ledger import Entry, Ledger
from combos.admin.ledger_file import Batch, open_for_writing
from combos.admin.usage_query import Filters, WindowSums, count, reading, records
from combos.admin.usage_sums import TURNS
from combos.core.usage_windows import Window
from records import AT, attempt, registry, turn

PRICES = registry()
ALL = Window(None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "usage.sqlite"


def entry(ident: str = "r1", at: int = AT, **fields: Any) -> Entry:
    return Entry(turn(attempt(), id=ident, **fields), PRICES, at)


def kept(path: Path) -> list[str]:
    with reading(path) as connection:
        return [row["requestId"] for _, row in records(connection, 10_000)]


def requests(path: Path) -> int:
    with reading(path) as connection:
        return sum(row["requests"] for row in WindowSums(connection, ALL).by(TURNS, (), Filters()))


def test_a_record_is_on_disk_once_it_is_flushed_and_nobody_else_may_read_it(path: Path) -> None:
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(entry("one"))
    ledger.add(entry("two"))
    assert ledger.flush()
    assert kept(path) == ["two", "one"]
    assert requests(path) == 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    ledger.close()
    assert (ledger.lost, requests(path)) == (0, 2)


def test_a_later_process_goes_on_where_the_earlier_one_ended(path: Path) -> None:
    for ident in ("one", "two"):
        ledger = Ledger(path, lambda: 2**30)
        ledger.add(entry(ident))
        ledger.close()
    assert kept(path) == ["two", "one"]


def test_two_processes_write_into_one_file(path: Path) -> None:
    ledgers = [Ledger(path, lambda: 2**30) for _ in range(2)]
    for number in range(50):
        ledgers[number % 2].add(entry(str(number)))
    for ledger in ledgers:
        ledger.close()
        assert ledger.lost == 0
    assert sorted(kept(path)) == sorted(str(number) for number in range(50))
    assert requests(path) == 50


def test_handing_over_never_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, go = threading.Event(), threading.Event()

    write = Batch.write

    def slow(batch: Batch, connection: sqlite3.Connection) -> None:
        held.set()
        assert go.wait(10)
        write(batch, connection)

    monkeypatch.setattr(Batch, "write", slow)
    monkeypatch.setattr(module, "WAITING_MAX", 3)
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(entry("0"))
    assert held.wait(5)
    for number in range(1, 6):
        ledger.add(entry(str(number)))
    assert ledger.lost == 2
    assert not ledger.flush(0.01)
    go.set()
    ledger.close()
    assert kept(path) == ["3", "2", "1", "0"]


def test_the_thread_leaves_when_nothing_comes_and_returns_with_the_next_record(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_S", 0.01)
    ledger = Ledger(path, lambda: 2**30)
    for ident in ("one", "two"):
        ledger.add(entry(ident))
        thread = ledger._thread
        assert thread is not None
        thread.join(5)
        assert not thread.is_alive()
        assert ledger._thread is None
    assert kept(path) == ["two", "one"]


def test_a_thread_that_leaves_while_the_ledger_is_closed_leaves_nothing_to_a_later_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_S", 0.01)
    ledger = Ledger(path, lambda: 2**30)
    asked: list[bool] = []

    class LateQueue(queue.SimpleQueue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            if item is None:
                may_leave = not ledger._lock.locked()
                asked.append(may_leave)
                if may_leave and ledger._thread is not None:
                    ledger._thread.join(5)
            super().put(item, block, timeout)

    ledger._queue = LateQueue()
    ledger.add(entry("one"))
    ledger.close()
    assert asked in ([False], [])  # nobody is asked who has left before
    assert ledger._queue.empty()
    assert kept(path) == ["one"]


def test_a_batch_wakes_the_thread_once_and_what_is_there_is_not_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    waits: list[float | None] = []

    class Hurry(threading.Event):
        def set(self) -> None:
            woken.append(ledger._queue.qsize())
            super().set()

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return True

    monkeypatch.setattr(module, "BATCH", 3)
    ledger = Ledger(path, lambda: 2**30)
    ledger._hurry = Hurry()
    ledger._thread = threading.current_thread()  # nobody takes what is handed over
    for number in range(10):
        ledger.add(entry(str(number)))
    assert woken == [3]
    taken = [[one.record.id for one in ledger._take().entries] for _ in range(4)]
    assert taken == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"], ["9"]]
    assert waits == [module.GATHER_S]


def test_what_either_thread_loses_is_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, go = threading.Event(), threading.Event()

    def refuse(*_: Any) -> None:
        held.set()
        assert go.wait(10)
        raise ValueError

    monkeypatch.setattr(module, "usage_document", refuse)
    monkeypatch.setattr(module, "WAITING_MAX", 1)
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(entry("0"))
    assert held.wait(5)
    for number in range(1, 4):
        ledger.add(entry(str(number)))
    assert ledger.lost == 2
    go.set()
    ledger.close()
    assert ledger.lost == 4
    assert {key: n for key, n in vars(ledger).items() if n == 2} == {"_refused": 2, "_unwritten": 2}, "one writer each"


def in_the_way(path: Path) -> None:
    path.mkdir(parents=True)


def as_a_pipe(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)


def of_a_newer_version(path: Path) -> None:
    connection = open_for_writing(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        for found in path.parent.iterdir():
            found.unlink()


@pytest.mark.parametrize("obstacle", [in_the_way, as_a_pipe, of_a_newer_version])
def test_what_cannot_be_written_waits_and_is_said_once(
    path: Path, caplog: pytest.LogCaptureFixture, obstacle: Callable[[Path], None]
) -> None:
    obstacle(path)
    ledger = Ledger(path, lambda: 2**30)
    for ident in ("one", "two"):
        ledger.add(entry(ident))
        assert not ledger.flush()
    assert ledger.lost == 0
    assert len([row for row in caplog.records if "cannot be written" in row.message]) == 1
    assert "is written again" not in caplog.text
    remove(path)
    ledger.add(entry("three"))
    ledger.close()
    assert (ledger.lost, kept(path), requests(path)) == (0, ["three", "two", "one"], 3)
    assert f"{path} is written again; 0 records" in caplog.text


def test_a_lock_of_another_process_costs_no_record(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "_BUSY_MS", 10)
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    other = open_for_writing(path)
    other.execute("BEGIN IMMEDIATE")
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(entry("one"))
    assert not ledger.flush()
    assert "database is locked" in caplog.text
    other.execute("COMMIT")
    other.close()
    assert ledger.flush()
    ledger.close()
    assert (ledger.lost, kept(path)) == (0, ["one"])


@pytest.mark.parametrize("moment", ["BEGIN IMMEDIATE", "COMMIT", "INSERT INTO requests"])
def test_a_full_disk_costs_no_record_and_stores_none_twice(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Wherever it strikes. The connection stands for a real one that refuses one kind of statement."""

    class Full:
        def __init__(self, real: sqlite3.Connection) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def execute(self, statement: str, *more: Any) -> Any:
            if is_full and statement.startswith(moment):
                raise sqlite3.OperationalError("database or disk is full")
            return self.real.execute(statement, *more)

        def executemany(self, statement: str, *more: Any) -> Any:
            if is_full and statement.startswith(moment):
                raise sqlite3.OperationalError("database or disk is full")
            return self.real.executemany(statement, *more)

    is_full = True
    monkeypatch.setattr(module, "open_for_writing", lambda where: Full(open_for_writing(where)))
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    ledger = Ledger(path, lambda: 2**30)
    for ident in ("one", "two"):
        ledger.add(entry(ident))
        assert not ledger.flush()
    assert "database or disk is full" in caplog.text
    is_full = False
    assert ledger.flush()
    ledger.close()
    assert (ledger.lost, kept(path), requests(path)) == (0, ["two", "one"], 2)


def test_a_file_that_cannot_be_written_is_left_alone_for_a_while(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []

    def refuse(where: Path) -> sqlite3.Connection:
        tries.append(where)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "open_for_writing", refuse)
    ledger = Ledger(path, lambda: 2**30)
    for number in range(5):
        ledger.add(entry(str(number)))
        assert not ledger.flush()
    assert len(tries) == 1
    ledger.close()
    assert len(tries) == 2, "once more at the end"


def test_what_no_longer_fits_into_memory_and_what_the_end_finds_there_is_lost(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way(path)
    monkeypatch.setattr(module, "KEPT_MAX", 2)
    ledger = Ledger(path, lambda: 2**30)
    for number in range(5):
        ledger.add(entry(str(number)))
        ledger.flush()
    assert ledger.lost == 3
    ledger.close()
    assert ledger.lost == 5
    assert f"2 records of usage could not be written to {path}" in caplog.text


def test_a_size_that_cannot_be_kept_costs_no_record(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_connection: sqlite3.Connection, _limit: int) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(module, "prune", refuse)
    monkeypatch.setattr(module, "_CHECK_EVERY", 1)
    ledger = Ledger(path, lambda: 2**30)
    for ident in ("one", "two"):
        ledger.add(entry(ident))
        assert ledger.flush()
    ledger.close()
    assert (ledger.lost, kept(path)) == (0, ["two", "one"])
    assert "cannot be kept to its size" in caplog.text


def test_a_record_that_cannot_be_made_is_no_end_of_the_ledger(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(Entry(None, PRICES, AT))  # type: ignore[arg-type]
    assert ledger.flush()
    ledger.add(Entry(None, PRICES, AT))  # type: ignore[arg-type]
    ledger.add(entry("fine"))
    ledger.close()
    assert (ledger.lost, kept(path)) == (2, ["fine"])
    assert "AttributeError" in caplog.text


def test_a_file_that_is_no_ledger_is_kept_aside(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database, but it is somebody's file" * 100)
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(entry("one"))
    ledger.close()
    assert kept(path) == ["one"]
    (aside,) = path.parent.glob("usage.sqlite.broken-*")
    assert aside.read_bytes().startswith(b"this is no database")
    assert aside.name in caplog.text


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing is left": lambda data: b"\xff" * len(data),
    "the first page is": lambda data: b"\xff" * 4096 + data[4096:],
    "all behind the first page is": lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
    "the second half is": lambda data: data[: len(data) // 2] + b"\xff" * (len(data) - len(data) // 2),
    "the end is missing": lambda data: data[:8192],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_ledger_is_kept_aside_and_the_record_that_found_it_is_not_lost(
    path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    first = Ledger(path, lambda: 2**30)
    for number in range(50):
        first.add(entry(f"old-{number}"))
    first.close()
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    ledger = Ledger(path, lambda: 2**30)
    for ident in ("one", "two"):
        ledger.add(entry(ident))
        assert ledger.flush()
    ledger.close()
    assert (ledger.lost, kept(path), requests(path)) == (0, ["two", "one"], 2)
    (aside,) = path.parent.glob("usage.sqlite.broken-*[0-9]")
    assert aside.stat().st_size == len(damaged)
    assert aside.name in caplog.text
    assert "cannot be written" not in caplog.text


def test_a_damaged_ledger_that_cannot_be_moved_is_said_once_and_tried_again(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\xff" * 8192)

    def refuse(self: Path, _target: Path) -> Path:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    ledger = Ledger(path, lambda: 2**30)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        for ident in ("one", "two"):
            ledger.add(entry(ident))
            assert not ledger.flush()
    assert len([row for row in caplog.records if "cannot be written" in row.message]) == 1
    ledger.add(entry("three"))
    ledger.close()
    assert (ledger.lost, kept(path)) == (0, ["three", "two", "one"])


def test_a_ledger_of_a_newer_version_is_left_alone(path: Path) -> None:
    of_a_newer_version(path)
    ledger = Ledger(path, lambda: 2**30)
    ledger.add(entry("one"))
    ledger.close()
    assert ledger.lost == 1
    with pytest.raises(sqlite3.Error, match="newer version"):
        kept(path)
    assert not list(path.parent.glob("*.broken-*"))


def test_the_writer_bounds_its_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHECK_EVERY", 1)
    ledger = Ledger(path, lambda: 300_000)
    for number in range(1_000):
        ledger.add(entry(str(number)))
        if number % 100 == 99:
            assert ledger.flush()
    ledger.close()
    assert ledger.lost == 0
    assert path.stat().st_size <= 400_000
    assert kept(path)[0] == "999"


def test_there_is_nothing_to_read_without_a_ledger(path: Path) -> None:
    with reading(path) as connection:
        assert connection is None
        assert records(connection, 5) == []
        assert count(connection) == 0
    assert not path.exists()
    path.parent.mkdir()
    os.close(os.open(path, os.O_CREAT))
    with reading(path) as connection:
        assert connection is None


@pytest.mark.parametrize("obstacle", [in_the_way, as_a_pipe])
def test_what_is_no_file_is_not_read_and_keeps_nobody_waiting(path: Path, obstacle: Callable[[Path], None]) -> None:
    obstacle(path)
    with pytest.raises(sqlite3.Error, match="not a regular file"):
        kept(path)


_WRITER = """
import sys
from pathlib import Path
from combos.admin.ledger import Entry, Ledger
from records import AT, attempt, registry, turn

name, path, limit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
ledger, prices = Ledger(path, lambda: limit), registry()
for number in range(20):
    for part in range(20):
        ledger.add(Entry(turn(attempt(), id=f"{name}-{number}-{part}"), prices, AT))
    assert ledger.flush(60)
ledger.close(60)
print(ledger.lost)
"""


@pytest.mark.parametrize("limit", [2**30, 200_000])
def test_several_processes_write_one_file(path: Path, limit: int) -> None:
    """From the first moment on, when there is no file yet, and while the oldest records go."""
    command = [sys.executable, "-c", _WRITER]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environ}
    writers = [subprocess.Popen([*command, name, str(path), str(limit)], **pipes) for name in "abc"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [(writer.communicate(timeout=100)[0], writer.returncode) for writer in writers] == [("0\n", 0)] * 3
    if limit == 2**30:
        assert len(set(kept(path))) == requests(path) == 1_200
    assert not list(path.parent.glob("*.broken-*"))
