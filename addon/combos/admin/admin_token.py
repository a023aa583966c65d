"""The token of the management API: from the environment, else from a file beside the configuration, made once.

Decides which token counts and when there is none to trust. Who has to show it is decided by `auth`.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from combos.admin.atomic import sync_folder
from combos.admin.regular_file import PRIVATE

VARIABLE = "COMBOS_ADMIN_TOKEN"
FILE_NAME = "admin-api-token"
PREFIX = "ocx_admin_"
_RANDOM_BYTES = 32  # 43 characters of base64url
_FILE_MAX = 512


class TokenError(Exception):
    """There is no token that could be trusted. The text says why and how to mend it; it never holds the token."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def admin_token(folder: Path, environ: Mapping[str, str], *, create: bool = True) -> str:
    """The token in force. Raises `TokenError`. With `create`, a missing file is made."""
    named = environ.get(VARIABLE, "").strip()
    if named:
        return named
    path = folder / FILE_NAME
    is_made = create and not os.path.lexists(path)
    try:
        if is_made:
            _create(path)
        return _read(path)
    except OSError as error:
        verb, thing = ("made", "folder") if is_made else ("read", "file")
        hint = f"set {VARIABLE} or mend the {thing}"
        raise TokenError(f"{path} cannot be {verb}: {error.strerror}", hint) from error


def refuse_shared(token: str, data_plane_keys: Iterable[str]) -> None:
    """Who may use the models may not manage them. Raises `TokenError`."""
    if any(secrets.compare_digest(token.encode(), key.encode()) for key in data_plane_keys):
        raise TokenError("the admin token is one of apiKeys", "give the management API a token of its own")


def _read(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _FILE_MAX:
            raise TokenError(f"{path} is not a token file", "remove it; it is made again")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise TokenError(f"{path} can be read by others", f"chmod 600 {path}, or remove it; it is made again")
        token = file.read(_FILE_MAX).decode("ascii", "replace").strip()
    if not token or "\ufffd" in token or any(character.isspace() for character in token):
        raise TokenError(f"{path} holds no token", "remove it; it is made again")
    return token


def _create(path: Path) -> None:
    """Write under another name, then link: two starters at once end up with one token, and never a half one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{FILE_NAME}.{secrets.token_hex(6)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(f"{PREFIX}{secrets.token_urlsafe(_RANDOM_BYTES)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # somebody else was first: theirs counts
            os.link(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    sync_folder(path.parent)
