"""Reads generateContent chunks or a whole answer as events. A call comes whole; the finish is held to the end."""

from combos.core.facts import Dialect
from combos.wire.translate import tokens
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Opaque, Open, Start, Usage
from combos.wire.translate.shape import Json, as_dict, as_int, as_list, as_str, cut, dicts, dump_str

_ME = Dialect.GEMINI


class Reader:
    """One answer. `feed` takes one parsed chunk, `end` the end of the stream."""

    def __init__(self) -> None:
        self._started = False
        self._finished = False
        self._blocks = 0
        self._kind: Kind | None = None
        self._text: list[str] = []
        self._reason: str | None = None
        self._detail: str | None = None
        self._usage = Usage()

    def feed(self, _name: str, payload: Json) -> list[Event]:
        """The events in one chunk. Other candidates than the first are passed over."""
        if self._finished:
            return []
        if isinstance(payload.get("error"), dict):
            return self._fail(payload["error"])
        events: list[Event] = []
        if not self._started:
            self._started = True
            events.append(Start(as_str(payload.get("responseId"))))
        if usage := as_dict(payload.get("usageMetadata")):
            self._usage = tokens.READ[_ME](usage)
        blocked = as_dict(payload.get("promptFeedback")).get("blockReason")
        if isinstance(blocked, str):
            self._reason, self._detail = "SAFETY", f"The prompt was blocked: {blocked}."
        for _index, candidate in dicts(payload.get("candidates")):
            if not candidate.get("index"):
                events += self._candidate(candidate)
        return events

    def end(self) -> list[Event]:
        """The stream ended: complete when a finish reason came."""
        if self._finished or self._reason is None:
            return []
        self._finished = True
        if self._reason in tokens.GEMINI_FAULTS:
            message = self._detail or f"The model stopped with {self._reason}."
            return [*self._close(), Failure("", "server_error", message, 500)]
        return [*self._close(), Finish(tokens.reason(_ME, self._reason), self._usage, self._detail)]

    def whole(self, document: Json) -> list[Event]:
        """The events of a whole answer."""
        events = self.feed("", document)
        if self._reason is None and document.get("candidates"):
            self._reason = "STOP"
        return [*events, *self.end()]

    def _candidate(self, candidate: Json) -> list[Event]:
        events: list[Event] = []
        for _index, part in dicts(as_list(as_dict(candidate.get("content")).get("parts"))):
            events += self._part(part)
        if word := as_str(candidate.get("finishReason")):
            self._reason = word
            self._detail = cut(as_str(candidate.get("finishMessage"))) or self._detail
        return events

    def _part(self, part: Json) -> list[Event]:
        signature = as_str(part.get("thoughtSignature"))
        if isinstance(call := part.get("functionCall"), dict):
            return [*self._close(), *self._carrier(signature, "call"), *self._call(call)]
        text = as_str(part.get("text"))
        kind = Kind.REASONING if part.get("thought") is True else Kind.TEXT
        events = self._write(kind, text) if text else []
        if not signature:
            return events
        if kind is Kind.TEXT or self._kind is not Kind.REASONING:
            return [*events, *self._close(), *self._carrier(signature, "text" if kind is Kind.TEXT else "thought")]
        return [*events, *self._close(Opaque(_ME, signature, text="".join(self._text), place="thought"))]

    def _write(self, kind: Kind, text: str) -> list[Event]:
        events: list[Event] = []
        if self._kind is not kind:
            events += self._close()
            self._blocks += 1
            self._kind = kind
            events.append(Open(self._blocks, kind))
        if kind is Kind.REASONING:
            self._text.append(text)
        return [*events, Delta(self._blocks, text)]

    def _close(self, state: Opaque | None = None) -> list[Event]:
        if self._kind is None:
            return []
        self._kind, self._text = None, []
        return [Close(self._blocks, state)]

    def _carrier(self, signature: str, place: str) -> list[Event]:
        """A signature on a text or call part becomes a reasoning block without text."""
        if not signature:
            return []
        self._blocks += 1
        return [Open(self._blocks, Kind.REASONING), Close(self._blocks, Opaque(_ME, signature, place=place))]

    def _call(self, call: Json) -> list[Event]:
        self._blocks += 1
        arguments = dump_str(as_dict(call.get("args")))
        meta = CallMeta(as_str(call.get("id")), as_str(call.get("name")))
        key = self._blocks
        return [Open(key, Kind.CALL, meta), Delta(key, arguments), Close(key)]

    def _fail(self, error: Json) -> list[Event]:
        self._finished = True
        message = cut(as_str(error.get("message"))) or "The response failed."
        return [Failure("", as_str(error.get("status")), message, as_int(error.get("code")))]
