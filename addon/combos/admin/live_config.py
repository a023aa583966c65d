"""The configuration in force: read from its file, validated as a whole, swapped at once, kept when the file is bad.

Decides when a new registry replaces the old one. What makes a configuration valid is `core.config`'s business.
"""

import hashlib
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from combos.admin.regular_file import read_regular
from combos.core.config import Config, parse_config
from combos.core.config_text import parse_config_text
from combos.core.errors import ConfigError, ConfigProblem
from combos.core.limits import CONFIG_BYTES_MAX
from combos.core.registry import Registry, build_registry
from combos.core.values import dataclass

type Listener = Callable[[Registry], None]
type Observer = Callable[["Change"], None]
type _Stat = tuple[int, int, int]

_GONE = (ConfigProblem("", "is gone; the last good configuration stays in force"),)
_DANGLING = (ConfigProblem("", "is a symbolic link that leads nowhere"),)


class Change(StrEnum):
    """What a look at the file brought."""

    UNCHANGED = "unchanged"
    LOADED = "loaded"
    INVALID = "invalid"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class FileState:
    """What was last seen of the file: its stat and the digest of its bytes."""

    stat: _Stat | None = None
    digest: bytes = b""


def _stat(path: Path) -> _Stat | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class LiveConfig:
    """Owner of the current registry. `problems` is empty unless the file as it lies there cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: tuple[ConfigProblem, ...] = ()
        self._registry = build_registry(parse_config({}), 0)
        self._is_from_file = False
        self._seen = FileState()
        self._listeners: list[Listener] = []
        self._observers: list[Observer] = []

    @property
    def registry(self) -> Registry:
        """The snapshot that new requests start with."""
        return self._registry

    @property
    def is_writable(self) -> bool:
        """Whether the file may be rewritten: never over one that somebody has yet to mend."""
        return not self.problems

    @property
    def is_gone(self) -> bool:
        """Whether what is in force was read from a file that is no longer there."""
        return self._is_from_file and not os.path.lexists(self.path)

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with every registry that comes into force from now on."""
        self._listeners.append(listener)

    def observe(self, observer: Observer) -> None:
        """Call `observer` with what every later look at the file brought, unless that is nothing new."""
        self._observers.append(observer)

    def has_moved(self) -> bool:
        """Whether the file's stat differs from the one last read: the cheap test before `reload`."""
        return _stat(self.path) != self._seen.stat

    def reload(self) -> Change:
        """Read the file again and swap all of it, or keep all of the last good configuration."""
        change = self._reload()
        if change is not Change.UNCHANGED:
            for observer in self._observers:
                observer(change)
        return change

    def _reload(self) -> Change:
        stat = _stat(self.path)
        try:
            text = read_regular(self.path, CONFIG_BYTES_MAX)
        except FileNotFoundError:
            if self.path.is_symlink():
                return self._refuse(FileState(), _DANGLING)
            self._seen = FileState()
            self.problems = _GONE if self._is_from_file else ()
            return Change.MISSING
        except OSError as error:
            return self._refuse(FileState(stat), (ConfigProblem("", f"cannot be read: {error.strerror}"),))
        seen = FileState(stat, hashlib.sha256(text).digest())
        if seen.digest == self._seen.digest:
            self._seen = seen
            return Change.UNCHANGED
        return self._take(text, seen)

    def adopt(self, document: object) -> None:
        """Put a document that does not come from the file into force. Raises `ConfigError`."""
        self._swap(parse_config(document))
        self._is_from_file = False

    def _take(self, text: bytes, seen: FileState) -> Change:
        try:
            config = parse_config_text(text)
        except ConfigError as error:
            return self._refuse(seen, error.problems)
        self._seen = seen
        self.problems = ()
        self._is_from_file = True
        self._swap(config)
        return Change.LOADED

    def _refuse(self, seen: FileState, problems: tuple[ConfigProblem, ...]) -> Change:
        self._seen = seen
        self.problems = problems
        return Change.INVALID

    def _swap(self, config: Config) -> None:
        self._registry = build_registry(config, self._registry.generation + 1)
        for listener in self._listeners:
            listener(self._registry)
