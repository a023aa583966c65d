"""What proxies share, as text: fields and values of a server's hashes, and the messages on its channel.

A register's text begins with its stamp in a form whose order is that of the stamps, so that the server can compare two
without knowing what they say. What comes from the server is believed only as far as it could have been written here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson

from combos.core.cooldowns import CooldownKey
from combos.core.names import is_combo_id, is_printed, is_provider_name, split_selector
from combos.core.recall import NAME_BYTES_MAX, LaneKey, Selection
from combos.core.registers import Cleared, Cooling, Register, RegisterKey, Stamp
from combos.core.sharing import Push, Told
from combos.core.tallies import SUM_MAX, Cell, Sum

MESSAGE_BYTES_MAX = 8 * 1024 * 1024
PARTS_MAX = 50_000
STAMP_LENGTH = 33
"""`<16 hex digits>.<name of the replica>`"""

_STAMP = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{16}) ([0-9]{1,16}) ")
_REPLICA = re.compile(r"[0-9a-f]{16}")
_WORD = re.compile(r"[a-z0-9_-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"-?[0-9]{1,16}")
_TARGET_MAX = 64 + 1 + 512
_TEXT_MAX = 16 * 1024


def stamp_text(stamp: Stamp) -> str:
    """A stamp; texts compare as stamps do."""
    return f"{stamp.at_ms:016x}.{stamp.replica}"


def key_text(key: RegisterKey) -> str:
    """The field of a register."""
    match key:
        case CooldownKey():
            return "c" + _dumped([*key])
        case LaneKey():
            return "r" + _dumped([*key])
        case Cleared(combo, target):
            return "x" + _dumped([combo, target])


def register_text(register: Register) -> str:
    """The value of a register's field."""
    match register.value:
        case Cooling(rule, source, status):
            value: list[Any] = [rule, source, status]
        case Selection() as selection:
            value = [selection.combo, selection.provider, selection.model, selection.response_model]
        case None:
            value = []
    return f"{stamp_text(register.stamp)} {register.expires_ms} {_dumped(value)}"


def cell_text(cell: Cell) -> str:
    """The field of a sum."""
    return cell.kind.value + _dumped([cell.combo, cell.target])


def push_texts(push: Push) -> list[str]:
    """A push in sections: a count, then that many combos to forget, sums with what is added, registers, registers to
    drop with the stamp they had. What has no text is left out: a name with half a character in it."""
    cells = [[cell_text(cell), str(n)] for cell, n in push.additions.items()]
    registers = list(_writable(lambda key, value: [key_text(key), register_text(value)], push.registers))
    drops = list(_writable(lambda key, stamp: [key_text(key), stamp_text(stamp)], push.drops))
    forgets = [[combo] for combo in push.forgets]
    return [text for rows in (forgets, cells, registers, drops) for text in (str(len(rows)), *chain(*rows))]


def cell_texts(cells: Mapping[Cell, int]) -> list[str]:
    """Sums and their values, in turn."""
    return [text for cell, n in cells.items() for text in (cell_text(cell), str(n))]


def register_of(field: str, text: str) -> tuple[RegisterKey, Register]:
    """A register from its field and value. Raises `ValueError`."""
    head = _STAMP.match(text)
    if head is None:
        raise ValueError("no stamp")
    stamp, expires_ms = Stamp(int(head[1], 16), head[2]), int(head[3])
    key = _key_of(field)
    return key, Register(stamp, expires_ms, _value_of(key, _list_of(text[head.end() :]), stamp.at_ms))


def cell_of(field: str) -> Cell:
    """The sum that a field names. Raises `ValueError`."""
    match _list_of(field[1:]):
        case [str() as combo, str() as target] if is_combo_id(combo) and _is_target(target):
            return Cell(Sum(field[:1]), combo, target)
    raise ValueError("no sum")


def sum_of(text: str) -> int:
    """A whole number that every reader can hold. Raises `ValueError`."""
    if _NUMBER.fullmatch(text) is None or abs(int(text)) > SUM_MAX:
        raise ValueError("no number")
    return int(text)


