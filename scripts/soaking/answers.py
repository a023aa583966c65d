"""What healthy model providers say, in four dialects: thoughts, text and tool calls, in streams and whole answers; and
failures within streams."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DIALECTS = ("chat", "responses", "messages", "gemini")


def event(document: dict[str, Any], *, named: bool = False) -> bytes:
    """One event of a stream."""
    line = f"event: {document['type']}\n" if named else ""
    return f"{line}data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


@dataclass(frozen=True)
class Call:
    """A call of a tool: its arguments are a JSON text, in pieces that respect nothing."""

    ident: str
    name: str
    pieces: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The whole arguments."""
        return "".join(self.pieces)


@dataclass(frozen=True)
class Speech:
    """One answer: its dialect, the id that marks it, its text and thoughts in pieces, and its calls. They come in the
    order thoughts, text, calls."""

    dialect: str
    ident: str
    model: str
    pieces: tuple[str, ...] = ()
    thinks: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    @property
    def thoughts(self) -> str:
        """All thoughts."""
        return "".join(self.thinks)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return not (self.pieces or self.thinks or self.calls)

    def start(self) -> list[bytes]:
        """What precedes the first output."""
        return _START[self.dialect](self)

    def output(self) -> list[bytes]:
        """The pieces of thoughts, text and calls."""
        return list(_OUTPUT[self.dialect](self))

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


# -- Chat Completions


def _chat_chunk(speech: Speech, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": speech.ident, "object": "chat.completion.chunk", "created": 1, "model": speech.model}
    return event({**head, "choices": [choice]})


def _chat_output(speech: Speech) -> Iterator[bytes]:
    yield from (_chat_chunk(speech, {"reasoning_content": piece}) for piece in speech.thinks)
    yield from (_chat_chunk(speech, {"content": piece}) for piece in speech.pieces)
    for number, call in enumerate(speech.calls):
        begun = {"index": number, "id": call.ident, "type": "function"}
        yield _chat_chunk(speech, {"tool_calls": [{**begun, "function": {"name": call.name, "arguments": ""}}]})
        for piece in call.pieces:
            yield _chat_chunk(speech, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})


def _chat_call(call: Call) -> dict[str, Any]:
    return {"id": call.ident, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _chat_reason(speech: Speech) -> str:
    return "tool_calls" if speech.calls else "stop"


def _chat_whole(speech: Speech) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": speech.text}
    if speech.thinks:
        message["reasoning_content"] = speech.thoughts
    if speech.calls:
        message["tool_calls"] = [_chat_call(call) for call in speech.calls]
    choice = {"index": 0, "message": message, "finish_reason": _chat_reason(speech)}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    head = {"id": speech.ident, "object": "chat.completion", "created": 1, "model": speech.model}
    return {**head, "choices": [choice], "usage": usage}


# -- Responses


def _response(speech: Speech, status: str, output: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    head = {"id": f"resp_{speech.ident}", "object": "response", "created_at": 1, "model": speech.model}
    return {**head, "status": status, "output": output, "usage": usage if status == "completed" else None}


def _items(speech: Speech) -> list[dict[str, Any]]:
    """The items of the answer, complete."""
    made: list[dict[str, Any]] = []
    if speech.thinks:
        summary = [{"type": "summary_text", "text": speech.thoughts}]
        made.append({"id": f"rs_{speech.ident}", "type": "reasoning", "summary": summary})
    if speech.pieces:
        content = [{"type": "output_text", "text": speech.text, "annotations": []}]
        message = {"id": f"msg_{speech.ident}", "type": "message", "role": "assistant", "content": content}
        made.append({**message, "status": "completed"})
    for call in speech.calls:
        named = {"call_id": call.ident, "name": call.name, "arguments": call.arguments}
        made.append({"id": f"fc_{call.ident}", "type": "function_call", "status": "completed", **named})
    return made


_EMPTIED: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": []},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
}


def _responses_start(speech: Speech) -> list[bytes]:
    begun = _response(speech, "in_progress", [])
    kinds = ("response.created", "response.in_progress")
    return [event({"type": kind, "response": begun}, named=True) for kind in kinds]


def _responses_output(speech: Speech) -> Iterator[bytes]:
    calls = iter(speech.calls)
    for number, item in enumerate(_items(speech)):
        begun = {"type": "response.output_item.added", "output_index": number}
        yield event({**begun, "item": {**item, **_EMPTIED[item["type"]]}}, named=True)
        place = {"item_id": item["id"], "output_index": number}
        match item["type"]:
            case "reasoning":
                yield from _parts(place, "summary_index", "reasoning_summary", "summary_text", speech.thinks)
            case "message":
                yield from _parts(place, "content_index", "output", "output_text", speech.pieces)
            case _:
                for piece in next(calls).pieces:
                    yield event({"type": "response.function_call_arguments.delta", **place, "delta": piece}, named=True)
        yield event({"type": "response.output_item.done", "output_index": number, "item": item}, named=True)


def _parts(place: dict[str, Any], index: str, kind: str, part: str, pieces: tuple[str, ...]) -> Iterator[bytes]:
    """One part of an item: its beginning, its pieces, its end."""
    place = {**place, index: 0}
    added = "response.content_part.added" if index == "content_index" else f"response.{kind}_part.added"
    yield event({"type": added, **place, "part": {"type": part, "text": "", "annotations": []}}, named=True)
    for piece in pieces:
        yield event({"type": f"response.{kind}_text.delta", **place, "delta": piece}, named=True)
    yield event({"type": f"response.{kind}_text.done", **place, "text": "".join(pieces)}, named=True)


def _responses_whole(speech: Speech) -> dict[str, Any]:
    return _response(speech, "completed", _items(speech))


def _responses_finish(speech: Speech) -> list[bytes]:
    return [event({"type": "response.completed", "response": _responses_whole(speech)}, named=True)]


# -- Messages


def _blocks(speech: Speech) -> list[dict[str, Any]]:
    """The blocks of the answer, complete."""
    made: list[dict[str, Any]] = []
    if speech.thinks:
        made.append({"type": "thinking", "thinking": speech.thoughts, "signature": f"sig-{speech.ident}"})
    if speech.pieces:
        made.append({"type": "text", "text": speech.text})
    return [*made, *map(_tool_use, speech.calls)]


def _tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.ident, "name": call.name, "input": json.loads(call.arguments)}


