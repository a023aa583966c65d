"""The process over HTTP: health, readiness, configuration without secrets, events as they happen."""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable
from functools import partial

from aiohttp import web

from combos import __version__
from combos.admin.answers import error, reply
from combos.admin.events import Event, Listener, TooManyListenersError
from combos.admin.parts import Parts
from combos.admin.redact import redacted
from combos.core.config import config_warnings
from combos.core.errors import ConfigProblem

KEEP_ALIVE_S = 15.0  # below the idle limit of common proxies
_RETRY_MS = 2_000


class ServiceRoutes:
    """Handlers; see the table in `app`. `port` is the one the listener got."""

    def __init__(self, parts: Parts, port: Callable[[], int]) -> None:
        self._parts = parts
        self._port = port
        self._started = time.monotonic()

    async def health(self, _request: web.Request) -> web.Response:
        """Who answers here."""
        return reply(
            {
                "status": "ok",
                "service": "combos",
                "version": __version__,
                "uptime": round(time.monotonic() - self._started, 3),
                "pid": os.getpid(),
                "port": self._port(),
            }
        )

    async def ready(self, _request: web.Request) -> web.Response:
        """200 when a configuration is in force, 503 before."""
        registry = self._parts.registry
        is_ready = registry.generation > 0
        body = {
            "ready": is_ready,
            "generation": registry.generation,
            "combos": len(registry.combos),
            "configValid": self._parts.live.is_writable,
            "configGone": self._parts.live.is_gone,
        }
        return reply(body, 200 if is_ready else 503)

    async def config(self, _request: web.Request) -> web.Response:
        """The configuration in force, without secrets."""
        live = self._parts.live
        return reply(
            {
                "path": str(live.path),
                "generation": live.registry.generation,
                "writable": live.is_writable,
                "problems": _rows(live.problems),
                "warnings": _rows(config_warnings(live.registry.config)),
                "config": redacted(live.registry.config),
            }
        )

    async def put_config(self, _request: web.Request) -> web.Response:
        """Never: combos and providers have routes of their own."""
        answer = error(405, "the configuration is not replaced as a whole", "method_not_allowed")
        answer.headers["Allow"] = "GET"
        return answer

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events, after `Last-Event-ID` when given."""
        try:
            # Who has gone is noticed when something is written; on a full house it is looked up.
            with self._parts.activity.bus.listen(_after(request), partial(_is_gone, request)) as listener:
                return await _stream(request, listener)
        except TooManyListenersError:
            return error(503, "too many listeners", "too_many_listeners")


async def _stream(request: web.Request, listener: Listener) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    with contextlib.suppress(ConnectionError):  # the listener has gone: that is how streams end
        await response.prepare(request)
        await response.write(f"retry: {_RETRY_MS}\n\n".encode())
        await _tell(response, listener)
    return response


async def _tell(response: web.StreamResponse, listener: Listener) -> None:
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                event = await listener.next()
        except TimeoutError:
            await response.write(b": keep-alive\n\n")
            continue
        if event is None:
            return
        await response.write(_frame(event))


def _frame(event: Event) -> bytes:
    data = json.dumps({"id": event.number, "kind": event.kind, "at": event.at, **event.data})
    return f"event: {event.kind}\nid: {event.number}\ndata: {data}\n\n".encode()


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _after(request: web.Request) -> int | None:
    text = request.headers.get("Last-Event-ID") or request.query.get("after", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _rows(problems: tuple[ConfigProblem, ...]) -> list[dict[str, str]]:
    return [{"path": problem.path, "message": problem.message} for problem in problems]
