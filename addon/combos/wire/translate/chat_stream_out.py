"""Writes an answer as a Chat Completions stream or whole answer. Opaque reasoning state has no slot and is lost."""

from collections.abc import Hashable
from typing import Any

from combos.core.facts import Dialect
from combos.wire.translate import errors, tokens
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Open, Start, Usage
from combos.wire.translate.shape import Json, dump
from combos.wire.translate.stage import Block

_ME = Dialect.CHAT
_MEMBERS = {Kind.TEXT: "content", Kind.REFUSAL: "refusal", Kind.REASONING: "reasoning_content"}


class Writer:
    """One answer. `on` gives the bytes of one event."""

    def __init__(self, context: Context, mint: Mint) -> None:
        self._context = context
        self._head: Json = {
            "id": mint("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": context.created_s,
            "model": context.model,
        }
        self._kinds: dict[Hashable, Kind] = {}
        self._calls: dict[Hashable, tuple[int, CallMeta]] = {}
        self._silent: set[Hashable] = set()
        self._usage = {"usage": None} if context.include_usage else {}

    def on(self, event: Event) -> bytes:
        """The bytes of one event."""
        match event:
            case Start():
                return self._chunk({"role": "assistant", "content": ""})
            case Open():
                return self._open(event)
            case Delta():
                return self._delta(event.key, event.text)
            case Close():
                return self._close(event.key)
            case Finish():
                return self._finish(event)
            case Failure():
                return failure_frame(event)

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _frame({**self._head, "choices": [choice], **self._usage})

    def _open(self, event: Open) -> bytes:
        self._kinds[event.key] = event.kind
        if event.call is None:
            return b""
        index = len(self._calls)
        self._calls[event.key] = (index, event.call)
        if not event.call.freeform:
            self._silent.add(event.key)
        kind, member = ("custom", "input") if event.call.freeform else ("function", "arguments")
        body = {"name": event.call.name, member: ""}
        return self._chunk({"tool_calls": [{"index": index, "id": event.call.id, "type": kind, kind: body}]})

    def _delta(self, key: Hashable, text: str) -> bytes:
        if key not in self._calls:
            return self._chunk({_MEMBERS[self._kinds[key]]: text})
        self._silent.discard(key)
        index, call = self._calls[key]
        kind, member = ("custom", "input") if call.freeform else ("function", "arguments")
        return self._chunk({"tool_calls": [{"index": index, kind: {member: text}}]})

    def _close(self, key: Hashable) -> bytes:
        """Clients parse the joined arguments, and nothing is no JSON: a call without any ends as `{}`."""
        return self._delta(key, "{}") if key in self._silent else b""

    def _finish(self, event: Finish) -> bytes:
        out = self._chunk({}, tokens.REASONS_OUT[_ME][event.reason])
        if self._context.include_usage:
            usage = tokens.WRITE[_ME](event.usage or Usage())
            out += _frame({**self._head, "choices": [], "usage": usage})
        return out + b"data: [DONE]\n\n"


def _frame(payload: Any) -> bytes:
    return b"data: " + dump(payload) + b"\n\n"


def failure_frame(event: Failure) -> bytes:
    """The error object of a broken stream; nothing follows it."""
    return _frame(errors.body(event, _ME))


def whole(blocks: list[Block], finish: Finish, context: Context, mint: Mint) -> Json:
    """A whole answer."""

    def joined(kind: Kind) -> str:
        return "".join(block.text for block in blocks if block.kind is kind)

    message: Json = {"role": "assistant", "content": joined(Kind.TEXT) or None, "refusal": joined(Kind.REFUSAL) or None}
    if thought := joined(Kind.REASONING):
        message["reasoning_content"] = thought
    calls = [_call(block, block.call) for block in blocks if block.call is not None]
    if calls:
        message["tool_calls"] = calls
    reason = tokens.REASONS_OUT[_ME][finish.reason]
    return {
        "id": mint("chatcmpl-"),
        "object": "chat.completion",
        "created": context.created_s,
        "model": context.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": tokens.WRITE[_ME](finish.usage or Usage()),
    }


def _call(block: Block, call: CallMeta) -> Json:
    if call.freeform:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": block.text}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": block.text or "{}"}}
