"""The two spellings that Gemini's API takes for its fields: `generationConfig` and `generation_config`.

Everything else here reads the first one. What is the client's own (arguments, schemas, results) is never looked into.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from combos.wire.splice import Path, replace_members

_WORD = re.compile("_([a-z])")
_CONFIG, _THINKING = "generationConfig", "thinkingConfig"


def camel(value: object) -> dict[str, Any]:
    """An object of the API with its members in the usual spelling; empty for anything else. Inner objects stay."""
    found = value if isinstance(value, dict) else {}
    for key in found:
        if "_" in key:
            usual = {key: inner for key, inner in found.items() if "_" not in key}
            return {_WORD.sub(_capital, key): inner for key, inner in found.items() if "_" in key} | usual
    return found


def _capital(word: re.Match[str]) -> str:
    return word[1].upper()


def with_usual_config(body: bytes, document: Mapping[str, Any]) -> bytes:
    """The body with its generation settings, which are changed per target, in the usual spelling; all else stays."""
    config = camel(document).get(_CONFIG)
    settings = camel(config)
    thinking = camel(settings.get(_THINKING))
    if thinking is not settings.get(_THINKING) and thinking:
        settings = {**settings, _THINKING: thinking}
    if _CONFIG in document and settings is config:
        return body
    if not settings:
        return body
    changes: dict[Path, bytes | None] = {_CONFIG: orjson.dumps(settings)}
    return replace_members(body, changes | ({"generation_config": None} if "generation_config" in document else {}))
