"""Reads JSON as vendors and clients write it: half a surrogate pair, escaped, is JSON and no text.

JavaScript writes such halves when it cuts a text in the middle of an emoji. They are read as U+FFFD, so that no text
in this process is one that cannot be encoded; bytes that are passed on are not touched. Knows no dialect.
"""

import re
from typing import Any

import orjson

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# Every escape is matched, so that the text behind an escaped backslash is not taken for one.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def loads(data: bytes) -> Any:
    """The value of a JSON text. Raises `orjson.JSONDecodeError`, a ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if _HALF.search(data) is None:
            raise
    return orjson.loads(_ESCAPE.sub(_whole, data))


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["half"] else escape[0]
