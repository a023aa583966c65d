"""Reads a Chat Completions stream or whole answer as events. The finish is held, because usage may follow it."""

from combos.core.facts import Dialect
from combos.wire.translate import tokens
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Open, Start, Usage
from combos.wire.translate.shape import Json, as_dict, as_int, as_str, cut, dicts

_ME = Dialect.CHAT
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class Reader:
    """One answer. `feed` takes one parsed chunk, `end` the end of the stream or `[DONE]`."""

    def __init__(self) -> None:
        self._started = False
        self._finished = False
        self._open: dict[str, int] = {}
        self._calls: dict[int, bool] = {}
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
        delta = as_dict(choice.get("delta"))
        events = self._reasoning(delta)
        for member, kind in (("content", Kind.TEXT), ("refusal", Kind.REFUSAL)):
            if text := as_str(delta.get(member)):
                events += self._close("reasoning")
                events += self._write(member, kind, text)
        for position, call in dicts(delta.get("tool_calls")):
            index = as_int(call.get("index"))
            events += self._call(position if index is None else index, call)
        if word := as_str(choice.get("finish_reason")):
            self._reason = word
        return events

    def _reasoning(self, delta: Json) -> list[Event]:
        for member in _REASONING_FIELDS:
            if text := as_str(delta.get(member)):
                return self._write("reasoning", Kind.REASONING, text)
        return []

    def _write(self, slot: str, kind: Kind, text: str) -> list[Event]:
        if slot in self._open:
            return [Delta(self._open[slot], text)]
        self._blocks += 1
        self._open[slot] = self._blocks
        return [Open(self._blocks, kind), Delta(self._blocks, text)]

    def _close(self, slot: str) -> list[Event]:
        return [Close(self._open.pop(slot))] if slot in self._open else []

    def _call(self, index: int, call: Json) -> list[Event]:
        custom = "custom" in call
        body = as_dict(call.get("custom" if custom else "function"))
        events: list[Event] = []
        key = ("call", index)
        if index not in self._calls:
            # Later calls leave earlier ones open: servers interleave their arguments.
            for slot in list(self._open):
                events += self._close(slot)
            self._calls[index] = True
            meta = CallMeta(as_str(call.get("id")), as_str(body.get("name")), None, custom)
            events.append(Open(key, Kind.CALL, meta))
        if text := as_str(body.get("input" if custom else "arguments")):
            events.append(Delta(key, text))
        return events

    def _close_all(self) -> list[Event]:
        slots = [event for slot in list(self._open) for event in self._close(slot)]
        return [*slots, *(Close(("call", index)) for index in self._calls)]

    def _fail(self, value: object) -> list[Event]:
        self._finished = True
        error = {"message": value} if isinstance(value, str) else as_dict(value)
        message = cut(as_str(error.get("message"))) or "The stream failed."
        code = error.get("code")
        status = as_int(code)
        return [Failure(as_str(code), as_str(error.get("type")), message, status)]
