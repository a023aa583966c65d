"""The lock that every writer of the configuration takes: `flock` on a file beside it, across processes and threads."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_NAME = "config.lock"
WAIT_S = 10.0  # a writer holds the lock for milliseconds; longer means that somebody hangs
_POLL_S = 0.002


class LockTimeoutError(Exception):
    """Somebody else has held the lock for too long."""


@contextmanager
def locked(folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a folder. Raises `LockTimeoutError`, and `OSError` when the lock file cannot be opened.

    The file stays: removing it would let two holders lock two different files of the same name.
    """
    handle = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _acquire(handle, wait_s)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockTimeoutError(f"{LOCK_NAME} is held by another process") from None
            time.sleep(_POLL_S)
        else:
            return
