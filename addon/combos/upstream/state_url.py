"""Where the shared state is, as the option `combos_state` names it. No message here repeats what was written."""

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from combos.core.secrets import variable_of
from combos.core.values import dataclass

_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PORT = 6379
_DB_MAX = 65_535
_QUERY = {"redis": {"prefix"}, "rediss": {"prefix", "ca"}, "unix": {"prefix", "db"}}


@dataclass(frozen=True, slots=True)
class StateAddress:
    """A server of the Redis protocol, or its socket (`path`), and what to say to it. `ca` is a file of certificates;
    `prefix` names the group of proxies, empty: those of the same configuration."""

    host: str = ""
    port: int = _PORT
    path: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca: str | None = None
    prefix: str = ""

    @property
    def label(self) -> str:
        """For logs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.path or f"{host}:{self.port}"


def parse_state(value: str, environ: Mapping[str, str]) -> StateAddress | None:
    """The address, None for an empty text. Raises `ValueError` that names the rule.

    A password may be written as `${NAME}`, for a variable of the environment.
    """
    if not value:
        return None
    if "#" in value or any(letter.isspace() for letter in value):
        raise ValueError("must hold neither blanks nor #: write %20 and %23 in a password")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError("is not an address: write redis://host:port/0") from None
    if parts.scheme not in _QUERY:
        raise ValueError("must begin with redis://, rediss:// or unix://")
    query = _query(parts.query, _QUERY[parts.scheme])
    username, password = _login(parts.username, parts.password, environ)
    prefix = _prefix(query.get("prefix"))
    if parts.scheme == "unix":
        path, db = _socket(parts.hostname, parts.path), _db(query.get("db", "0"))
        return StateAddress(path=path, db=db, username=username, password=password, prefix=prefix)
    if not parts.hostname:
        raise ValueError("must name a host: redis://host:port/0")
    return StateAddress(
        host=parts.hostname,
        port=_PORT if port is None else port,
        db=_db(parts.path.removeprefix("/") or "0"),
        username=username,
        password=password,
        tls=parts.scheme == "rediss",
        ca=_certificates(query.get("ca")),
        prefix=prefix,
    )


def _query(text: str, allowed: set[str]) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True)
    names = [name for name, _ in pairs]
    if not set(names) <= allowed or len(set(names)) < len(names) or (text and not pairs):
        raise ValueError(f"takes no other parameters than {', '.join(sorted(allowed))}, each once")
    return dict(pairs)


def _login(username: str | None, password: str | None, environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    if username and not password:
        raise ValueError("names a user without a password")
    if not password:
        return None, None
    password = unquote(password)
    variable = variable_of(password)
    if variable is not None:
        password = environ.get(variable, "")
        if not password:
            raise ValueError(f"takes its password from the environment variable {variable}, which is not set")
    return unquote(username) if username else None, password


def _prefix(text: str | None) -> str:
    if text is not None and _PREFIX.fullmatch(text) is None:
        raise ValueError("has a prefix that is none: letters, digits, dots, underscores, hyphens, 64 at most")
    return text or ""


def _certificates(path: str | None) -> str | None:
    if path is not None and not Path(path).is_file():
        raise ValueError("names a file of certificates that is not there")
    return path


def _socket(host: str | None, path: str) -> str:
    if host or not path.startswith("/") or path == "/":
        raise ValueError("must name a socket by its whole path: unix:///run/redis/redis.sock")
    return unquote(path)


def _db(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _DB_MAX:
        raise ValueError("must name the database by a number: redis://host:port/0")
    return int(text)
