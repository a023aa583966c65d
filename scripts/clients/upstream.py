"""A scripted provider on loopback: Responses under `/<name>/v1/responses`, Messages under `/<name>/v1/messages`.

Each name plays a list of steps, one per request, the last one again and again:

    answer       a final message with the text OK
    tool         a call of the client's own shell tool; the result comes back with the next request
    cut          a stream that is reset in the middle of a message
    (status, headers)   an error in the dialect of the path
"""

import json
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OK = "FINAL-ANSWER-OK"
COMMAND = "echo TOOL_RAN_$((40+2))"
TOOL_RESULT = "TOOL_RAN_42"

type Step = str | tuple[int, dict[str, str]]
type Event = dict[str, Any]


@dataclass
class Seen:
    """A request that a provider got."""

    name: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Upstream:
    """The server. `scripts`: name → steps. `seen`: every request for a model, in order."""

    scripts: dict[str, Sequence[Step]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def of(self, *names: str) -> list[Seen]:
        """The requests of these providers, in order."""
        return [request for request in self.seen if request.name in names]

    def next_step(self, request: Seen) -> Step:
        """Note the request and give the step that answers it."""
        steps = self.scripts[request.name]
        with self._lock:
            count = len(self.of(request.name))
            self.seen.append(request)
        return steps[min(count, len(steps) - 1)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        class Handler(_Handler):
            upstream = self

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        request = Seen(path.split("/")[1], self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        wire = messages_events if path.endswith("/messages") else responses_events
        # Claude Code asks for a title of the session as well, without tools: that is no step of a script.
        is_aside = wire is messages_events and not body.get("tools")
        step = "answer" if is_aside else self.upstream.next_step(request)
        if isinstance(step, tuple):
            self._refuse(*step, is_messages=wire is messages_events)
        elif body.get("stream"):
            self._stream(list(wire(step, body)), cut=step == "cut")
        else:
            self._send(200, {}, messages_whole(step, body))

    def _refuse(self, status: int, headers: dict[str, str], *, is_messages: bool) -> None:
        error = {"type": "rate_limit_error" if status == 429 else "api_error", "message": f"scripted {status}"}
        if is_messages:
            self._send(status, headers, {"type": "error", "error": error})
        else:
            self._send(status, headers, {"error": {**error, "code": None, "param": None}})

    def _send(self, status: int, headers: dict[str, str], document: Event) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Sequence[Event], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
        if not cut:
            self.wfile.write(b"0\r\n\r\n")
            return
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what was asked is in `seen`."""


def responses_events(step: str, body: Event) -> Iterator[Event]:
    """A Responses stream for a step."""
    head = {"id": "resp_1", "object": "response", "model": body["model"], "output": []}
    yield {"type": "response.created", "response": {**head, "status": "in_progress"}}
    if step == "cut":
        item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        yield {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "PART"}
        return
    item = _call(body) if step == "tool" else _message()
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    yield {"type": "response.completed", "response": {**head, "status": "completed", "output": [item], "usage": usage}}


def _message() -> Event:
    content = [{"type": "output_text", "text": OK, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _call(body: Event) -> Event:
    """A call of Codex's shell tool. Native models get it as a function of a JavaScript tool."""
    common = {"status": "completed", "call_id": "call_1"}
    if "exec_command" in _tool_names(body.get("tools") or []):
        arguments = json.dumps({"cmd": COMMAND})
        return {"id": "fc_1", "type": "function_call", "name": "exec_command", "arguments": arguments, **common}
    script = f"const r = await tools.exec_command({{cmd: {json.dumps(COMMAND)}}}); text(r.output);"
    return {"id": "ctc_1", "type": "custom_tool_call", "name": "exec", "input": script, **common}


def _tool_names(tools: Iterable[Event]) -> set[str]:
    return {str(tool.get("name")) for tool in tools}


def _block(step: str) -> Event:
    if step == "tool":
        return {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Bash",
            "input": {"command": COMMAND, "description": "run"},
        }
    return {"type": "text", "text": OK}


def messages_whole(step: str, body: Event) -> Event:
    """A message that is not streamed."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [_block(step)],
        "stop_reason": "tool_use" if step == "tool" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }


def messages_events(step: str, body: Event) -> Iterator[Event]:
    """A Messages stream for a step."""
    whole, block = messages_whole(step, body), _block(step)
    empty: Event
    delta: Event
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "PART" if step == "cut" else OK}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    if step != "cut":
        yield {"type": "content_block_stop", "index": 0}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 3}}
        yield {"type": "message_stop"}