def _messages_whole(speech: Speech) -> dict[str, Any]:
    head = {"id": speech.ident, "type": "message", "role": "assistant", "model": speech.model}
    usage = {"input_tokens": 1, "output_tokens": 2}
    return {**head, "content": _blocks(speech), **_stopped(speech), "usage": usage}


def _stopped(speech: Speech) -> dict[str, Any]:
    return {"stop_reason": "tool_use" if speech.calls else "end_turn", "stop_sequence": None}


def _messages_start(speech: Speech) -> list[bytes]:
    message = {**_messages_whole(speech), "content": [], "stop_reason": None}
    return [event({"type": "message_start", "message": message}, named=True), event({"type": "ping"}, named=True)]


def _messages_output(speech: Speech) -> Iterator[bytes]:
    calls = iter(speech.calls)
    for number, block in enumerate(_blocks(speech)):
        match block["type"]:
            case "thinking":
                begun = {**block, "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in speech.thinks]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                begun = {**block, "text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in speech.pieces]
            case _:
                begun = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in next(calls).pieces]
        yield event({"type": "content_block_start", "index": number, "content_block": begun}, named=True)
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": number, "delta": delta}, named=True)
        yield event({"type": "content_block_stop", "index": number}, named=True)


def _messages_finish(speech: Speech) -> list[bytes]:
    delta = {"type": "message_delta", "delta": _stopped(speech), "usage": {"output_tokens": 2}}
    return [event(delta, named=True), event({"type": "message_stop"}, named=True)]


# -- Gemini


def _gemini(speech: Speech, parts: list[dict[str, Any]], *, done: bool) -> dict[str, Any]:
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


def _gemini_parts(speech: Speech) -> Iterator[dict[str, Any]]:
    yield from ({"text": piece, "thought": True} for piece in speech.thinks)
    yield from ({"text": piece} for piece in speech.pieces)
    for number, call in enumerate(speech.calls):
        made = {"functionCall": {"name": call.name, "args": json.loads(call.arguments)}}
        yield made if number else {**made, "thoughtSignature": "c2ln"}


def _gemini_output(speech: Speech) -> Iterator[bytes]:
    return (event(_gemini(speech, [part], done=False)) for part in _gemini_parts(speech))


_START = {
    "chat": lambda speech: [_chat_chunk(speech, {"role": "assistant", "content": ""})],
    "responses": _responses_start,
    "messages": _messages_start,
    "gemini": lambda _: [b": waiting\n\n"],
}
_OUTPUT = {
    "chat": _chat_output,
    "responses": _responses_output,
    "messages": _messages_output,
    "gemini": _gemini_output,
}
_FINISH = {
    "chat": lambda speech: [_chat_chunk(speech, {}, _chat_reason(speech)), b"data: [DONE]\n\n"],
    "responses": _responses_finish,
    "messages": _messages_finish,
    "gemini": lambda speech: [event(_gemini(speech, [], done=True))],
}
_WHOLE = {
    "chat": _chat_whole,
    "responses": _responses_whole,
    "messages": _messages_whole,
    "gemini": lambda speech: _gemini(speech, list(_gemini_parts(speech)), done=True),
}
