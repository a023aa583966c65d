"""Replaces members of a JSON object in its bytes. All else stays as it was written: order, spaces, numbers, text.

Works on valid JSON, which the caller has made sure of by parsing; other bytes give `SpliceError` or nonsense.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from combos.wire.json_text import loads

type Path = str | tuple[str, ...]
type _Tree = dict[str, "bytes | _Tree | None"]

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PLAIN = rb'[^"\[\]{}]*+'
# How many levels of brackets one match skips: each level is one pass more over its bytes, and far fewer matches.
_SKIPPED_LEVELS = 3


def _skipping(levels: int) -> bytes:
    """A pattern for anything up to a bracket that stands deeper than `levels`."""
    if levels == 0:
        return _PLAIN + rb"(?:" + _STRING + _PLAIN + rb")*+"
    inner = _skipping(levels - 1)
    group = _STRING + rb"|\{" + inner + rb"\}|\[" + inner + rb"\]"
    return _PLAIN + rb"(?:(?:" + group + rb")" + _PLAIN + rb")*+"


_TO_BRACKET = re.compile(_skipping(_SKIPPED_LEVELS) + rb"([\[\]{}])", re.DOTALL)
_OPEN = re.compile(rb"\s*\{\s*")
_KEY = re.compile(rb"(" + _STRING + rb")\s*:\s*", re.DOTALL)
_SCALAR = re.compile(_STRING + rb"|[^\s,\]}]+", re.DOTALL)
# Without its group when the value is an array or an object.
_BEHIND_KEY = re.compile(rb"\s*:\s*(?:(?![\[{])(" + _SCALAR.pattern + rb"))?", re.DOTALL)
_NEXT = re.compile(rb"\s*,\s*")
_CLOSE = re.compile(rb"\s*\}")
_BACKSLASH = ord("\\")


class SpliceError(ValueError):
    """The bytes are not a JSON object."""


class Member(NamedTuple):
    """Where a member stands: its decoded key, offset of the key, and begin and end of the value."""

    key: str
    start: int
    value: int
    end: int


def replace_members(body: bytes, changes: Mapping[Path, bytes | None]) -> bytes:
    """Set or delete members of the object `body`.

    A path is a key or a tuple of keys, from the outside in; a value is JSON text, None deletes. Of a key that occurs
    twice every occurrence is changed. An absent member is appended; a parent on the way that is absent or no object
    becomes one when something is set in it. A path and one that goes on from it cannot be changed at once. Raises
    `SpliceError` when `body` is not an object, `ValueError` for paths that exclude each other.
    """
    if len(changes) == 1:
        ((path, value),) = changes.items()
        key = path if isinstance(path, str) else path[0] if len(path) == 1 else None
        span = sole_member(body, key) if key is not None and value is not None else None
        if span is not None and value is not None:
            return b"".join((body[: span[0]], value, body[span[1] :]))
    return _apply(body, 0, _tree(changes))


def members(body: bytes, start: int = 0) -> Iterator[Member]:
    """The members of the object that begins at `start`, in order. Raises `SpliceError` for anything else."""
    opened = _OPEN.match(body, start)
    if opened is None:
        raise SpliceError("not a JSON object")
    position = opened.end()
    while (key := _KEY.match(body, position)) is not None:
        end = _value_end(body, key.end())
        yield Member(_decoded(key[1]), key.start(), key.end(), end)
        following = _NEXT.match(body, end)
        if following is None:
            position = end
            break
        position = following.end()
    if _CLOSE.match(body, position) is None:
        raise SpliceError("not a JSON object")


def sole_member(body: bytes, key: str) -> tuple[int, int] | None:
    """Begin and end of the value of top-level member `key`, if that can be told at a glance; None otherwise.

    Valid JSON has a quoted word that follows no backslash and precedes a colon only where it is a key. If there is
    one, no escape that could hide another, and before it (or after its value) no bracket but the root's, it is the
    root's.
    """
    # Searched from behind, which takes CPython a third to a fifth of the time.
    if not key.isidentifier() or not key.isascii() or body.rfind(b"\\u00") >= 0:
        return None
    found = _sole_key(body, orjson.dumps(key))
    if found is None:
        return None
    value, end = span = found.span(1)
    return span if value >= 0 and _is_at_root(body, value, end) else None


def _sole_key(body: bytes, quoted: bytes) -> re.Match[bytes] | None:
    """What stands behind the only occurrence of a key; None for several, or none."""
    found = None
    at = body.rfind(quoted)
    while at >= 0:
        behind = _BEHIND_KEY.match(body, at + len(quoted))
        if behind is not None and body[at - 1] != _BACKSLASH:
            if found is not None:
                return None
            found = behind
        at = body.rfind(quoted, 0, at)
    return found


def _is_at_root(body: bytes, value: int, end: int) -> bool:
    before = body.count(b"{", 0, value) == 1 and body.find(b"[", 0, value) < 0
    return before or (body.count(b"}", end) == 1 and body.find(b"]", end) < 0)


def _decoded(quoted: bytes) -> str:
    if b"\\" not in quoted:
        return quoted[1:-1].decode(errors="replace")
    try:
        return str(loads(quoted))
    except orjson.JSONDecodeError as error:
        raise SpliceError("a key is not valid") from error


def _value_end(body: bytes, start: int) -> int:
    if body[start : start + 1] not in {b"[", b"{"}:
        scalar = _SCALAR.match(body, start)
        if scalar is None:
            raise SpliceError("a member has no value")
        return scalar.end()
    depth = 1
    position = start + 1
    while depth:
        bracket = _TO_BRACKET.match(body, position)
        if bracket is None:
            raise SpliceError("brackets do not match")
        depth += 1 if bracket[1] in {b"[", b"{"} else -1
        position = bracket.end()
    return position


def _tree(changes: Mapping[Path, bytes | None]) -> _Tree:
    tree: _Tree = {}
    for path, value in changes.items():
        *parents, last = (path,) if isinstance(path, str) else path
        node = tree
        for parent in parents:
            inner = node.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ValueError(f"cannot change {path!r} and a parent of it at once")
            node = inner
        if last in node:
            raise ValueError(f"cannot change {path!r} and something in it at once")
        node[last] = value
    return tree


def _apply(body: bytes, start: int, tree: _Tree) -> bytes:
    """The object at `start` with `tree` applied, with whatever surrounds it."""
    found = list(members(body, start))
    if not any(member.key in tree for member in found) and not _additions(tree):
        return body
    pieces = _kept(body, found, tree)
    present = {member.key for member in found}
    new = _additions({key: value for key, value in tree.items() if key not in present})
    opened = _OPEN.match(body, start)
    head = opened.end() if opened is not None else start
    tail = found[-1].end if found else head
    if new:
        pieces.append((b"," if pieces else b"") + b",".join(new))
    return b"".join((body[:head], *pieces, body[tail:]))


def _kept(body: bytes, found: list[Member], tree: _Tree) -> list[bytes]:
    """The members that stay, changed or not, each after the first with the comma that stood before it."""
    pieces: list[bytes] = []
    for index, member in enumerate(found):
        change = tree.get(member.key, b"")
        if change is None:
            continue
        if pieces:
            pieces.append(body[found[index - 1].end : member.start])
        pieces.append(body[member.start : member.value])
        pieces.append(_changed(body[member.value : member.end], change))
    return pieces


def _changed(value: bytes, change: "bytes | _Tree") -> bytes:
    if isinstance(change, bytes):
        return change or value
    if value.startswith(b"{"):
        return _apply(value, 0, change)
    return _object(change) or value


def _object(tree: _Tree) -> bytes | None:
    new = _additions(tree)
    return b"{" + b",".join(new) + b"}" if new else None


def _additions(tree: _Tree) -> list[bytes]:
    """The members that `tree` sets, as JSON text."""
    new: list[bytes] = []
    for key, change in tree.items():
        value = _object(change) if isinstance(change, dict) else change
        if value is not None:
            new.append(orjson.dumps(key) + b":" + value)
    return new
