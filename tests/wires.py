"""The three wires of the clients as stub providers speak them: requests, success streams, whole answers, failures."""

import json
from dataclasses import dataclass
from typing import Any

from rawserver import Pairs, event_stream, response


def sse(document: dict[str, Any], event: str | None = None) -> bytes:
    """One event of a stream; `event` is the name of its `event:` line, by default the document's type."""
    name = event or document.get("type")
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


def error(status: int, document: object, headers: Pairs = ()) -> bytes:
    """A whole response with a JSON body."""
    return response(status, json.dumps(document).encode(), [(b"Content-Type", b"application/json"), *headers])


@dataclass(frozen=True)
class Wire:
    """One client dialect. The streams are lists of events, so that a test can cut, split and count them."""

    name: str
    path: str
    adapter: str

    def request(self, model: str, *, stream: bool = True, **fields: Any) -> dict[str, Any]:
        """A request body."""
        said = {"input": "hi"} if self.name == "R" else {"messages": [{"role": "user", "content": "hi"}]}
        limit = {"max_tokens": 64} if self.name == "M" else {}
        return {"model": model, **said, **limit, **({"stream": True} if stream else {}), **fields}

    def start(self, ident: str = "x") -> list[bytes]:
        """What a stream begins with, before any output."""
        match self.name:
            case "R":
                response_ = {"id": f"resp_{ident}", "object": "response", "status": "in_progress", "output": []}
                return [sse({"type": "response.created", "response": response_})]
            case "C":
                return [sse(chunk(ident, {"role": "assistant", "content": ""}))]
            case _:
                message = {
                    "id": f"m_{ident}",
                    "type": "message",
                    "role": "assistant",
                    "model": "stub",
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
                return [sse({"type": "message_start", "message": message})]

    def delta(self, text: str, ident: str = "x") -> bytes:
        """A piece of visible text."""
        match self.name:
            case "R":
                return sse(
                    {
                        "type": "response.output_text.delta",
                        "item_id": f"msg_{ident}",
                        "output_index": 0,
                        "content_index": 0,
                        "delta": text,
                    }
                )
            case "C":
                return sse(chunk(ident, {"content": text}))
            case _:
                piece = {"type": "text_delta", "text": text}
                return sse({"type": "content_block_delta", "index": 0, "delta": piece})

    def begin_text(self, ident: str = "x") -> list[bytes]:
        """What precedes the first piece of text."""
        match self.name:
            case "R":
                item = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "content": []}
                return [sse({"type": "response.output_item.added", "output_index": 0, "item": item})]
            case "C":
                return []
            case _:
                block = {"type": "text", "text": ""}
                return [sse({"type": "content_block_start", "index": 0, "content_block": block})]

    def finish(self, text: str, ident: str = "x") -> list[bytes]:
        """The end of a stream that went well."""
        match self.name:
            case "R":
                item = {
                    "id": f"msg_{ident}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}],
                }
                return [
                    sse({"type": "response.output_item.done", "output_index": 0, "item": item}),
                    sse({"type": "response.completed", "response": whole_response(text, ident)}),
                ]
            case "C":
                return [sse(chunk(ident, {}, "stop")), b"data: [DONE]\n\n"]
            case _:
                ended = {"stop_reason": "end_turn", "stop_sequence": None}
                return [
                    sse({"type": "content_block_stop", "index": 0}),
                    sse({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 3}}),
                    sse({"type": "message_stop"}),
                ]

    def ok(self, text: str, ident: str | None = None) -> list[bytes]:
        """The events of a success stream with this text."""
        name = ident or text
        return [*self.start(name), *self.begin_text(name), self.delta(text, name), *self.finish(text, name)]

    def busy(self) -> bytes:
        """The event by which a target says within a stream that it is overloaded."""
        match self.name:
            case "R":
                fault = {"code": "server_is_overloaded", "message": "busy"}
                failed = {"id": "resp_f", "status": "failed", "error": fault}
                return sse({"type": "response.failed", "response": failed})
            case "C":
                return sse({"error": {"code": 503, "message": "busy", "type": "server_error"}})
            case _:
                return sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})

    def whole(self, text: str) -> dict[str, Any]:
        """A success that is not streamed."""
        match self.name:
            case "R":
                return whole_response(text, text)
            case "C":
                said = {"role": "assistant", "content": text}
                choice = {"index": 0, "message": said, "finish_reason": "stop"}
                return {"id": text, "object": "chat.completion", "created": 1, "model": "stub", "choices": [choice]}
            case _:
                return {
                    "id": text,
                    "type": "message",
                    "role": "assistant",
                    "model": "stub",
                    "content": [{"type": "text", "text": text}],
                    "stop_reason": "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 3},
                }

    def answers(self, text: str, *, stream: bool = True, headers: Pairs = ()) -> bytes:
        """A success as bytes on the wire."""
        if stream:
            head, _, rest = event_stream(*self.ok(text)).partition(b"\r\n")
            extra = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
            return head + b"\r\n" + extra + rest
        return error(200, self.whole(text), headers)


def chunk(ident: str, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": ident, "object": "chat.completion.chunk", "created": 1, "model": "stub", "choices": [choice]}


def whole_response(text: str, ident: str) -> dict[str, Any]:
    """A finished object of the Responses wire."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {
        "id": f"msg_{ident}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    return {
        "id": f"resp_{ident}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "stub",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 4,
        },
    }


R = Wire("R", "/v1/responses", "openai-responses")
C = Wire("C", "/v1/chat/completions", "openai-chat")
M = Wire("M", "/v1/messages", "anthropic")
WIRES = (R, C, M)
