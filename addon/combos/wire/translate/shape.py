"""Reads and writes untrusted JSON: every accessor answers with the wanted shape or an empty value, never an exception.

It knows no dialect. Refusals live here because each reader may need one.
"""

import json
from typing import Any

import orjson

from combos.core.errors import ProxyError
from combos.wire.json_text import loads

type Json = dict[str, Any]

MAX_MESSAGE = 4096
"""Characters of an upstream error text that are passed on."""


class Unsupported(ValueError):  # noqa: N818 - named after the refusal's code
    """The request holds something that the target's dialect cannot say; the target is not eligible.

    `feature` is the parameter to name (`previous_response_id`, `input[3].content[0]`); `code` goes into the answer.
    """

    code = "unsupported_by_target"
    status = 400

    def __init__(self, feature: str, reason: str = "has no counterpart in the target's format") -> None:
        super().__init__(f"{feature} {reason}")
        self.feature = feature
        self.reason = reason

    def refusal(self, target_key: str) -> ProxyError:
        """The answer to the client when no other target is left."""
        message = f"{self} and cannot be sent to {target_key}."
        return ProxyError(self.status, "invalid_request_error", self.code, message)


def as_str(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_int(value: object) -> int | None:
    """A JSON integer; booleans and fractions are none, a float without fraction counts."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if isinstance(value, int) else None


def as_number(value: object) -> float | int | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def count(value: object) -> int:
    """A token count: zero for anything that is not a positive integer."""
    return max(0, as_int(value) or 0)


def dicts(value: object) -> list[tuple[int, Json]]:
    """The objects of a list with their positions; everything else in it is passed over."""
    if not isinstance(value, list):
        return []
    return [(index, item) for index, item in enumerate(value) if isinstance(item, dict)]


def load(data: bytes | str) -> Any:
    """Parse JSON. Raises ValueError only."""
    return loads(data.encode() if isinstance(data, str) else data)


def load_object(data: bytes | str) -> Json | None:
    """The JSON object in `data`, or None when it is anything else."""
    try:
        value = load(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def dump(value: object) -> bytes:
    """Compact JSON. What orjson refuses (depth over 254, lone surrogates) goes through the standard library."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def dump_str(value: object) -> str:
    return dump(value).decode()


def cut(message: str) -> str:
    return message[:MAX_MESSAGE]
