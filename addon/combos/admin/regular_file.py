"""Reads a file that lies where users and other programs put files: only a regular one, bounded, and without waiting.

A pipe under the expected name would keep its reader waiting for ever, and a file without end would fill the memory.
"""

import errno
import os
import stat
from pathlib import Path

PRIVATE = 0o600
"""Mode of every file that is made here."""


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor; a file that `flags` let make is private. Raises `OSError`, for a folder, pipe or device too."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: Path, limit: int) -> bytes:
    """The content; one byte more than `limit` when the file is larger. Raises `OSError` as `open_regular` does."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read(limit + 1)
