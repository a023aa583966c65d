"""The configuration file as something that is changed: under a lock, validated as a whole, replaced at once.

Decides whether a change may be written: never over a broken file, never to a broken one. What a change does is a pure
function over the document; what is in force in a running proxy is `live_config`'s business.
"""

import copy
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from combos.admin.atomic import DanglingLinkError, real_file, replace_file
from combos.admin.filelock import LockError, locked
from combos.admin.refusal import Kind, RefusalError, broken_file, not_valid
from combos.admin.regular_file import read_regular
from combos.core.config import Config, parse_config, save_problems
from combos.core.config_problems import path_of
from combos.core.config_text import parse_document
from combos.core.errors import ConfigError
from combos.core.limits import CONFIG_BYTES_MAX
from combos.core.values import dataclass

type Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Edit[T]:
    """A change that was made to a document. `saved` are the combos that have to be usable, not only valid."""

    document: Document
    result: T
    saved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored[T]:
    """What came of a change: the configuration as it is (or, in a preview, would be) stored."""

    result: T
    config: Config
    is_changed: bool


class ConfigStore:
    """The configuration file at one path. Every method may block on the disk and the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Document:
        """The document in the file; empty without a file. Raises `RefusalError` for a file that cannot be used."""
        return self._read()[0]

    def config(self) -> Config:
        """The valid configuration in the file. Raises `RefusalError`."""
        return parse_config(self.read())

    def edit[T](self, change: Callable[[Document], Edit[T]]) -> Stored[T]:
        """Make a change and write it. Raises `RefusalError`; the file is as before then."""
        try:
            _make_folder(self.path.parent)
            with locked(real_file(self.path).parent):
                old, text = self._read()
                stored, document = _changed(old, change)
                new = _loadable(document)
                if stored.is_changed and new != text:
                    replace_file(self.path, new)
                return stored
        except (OSError, LockError, DanglingLinkError) as error:
            raise _unavailable(self.path, error) from error

    def preview[T](self, change: Callable[[Document], Edit[T]]) -> Stored[T]:
        """What `edit` would do, without writing. Raises `RefusalError`."""
        return _changed(self.read(), change)[0]

    def _read(self) -> tuple[Document, bytes]:
        try:
            text = read_regular(real_file(self.path), CONFIG_BYTES_MAX)
        except FileNotFoundError:
            return {}, b""
        except (OSError, DanglingLinkError) as error:
            raise _unavailable(self.path, error, "read") from error
        try:
            document = parse_document(text)
            parse_config(document)
        except ConfigError as error:
            raise broken_file(self.path, error) from error
        return dict(document), text


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error


def _loadable(document: Document) -> bytes:
    """The text of a valid document, read back: what is written can be loaded. Raises `RefusalError`."""
    text = serialise(document)
    try:
        parse_document(text)
    except ConfigError as error:
        raise not_valid(error.problems) from error
    return text


def serialise(document: Document) -> bytes:
    """The text of a document: two blanks of indentation, keys in their order, Unicode as it is."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _changed[T](old: Document, change: Callable[[Document], Edit[T]]) -> tuple[Stored[T], Document]:
    edit = change(copy.deepcopy(old))
    places = tuple(f"{path_of(('combos', combo))}." for combo in edit.saved)
    try:
        config = parse_config(edit.document)
    except ConfigError as error:
        # What was just written is the likelier cause of a clash than what was there before.
        raise not_valid(tuple(sorted(error.problems, key=lambda p: not p.path.startswith(places)))) from error
    problems = tuple(problem for problem in save_problems(config) if problem.path.startswith(places))
    if problems:
        raise not_valid(problems)
    return Stored(edit.result, config, edit.document != old), edit.document


def _unavailable(path: Path, error: Exception, verb: str = "changed") -> RefusalError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return RefusalError(Kind.UNAVAILABLE, "config_unavailable", f"{path} cannot be {verb}: {reason}")
