"""The built-in demonstration: simulated providers on a loopback port, and the configuration that uses them.

Decides nothing about failover: the first provider answers every request with 503, the second one streams, and
the ordinary engine does the rest. No key and no network is needed.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping

import orjson
from aiohttp import web

_WORDS = ("This ", "answer ", "was ", "streamed ", "by ", "sim-up, ", "after ", "sim-down ", "had ", "failed.")
_TEXT = "".join(_WORDS)
_WORD_PAUSE_S = 0.02
_OUTAGE_RETRY_AFTER_S = "3"
_USAGE = {"input_tokens": 8, "output_tokens": len(_WORDS), "total_tokens": 8 + len(_WORDS)}

type _Event = tuple[str, dict[str, object]]


def demo_document(port: int) -> dict[str, object]:
    """The configuration of the demonstration, in the form of a configuration file, for providers on `port`."""
    adapters = {"responses": "openai-responses", "chat": "openai-chat", "messages": "anthropic"}

    def provider(name: str) -> dict[str, object]:
        return {
            "adapter": "openai-responses",
            "baseUrl": f"http://127.0.0.1:{port}/{name}/v1",
            "authMode": "local",
            "allowPrivateNetwork": True,
            "liveModels": False,
            "models": list(adapters),
            "modelAdapters": adapters,
        }

    targets = [{"provider": name, "model": model} for name in ("sim-down", "sim-up") for model in adapters]
    return {
        "providers": {name: provider(name) for name in ("sim-down", "sim-up")},
        "combos": {"demo": {"alias": "demo", "displayName": "Demo", "targets": targets}},
    }


def _responses_object(status: str, output: list[object]) -> dict[str, object]:
    return {
        "id": "resp_demo",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": "responses",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _responses_item(text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_demo", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _responses_whole() -> dict[str, object]:
    return {**_responses_object("completed", [_responses_item(_TEXT)]), "usage": _USAGE}


def _responses_events() -> Iterator[_Event]:
    at = {"item_id": "msg_demo", "output_index": 0, "content_index": 0}
    started = {**_responses_item(""), "status": "in_progress", "content": []}
    yield "response.created", {"response": _responses_object("in_progress", [])}
    yield "response.output_item.added", {"output_index": 0, "item": started}
    yield "response.content_part.added", {**at, "part": {"type": "output_text", "text": "", "annotations": []}}
    for word in _WORDS:
        yield "response.output_text.delta", {**at, "delta": word}
    yield "response.output_text.done", {**at, "text": _TEXT}
    yield "response.content_part.done", {**at, "part": {"type": "output_text", "text": _TEXT, "annotations": []}}
    yield "response.output_item.done", {"output_index": 0, "item": _responses_item(_TEXT)}
    yield "response.completed", {"response": _responses_whole()}


def _chat_usage() -> dict[str, int]:
    return {"prompt_tokens": 8, "completion_tokens": len(_WORDS), "total_tokens": 8 + len(_WORDS)}


def _chat_object(kind: str, choice: Mapping[str, object]) -> dict[str, object]:
    return {
        "id": "chatcmpl-demo",
        "object": kind,
        "created": int(time.time()),
        "model": "chat",
        "choices": [{"index": 0, **choice}],
    }


def _chat_whole() -> dict[str, object]:
    choice = {"message": {"role": "assistant", "content": _TEXT}, "finish_reason": "stop"}
    return {**_chat_object("chat.completion", choice), "usage": _chat_usage()}


def _chat_events() -> Iterator[_Event]:
    def chunk(delta: dict[str, object], finish: str | None = None) -> _Event:
        return "", _chat_object("chat.completion.chunk", {"delta": delta, "finish_reason": finish})

    yield chunk({"role": "assistant", "content": ""})
    for word in _WORDS:
        yield chunk({"content": word})
    yield chunk({}, "stop")


def _messages_object(content: list[object], stop_reason: str | None, output_tokens: int) -> dict[str, object]:
    return {
        "id": "msg_demo",
        "type": "message",
        "role": "assistant",
        "model": "messages",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 8, "output_tokens": output_tokens},
    }


def _messages_whole() -> dict[str, object]:
    return _messages_object([{"type": "text", "text": _TEXT}], "end_turn", len(_WORDS))


def _messages_events() -> Iterator[_Event]:
    yield "message_start", {"message": _messages_object([], None, 1)}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    for word in _WORDS:
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word}}
    yield "content_block_stop", {"index": 0}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {"output_tokens": len(_WORDS)}}
    yield "message_stop", {}


def _frame(event: _Event) -> bytes:
    name, payload = event
    if not name:
        return b"data: " + orjson.dumps(payload) + b"\n\n"
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps({"type": name, **payload}) + b"\n\n"


_ANSWERS = {
    "responses": (_responses_whole, _responses_events, b""),
    "chat/completions": (_chat_whole, _chat_events, b"data: [DONE]\n\n"),
    "messages": (_messages_whole, _messages_events, b""),
}


async def _frames(surface: str) -> AsyncIterator[bytes]:
    _, events, tail = _ANSWERS[surface]
    for event in events():
        frame = _frame(event)
        yield frame
        if b'"delta"' in frame:
            await asyncio.sleep(_WORD_PAUSE_S)
    if tail:
        yield tail


async def _answer(request: web.Request) -> web.StreamResponse:
    surface = request.match_info["surface"]
    if surface not in _ANSWERS:
        return web.json_response({"error": {"message": "no such surface", "type": "not_found"}}, status=404)
    document = orjson.loads(await request.read())
    if not document.get("stream"):
        return web.json_response(_ANSWERS[surface][0](), dumps=lambda value: orjson.dumps(value).decode())
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    # A reader that leaves in the middle is a normal end of a demonstration.
    with contextlib.suppress(ConnectionResetError):
        async for frame in _frames(surface):
            await response.write(frame)
    return response


async def _outage(_request: web.Request) -> web.StreamResponse:
    error = {"message": "simulated outage", "type": "server_error", "code": "server_is_overloaded"}
    return web.json_response({"error": error}, status=503, headers={"retry-after": _OUTAGE_RETRY_AFTER_S})


class SimulatedProviders:
    """The two simulated providers, listening on a free loopback port between `start` and `close`."""

    def __init__(self) -> None:
        app = web.Application()
        app.router.add_post("/sim-down/v1/{surface:.+}", _outage)
        app.router.add_post("/sim-up/v1/{surface:.+}", _answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> int:
        """Begin to listen, if not done yet; returns the port."""
        if not self._runner.addresses:
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        address: tuple[str, int] = self._runner.addresses[0]
        return address[1]

    async def close(self) -> None:
        """Stop listening and end what is running."""
        await self._runner.cleanup()
