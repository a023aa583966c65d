"""What healthy model providers say, in four dialects: streams, whole answers, failures within streams."""

import json
from dataclasses import dataclass
from typing import Any

DIALECTS = ("chat", "responses", "messages", "gemini")


def event(document: dict[str, Any], *, named: bool = False) -> bytes:
    """One event of a stream."""
    line = f"event: {document['type']}\n" if named else ""
    return f"{line}data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True)
class Speech:
    """One answer: its dialect, the id that marks it, and its text in pieces."""

    dialect: str
    ident: str
    model: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    def start(self) -> list[bytes]:
        """What precedes the first output."""
        return _START[self.dialect](self)

    def output(self) -> list[bytes]:
        """The pieces of the text."""
        return _OPEN[self.dialect](self) + [_PIECE[self.dialect](self, piece) for piece in self.pieces]

    def finish(self) -> list[bytes]:
        """The end of a stream that went well."""
        return _FINISH[self.dialect](self)

    def whole(self) -> bytes:
        """The answer to a request that asked for no stream."""
        return json.dumps(_WHOLE[self.dialect](self), ensure_ascii=False).encode()


def busy(dialect: str) -> bytes:
    """The event by which a stream says that its provider is overloaded: another one may be asked."""
    return _told(dialect, 503, "server_is_overloaded", "overloaded_error", "UNAVAILABLE", "busy")


def refused(dialect: str) -> bytes:
    """The event by which a stream says that the request is at fault: nobody else is to be asked."""
    kind = "invalid_request_error"
    return _told(
        dialect, 400, "context_length_exceeded", kind, "INVALID_ARGUMENT", "maximum context length is 8 tokens"
    )


def _told(dialect: str, status: int, code: str, kind: str, google: str, message: str) -> bytes:
    match dialect:
        case "responses":
            failed = {"id": "resp_f", "status": "failed", "error": {"code": code, "message": message}}
            return event({"type": "response.failed", "response": failed}, named=True)
        case "messages":
            return event({"type": "error", "error": {"type": kind, "message": message}}, named=True)
        case "gemini":
            return event({"error": {"code": status, "message": message, "status": google}})
        case _:
            return event({"error": {"code": code, "message": message, "type": kind}})


def _chat_chunk(speech: Speech, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": speech.ident, "object": "chat.completion.chunk", "created": 1, "model": speech.model}
    return event({**head, "choices": [choice]})


def _chat_whole(speech: Speech) -> dict[str, Any]:
    message = {"role": "assistant", "content": speech.text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    head = {"id": speech.ident, "object": "chat.completion", "created": 1, "model": speech.model}
    return {**head, "choices": [choice], "usage": usage}


def _response(speech: Speech, status: str, output: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    head = {"id": f"resp_{speech.ident}", "object": "response", "created_at": 1, "model": speech.model}
    return {**head, "status": status, "output": output, "usage": usage if status == "completed" else None}


def _item(speech: Speech, *, done: bool) -> dict[str, Any]:
    content = [{"type": "output_text", "text": speech.text, "annotations": []}] if done else []
    status = "completed" if done else "in_progress"
    return {"id": f"msg_{speech.ident}", "type": "message", "role": "assistant", "status": status, "content": content}


def _responses_start(speech: Speech) -> list[bytes]:
    begun = _response(speech, "in_progress", [])
    kinds = ("response.created", "response.in_progress")
    return [event({"type": kind, "response": begun}, named=True) for kind in kinds]


def _responses_open(speech: Speech) -> list[bytes]:
    if not speech.pieces:
        return []
    part = {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": f"msg_{speech.ident}", "output_index": 0, "content_index": 0}
    added = {"type": "response.output_item.added", "output_index": 0, "item": _item(speech, done=False)}
    return [event(added, named=True), event({"type": "response.content_part.added", **place, "part": part}, named=True)]


def _responses_piece(speech: Speech, piece: str) -> bytes:
    place = {"item_id": f"msg_{speech.ident}", "output_index": 0, "content_index": 0}
    return event({"type": "response.output_text.delta", **place, "delta": piece}, named=True)


def _responses_whole(speech: Speech) -> dict[str, Any]:
    return _response(speech, "completed", [_item(speech, done=True)] if speech.pieces else [])


def _responses_finish(speech: Speech) -> list[bytes]:
    completed = event({"type": "response.completed", "response": _responses_whole(speech)}, named=True)
    if not speech.pieces:
        return [completed]
    place = {"item_id": f"msg_{speech.ident}", "output_index": 0, "content_index": 0}
    done = {"type": "response.output_text.done", **place, "text": speech.text}
    item = {"type": "response.output_item.done", "output_index": 0, "item": _item(speech, done=True)}
    return [event(done, named=True), event(item, named=True), completed]


def _messages_whole(speech: Speech) -> dict[str, Any]:
    content = [{"type": "text", "text": speech.text}] if speech.pieces else []
    head = {"id": speech.ident, "type": "message", "role": "assistant", "model": speech.model}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return {**head, "content": content, **ended, "usage": {"input_tokens": 1, "output_tokens": 2}}


def _messages_start(speech: Speech) -> list[bytes]:
    message = {**_messages_whole(speech), "content": [], "stop_reason": None}
    return [event({"type": "message_start", "message": message}, named=True), event({"type": "ping"}, named=True)]


def _messages_open(speech: Speech) -> list[bytes]:
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [event(block, named=True)] if speech.pieces else []


def _messages_piece(_: Speech, piece: str) -> bytes:
    delta = {"type": "text_delta", "text": piece}
    return event({"type": "content_block_delta", "index": 0, "delta": delta}, named=True)


def _messages_finish(speech: Speech) -> list[bytes]:
    stopped = {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    delta = {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 2}}
    closing = [event(stopped, named=True)] if speech.pieces else []
    return [*closing, event(delta, named=True), event({"type": "message_stop"}, named=True)]


def _gemini(speech: Speech, text: str, *, done: bool) -> dict[str, Any]:
    parts = [{"text": text}] if text else []
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if done:
        candidate["finishReason"] = "STOP"
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": speech.model,
        "responseId": speech.ident,
    }


_START = {
    "chat": lambda speech: [_chat_chunk(speech, {"role": "assistant", "content": ""})],
    "responses": _responses_start,
    "messages": _messages_start,
    "gemini": lambda _: [b": waiting\n\n"],
}
_OPEN = {
    "chat": lambda _: [],
    "responses": _responses_open,
    "messages": _messages_open,
    "gemini": lambda _: [],
}
_PIECE = {
    "chat": lambda speech, piece: _chat_chunk(speech, {"content": piece}),
    "responses": _responses_piece,
    "messages": _messages_piece,
    "gemini": lambda speech, piece: event(_gemini(speech, piece, done=False)),
}
_FINISH = {
    "chat": lambda speech: [_chat_chunk(speech, {}, "stop"), b"data: [DONE]\n\n"],
    "responses": _responses_finish,
    "messages": _messages_finish,
    "gemini": lambda speech: [event(_gemini(speech, "", done=True))],
}
_WHOLE = {
    "chat": _chat_whole,
    "responses": _responses_whole,
    "messages": _messages_whole,
    "gemini": lambda speech: _gemini(speech, speech.text, done=True),
}
