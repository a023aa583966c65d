"""From the bytes of a configuration file to a JSON document: encoding, syntax, size, repeated keys.

What the document means is judged by `config`. No part of the text is repeated in a message but the names of keys.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from combos.core.config import Config, parse_config
from combos.core.config_problems import problem
from combos.core.errors import ConfigError, ConfigProblem
from combos.core.limits import CONFIG_BYTES_MAX

_DIGITS_MAX = 40  # longer integers are out of every range, and slow to read


class _Repeated(dict[str, object]):
    """An object in which a key was written twice; the last one counts, as in every JSON reader."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        written = Counter(key for key, _ in pairs)
        self.repeated = tuple(key for key, times in written.items() if times > 1)


class _NotJsonError(Exception):
    """A number that Python's reader accepts and JSON does not, or that no field takes."""


def parse_config_text(text: bytes) -> Config:
    """Read a whole configuration file. Raises `ConfigError` with every problem found."""
    return parse_config(parse_document(text))


def parse_document(text: bytes) -> Mapping[str, object]:
    """The JSON object in a file, in file order. Raises `ConfigError`: no UTF-8, no JSON, no object, a key twice."""
    if len(text) > CONFIG_BYTES_MAX:
        raise _error(f"the file is larger than {CONFIG_BYTES_MAX} bytes")
    document = _read(_decode(text))
    if not isinstance(document, dict):
        raise _error("the configuration must be a JSON object { … }")
    repeated = tuple(repeated_keys(document))
    if repeated:
        raise ConfigError(repeated)
    return document


def _decode(text: bytes) -> str:
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _error(f"the file is not UTF-8 text (byte {error.start})") from None
    if not decoded.strip():
        raise _error("the file is empty")
    return decoded


def _read(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=object_of, parse_constant=_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise _error(f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except _NotJsonError as error:
        raise _error(str(error)) from None
    except RecursionError:
        raise _error("the file is nested too deeply") from None


def object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of these members, for a JSON reader; `repeated_keys` finds those that were written twice."""
    members = dict(pairs)
    return members if len(members) == len(pairs) else _Repeated(pairs)


def _constant(name: str) -> object:
    raise _NotJsonError(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise _NotJsonError(f"a number of {len(digits)} digits is out of range")
    return int(digits)


def repeated_keys(document: object) -> Iterator[ConfigProblem]:
    """A problem for each key that was written more than once in one object of a document read with `object_of`."""
    open_values: list[tuple[tuple[str | int, ...], object]] = [((), document)]
    while open_values:
        parts, value = open_values.pop()
        if isinstance(value, _Repeated):
            for key in value.repeated:
                yield problem((*parts, key), "is written more than once")
        if isinstance(value, dict):
            open_values.extend(((*parts, key), member) for key, member in value.items())
        elif isinstance(value, list):
            open_values.extend(((*parts, index), member) for index, member in enumerate(value))


def _error(message: str) -> ConfigError:
    return ConfigError((ConfigProblem("", message),))
