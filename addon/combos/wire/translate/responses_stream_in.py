"""Reads a Responses stream or whole answer as events. Lenient: compatible servers omit indexes, deltas and details."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.translate import tokens
from combos.wire.translate.ir import (
    CallMeta,
    Close,
    Delta,
    Event,
    Failure,
    Finish,
    Kind,
    Opaque,
    Open,
    Reason,
    Start,
    Usage,
)
from combos.wire.translate.shape import Json, as_dict, as_int, as_str, cut, dicts

_ME = Dialect.RESPONSES
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_TEXT_DELTAS = {"response.output_text.delta": Kind.TEXT, "response.refusal.delta": Kind.REFUSAL}
_REASONING_DELTAS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_CALL_DELTAS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_PART_KINDS = {"output_text": (Kind.TEXT, "text"), "refusal": (Kind.REFUSAL, "refusal")}


@dataclass(slots=True)
class _Block:
    """An open block: how many characters came, and which summary part they belong to."""

    kind: Kind
    seen: int = 0
    part: object = None
    text: list[str] = field(default_factory=list)


class Reader:
    """One answer. `feed` takes one parsed event, `end` the end of the stream."""

    def __init__(self) -> None:
        self._blocks: dict[Hashable, _Block] = {}
        self._done: set[Hashable] = set()
        self._keys: dict[str, Hashable] = {}
        self._finished = False

    def feed(self, _name: str, payload: Json) -> list[Event]:
        """The events in one payload; unknown types hold none."""
        kind = as_str(payload.get("type"))
        if self._finished:
            return []
        if kind in _TEXT_DELTAS:
            return self._text(payload, _TEXT_DELTAS[kind])
        if kind in _REASONING_DELTAS:
            return self._reasoning(payload)
        if kind in _CALL_DELTAS:
            return self._delta(self._item_key(payload), Kind.CALL, as_str(payload.get("delta")))
        if kind == "response.output_item.added":
            return self._added(payload)
        if kind == "response.output_item.done":
            return self._item_done(self._item_key(payload), as_dict(payload.get("item")))
        if kind == "response.created":
            return [Start(as_str(as_dict(payload.get("response")).get("id")))]
        return self._terminal(kind, payload)

    def end(self) -> list[Event]:
        """The stream ended; a terminal event came or did not, nothing is held back."""
        return []

    def whole(self, document: Json) -> list[Event]:
        """The events of a whole answer."""
        status = as_str(document.get("status"))
        kind = "response.incomplete" if status == "incomplete" else "response.completed"
        if status in ("failed", "cancelled") or (status not in ("completed", "incomplete") and document.get("error")):
            kind = "response.failed"
        return [Start(as_str(document.get("id"))), *self._terminal(kind, {"response": document})]

    def _item_key(self, payload: Json) -> Hashable:
        """`output_index`, or the item's id where it is missing; an id seen with an index stands for that index."""
        index = payload.get("output_index")
        item_id = as_str(payload.get("item_id")) or as_str(as_dict(payload.get("item")).get("id"))
        if isinstance(index, int):
            if item_id:
                self._keys.setdefault(item_id, index)
            return index
        return self._keys.get(item_id, item_id)

    def _open(self, key: Hashable, kind: Kind, call: CallMeta | None = None) -> list[Event]:
        if key in self._blocks or key in self._done:
            return []
        self._blocks[key] = _Block(kind)
        return [Open(key, kind, call)]

    def _delta(self, key: Hashable, kind: Kind, text: str) -> list[Event]:
        block = self._blocks.get(key)
        if block is None or block.kind is not kind or not text:
            return []
        block.seen += len(text)
        return [Delta(key, text)]

    def _close(self, key: Hashable, opaque: Opaque | None = None) -> list[Event]:
        if self._blocks.pop(key, None) is None:
            return []
        self._done.add(key)
        return [Close(key, opaque)]

    def _text(self, payload: Json, kind: Kind) -> list[Event]:
        text = as_str(payload.get("delta"))
        if not text:
            return []
        key = (self._item_key(payload), as_int(payload.get("content_index")) or 0, kind)
        return [*self._open(key, kind), *self._delta(key, kind, text)]

    def _reasoning(self, payload: Json) -> list[Event]:
        key = self._item_key(payload)
        text = as_str(payload.get("delta"))
        if not text:
            return []
        events = self._open(key, Kind.REASONING)
        block = self._blocks.get(key)
        if block is None:
            return []
        part = (payload.get("type"), payload.get("summary_index") or payload.get("content_index") or 0)
        joint = "\n\n" if block.part not in (None, part) else ""
        block.part = part
        block.text.append(joint + text)
        return [*events, *self._delta(key, Kind.REASONING, joint + text)]

    def _added(self, payload: Json) -> list[Event]:
        item = as_dict(payload.get("item"))
        return self._open_item(self._item_key(payload), item)

    def _open_item(self, key: Hashable, item: Json) -> list[Event]:
        kind = as_str(item.get("type"))
        if kind == "reasoning":
            return self._open(key, Kind.REASONING)
        if kind not in _CALLS:
            return []
        meta = CallMeta(
            as_str(item.get("call_id")),
            as_str(item.get("name")),
            as_str(item.get("namespace")) or None,
            kind == "custom_tool_call",
        )
        return self._open(key, Kind.CALL, meta)

    def _item_done(self, key: Hashable, item: Json) -> list[Event]:
        kind = as_str(item.get("type"))
        if kind == "message":
            return self._message_done(key, item)
        if kind == "reasoning":
            return self._reasoning_done(key, item)
        if kind not in _CALLS:
            return []
        events = self._open_item(key, item)
        rest = self._rest(key, as_str(item.get(_CALLS[kind])))
        return [*events, *self._delta(key, Kind.CALL, rest), *self._close(key)]

    def _rest(self, key: Hashable, whole: str) -> str:
        """What the deltas left out of the final text."""
        block = self._blocks.get(key)
        return whole[block.seen :] if block is not None else ""

    def _message_done(self, key: Hashable, item: Json) -> list[Event]:
        events: list[Event] = []
        for index, part in dicts(item.get("content")):
            found = _PART_KINDS.get(as_str(part.get("type")))
            if found is None:
                continue
            kind, member = found
            inner = (key, index, kind)
            text = as_str(part.get(member))
            if text:
                events += self._open(inner, kind)
                events += self._delta(inner, kind, self._rest(inner, text))
        for inner in [inner for inner in self._blocks if isinstance(inner, tuple) and inner[0] == key]:
            events += self._close(inner)
        return events

    def _reasoning_done(self, key: Hashable, item: Json) -> list[Event]:
        events = self._open(key, Kind.REASONING)
        block = self._blocks.get(key)
        if block is None:
            return []
        parts = list(dicts(item.get("summary"))) or list(dicts(item.get("content")))
        whole = "\n\n".join(text for _index, part in parts if (text := as_str(part.get("text"))))
        if not block.seen and whole:
            block.text.append(whole)
            events += self._delta(key, Kind.REASONING, whole)
        blob = as_str(item.get("encrypted_content"))
        state = Opaque(_ME, blob, item_id=as_str(item.get("id")), text="".join(block.text)) if blob else None
        return [*events, *self._close(key, state)]

    def _terminal(self, kind: str, payload: Json) -> list[Event]:
        response = as_dict(payload.get("response"))
        match kind:
            case "response.completed":
                return self._finish(response, Reason.STOP)
            case "response.incomplete":
                word = as_dict(response.get("incomplete_details")).get("reason")
                return self._finish(response, tokens.reason(_ME, word))
            case "response.failed":
                return self._fail(as_dict(response.get("error")))
            case "error":
                return self._fail(as_dict(payload.get("error")) or payload)
            case _:
                return []

    def _finish(self, response: Json, reason: Reason) -> list[Event]:
        self._finished = True
        events: list[Event] = []
        if not self._done and not self._blocks:
            for index, item in dicts(response.get("output")):
                events += self._item_done(index, item)
        for key in list(self._blocks):
            events += self._close(key)
        usage: Usage = tokens.READ[_ME](as_dict(response.get("usage")))
        return [*events, Finish(reason, usage)]

    def _fail(self, error: Json) -> list[Event]:
        self._finished = True
        message = cut(as_str(error.get("message"))) or "The response failed."
        kind = as_str(error.get("type"))
        return [Failure(as_str(error.get("code")), "" if kind == "error" else kind, message)]
