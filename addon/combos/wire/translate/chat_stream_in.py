"""Reads a Chat Completions stream or whole answer as events. The finish is held, because usage may follow it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.translate import tokens
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Open, Start, Usage
from combos.wire.translate.shape import Json, as_dict, as_int, as_str, cut, dicts, dump_str

_ME = Dialect.CHAT
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _Call:
    """One call of the answer. It is opened once its name is known; arguments before that wait."""

    key: tuple[str, int]
    id: str
    custom: bool
    name: str = ""
    waiting: list[str] = field(default_factory=list)

    def differs(self, ident: str, name: str) -> bool:
        """Whether this id and name begin another call. Servers repeat ids and names, or give every chunk a new id
        without a name; others count every call of the answer as number 0, or give no numbers."""
        return bool(ident and name and self.id and self.name) and ident != self.id


class Reader:
    """One answer. `feed` takes one parsed chunk, `end` the end of the stream or `[DONE]`."""

    def __init__(self) -> None:
        self._started = False
        self._finished = False
        self._open: dict[Kind, int] = {}
        self._calls: dict[int, _Call] = {}
        self._blocks = 0
        self._reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, _name: str, payload: Json) -> list[Event]:
        """The events in one chunk. Other choices than the first are passed over."""
        if self._finished:
            return []
        if payload.get("error"):
            return self._fail(payload["error"])
        events: list[Event] = []
        if not self._started:
            self._started = True
            events.append(Start(as_str(payload.get("id"))))
        usage = as_dict(payload.get("usage"))
        if usage:
            self._usage = tokens.READ[_ME](usage)
        for _index, choice in dicts(payload.get("choices")):
            if not choice.get("index"):
                events += self._choice(choice)
            if self._finished:
                break
        return events

    def end(self) -> list[Event]:
        """The stream ended: a finish that was held is given out now."""
        if self._finished or self._reason is None:
            return []
        self._finished = True
        return [*self._close_all(), Finish(tokens.reason(_ME, self._reason), self._usage or Usage())]

    def whole(self, document: Json) -> list[Event]:
        """The events of a whole answer."""
        choices = [
            {**choice, "delta": as_dict(choice.get("message")), "finish_reason": choice.get("finish_reason") or "stop"}
            for _index, choice in dicts(document.get("choices"))
        ]
        for choice in choices:
            calls = dicts(choice["delta"].get("tool_calls"))
            choice["delta"] = {**choice["delta"], "tool_calls": [{**call, "index": i} for i, call in calls]}
        return [*self.feed("", {**document, "choices": choices}), *self.end()]

    def _choice(self, choice: Json) -> list[Event]:
        if choice.get("error"):
            return self._fail(choice["error"])
        if choice.get("finish_reason") == "error":
            return self._fail({})
        delta = as_dict(choice.get("delta"))
        events = self._reasoning(delta)
        for kind, text in _said(delta):
            if kind is not Kind.REASONING:
                events += self._close(Kind.REASONING)
            events += self._write(kind, text)
        for position, call in dicts(delta.get("tool_calls")):
            index = as_int(call.get("index"))
            events += self._call(position if index is None else index, call)
        if word := as_str(choice.get("finish_reason")):
            self._reason = word
        return events

    def _reasoning(self, delta: Json) -> list[Event]:
        for member in _REASONING_FIELDS:
            if text := as_str(delta.get(member)):
                return self._write(Kind.REASONING, text)
        return []

    def _write(self, kind: Kind, text: str) -> list[Event]:
        if kind in self._open:
            return [Delta(self._open[kind], text)]
        self._blocks += 1
        self._open[kind] = self._blocks
        return [Open(self._blocks, kind), Delta(self._blocks, text)]

    def _close(self, kind: Kind) -> list[Event]:
        return [Close(self._open.pop(kind))] if kind in self._open else []

    def _call(self, index: int, given: Json) -> list[Event]:
        custom = "custom" in given
        body = as_dict(given.get("custom" if custom else "function"))
        ident, name = as_str(given.get("id")), as_str(body.get("name"))
        events: list[Event] = []
        call = self._calls.get(index)
        if call is None or call.differs(ident, name):
            # Calls with numbers of their own leave earlier ones open: servers interleave their arguments.
            events += self._end_call(index) if call is not None else self._close_written()
            self._blocks += 1
            call = self._calls[index] = _Call(("call", self._blocks), ident, custom)
        call.id = call.id or ident
        if name and not call.name:
            call.name = name
            events += _opened(call)
        if text := _arguments(body.get("input" if custom else "arguments")):
            if call.name:
                events.append(Delta(call.key, text))
            else:
                call.waiting.append(text)
        return events

    def _end_call(self, index: int) -> list[Event]:
        call = self._calls.pop(index)
        unnamed = [] if call.name else _opened(call)
        return [*unnamed, Close(call.key)]

    def _close_written(self) -> list[Event]:
        return [event for kind in list(self._open) for event in self._close(kind)]

    def _close_all(self) -> list[Event]:
        calls = [event for index in list(self._calls) for event in self._end_call(index)]
        return [*self._close_written(), *calls]

    def _fail(self, value: object) -> list[Event]:
        self._finished = True
        error = {"message": value} if isinstance(value, str) else as_dict(value)
        message = cut(as_str(error.get("message"))) or "The stream failed."
        code = error.get("code")
        status = as_int(code)
        return [Failure(as_str(code), as_str(error.get("type")), message, status)]


def _said(delta: Json) -> Iterator[tuple[Kind, str]]:
    """What is written in a delta. Content is a text, or with some servers a list of parts, thoughts among them."""
    content = delta.get("content")
    if text := as_str(content):
        yield Kind.TEXT, text
    for _index, part in dicts(content):
        if text := as_str(part.get("text")):
            yield Kind.TEXT, text
        for _place, thought in dicts(part.get("thinking")):
            if text := as_str(thought.get("text")):
                yield Kind.REASONING, text
    if text := as_str(delta.get("refusal")):
        yield Kind.REFUSAL, text


def _opened(call: _Call) -> list[Event]:
    held, call.waiting = call.waiting, []
    meta = CallMeta(call.id, call.name, None, call.custom)
    return [Open(call.key, Kind.CALL, meta), *(Delta(call.key, text) for text in held)]


def _arguments(value: object) -> str:
    """The text of the arguments. Some servers give the object itself, whole."""
    return dump_str(value) if isinstance(value, dict) else as_str(value)
