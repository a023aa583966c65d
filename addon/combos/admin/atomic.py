"""Replaces a file at once: readers see the old content or the new one, also after a crash at any point.

A symbolic link is followed and its target replaced, so that a file kept in a repository of settings stays there.
"""

import contextlib
import os
import secrets
from pathlib import Path

from combos.admin.regular_file import PRIVATE

BACKUP_SUFFIX = ".bak"


class DanglingLinkError(Exception):
    """The file is a symbolic link to nothing: it cannot be known what was meant."""


def real_file(path: Path) -> Path:
    """The file behind `path`. Raises `DanglingLinkError`."""
    if not path.is_symlink():
        return path
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise DanglingLinkError(f"{path} is a symbolic link that leads nowhere") from None


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` in place of `path`, mode 0600, on disk before it is named; the version before stays as `….bak`.

    For one writer at a time. Raises `OSError` and `DanglingLinkError`; the old file is whole then.
    """
    target = real_file(path)
    _remove_leftovers(target)
    temporary = _temporary(target)
    try:
        _write_new(temporary, data)
        _keep_owner(temporary, target)
        _keep_previous(target)
        temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_new(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _keep_owner(path: Path, target: Path) -> None:
    """Written by root, the file still belongs to whom it belonged to: a proxy run by them must go on reading it."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        before = target.stat()
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(path, before.st_uid, before.st_gid)


def _keep_previous(target: Path) -> None:
    """Give the present file a second name: no copy, and whole at every moment."""
    link = _temporary(target)
    try:
        os.link(target, link)
    except FileNotFoundError:
        return
    except OSError:  # a file system without hard links
        _write_new(link, target.read_bytes())
    with contextlib.suppress(OSError):  # the backup was world-readable: not worth failing the write
        link.chmod(PRIVATE)
    link.rename(target.with_name(target.name + BACKUP_SUFFIX))
    # Renaming does nothing when both names are of one file: a writer died between the backup and the new version.
    link.unlink(missing_ok=True)


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


def _remove_leftovers(target: Path) -> None:
    """What a writer that was killed left behind; nobody else writes now."""
    for path in target.parent.glob(f".{target.name}.*.tmp"):
        path.unlink(missing_ok=True)
