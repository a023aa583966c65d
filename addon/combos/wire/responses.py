"""The Responses stream: which events are output, which end the answer. The JSON `type` decides, never the `event:`."""

from combos.core.facts import Dialect
from combos.wire.inspector import Payload, StreamInspector, as_mapping, as_text
from combos.wire.sse import SseEvent
from combos.wire.terminal import FailureKind, FailureTerminal, SuccessTerminal

# Events that carry no output: progress, keep-alives and account metadata.
_CONTROL = frozenset(
    {
        "response.created",
        "response.in_progress",
        "response.queued",
        "response.heartbeat",
        "response.metadata",
        "codex.rate_limits",
        "codex.response.metadata",
        "keepalive",
        "ping",
    }
)
# An `incomplete` with one of these reasons is a broken transport, not a model that was cut short.
_TRANSPORT_REASONS = frozenset({"adapter_eof", "missing_terminal_event", "upstream_stall_timeout"})


class ResponsesInspector(StreamInspector):
    """Reads a Responses stream."""

    dialect = Dialect.RESPONSES

    def _matters(self, frame: bytes) -> bool:
        return (
            frame.find(b"response.completed") >= 0
            or frame.find(b"response.incomplete") >= 0
            or frame.find(b"response.failed") >= 0
            or frame.find(b'"error"') >= 0
        )

    def _on_payload(self, name: str, payload: Payload) -> None:
        response = as_mapping(payload.get("response"))
        self._note_identity(response.get("model"), response.get("id"))
        kind = payload.get("type")
        match kind:
            case "response.completed":
                empty = not self.output and not response.get("output")
                self._succeed(SuccessTerminal("completed", "", empty), response)
            case "response.incomplete":
                self._on_incomplete(name, payload, response)
            case "response.failed":
                self._end_failed("failed", name, payload, response)
            case "error":
                self._end_failed("error", name, payload, response)
            case "response.created":
                self.output = self.output or bool(response.get("output"))
            case None if payload.get("error"):
                # An error object in place of an event: nothing in it can be output.
                self._end_failed("error", name, payload, response)
            case _:
                self.output = self.output or not isinstance(kind, str) or kind not in _CONTROL

    def _on_incomplete(self, name: str, payload: Payload, response: Payload) -> None:
        reason = as_text(as_mapping(response.get("incomplete_details")).get("reason"))
        if reason in _TRANSPORT_REASONS:
            self._end_failed("incomplete", name, payload, response)
        else:
            empty = not self.output and not response.get("output")
            self._succeed(SuccessTerminal("incomplete", reason, empty), response)

    def _on_garbled(self, event: SseEvent) -> None:
        # `[DONE]` means nothing here; anything else that cannot be read may be output.
        self.output = self.output or event.data != b"[DONE]"

    def _on_cut(self, kind: str) -> None:
        self._on_payload("", {"type": kind})

    def _succeed(self, terminal: SuccessTerminal, response: Payload) -> None:
        self._note_usage(response.get("usage"))
        self.response = response
        self.terminal = terminal
        self._settled = True

    def _end_failed(self, kind: FailureKind, name: str, payload: Payload, response: Payload) -> None:
        self._note_usage(response.get("usage"))
        self.terminal = FailureTerminal(self.dialect, kind, payload, name)
        self._settled = True
