"""The Anthropic Messages stream: which events are output, which end the answer. The `event:` name decides."""

from combos.core.facts import Dialect
from combos.wire.inspector import Payload, StreamInspector, as_mapping, as_text
from combos.wire.sse import SseEvent
from combos.wire.terminal import SuccessKind, SuccessTerminal

_CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn", "refusal"})
_SILENT = frozenset({"message_start", "ping", "content_block_stop"})
# Blocks and deltas that are output only when one of these fields holds something.
_BLOCK_FIELDS: dict[str, tuple[str, ...]] = {"text": ("text", "citations"), "thinking": ("thinking", "signature")}
_DELTA_FIELDS: dict[str, tuple[str, ...]] = {"text_delta": ("text",), "thinking_delta": ("thinking",)}


class MessagesInspector(StreamInspector):
    """Reads a Messages stream. Counts of `message_start` and `message_delta` are merged."""

    dialect = Dialect.MESSAGES

    def _matters(self, frame: bytes) -> bool:
        if frame.startswith(b"event: content_block_"):
            return False
        return frame.find(b"message_") >= 0 or frame.find(b"error") >= 0

    def _on_payload(self, name: str, payload: Payload) -> None:
        kind = self._kind(name, payload)
        match kind:
            case "message_start":
                self._on_start(as_mapping(payload.get("message")))
            case "message_delta":
                self._on_message_delta(name, payload)
            case "message_stop":
                self._stop("")
            case "error":
                self._fail(payload, name)
            case "content_block_start":
                self._note_output(as_mapping(payload.get("content_block")), _BLOCK_FIELDS)
            case "content_block_delta":
                self._note_output(as_mapping(payload.get("delta")), _DELTA_FIELDS)
            case _:
                self.output = self.output or kind not in _SILENT

    def _kind(self, name: str, payload: Payload) -> str:
        return name if name not in {"", "message"} else as_text(payload.get("type"))

    def _on_start(self, message: Payload) -> None:
        self._note_identity(message.get("model"), message.get("id"))
        self._note_usage(message.get("usage"))
        self.output = self.output or bool(message.get("content"))

    def _on_message_delta(self, name: str, payload: Payload) -> None:
        self._note_usage(payload.get("usage"))
        reason = as_text(as_mapping(payload.get("delta")).get("stop_reason"))
        if reason == "error":
            self._fail(payload, name)
        elif reason:
            self._stop(reason)

    def _note_output(self, part: Payload, fields: dict[str, tuple[str, ...]]) -> None:
        payload_fields = fields.get(as_text(part.get("type")))
        if payload_fields is None or any(part.get(field) for field in payload_fields):
            self.output = True

    def _stop(self, reason: str) -> None:
        self.terminal = SuccessTerminal(stop_kind(reason), reason, not self.output)
        self._settled = True

    def _read(self, event: SseEvent) -> None:
        if event.data is None:
            self._on_garbled(event)
        else:
            super()._read(event)

    def _on_garbled(self, event: SseEvent) -> None:
        # Data that is missing or cannot be read is dropped, but the name alone can end the answer.
        if event.name == "error":
            self._fail({}, event.name)
        elif event.name == "message_stop":
            self._stop("")

    def _on_cut(self, kind: str) -> None:
        self._on_payload(kind, {})


def stop_kind(reason: str) -> SuccessKind:
    """Whether a stop reason means that the model was cut short."""
    return "incomplete" if reason in _CUT_SHORT else "completed"
