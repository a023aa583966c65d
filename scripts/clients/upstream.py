"""Scripted providers on loopback: each answers at `/<name>/v1/…` in the dialect of the path.

A provider plays its script, one step per request, the last one again and again. A step is one of `answers`, or
(status, headers) for an error in the dialect of the path.
"""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import answers
from answers import CUTS, Event, tool_names

type Step = str | tuple[int, dict[str, str]]


@dataclass(frozen=True)
class Wire:
    """How a dialect answers."""

    name: str
    events: Callable[[str, Event], Iterator[Event]]
    whole: Callable[[str, Event], Event]


WIRES = {
    "/responses": Wire("responses", answers.responses_events, answers.responses_whole),
    "/chat/completions": Wire("chat", answers.chat_events, answers.chat_whole),
    "/messages": Wire("messages", answers.messages_events, answers.messages_whole),
    ":generateContent": Wire("gemini", answers.gemini_events, answers.gemini_whole),
    ":streamGenerateContent": Wire("gemini", answers.gemini_events, answers.gemini_whole),
}


@dataclass(frozen=True)
class Script:
    """What a provider answers. `tools_only`: a request without tools is an aside (a title), and is no step."""

    steps: Sequence[Step]
    tools_only: bool = False


@dataclass
class Seen:
    """A request that a provider got."""

    name: str
    path: str
    wire: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    is_aside: bool = False

    @property
    def text(self) -> str:
        """Everything that was sent, to be searched."""
        return f"{self.path} {json.dumps(self.headers)} {json.dumps(self.body)}"


@dataclass
class Upstream:
    """The server. `scripts`: name → script. `seen`: every request, in order."""

    scripts: dict[str, Script] = field(default_factory=dict)
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
        """The requests of these providers, in order, without asides."""
        return [request for request in self.all_of(*names) if not request.is_aside]

    def all_of(self, *names: str) -> list[Seen]:
        """The requests of these providers, in order, with asides."""
        with self._lock:
            return [request for request in self.seen if request.name in names]

    def next_step(self, request: Seen) -> Step:
        """Note the request and give the step that answers it."""
        script = self.scripts[request.name]
        request.is_aside = script.tools_only and not tool_names(request.body)
        with self._lock:
            count = sum(one.name == request.name and not one.is_aside for one in self.seen)
            self.seen.append(request)
        return "answer" if request.is_aside else script.steps[min(count, len(script.steps) - 1)]

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
        wire = next(each for end, each in WIRES.items() if path.endswith(end))
        headers = {name.lower(): value for name, value in self.headers.items()}
        step = self.upstream.next_step(Seen(path.split("/")[1], self.path, wire.name, headers, body, time.monotonic()))
        # Gemini has no model in its bodies.
        body.setdefault("model", "m1")
        if isinstance(step, tuple):
            self._refuse(*step, wire=wire.name)
        elif body.get("stream") or path.endswith(":streamGenerateContent"):
            self._stream(wire, step, body)
        elif step in CUTS:
            self._reset()
        else:
            self._send(200, {}, wire.whole(step, body))

    def _refuse(self, status: int, headers: dict[str, str], *, wire: str) -> None:
        kind = "rate_limit_error" if status == 429 else "api_error"
        message = f"scripted {status}"
        if wire == "messages":
            self._send(status, headers, {"type": "error", "error": {"type": kind, "message": message}})
        elif wire == "gemini":
            state = "RESOURCE_EXHAUSTED" if status == 429 else "UNAVAILABLE"
            self._send(status, headers, {"error": {"code": status, "message": message, "status": state}})
        else:
            self._send(status, headers, {"error": {"type": kind, "message": message, "code": None, "param": None}})

    def _send(self, status: int, headers: dict[str, str], document: Event) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, wire: Wire, step: str, body: Event) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(wire.events(step, body)):
            self._event(_framed(wire, {**event, "sequence_number": number} if wire.name == "responses" else event))
        if wire.name == "chat" and step not in CUTS:
            self._event("data: [DONE]\n\n")
        self.wfile.flush()
        if step == "cut":
            # A reset would take back what has not been read yet: the message would never have begun.
            self.close_connection = True
        elif step == "cut-early":
            self._reset()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _event(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what was asked is in `seen`."""


def _framed(wire: Wire, event: Event) -> str:
    named = f"event: {event['type']}\n" if wire.name in ("responses", "messages") else ""
    return f"{named}data: {json.dumps(event)}\n\n"
