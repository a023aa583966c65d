"""Compaction for targets that cannot make a `compaction` item: an ordinary summarising turn takes its place.

Decides how such a turn is asked for, how its answer is dressed, and how both kinds of private Responses items read
as text. It does not decide which target can compact by itself: the profile says so.
"""

import base64
import binascii
from collections.abc import Iterator
from enum import StrEnum

from combos.wire.translate.shape import Json, Unsupported, as_dict, as_list, as_str, dicts

PREFIX = "combos-summary:"
"""Marks an `encrypted_content` that is our own base64 text."""

RECENT_CHARACTERS = 80_000
"""How much of the user's own words `/responses/compact` keeps beside the summary, newest first."""

_PROMPT = (
    "Write a hand-off summary of this conversation for an assistant who will continue it without seeing it. "
    "Cover the user's goals and constraints, what was done and decided, the state of files and tools, "
    "facts and identifiers that will be needed again, open problems, and the next steps. "
    "Answer with the summary only; call no tools."
)
_IMAGE_MARKER = "[image omitted]"
_UNREADABLE = "[an earlier part of this conversation was compacted by another provider and cannot be read here]"
_DROPPED_ITEMS = frozenset({"compaction_trigger", "additional_tools"})
_DROPPED_FIELDS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "text"})


class Compaction(StrEnum):
    """Which answer a compaction turn owes: one streamed item, or the history of `/responses/compact`."""

    TRIGGER = "trigger"
    COMPACT = "compact"


def asked(document: Json) -> bool:
    """Whether a Responses request is a compaction turn."""
    return any(item.get("type") == "compaction_trigger" for _index, item in dicts(document.get("input")))


def summary_request(document: Json) -> Json:
    """The Responses request that asks for a summary in place of a compaction."""
    result = {key: value for key, value in document.items() if key not in _DROPPED_FIELDS}
    items = input_items(document)
    result["input"] = [
        *(_plain(item) for item in items if as_str(item.get("type")) not in _DROPPED_ITEMS),
        user_message(_PROMPT),
    ]
    return result


def native_request(document: Json) -> Json:
    """`/responses/compact` as an ordinary turn for a target that can compact by itself."""
    items = [item for item in input_items(document) if item.get("type") != "compaction_trigger"]
    return {**document, "input": [*items, {"type": "compaction_trigger"}]}


def input_items(document: Json) -> list[Json]:
    """The items of `input`; text is one user message."""
    value = document.get("input")
    if isinstance(value, str):
        return [user_message(value)]
    return [item for _index, item in dicts(value)]


def user_message(text: str) -> Json:
    """A plain user message item."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _plain(item: Json) -> Json:
    """An item without images and unreadable compactions."""
    if item.get("type") == "compaction":
        summary = own_summary(item.get("encrypted_content"))
        return user_message(_UNREADABLE if summary is None else replayed(summary))
    changed = {
        key: [_without_image(part) for part in value]
        for key in ("content", "output")
        if isinstance(value := item.get(key), list)
    }
    return {**item, **changed} if changed else item


def _without_image(part: object) -> object:
    if as_dict(part).get("type") == "input_image":
        return {"type": "input_text", "text": _IMAGE_MARKER}
    return part


def own_summary(value: object) -> str | None:
    """The summary in an `encrypted_content` of ours, None for anything else."""
    if not isinstance(value, str) or not value.startswith(PREFIX):
        return None
    try:
        return base64.b64decode(value[len(PREFIX) :], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def replayed(summary: str) -> str:
    """How a summary stands in the history of a later request."""
    return f"Summary of the conversation so far:\n\n{summary}"


def item(summary: str, item_id: str) -> Json:
    """The compaction item a Codex client expects exactly once."""
    encoded = base64.b64encode(summary.encode("utf-8", "replace")).decode()
    return {"type": "compaction", "id": item_id, "encrypted_content": PREFIX + encoded}


def recent_messages(document: Json) -> list[Json]:
    """The plain user messages worth keeping beside a summary, oldest first."""
    kept: list[Json] = []
    left = RECENT_CHARACTERS
    for entry in reversed(input_items(document)):
        text = _user_text(entry)
        if not text:
            continue
        if len(text) > left:
            break
        left -= len(text)
        kept.append(user_message(text))
    return kept[::-1]


def _user_text(entry: Json) -> str:
    if entry.get("role") != "user" or entry.get("type", "message") != "message":
        return ""
    content = entry.get("content")
    return content if isinstance(content, str) else "".join(_texts(as_list(content)))


def _texts(parts: list[object]) -> Iterator[str]:
    return (as_str(part.get("text")) for part in parts if isinstance(part, dict))


def history(recent: list[Json], summary: str) -> Json:
    """The answer of `/responses/compact` made from a summary."""
    return {"output": [*recent, user_message(replayed(summary))]}


def agent_text(entry: Json, where: str, marker: str) -> str:
    """A sub-agent message as user text. Raises Unsupported when nothing in it can be read."""
    texts: list[str] = []
    sealed = False
    for _index, part in dicts(entry.get("content")):
        if part.get("type") == "encrypted_content":
            sealed = True
            texts.append(marker)
        elif text := as_str(part.get("text")):
            texts.append(text)
    if sealed and all(text == marker for text in texts):
        raise Unsupported(where, "is encrypted for its own provider")
    return "\n".join(texts)
