"""The Gemini stream: which chunks are output, which end the answer."""

from combos.core.facts import Dialect
from combos.wire.inspector import Payload, StreamInspector, as_list, as_mapping
from combos.wire.sse import SseEvent
from combos.wire.terminal import SuccessKind, SuccessTerminal

# Fields of a part that only describe it.
_PART_MARKS = frozenset({"thought", "thoughtSignature", "partMetadata", "videoMetadata"})


class GeminiInspector(StreamInspector):
    """Reads a `streamGenerateContent?alt=sse` stream. A blocked prompt is an answer, not a failure."""

    dialect = Dialect.GEMINI

    def _matters(self, frame: bytes) -> bool:
        return (
            frame.find(b'"finishReason"') >= 0
            or frame.find(b'"usageMetadata"') >= 0
            or frame.find(b'"error"') >= 0
            or frame.find(b'"promptFeedback"') >= 0
        )

    def _on_payload(self, name: str, payload: Payload) -> None:
        self._note_usage(payload.get("usageMetadata"))
        self._note_identity(payload.get("modelVersion"), payload.get("responseId"))
        if self.terminal is not None:
            return
        candidates = [as_mapping(candidate) for candidate in as_list(payload.get("candidates"))]
        if not self.output:
            self.output = any(candidate_has_output(candidate) for candidate in candidates)
        if payload.get("error") or name == "error":
            self._fail(payload, name)
            return
        reason = gemini_reason(payload, candidates)
        if reason is not None:
            self.terminal = SuccessTerminal(gemini_kind(reason), reason, not self.output)

    def _on_garbled(self, event: SseEvent) -> None:
        if not self.output and event.data != b"[DONE]":
            self._fail({}, event.name, malformed=True)

    def _on_cut(self, kind: str) -> None:  # noqa: ARG002 - chunks have no kinds
        self.output = self.output or self.terminal is None


def gemini_reason(payload: Payload, candidates: list[Payload]) -> str | None:
    """Why the answer ended: a candidate's finish reason, else the reason for which the prompt was blocked."""
    reasons = [candidate.get("finishReason") for candidate in candidates]
    reasons.append(as_mapping(payload.get("promptFeedback")).get("blockReason"))
    return next((r for r in reasons if isinstance(r, str) and r and not r.endswith("_UNSPECIFIED")), None)


def gemini_kind(reason: str) -> SuccessKind:
    """Every reason but STOP means that the model was cut short or held back."""
    return "completed" if reason == "STOP" else "incomplete"


def candidate_has_output(candidate: Payload) -> bool:
    """Whether a candidate holds a part with anything in it, thoughts included."""
    parts = as_list(as_mapping(candidate.get("content")).get("parts"))
    return any(value and key not in _PART_MARKS for part in parts for key, value in as_mapping(part).items())
