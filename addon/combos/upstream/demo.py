"""The built-in demonstration: simulated providers on a loopback port, and the configuration that uses them.

Decides nothing about failover: the first provider answers every request with 503, the second one streams, and
the ordinary engine does the rest. No key and no network is needed. Both speak Chat Completions; clients of other
dialects are served in theirs.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping

import orjson
from aiohttp import web

_WORDS = ("This ", "answer ", "was ", "streamed ", "by ", "sim-up, ", "after ", "sim-down ", "had ", "failed.")
_WORD_PAUSE_S = 0.02
_OUTAGE_RETRY_AFTER_S = "3"
_NAMES = ("sim-down", "sim-up")
_MODEL = "chat"
_USAGE = {"prompt_tokens": 8, "completion_tokens": len(_WORDS), "total_tokens": 8 + len(_WORDS)}


def demo_document(port: int) -> dict[str, object]:
    """The configuration of the demonstration, in the form of a configuration file, for providers on `port`."""

    def provider(name: str) -> dict[str, object]:
        return {
            "adapter": "openai-chat",
            "baseUrl": f"http://127.0.0.1:{port}/{name}/v1",
            "authMode": "local",
            "allowPrivateNetwork": True,
            "liveModels": False,
            "models": [_MODEL],
        }

    targets = [{"provider": name, "model": _MODEL} for name in _NAMES]
    return {
        "providers": {name: provider(name) for name in _NAMES},
        "combos": {"demo": {"alias": "demo", "displayName": "Demo", "targets": targets}},
    }


def _answer_object(kind: str, choice: Mapping[str, object]) -> dict[str, object]:
    created = int(time.time())
    return {"id": "chatcmpl-demo", "object": kind, "created": created, "model": _MODEL, "choices": [choice]}


def _whole() -> dict[str, object]:
    message = {"role": "assistant", "content": "".join(_WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_answer_object("chat.completion", choice), "usage": _USAGE}


def _chunks() -> Iterator[dict[str, object]]:
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in _WORDS), {}]
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        yield _answer_object("chat.completion.chunk", choice)


async def _stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    # A reader that leaves in the middle is a normal end of a demonstration.
    with contextlib.suppress(ConnectionResetError):
        for chunk in _chunks():
            await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")
            await asyncio.sleep(_WORD_PAUSE_S)
        await response.write(b"data: [DONE]\n\n")
    return response


async def _answer(request: web.Request) -> web.StreamResponse:
    document = orjson.loads(await request.read())
    if document.get("stream"):
        return await _stream(request)
    return web.Response(body=orjson.dumps(_whole()), content_type="application/json")


async def _outage(_request: web.Request) -> web.StreamResponse:
    error = {"message": "simulated outage", "type": "server_error", "code": "server_is_overloaded"}
    return web.json_response({"error": error}, status=503, headers={"retry-after": _OUTAGE_RETRY_AFTER_S})


async def _details(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"id": _MODEL, "object": "model", "created": 0, "owned_by": "combos"})


class SimulatedProviders:
    """The two simulated providers, listening on a free loopback port between `start` and `close`."""

    def __init__(self) -> None:
        app = web.Application()
        app.router.add_post("/sim-down/v1/chat/completions", _outage)
        app.router.add_post("/sim-up/v1/chat/completions", _answer)
        for name in _NAMES:
            app.router.add_get(f"/{name}/v1/models/{_MODEL}", _details)
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
