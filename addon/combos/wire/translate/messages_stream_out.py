"""Writes an answer as a Messages stream or whole answer: strictly one block at a time, later ones wait their turn."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.translate import errors, opaque, tokens, toolset
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Opaque, Open, Start, Usage
from combos.wire.translate.shape import Json, dump
from combos.wire.translate.stage import Block, Budget

_ME = Dialect.MESSAGES


@dataclass(slots=True)
class _Slot:
    """A block: what waits of it, whether it is live on the wire, and whether its arguments must be held."""

    kind: Kind
    call: CallMeta | None
    waiting: list[str] = field(default_factory=list)
    opened: bool = False
    closed: bool = False
    held: bool | None = None
    state: Opaque | None = None


class Writer:
    """One answer. `on` gives the bytes of one event."""

    def __init__(self, context: Context, mint: Mint, budget: Budget) -> None:
        self._context = context
        self._id = mint("msg_")
        self._budget = budget
        self._queue: dict[Hashable, _Slot] = {}
        self._index = -1

    def on(self, event: Event) -> bytes:
        """The bytes of one event."""
        match event:
            case Start():
                return self._start(event.usage or Usage())
            case Open():
                self._queue[event.key] = _Slot(event.kind, event.call)
                return self._advance()
            case Delta():
                self._budget.take(len(event.text))
                self._queue[event.key].waiting.append(event.text)
                return self._advance()
            case Close():
                slot = self._queue[event.key]
                slot.closed, slot.state = True, event.opaque
                return self._advance()
            case Finish():
                return self._finish(event)
            case Failure():
                return _frame("error", errors.body(event, _ME))

    def _start(self, usage: Usage) -> bytes:
        message: Json = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._context.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": tokens.WRITE[_ME](usage),
        }
        return _frame("message_start", {"type": "message_start", "message": message})

    def _advance(self) -> bytes:
        """Write what the block at the head of the queue has; go on to the next one when it is whole."""
        out: list[bytes] = []
        while self._queue:
            key, slot = next(iter(self._queue.items()))
            out.append(self._write(slot))
            if not slot.closed:
                break
            out.append(self._stop(slot))
            del self._queue[key]
        return b"".join(out)

    def _write(self, slot: _Slot) -> bytes:
        out = b""
        if not slot.opened:
            slot.opened = True
            self._index += 1
            out = self._block("content_block_start", content_block=_opening(slot))
        if not slot.waiting or self._holds(slot):
            return out
        text = "".join(slot.waiting)
        slot.waiting.clear()
        self._budget.give_back(len(text))
        return out + self._block("content_block_delta", delta=_delta(slot.kind, text))

    def _holds(self, slot: _Slot) -> bool:
        """Arguments that do not begin as an object wait for their end: clients take nothing else."""
        if slot.kind is not Kind.CALL:
            return False
        if slot.held is None:
            start = "".join(slot.waiting).lstrip()
            if not start:
                return True
            slot.held = start[0] != "{"
        return slot.held

    def _stop(self, slot: _Slot) -> bytes:
        out = b""
        text = "".join(slot.waiting)
        self._budget.give_back(len(text))
        if slot.kind is Kind.CALL and text.strip():
            arguments = dump(toolset.arguments_object(text)).decode()
            out += self._block("content_block_delta", delta=_delta(Kind.CALL, arguments))
        if slot.kind is Kind.REASONING:
            sealed = opaque.seal(slot.state, self._context.target_key)
            out += self._block("content_block_delta", delta={"type": "signature_delta", "signature": sealed})
        return out + self._block("content_block_stop")

    def _block(self, kind: str, **members: object) -> bytes:
        return _frame(kind, {"type": kind, "index": self._index, **members})

    def _finish(self, event: Finish) -> bytes:
        delta = {"stop_reason": tokens.REASONS_OUT[_ME][event.reason], "stop_sequence": None}
        usage = tokens.WRITE[_ME](event.usage or Usage())
        ending = _frame("message_delta", {"type": "message_delta", "delta": delta, "usage": usage})
        return ending + _frame("message_stop", {"type": "message_stop"})


def _frame(kind: str, payload: Json) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + dump(payload) + b"\n\n"


def _opening(slot: _Slot) -> Json:
    if slot.call is not None:
        return {"type": "tool_use", "id": slot.call.id, "name": slot.call.name, "input": {}}
    if slot.kind is Kind.REASONING:
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


def _delta(kind: Kind, text: str) -> Json:
    match kind:
        case Kind.CALL:
            return {"type": "input_json_delta", "partial_json": text}
        case Kind.REASONING:
            return {"type": "thinking_delta", "thinking": text}
        case _:
            return {"type": "text_delta", "text": text}


def whole(blocks: list[Block], finish: Finish, context: Context, mint: Mint) -> Json:
    """A whole answer."""
    return {
        "id": mint("msg_"),
        "type": "message",
        "role": "assistant",
        "model": context.model,
        "content": [_whole_block(block, context) for block in blocks if block.text or block.kind not in _TEXTS],
        "stop_reason": tokens.REASONS_OUT[_ME][finish.reason],
        "stop_sequence": None,
        "usage": tokens.WRITE[_ME](finish.usage or Usage()),
    }


_TEXTS = (Kind.TEXT, Kind.REFUSAL)


def _whole_block(block: Block, context: Context) -> Json:
    if block.call is not None:
        arguments = toolset.arguments_object(block.text)
        return {"type": "tool_use", "id": block.call.id, "name": block.call.name, "input": arguments}
    if block.kind is not Kind.REASONING:
        return {"type": "text", "text": block.text}
    sealed = opaque.seal(block.opaque, context.target_key)
    return {"type": "thinking", "thinking": block.text, "signature": sealed}
