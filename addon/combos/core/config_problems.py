"""How a broken configuration is reported: paths, the shape every JSON document must have, messages of the models.

No value of a text ever gets into a message; see `config_types.kind_of`.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from combos.core.config_types import kind_of
from combos.core.errors import ConfigProblem
from combos.core.limits import CONFIG_DEPTH_MAX, PROBLEMS_MAX

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]{1,80}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER_MAX = 2**63

# What pydantic's own checks are called here; every other check has its text already.
_KINDS = {
    "model_type": "an object",
    "dict_type": "an object",
    "mapping_type": "an object",
    "tuple_type": "an array",
    "string_type": "a string",
}


def path_of(parts: Sequence[str | int]) -> str:
    """`combos.main.targets[0].weight`; keys that are no plain words are quoted: `modelCosts["gpt-5.6"]`."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{json.dumps(part[:80])}]"
    return path


def problem(parts: Sequence[str | int], message: str) -> ConfigProblem:
    """A problem at the place that `parts` lead to."""
    return ConfigProblem(path_of(parts), message)


def problems_of(error: ValidationError) -> tuple[ConfigProblem, ...]:
    """The problems that a model found."""
    return tuple(_problem_of(details) for details in error.errors(include_url=False, include_context=False))


def _problem_of(details: ErrorDetails) -> ConfigProblem:
    loc, subject = details["loc"], ""
    if loc and loc[-1] == "[key]":  # how pydantic points at a key instead of its value
        loc, subject = loc[:-1], "name "
    return problem(loc, subject + _message(details))


def _message(details: ErrorDetails) -> str:
    if details["type"] == "missing":
        return "is required"
    if details["type"] in _KINDS:
        return f"must be {_KINDS[details['type']]}, got {kind_of(details['input'])}"
    return details["msg"]


def shape_problems(document: object) -> tuple[ConfigProblem, ...]:
    """Whether a value is a JSON object of bounded depth with finite numbers and whole Unicode texts."""
    if not isinstance(document, Mapping):
        return (ConfigProblem("", f"the configuration must be a JSON object, got {kind_of(document)}"),)
    found: list[ConfigProblem] = []
    for item in _shape(document):
        found.append(item)
        if len(found) == PROBLEMS_MAX:
            break
    return tuple(found)


def _shape(document: object) -> Iterator[ConfigProblem]:
    open_values: list[tuple[tuple[str | int, ...], object]] = [((), document)]
    while open_values:
        parts, value = open_values.pop()
        message = _value_fault(value) if len(parts) <= CONFIG_DEPTH_MAX else "is nested too deeply"
        if message:
            yield problem(parts, message)
        elif isinstance(value, Mapping):
            open_values.extend(((*parts, key), member) for key, member in reversed(list(value.items())))
        elif isinstance(value, list | tuple):
            open_values.extend(((*parts, index), member) for index, member in reversed(list(enumerate(value))))


def _value_fault(value: object) -> str | None:
    match value:
        case str():
            return "must be whole Unicode text" if _SURROGATE.search(value) else None
        case None | bool() | list() | tuple():
            return None
        case float() if not math.isfinite(value):
            return "must be a finite number"
        case int() | float():
            return "is a number out of range" if abs(value) > _NUMBER_MAX else None
        case Mapping():
            return _keys_fault(value)
        case _:
            return "must be a JSON value"


def _keys_fault(value: Mapping[object, object]) -> str | None:
    if not all(isinstance(key, str) for key in value):
        return "must have names that are strings"
    return "must have names of whole Unicode text" if any(_SURROGATE.search(str(key)) for key in value) else None
