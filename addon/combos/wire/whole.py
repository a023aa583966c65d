"""Reads a whole 2xx answer: did the target answer, or does the body say that it failed. Decides no verdict."""

from collections.abc import Callable

import orjson

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.chat import OUTPUT_FIELDS, chat_error, finish_kind
from combos.wire.gemini import candidate_has_output, gemini_kind, gemini_reason
from combos.wire.inspector import Payload, as_list, as_mapping, as_text
from combos.wire.json_text import loads
from combos.wire.messages import stop_kind
from combos.wire.terminal import FailureKind, FailureTerminal, SuccessTerminal, Terminal
from combos.wire.usage import flat_usage

_MESSAGE_FIELDS = (*OUTPUT_FIELDS, "audio")


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """What a whole answer says. `terminal` is a failure of kind "malformed" when the body is not a JSON object."""

    terminal: Terminal
    usage: dict[str, int] | None = None
    model: str | None = None
    response_id: str | None = None
    response: Payload | None = None
    """The whole object of a Responses answer."""

    @property
    def failure(self) -> FailureTerminal | None:
        """The failure that the body reports, or None."""
        return self.terminal if isinstance(self.terminal, FailureTerminal) else None

    @property
    def ok(self) -> bool:
        """The target answered."""
        return self.failure is None

    @property
    def malformed(self) -> bool:
        """The body is not an answer of any kind."""
        return self.failure is not None and self.failure.kind == "malformed"

    @property
    def completed(self) -> bool:
        """The turn ended as a completed one: not cut short."""
        return isinstance(self.terminal, SuccessTerminal) and self.terminal.kind == "completed"


def whole_answer(dialect: Dialect, body: bytes) -> WholeAnswer:
    """Read the decoded body of a 2xx answer that is not a stream. Never raises."""
    try:
        document = loads(body)
    except orjson.JSONDecodeError:
        return WholeAnswer(FailureTerminal(dialect, "malformed"))
    if dialect is Dialect.GEMINI and isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict):
        return WholeAnswer(FailureTerminal(dialect, "malformed"))
    return _READERS[dialect](document)


def _answer(
    dialect: Dialect,
    terminal: Terminal,
    usage: object,
    model: object,
    response_id: object,
    response: Payload | None = None,
) -> WholeAnswer:
    return WholeAnswer(
        terminal, flat_usage(dialect, usage), as_text(model) or None, as_text(response_id) or None, response
    )


def _responses(document: Payload) -> WholeAnswer:
    terminal: Terminal
    status = as_text(document.get("status"))
    has_output = bool(document.get("output"))
    if not has_output and (status == "failed" or document.get("error")):
        kind: FailureKind = "failed" if status == "failed" else "error"
        terminal = FailureTerminal(Dialect.RESPONSES, kind, document)
    elif status in {"incomplete", "failed", "cancelled"}:
        reason = as_text(as_mapping(document.get("incomplete_details")).get("reason"))
        terminal = SuccessTerminal("incomplete", reason or status, not has_output)
    else:
        terminal = SuccessTerminal("completed", "", not has_output)
    usage, model, response_id = document.get("usage"), document.get("model"), document.get("id")
    return _answer(Dialect.RESPONSES, terminal, usage, model, response_id, document)


def _chat(document: Payload) -> WholeAnswer:
    choices = as_list(document.get("choices"))
    empty, reason = True, ""
    for choice in choices:
        if isinstance(choice, dict):
            empty = empty and not _has_output(choice.get("message"))
            reason = reason or as_text(choice.get("finish_reason"))
    error = chat_error(document, [as_mapping(choice) for choice in choices]) if empty else None
    terminal: Terminal
    if error is not None:
        terminal = FailureTerminal(Dialect.CHAT, "error", error)
    else:
        terminal = SuccessTerminal(finish_kind(reason), reason, empty)
    return _answer(Dialect.CHAT, terminal, document.get("usage"), document.get("model"), document.get("id"))


def _has_output(message: object) -> bool:
    if isinstance(message, dict):
        for field in _MESSAGE_FIELDS:
            if message.get(field):
                return True
    return False


def _messages(document: Payload) -> WholeAnswer:
    terminal: Terminal
    reason = as_text(document.get("stop_reason"))
    has_content = bool(document.get("content"))
    if not has_content and (document.get("type") == "error" or document.get("error") or reason == "error"):
        terminal = FailureTerminal(Dialect.MESSAGES, "error", document)
    else:
        terminal = SuccessTerminal(stop_kind(reason), reason, not has_content)
    return _answer(Dialect.MESSAGES, terminal, document.get("usage"), document.get("model"), document.get("id"))


def _gemini(document: Payload) -> WholeAnswer:
    terminal: Terminal
    candidates = [as_mapping(candidate) for candidate in as_list(document.get("candidates"))]
    if document.get("error") and not candidates:
        terminal = FailureTerminal(Dialect.GEMINI, "error", document)
    else:
        reason = gemini_reason(document, candidates) or ""
        kind = gemini_kind(reason) if reason else "completed"
        terminal = SuccessTerminal(kind, reason, not any(candidate_has_output(c) for c in candidates))
    model, response_id = document.get("modelVersion"), document.get("responseId")
    return _answer(Dialect.GEMINI, terminal, document.get("usageMetadata"), model, response_id)


_READERS: dict[Dialect, Callable[[Payload], WholeAnswer]] = {
    Dialect.RESPONSES: _responses,
    Dialect.CHAT: _chat,
    Dialect.MESSAGES: _messages,
    Dialect.GEMINI: _gemini,
}
