"""Writes an answer as generateContent chunks or a whole answer. A call goes out whole, at its end."""

from collections.abc import Hashable

from combos.core.facts import Dialect
from combos.wire.translate import errors, opaque, tokens, toolset
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import Close, Delta, Event, Failure, Finish, Kind, Open, Start, Usage
from combos.wire.translate.shape import Json, dump
from combos.wire.translate.stage import Block, Budget

_ME = Dialect.GEMINI


class Writer:
    """One answer. `on` gives the bytes of one event."""

    def __init__(self, context: Context, mint: Mint, budget: Budget) -> None:
        self._context = context
        self._tail: Json = {"modelVersion": context.model, "responseId": mint("resp_")}
        self._budget = budget
        self._blocks: dict[Hashable, Block] = {}
        self._arguments: dict[Hashable, list[str]] = {}

    def on(self, event: Event) -> bytes:
        """The bytes of one event."""
        match event:
            case Start():
                return b""
            case Open():
                self._blocks[event.key] = Block(event.kind, event.call)
                self._arguments[event.key] = []
                return b""
            case Delta():
                return self._delta(event.key, event.text)
            case Close():
                return self._close(event)
            case Finish():
                return self._finish(event)
            case Failure():
                return _frame(errors.body(event, _ME))

    def _delta(self, key: Hashable, text: str) -> bytes:
        block = self._blocks[key]
        if block.call is not None:
            self._budget.take(len(text))
            self._arguments[key].append(text)
            return b""
        return self._chunk([_text(block.kind, text)])

    def _close(self, event: Close) -> bytes:
        block = self._blocks.pop(event.key)
        block.text = "".join(self._arguments.pop(event.key))
        self._budget.give_back(len(block.text))
        block.opaque = event.opaque
        if block.call is not None:
            return self._chunk([_call(block)])
        if block.kind is Kind.REASONING:
            return self._chunk([{**_text(block.kind, ""), "thoughtSignature": _slot(block, self._context)}])
        return b""

    def _finish(self, event: Finish) -> bytes:
        candidate = _candidate([{"text": ""}], event)
        usage = tokens.WRITE[_ME](event.usage or Usage())
        return _frame({"candidates": [candidate], "usageMetadata": usage, **self._tail})

    def _chunk(self, parts: list[Json]) -> bytes:
        return _frame({"candidates": [_candidate(parts)], **self._tail})


def _frame(payload: Json) -> bytes:
    return b"data: " + dump(payload) + b"\n\n"


def _candidate(parts: list[Json], finish: Finish | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = tokens.REASONS_OUT[_ME][finish.reason]
        if finish.detail:
            candidate["finishMessage"] = finish.detail
    return candidate


def _text(kind: Kind, text: str) -> Json:
    return {"text": text, "thought": True} if kind is Kind.REASONING else {"text": text}


def _call(block: Block) -> Json:
    meta = block.call
    name, call_id = (meta.name, meta.id) if meta is not None else ("", "")
    return {"functionCall": {"id": call_id, "name": name, "args": toolset.arguments_object(block.text)}}


def _slot(block: Block, context: Context) -> str:
    return opaque.to_gemini_slot(opaque.seal(block.opaque, context.target_key))


def _whole_part(block: Block, context: Context) -> Json:
    if block.call is not None:
        return _call(block)
    if block.kind is Kind.REASONING:
        return {**_text(block.kind, block.text), "thoughtSignature": _slot(block, context)}
    return _text(block.kind, block.text)


def whole(blocks: list[Block], finish: Finish, context: Context, mint: Mint) -> Json:
    """A whole answer."""
    return {
        "candidates": [_candidate([_whole_part(block, context) for block in blocks], finish)],
        "usageMetadata": tokens.WRITE[_ME](finish.usage or Usage()),
        "modelVersion": context.model,
        "responseId": mint("resp_"),
    }
