"""Shared by the oracles: canonical arguments, images by hash, and server-sent events; standard library only.

An oracle reduces a payload of any dialect to what a translation has to keep, independently of the code under test.
"""

import hashlib
import json
from typing import Any

type Json = dict[str, Any]


def arguments(value: object) -> str:
    """Tool arguments in one spelling; text that does not parse stays what it is."""
    if value is None or value == "":
        return "{}"
    if not isinstance(value, str):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    try:
        return json.dumps(json.loads(value), sort_keys=True, ensure_ascii=False)
    except ValueError:
        return "raw:" + value


def image_at(url: object) -> str:
    """An image by its URL; inline data by its hash."""
    if not isinstance(url, str):
        return "image:?"
    if not url.startswith("data:"):
        return "image:url:" + url
    head, _, data = url[5:].partition(",")
    return inline_image(head.split(";")[0], data)


def inline_image(media_type: object, data: str | None) -> str:
    return f"image:{media_type}:{hashlib.sha256((data or '').encode()).hexdigest()[:12]}"


def qualified(item: Json) -> str:
    """The name of a call with its namespace."""
    return f"{item['namespace']}.{item['name']}" if item.get("namespace") else item["name"]


def sse(raw: bytes) -> list[tuple[str | None, Any]]:
    """The (event name, payload) pairs of a whole stream; `[DONE]` stays a string."""
    text = raw.decode().replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    found = [_frame(block) for block in text.split("\n\n")]
    return [(name, data if data == "[DONE]" else json.loads(data)) for name, data in found if data]


def _frame(block: str) -> tuple[str | None, str]:
    name, data = None, []
    for line in block.split("\n"):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return name, "\n".join(data)
