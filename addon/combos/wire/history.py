"""The history of a Responses conversation in bytes: an earlier request, its answer and a new request made into one.

Items are copied as they were written. Whether there is a history to use is decided elsewhere.
"""

from collections.abc import Mapping

import orjson

from combos.wire.inspector import as_list, as_mapping
from combos.wire.json_text import loads
from combos.wire.splice import members, replace_members

PREVIOUS = "previous_response_id"


def previous_response(document: Mapping[str, object]) -> str:
    """The response id that a Responses request goes on from; empty when it names none."""
    value = document.get(PREVIOUS)
    return value if isinstance(value, str) else ""


def continued(body: bytes, earlier: bytes, output: bytes) -> bytes:
    """The request `body` with the items of the `earlier` request and of its answer before its own, and without the id.

    `output` is a JSON array. A client that sends the whole history beside the id gets no second copy of it. Raises
    `SpliceError` for bytes that are no JSON object, `ValueError` for an output that is no JSON.
    """
    old, answer, new = _items(earlier), _inside(output), _items(body)
    pieces = [new] if _repeats(new, old, answer) else [old, answer, new]
    return replace_members(body, {"input": _array(pieces), PREVIOUS: None})


def kept_output(response: Mapping[str, object], *, stored: bool) -> bytes | None:
    """The items of a finished response that can be sent again, as a JSON array; None for one that cannot be gone on
    from. `stored`: the target was asked to keep the answer, so that it knows its thoughts by their ids."""
    reason = as_mapping(response.get("incomplete_details")).get("reason")
    ended = reason == "max_output_tokens" if reason else response.get("status", "completed") == "completed"
    if not ended or not isinstance(response.get("output"), list):
        return None
    items = as_list(response.get("output"))
    return orjson.dumps([item for item in items if stored or not _is_reference(as_mapping(item))])


def _is_reference(item: Mapping[str, object]) -> bool:
    """A thought that holds nothing: only the target that keeps it could tell what it was."""
    return item.get("type") == "reasoning" and not (item.get("encrypted_content") or item.get("content"))


def _items(body: bytes) -> bytes:
    """What stands between the brackets of `input`; a plain text is made into the message that it stands for."""
    found = [member for member in members(body) if member.key == "input"]
    value = body[found[-1].value : found[-1].end] if found else b"null"
    match value[:1]:
        case b"[":
            return _inside(value)
        case b'"':
            return b'{"type":"message","role":"user","content":' + value + b"}"
        case _:
            return b"" if value == b"null" else value


def _inside(array: bytes) -> bytes:
    return array.strip()[1:-1].strip()


def _array(pieces: list[bytes]) -> bytes:
    return b"[" + b",".join(piece for piece in pieces if piece) + b"]"


def _repeats(new: bytes, old: bytes, answer: bytes) -> bool:
    """Whether the new items begin with the whole history, and something in its answer can have come from there only."""
    answered = loads(_array([answer]))
    if not any(as_mapping(item).get("id") or as_mapping(item).get("call_id") for item in answered):
        return False
    history = [*loads(_array([old])), *answered]
    beginning: list[object] = loads(_array([new]))[: len(history)]
    return beginning == history
