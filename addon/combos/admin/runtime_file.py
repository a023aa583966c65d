"""The file beside the configuration that says where the management API of a running proxy listens.

The proxy holds a lock on its file for as long as it lives; the system lets go of it however the process ends. A reader
believes the file only while the lock is held: after a crash the port may be anybody's, who would be shown the token.
"""

import contextlib
import fcntl
import json
import os
import secrets
from pathlib import Path

from combos.admin.regular_file import PRIVATE, open_regular
from combos.core.destinations import classify_host

RUNTIME_NAME = "runtime-port.json"
_SIZE_MAX = 4096


class RuntimeFile:
    """The file of this process. Each process writes a file of its own and renames it: the last one started counts.

    When that one ends, another process that lives puts its own in the place: see `renew`.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / RUNTIME_NAME
        self._handle: int | None = None
        self._place = ("", 0)

    def write(self, host: str, port: int) -> None:
        """Say where this process listens. Raises `OSError`; an older file is as it was then."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{RUNTIME_NAME}.{secrets.token_hex(6)}.tmp")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
        try:
            os.write(handle, json.dumps({"pid": os.getpid(), "port": port, "hostname": host}).encode())
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.rename(self.path)
        except BaseException:
            os.close(handle)
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        before, self._handle, self._place = self._handle, handle, (host, port)
        if before is not None:
            os.close(before)

    def renew(self) -> None:
        """Write what was written before once more, if no living process has a file there. Raises `OSError`.

        A folder that is gone stays gone.
        """
        folder = self.path.parent
        if self._handle is not None and running_at(folder) is None and folder.is_dir():
            self.write(*self._place)

    def remove(self) -> None:
        """Take the file away, unless it is another process's by now. Raises `OSError`; the lock is gone in any case."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        try:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), self.path.lstat()):
                    self.path.unlink()
        finally:
            os.close(handle)


def running_at(folder: Path) -> tuple[str, int] | None:
    """Host and port of the proxy that works in this folder, None when none does. The host is a loopback one."""
    try:
        handle = open_regular(folder / RUNTIME_NAME, os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return _address(os.read(handle, _SIZE_MAX)) if _is_held(handle) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        os.close(handle)


def _is_held(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file lets go of it
    except BlockingIOError:
        return True
    return False


def _address(text: bytes) -> tuple[str, int] | None:
    found = json.loads(text)
    host, port = str(found["hostname"]), int(found["port"])
    return (host, port) if classify_host(host)[0] == "loopback" and 0 < port < 65_536 else None
