"""The lock that every writer of the configuration takes: `flock` on a file beside it, across processes and threads."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from combos.admin.regular_file import PRIVATE

LOCK_NAME = "config.lock"
WAIT_S = 10.0  # a writer holds the lock for milliseconds; longer means that somebody hangs
_POLL_S = 0.002


class LockError(Exception):
    """The lock cannot be had: somebody else has held it for too long, or its file cannot be opened."""


@contextmanager
def locked(folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a folder. Raises `LockError`.

    The file stays: removing it would let two holders lock two different files of the same name.
    """
    handle = _opened(folder / LOCK_NAME)
    try:
        _acquire(handle, wait_s)
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    except OSError as error:
        is_link = error.errno == errno.ELOOP
        reason = "it is a symbolic link; remove it" if is_link else error.strerror
        raise LockError(f"the lock beside it, {path.name}, cannot be opened: {reason}") from error


def _acquire(handle: int, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockError(f"{LOCK_NAME} is held by another process") from None
            time.sleep(_POLL_S)
        else:
            return
