"""Reads a Messages stream or whole answer as events. Server-side tool blocks and citations are left out."""

from combos.core.facts import Dialect
from combos.wire.translate import tokens
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Opaque, Open, Start
from combos.wire.translate.shape import Json, as_dict, as_str, cut, dicts, dump_str

_ME = Dialect.MESSAGES


class Reader:
    """One answer. `feed` takes one parsed event, `end` the end of the stream."""

    def __init__(self) -> None:
        self._usage: Json = {}
        self._kinds: dict[object, Kind] = {}
        self._signature: dict[object, list[str]] = {}
        self._thinking: dict[object, list[str]] = {}
        self._initial: dict[object, str] = {}
        self._finish: Finish | None = None
        self._finished = False

    def feed(self, _name: str, payload: Json) -> list[Event]:
        """The events in one payload; unknown types and pings hold none."""
        if self._finished:
            return []
        index = payload.get("index")
        key = index if isinstance(index, int) else -1
        match payload.get("type"):
            case "message_start":
                message = as_dict(payload.get("message"))
                self._merge(message.get("usage"))
                return [Start(as_str(message.get("id")), tokens.READ[_ME](self._usage))]
            case "content_block_start":
                return self._begin(key, as_dict(payload.get("content_block")))
            case "content_block_delta":
                return self._delta(key, as_dict(payload.get("delta")))
            case "content_block_stop":
                return self._stop(key)
            case "message_delta":
                return self._message_delta(payload)
            case "message_stop":
                return self.end()
            case "error":
                return self._fail(as_dict(payload.get("error")))
            case _:
                return []

    def end(self) -> list[Event]:
        """The stream ended: complete when `message_delta` told the reason."""
        if self._finished or self._finish is None:
            return []
        self._finished = True
        closing = [event for key in list(self._kinds) for event in self._stop(key)]
        return [*closing, self._finish]

    def whole(self, document: Json) -> list[Event]:
        """The events of a whole answer."""
        if document.get("type") == "error":
            return self._fail(as_dict(document.get("error")))
        self._merge(document.get("usage"))
        events: list[Event] = [Start(as_str(document.get("id")), tokens.READ[_ME](self._usage))]
        for key, block in dicts(document.get("content")):
            events += self._begin(key, block)
            events += self._stop(key)
        self._message_delta({"delta": {**document, "stop_reason": document.get("stop_reason") or "end_turn"}})
        return [*events, *self.end()]

    def _merge(self, usage: object) -> None:
        """Later values replace earlier ones; nothing is added up."""
        self._usage.update((key, value) for key, value in as_dict(usage).items() if value is not None)

    def _begin(self, key: object, block: Json) -> list[Event]:
        if key in self._kinds:
            return []
        match block.get("type"):
            case "text":
                return self._open(key, Kind.TEXT, as_str(block.get("text")))
            case "thinking":
                self._signature[key], self._thinking[key] = [as_str(block.get("signature"))], []
                return self._open(key, Kind.REASONING, as_str(block.get("thinking")))
            case "redacted_thinking":
                state = Opaque(_ME, as_str(block.get("data")), redacted=True)
                return [Open(key, Kind.REASONING), Close(key, state)]
            case "tool_use":
                meta = CallMeta(as_str(block.get("id")), as_str(block.get("name")))
                self._kinds[key] = Kind.CALL
                self._initial[key] = dump_str(block["input"]) if block.get("input") else ""
                return [Open(key, Kind.CALL, meta)]
            case _:
                return []

    def _open(self, key: object, kind: Kind, text: str) -> list[Event]:
        self._kinds[key] = kind
        return [Open(key, kind), *self._text(key, kind, text)]

    def _text(self, key: object, kind: Kind, text: str) -> list[Event]:
        if not text or self._kinds.get(key) is not kind:
            return []
        if kind is Kind.REASONING:
            self._thinking[key].append(text)
        return [Delta(key, text)]

    def _delta(self, key: object, delta: Json) -> list[Event]:
        match delta.get("type"):
            case "text_delta":
                return self._text(key, Kind.TEXT, as_str(delta.get("text")))
            case "thinking_delta":
                return self._text(key, Kind.REASONING, as_str(delta.get("thinking")))
            case "input_json_delta":
                text = as_str(delta.get("partial_json"))
                if text:
                    self._initial.pop(key, None)
                return self._text(key, Kind.CALL, text)
            case "signature_delta":
                if key in self._signature:
                    self._signature[key].append(as_str(delta.get("signature")))
                return []
            case _:
                return []

    def _stop(self, key: object) -> list[Event]:
        kind = self._kinds.pop(key, None)
        if kind is None:
            return []
        if initial := self._initial.pop(key, ""):
            return [Delta(key, initial), Close(key)]
        signature = "".join(self._signature.pop(key, []))
        text = "".join(self._thinking.pop(key, []))
        return [Close(key, Opaque(_ME, signature, text=text) if signature else None)]

    def _message_delta(self, payload: Json) -> list[Event]:
        delta = as_dict(payload.get("delta"))
        self._merge(payload.get("usage"))
        word = delta.get("stop_reason")
        if word is not None or self._finish is not None:
            details = as_dict(delta.get("stop_details"))
            self._finish = Finish(
                tokens.reason(_ME, word),
                tokens.READ[_ME](self._usage),
                as_str(details.get("explanation")) or None,
            )
        return []

    def _fail(self, error: Json) -> list[Event]:
        self._finished = True
        message = cut(as_str(error.get("message"))) or "The message failed."
        return [Failure("", as_str(error.get("type")), message)]
