"""Signed-in accounts: the tokens that other clients keep in their files, read when they change.

Known are the files of the Codex CLI and of Claude Code, and a plain `{"access_token", "expires_at", "account_id"}`. A
file is never written and a token never renewed: renewing replaces the refresh token, and whoever else holds the old one
is signed out. The client that owns the file renews it; the new one is seen within a second.
"""

import base64
import binascii
import json
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from combos.core.values import dataclass

FILE_MAX = 256 * 1024
_INSTANT_MAX = 10**16  # beyond any date; `1e999` in a file is read as infinity
LOOK_S = 1.0
"""A file is looked at once in this time at most."""
_SKEW_MS = 30_000  # a token that ends this soon is not worth sending


@dataclass(frozen=True, slots=True)
class Account:
    """A usable token. `account_id` is the vendor's, where requests name it; `expires_at` epoch ms, None unknown."""

    token: str = field(repr=False)
    account_id: str | None = field(default=None, repr=False)
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Unusable:
    """No token; the text says why and holds nothing of the file."""

    reason: str


@dataclass(slots=True)
class _Seen:
    looked_at: float
    mark: tuple[int, int] | None
    found: Account | Unusable


class AccountFiles:
    """The token files of one process. `clock` gives monotonic seconds, `epoch_ms` the wall clock; `warn` is told once
    why a file cannot be used, and again when that changes."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        epoch_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._epoch_ms = epoch_ms
        self._warn = warn
        self._seen: dict[str, _Seen] = {}
        self._said: dict[str, str] = {}

    def read(self, path: str) -> Account | Unusable:
        """The account in a file, as it is now."""
        found = self._read(path)
        reason = found.reason if isinstance(found, Unusable) else ""
        if reason != self._said.get(path, ""):
            self._said[path] = reason
            if reason:
                self._warn(f"the account in {path} is not used: {reason}")
        return found

    def _read(self, path: str) -> Account | Unusable:
        seen = self._seen.get(path)
        now = self._clock()
        if seen is None or now - seen.looked_at >= LOOK_S:
            seen = self._seen[path] = _looked(Path(path).expanduser(), seen, now)
        found = seen.found
        ends = found.expires_at if isinstance(found, Account) else None
        if ends is not None and ends - _SKEW_MS <= self._epoch_ms():
            return Unusable("the token has expired: sign in again, or use its client once")
        return found


def _looked(path: Path, before: _Seen | None, now: float) -> _Seen:
    try:
        status = path.stat()
        mark = (status.st_mtime_ns, status.st_size)
        if before is not None and before.mark == mark:
            return _Seen(now, mark, before.found)
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_MAX:
            return _Seen(now, mark, Unusable("this is no token file"))
        return _Seen(now, mark, read_account(json.loads(path.read_bytes())))
    except OSError as error:
        return _Seen(now, None, Unusable(f"the token file cannot be read: {error.strerror}"))
    except (ValueError, RecursionError):
        return _Seen(now, None, Unusable("the token file is not JSON"))


def read_account(document: object) -> Account | Unusable:
    """The account in the document of a token file."""
    if not isinstance(document, Mapping):
        return Unusable("the token file holds no JSON object")
    for reader in (_codex, _claude, _plain):
        account = reader(document)
        if account is not None:
            return account
    return Unusable("the token file holds no token in a known form")


def _codex(document: Mapping[str, Any]) -> Account | None:
    tokens = document.get("tokens")
    if not isinstance(tokens, Mapping):
        return None
    token = _text(tokens.get("access_token"))
    return Account(token, _text(tokens.get("account_id")), _expiry_of(token)) if token else None


def _claude(document: Mapping[str, Any]) -> Account | None:
    login = document.get("claudeAiOauth")
    if not isinstance(login, Mapping):
        return None
    token = _text(login.get("accessToken"))
    return Account(token, None, _instant(login.get("expiresAt"))) if token else None


def _plain(document: Mapping[str, Any]) -> Account | None:
    token = _text(document.get("access_token"))
    if not token:
        return None
    return Account(token, _text(document.get("account_id")), _instant(document.get("expires_at")) or _expiry_of(token))


def _text(value: object) -> str | None:
    """A header-safe text."""
    is_safe = isinstance(value, str) and value.isascii() and value.isprintable() and value == value.strip()
    return value if is_safe and isinstance(value, str) and value else None


def _instant(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _INSTANT_MAX:
        return None
    return round(value if value > 10**10 else value * 1000)


def _expiry_of(token: str) -> int | None:
    """The end that a JSON web token states; it is read, not trusted: the vendor decides."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return _instant(claims.get("exp")) if isinstance(claims, Mapping) else None
