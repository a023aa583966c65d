"""The Chat Completions stream: which chunks are output, which end the answer."""

import re

from combos.core.facts import Dialect
from combos.wire.inspector import Payload, StreamInspector, as_list, as_mapping
from combos.wire.sse import SseEvent
from combos.wire.terminal import SuccessKind, SuccessTerminal

OUTPUT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
_CUT_SHORT = frozenset({"length", "content_filter"})
# Most chunks say `"finish_reason":null` and `"usage":null`; only other values matter.
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_DONE = b"[DONE]"


class ChatInspector(StreamInspector):
    """Reads a Chat Completions stream. Usage may follow the finish reason in a chunk of its own."""

    dialect = Dialect.CHAT

    def _matters(self, frame: bytes) -> bool:
        return (
            _FINISH.search(frame) is not None
            or frame.find(b'"error"') >= 0
            or frame.find(b"event: error") >= 0
            or frame.find(_DONE) >= 0
            or _USAGE.search(frame) is not None
        )

    def _on_payload(self, name: str, payload: Payload) -> None:
        self._note_usage(payload.get("usage"))
        self._note_identity(payload.get("model"), payload.get("id"))
        if self.terminal is not None:
            return
        choices = [as_mapping(choice) for choice in as_list(payload.get("choices"))]
        if not self.output:
            self.output = any(_has_output(as_mapping(choice.get("delta"))) for choice in choices)
        error = chat_error(payload, choices)
        if error is not None or name == "error":
            self._fail(error or payload, name)
            return
        reason = next((r for choice in choices if isinstance(r := choice.get("finish_reason"), str) and r), None)
        if reason is not None:
            self.terminal = SuccessTerminal(finish_kind(reason), reason, not self.output)

    def _on_garbled(self, event: SseEvent) -> None:
        if event.data == _DONE:
            self.terminal = self.terminal or SuccessTerminal("completed", "", not self.output)
            self._settled = True
        elif not self.output:
            self._fail({}, event.name, malformed=True)

    def _on_cut(self, kind: str) -> None:  # noqa: ARG002 - chunks have no kinds
        self.output = self.output or self.terminal is None


def finish_kind(reason: str) -> SuccessKind:
    """Whether a finish reason means that the model was cut short."""
    return "incomplete" if reason in _CUT_SHORT else "completed"


def chat_error(payload: Payload, choices: list[Payload]) -> Payload | None:
    """The payload with its error object at the top level; None when it reports no failure.

    Some servers put the object into the choice that ends with `finish_reason: "error"`, some send it bare with
    `object: "error"`.
    """
    if payload.get("error") or payload.get("object") == "error":
        return payload
    for choice in choices:
        if choice.get("error"):
            return {**payload, "error": choice["error"]}
        if choice.get("finish_reason") == "error":
            return payload
    return None


def _has_output(delta: Payload) -> bool:
    return any(delta.get(field) for field in OUTPUT_FIELDS)
