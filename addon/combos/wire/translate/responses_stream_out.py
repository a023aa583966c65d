"""Writes an answer as a Responses stream. Blocks may be open side by side; the last event holds the whole response."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.translate import errors, opaque, tokens
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import (
    CallMeta,
    Close,
    Delta,
    Event,
    Failure,
    Finish,
    Kind,
    Opaque,
    Open,
    Reason,
    Start,
    Usage,
)
from combos.wire.translate.shape import Json, dump

_ME = Dialect.RESPONSES
_PREFIXES = {Kind.TEXT: "msg_", Kind.REFUSAL: "msg_", Kind.REASONING: "rs_", Kind.CALL: "fc_"}
DECLINED = "The model declined to answer."


@dataclass(slots=True)
class _Item:
    """An open output item."""

    id: str
    index: int
    kind: Kind
    call: CallMeta | None
    text: list[str] = field(default_factory=list)

    def value(self) -> str:
        """The text so far."""
        return "".join(self.text)


class Writer:
    """One answer. `on` gives the bytes of one event; `response` is the final response object once it ended."""

    def __init__(self, context: Context, mint: Mint) -> None:
        self._context = context
        self._mint = mint
        self._sequence = -1
        self._items: dict[Hashable, _Item] = {}
        self._output: dict[int, Json] = {}
        self._opened = 0
        self._id = mint("resp_")
        self.response: Json = {}

    def on(self, event: Event) -> bytes:
        """The bytes of one event."""
        match event:
            case Start():
                response = self._response("in_progress")
                return self._send("response.created", response=response) + self._send(
                    "response.in_progress", response=response
                )
            case Open():
                return self._open(event.key, event.kind, event.call)
            case Delta():
                return self._delta(self._items[event.key], event.text)
            case Close():
                return self._close(event.key, event.opaque)
            case Finish():
                return self._finish(event)
            case Failure():
                return self._fail(event)

    def _send(self, kind: str, **members: object) -> bytes:
        self._sequence += 1
        payload = {"type": kind, "sequence_number": self._sequence, **members}
        return b"event: " + kind.encode() + b"\ndata: " + dump(payload) + b"\n\n"

    def _response(self, status: str, usage: Json | None = None) -> Json:
        echo = self._context.echo
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._context.created_s,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": echo.get("instructions"),
            "max_output_tokens": echo.get("max_output_tokens"),
            "model": self._context.model,
            "output": [self._output[index] for index in sorted(self._output)],
            "parallel_tool_calls": echo.get("parallel_tool_calls", True),
            "previous_response_id": None,
            "reasoning": echo.get("reasoning", {"effort": None, "summary": None}),
            "store": False,
            "temperature": echo.get("temperature", 1.0),
            "text": echo.get("text", {"format": {"type": "text"}}),
            "tool_choice": echo.get("tool_choice", "auto"),
            "tools": echo.get("tools", []),
            "top_p": echo.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": usage,
            "user": None,
            "metadata": echo.get("metadata", {}),
        }

    def _open(self, key: Hashable, kind: Kind, call: CallMeta | None) -> bytes:
        prefix = "ctc_" if call is not None and call.freeform else _PREFIXES[kind]
        item = _Item(self._mint(prefix), self._opened, kind, call)
        self._opened += 1
        self._items[key] = item
        added = self._send(
            "response.output_item.added", output_index=item.index, item=_wire_item(item, "in_progress", None)
        )
        if kind in (Kind.TEXT, Kind.REFUSAL):
            return added + self._on_item(item, "response.content_part.added", part=_part(kind, ""), content_index=0)
        return added

    def _on_item(self, item: _Item, kind: str, **members: object) -> bytes:
        return self._send(kind, item_id=item.id, output_index=item.index, **members)

    def _delta(self, item: _Item, text: str) -> bytes:
        first = not item.text
        item.text.append(text)
        match item.kind:
            case Kind.TEXT:
                return self._on_item(item, "response.output_text.delta", content_index=0, delta=text, logprobs=[])
            case Kind.REFUSAL:
                return self._on_item(item, "response.refusal.delta", content_index=0, delta=text)
            case Kind.REASONING:
                part = _summary_part("")
                opening = (
                    self._on_item(item, "response.reasoning_summary_part.added", summary_index=0, part=part)
                    if first
                    else b""
                )
                return opening + self._on_item(
                    item, "response.reasoning_summary_text.delta", summary_index=0, delta=text
                )
            case Kind.CALL:
                return self._on_item(item, f"response.{_call_field(item)}.delta", delta=text)

    def _close(self, key: Hashable, state: Opaque | None, status: str = "completed") -> bytes:
        item = self._items.pop(key)
        sealed = opaque.seal(state, self._context.target_key) if item.kind is Kind.REASONING else None
        final = _wire_item(item, status, sealed)
        self._output[item.index] = final
        ending = _ENDINGS[item.kind](self, item)
        return ending + self._send("response.output_item.done", output_index=item.index, item=final)

    def _end_text(self, item: _Item) -> bytes:
        text, part = item.value(), _part(item.kind, item.value())
        done = self._on_item(item, "response.output_text.done", content_index=0, text=text, logprobs=[])
        return done + self._on_item(item, "response.content_part.done", content_index=0, part=part)

    def _end_refusal(self, item: _Item) -> bytes:
        text, part = item.value(), _part(item.kind, item.value())
        done = self._on_item(item, "response.refusal.done", content_index=0, refusal=text)
        return done + self._on_item(item, "response.content_part.done", content_index=0, part=part)

    def _end_reasoning(self, item: _Item) -> bytes:
        if not item.text:
            return b""
        text = item.value()
        done = self._on_item(item, "response.reasoning_summary_text.done", summary_index=0, text=text)
        return done + self._on_item(
            item, "response.reasoning_summary_part.done", summary_index=0, part=_summary_part(text)
        )

    def _end_call(self, item: _Item) -> bytes:
        if item.call is not None and item.call.freeform:
            return self._on_item(item, "response.custom_tool_call_input.done", input=item.value())
        return self._on_item(item, "response.function_call_arguments.done", arguments=item.value() or "{}")

    def _finish(self, event: Finish) -> bytes:
        out, reason = b"", event.reason
        if reason is Reason.CONTENT_FILTER and self._context.codex:
            # Codex repeats such a turn as a lost connection and shows nothing; a plain message ends it.
            out = self._open("refusal", Kind.TEXT, None)
            out += self._delta(self._items["refusal"], event.detail or DECLINED) + self._close("refusal", None)
            reason = Reason.STOP
        word = tokens.REASONS_OUT[_ME][reason]
        status = "completed" if word == "completed" else "incomplete"
        response = self._response(status, tokens.WRITE[_ME](event.usage or Usage()))
        if status == "incomplete":
            response["incomplete_details"] = {"reason": word}
        self.response = response
        return out + self._send(f"response.{status}", response=response)

    def _fail(self, event: Failure) -> bytes:
        """Open text is closed as incomplete. Open calls are not: clients run a call whose item is done."""
        out = b"".join(
            self._close(key, None, "incomplete")
            for key, item in list(self._items.items())
            if item.kind is not Kind.CALL
        )
        kind = errors.kind_of_failure(event)
        response = self._response("failed")
        code = kind.stream_code or kind.code or "server_error"
        if kind.name == "server" and event.code:
            code = event.code
        response["error"] = {"code": code, "message": event.message}
        self.response = response
        return out + self._send("response.failed", response=response)


_ENDINGS: Mapping[Kind, Callable[[Writer, _Item], bytes]] = {
    Kind.TEXT: Writer._end_text,
    Kind.REFUSAL: Writer._end_refusal,
    Kind.REASONING: Writer._end_reasoning,
    Kind.CALL: Writer._end_call,
}


def _call_field(item: _Item) -> str:
    freeform = item.call is not None and item.call.freeform
    return "custom_tool_call_input" if freeform else "function_call_arguments"


def _summary_part(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def _part(kind: Kind, text: str) -> Json:
    if kind is Kind.REFUSAL:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _wire_item(item: _Item, status: str, sealed: str | None) -> Json:
    """The item as it stands: with its body once it is closed."""
    closed = status != "in_progress"
    if item.kind is Kind.REASONING:
        body: Json = {"id": item.id, "type": "reasoning", "summary": []}
        if item.text:
            body["summary"] = [_summary_part(item.value())]
        return body | ({"encrypted_content": sealed} if sealed else {})
    if item.call is None:
        content = [_part(item.kind, item.value())] if closed else []
        return {"id": item.id, "type": "message", "status": status, "role": "assistant", "content": content}
    return _call_item(item, item.call, status, closed=closed)


def _call_item(item: _Item, call: CallMeta, status: str, *, closed: bool) -> Json:
    kind = "custom_tool_call" if call.freeform else "function_call"
    body: Json = {"id": item.id, "type": kind, "status": status, "call_id": call.id, "name": call.name}
    if call.namespace:
        body["namespace"] = call.namespace
    if call.freeform:
        return body | {"input": item.value() if closed else ""}
    return body | {"arguments": (item.value() or "{}") if closed else ""}
