"""Cleans requests that stay in their dialect: sealed state is opened for its own provider and removed for any other.

A combo may have answered the last turn elsewhere, so this runs on every request that is not translated. It changes
nothing else; members it does not return keep their bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from combos.core.facts import Dialect
from combos.wire.translate import compaction, opaque
from combos.wire.translate.ir import Opaque
from combos.wire.translate.profile import TargetProfile
from combos.wire.translate.shape import Json, as_dict, as_str, dicts

ENCRYPTED_MARKER = "[encrypted content]"


def scrub(
    document: Mapping[str, Any], dialect: Dialect, profile: TargetProfile, native_from: str | None = None
) -> Mapping[str, Any]:
    """The top-level members to replace; None deletes a member, an empty mapping means that nothing changes.

    `native_from` is the provider known to have made this conversation's native state, None when that is not known:
    then native state is sent as it is. Raises Unsupported for a sub-agent task that only its provider can read.
    """
    return _SCRUBBERS[dialect](dict(document), profile, native_from)


_FOLLOWERS = frozenset({"message", "function_call", "custom_tool_call"})


def _foreign(profile: TargetProfile, native_from: str | None) -> bool:
    return native_from is not None and native_from != profile.provider


def _responses(document: Json, profile: TargetProfile, native_from: str | None) -> Mapping[str, Any]:
    items = document.get("input")
    if not isinstance(items, list):
        return {}
    cleaned: list[Any] = []
    for index, item in enumerate(items):
        cleaned.extend(_item(item, f"input[{index}]", profile, native_from))
    if len(cleaned) < len(items):
        # The API knows its own items by id and asks for the reasoning that came before them; without ids it does not.
        cleaned = [_nameless(item) for item in cleaned]
    elif all(a is b for a, b in zip(cleaned, items, strict=True)):
        return {}
    return {"input": cleaned}


def _nameless(item: Any) -> Any:
    """A message or call without its id."""
    fields = as_dict(item)
    if as_str(fields.get("type", "message")) not in _FOLLOWERS or "id" not in fields:
        return item
    return {key: value for key, value in fields.items() if key != "id"}


def _item(item: Any, where: str, profile: TargetProfile, native_from: str | None) -> Iterator[Any]:
    match as_dict(item).get("type"):
        case "reasoning":
            yield from _reasoning(item, profile, native_from)
        case "compaction" if (summary := compaction.own_summary(item.get("encrypted_content"))) is not None:
            yield compaction.user_message(compaction.replayed(summary))
        case "agent_message" if not profile.canonical:
            yield compaction.user_message(compaction.agent_text(item, where, ENCRYPTED_MARKER))
        case _:
            yield item


def _reasoning(item: Json, profile: TargetProfile, native_from: str | None) -> Iterator[Json]:
    blob = item.get("encrypted_content")
    if not opaque.is_sealed(blob):
        # One that holds nothing is a reference to what its maker keeps.
        if not (_foreign(profile, native_from) and (blob or not item.get("content"))):
            yield item
        return
    state = opaque.unseal(as_str(blob))
    if state is not None and opaque.fits(state, Dialect.RESPONSES, profile.key):
        summary = [{"type": "summary_text", "text": state.text}] if state.text else []
        identity = {"id": state.item_id} if state.item_id.startswith("rs_") else {}
        yield {"type": "reasoning", **identity, "summary": summary, "encrypted_content": state.blob}


def _messages(document: Json, profile: TargetProfile, native_from: str | None) -> Mapping[str, Any]:
    turns = document.get("messages")
    if not isinstance(turns, list):
        return {}
    cleaned = [_turn(turn, profile, native_from) for turn in turns]
    if all(a is b for a, b in zip(cleaned, turns, strict=True)):
        return {}
    kept = [turn for turn in cleaned if turn is not None]
    changes: dict[str, Any] = {"messages": kept}
    if as_dict(document.get("thinking")).get("type") == "enabled" and _misses_thinking(kept):
        changes["thinking"] = None
    return changes


def _turn(turn: Any, profile: TargetProfile, native_from: str | None) -> Any:
    """The turn without foreign state; None when nothing is left of it."""
    content = as_dict(turn).get("content")
    if not isinstance(content, list):
        return turn
    blocks = [_block(block, profile, native_from) for block in content]
    if all(a is b for a, b in zip(blocks, content, strict=True)):
        return turn
    kept = [block for block in blocks if block is not None]
    return {**turn, "content": kept} if kept else None


_SLOTS = {"thinking": "signature", "redacted_thinking": "data"}


def _block(block: Any, profile: TargetProfile, native_from: str | None) -> Any:
    slot = _SLOTS.get(as_str(as_dict(block).get("type")))
    if slot is None:
        return block
    blob = block.get(slot)
    if not opaque.is_sealed(blob):
        return None if blob and _foreign(profile, native_from) else block
    state = opaque.unseal(as_str(blob))
    if state is None or not opaque.fits(state, Dialect.MESSAGES, profile.key):
        return None
    if state.redacted:
        return {"type": "redacted_thinking", "data": state.blob}
    return {"type": "thinking", "thinking": state.text, "signature": state.blob}


def _misses_thinking(turns: list[Any]) -> bool:
    """Whether an open tool round lost the thinking it must start with in the budget form."""
    if len(turns) < 2:
        return False
    asked = any(block.get("type") == "tool_result" for _index, block in dicts(as_dict(turns[-1]).get("content")))
    blocks = [as_str(block.get("type")) for _index, block in dicts(as_dict(turns[-2]).get("content"))]
    return asked and bool(blocks) and blocks[0] not in _SLOTS


def _gemini(document: Json, profile: TargetProfile, native_from: str | None) -> Mapping[str, Any]:
    contents = document.get("contents")
    if not isinstance(contents, list):
        return {}
    cleaned = [_content(content, profile, native_from) for content in contents]
    if all(a is b for a, b in zip(cleaned, contents, strict=True)):
        return {}
    return {"contents": [content for content in cleaned if content is not None]}


def _content(content: Any, profile: TargetProfile, native_from: str | None) -> Any:
    parts = as_dict(content).get("parts")
    if not isinstance(parts, list):
        return content
    cleaned = [_part(part, profile, native_from) for part in parts]
    if all(a is b for a, b in zip(cleaned, parts, strict=True)):
        return content
    kept = [part for part in cleaned if part is not None]
    return {**content, "parts": kept} if kept else None


_GEMINI_SLOTS = ("thoughtSignature", "thought_signature")
"""The API takes both spellings of its fields."""


def _part(part: Any, profile: TargetProfile, native_from: str | None) -> Any:
    found = as_dict(part)
    blob = opaque.from_gemini_slot(next((found[slot] for slot in _GEMINI_SLOTS if slot in found), None))
    if not isinstance(blob, str) or not blob:
        return part
    if not opaque.is_sealed(blob):
        return _unsigned(part) if _foreign(profile, native_from) else part
    state = opaque.unseal(blob)
    if state is None or not opaque.fits(state, Dialect.GEMINI, profile.key):
        return _unsigned(part)
    return _signed(part, state)


def _unsigned(part: Json) -> Json | None:
    """The part without its signature; a thought is worth nothing without it."""
    if part.get("thought") is True:
        return None
    return _without_slot(part)


def _without_slot(part: Json) -> Json:
    return {key: value for key, value in part.items() if key not in _GEMINI_SLOTS}


def _signed(part: Json, state: Opaque) -> Json:
    slot = next(slot for slot in _GEMINI_SLOTS if slot in part)
    return {**part, slot: state.blob}


def _chat(_document: Json, _profile: TargetProfile, _native_from: str | None) -> Mapping[str, Any]:
    """Chat has no slot for opaque state."""
    return {}


_SCRUBBERS: Mapping[Dialect, Callable[[Json, TargetProfile, str | None], Mapping[str, Any]]] = {
    Dialect.RESPONSES: _responses,
    Dialect.CHAT: _chat,
    Dialect.MESSAGES: _messages,
    Dialect.GEMINI: _gemini,
}