def registers_of(fields: Mapping[str, str]) -> tuple[tuple[RegisterKey, Register], ...]:
    """The registers that can be read; the others are left out."""
    return tuple(_readable(register_of, fields.items()))


def totals_of(fields: Mapping[str, str]) -> dict[Cell, int]:
    """The sums that can be read; everything else, which the server keeps beside them, is left out."""
    return dict(_readable(lambda field, text: (cell_of(field), sum_of(text)), fields.items()))


def told_of(data: bytes) -> Told:
    """A message on the channel. Raises `ValueError` when its frame cannot be read; parts that cannot are left out."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise ValueError("too long")
    parts = _list_of(data)
    if not 7 <= len(parts) <= PARTS_MAX or not all(isinstance(part, str) for part in parts):
        raise ValueError("no message")
    epoch, version, replica, number, *rest = parts
    if _REPLICA.fullmatch(replica) is None or _REPLICA.fullmatch(epoch) is None:
        raise ValueError("no names")
    sections = iter(rest)
    forgets = _section(sections, 1)
    totals = _section(sections, 2)
    registers = _section(sections, 2)
    return Told(
        epoch,
        sum_of(version),
        replica,
        sum_of(number),
        tuple(combo for combo in forgets if is_combo_id(combo)),
        totals_of(_pairs(totals)),
        registers_of(_pairs(registers)),
    )


def _section(parts: Iterator[str], width: int) -> list[str]:
    """A count, then that many groups of `width` texts."""
    try:
        count = sum_of(next(parts)) * width
        if not 0 <= count <= PARTS_MAX:
            raise ValueError("no count")
        return [next(parts) for _ in range(count)]
    except StopIteration:
        raise ValueError("cut short") from None


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _readable[T](read: Callable[[str, str], T], pairs: Iterable[tuple[str, str]]) -> Iterator[T]:
    for field, text in pairs:
        try:
            yield read(field, text)
        except ValueError:
            continue


def _writable[V](
    write: Callable[[RegisterKey, V], list[str]], rows: Iterable[tuple[RegisterKey, V]]
) -> Iterator[list[str]]:
    for key, value in rows:
        try:
            yield write(key, value)
        except TypeError:  # orjson's word for text that is none
            continue


def _key_of(field: str) -> RegisterKey:
    match field[:1], _list_of(field[1:]):
        case "c", [str() as combo, str() as target] if is_combo_id(combo) and _is_target(target):
            return CooldownKey(combo, target)
        case "r", [str() as caller, str() as lane] if _is_digest(caller) and _is_digest(lane):
            return LaneKey(caller, lane)
        case "x", [(str() | None) as combo, (str() | None) as target] if _is_cover(combo, target):
            return Cleared(combo, target)
    raise ValueError("no register")


def _value_of(key: RegisterKey, value: list[Any], at_ms: int) -> Cooling | Selection | None:
    match key, value:
        case CooldownKey(), [str() as rule, str() as source, status] if _is_word(rule) and _is_word(source):
            if status is None or (type(status) is int and 100 <= status <= 599):
                return Cooling(rule, source, status)
        case LaneKey(), [str() as combo, str() as provider, str() as model, str() as name]:
            size = len(name.encode())
            is_known = is_combo_id(combo) and is_provider_name(provider) and _is_target(f"{provider}/{model}")
            if is_known and name.strip() and size <= NAME_BYTES_MAX:
                return Selection(combo, provider, model, name, at_ms, size)
        case Cleared(), []:
            return None
    raise ValueError("no value")


def _is_target(text: str) -> bool:
    return len(text) <= _TARGET_MAX and is_printed(text) and split_selector(text) is not None


def _is_cover(combo: str | None, target: str | None) -> bool:
    return (combo is None or is_combo_id(combo)) and (target is None or _is_target(target))


def _is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def _is_word(text: str) -> bool:
    return _WORD.fullmatch(text) is not None


def _dumped(value: list[Any]) -> str:
    return orjson.dumps(value).decode()


def _list_of(text: str | bytes) -> list[Any]:
    if isinstance(text, str) and len(text) > _TEXT_MAX:
        raise ValueError("too long")
    value = orjson.loads(text)
    if not isinstance(value, list):
        raise ValueError("no list")
    return value
