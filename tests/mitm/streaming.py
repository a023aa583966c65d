"""Addons, responders and looks into the proxy that the tests of the streamed layer share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mitmproxy.http import HTTPFlow

from combos.mitm.claims import respond_with
from combos.mitm.layer import TASK_NAME, StreamedHttpLayer
from combos.mitm.writer import Responder, ResponseWriter
from mitm.harness import LIMIT_S, H1Client, Proxy

EVENT_STREAM = ((b"Content-Type", b"text/event-stream"),)
GET = b"GET http://models.test/ours HTTP/1.1\r\nhost: models.test\r\n\r\n"
CANCEL = 8
"""HTTP/2 error code CANCEL."""

type Start = Callable[..., Awaitable[Proxy]]


class Answering:
    """A test addon: requests for `/ours` get the responder, others pass; keeps the flows it has seen."""

    def __init__(self, responder: Responder) -> None:
        self.responder = responder
        self.flows: list[HTTPFlow] = []

    def request(self, flow: HTTPFlow) -> None:
        self.flows.append(flow)
        if flow.request.path.startswith("/ours"):
            respond_with(flow, self.responder)


class Hooks:
    """A test addon made of the given hook functions."""

    def __init__(self, **hooks: Callable[..., Any]) -> None:
        self.name = f"hooks {id(self)}"  # addons need a name of their own
        vars(self).update(hooks)


class Watched:
    """A responder that tells how it ended; `body` is what it does."""

    def __init__(self, body: Responder) -> None:
        self.body = body
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.completed = asyncio.Event()

    async def __call__(self, flow: HTTPFlow, writer: ResponseWriter) -> None:
        self.entered.set()
        try:
            await self.body(flow, writer)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        self.completed.set()

    async def was_cancelled(self) -> None:
        async with asyncio.timeout(LIMIT_S):
            await self.cancelled.wait()
        assert not self.completed.is_set()


async def forever(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await asyncio.Event().wait()


async def greet(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.head(200, EVENT_STREAM)
    for word in (b"one", b"two", b"three"):
        await writer.chunk(word)
    await writer.end()


async def whole(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.respond(200, ((b"Content-Type", b"application/json"),), b'{"a":1}')


async def body_of(client: H1Client) -> bytes:
    pieces = []
    while piece := await client.chunk():
        pieces.append(piece)
    return b"".join(pieces)


def streams(how: Any) -> Callable[[HTTPFlow], None]:
    """A hook that sets `flow.response.stream`."""

    def responseheaders(flow: HTTPFlow) -> None:
        flow.response.stream = how

    return responseheaders


def responders() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(TASK_NAME)]


def inner_layer(proxy: Proxy) -> StreamedHttpLayer:
    """The HTTP layer inside the first client's CONNECT."""
    outer = next(layer for layer in proxy.handlers[0].layer.context.layers if isinstance(layer, StreamedHttpLayer))
    inside = outer.streams[1].context.layers
    return next(layer for layer in inside if isinstance(layer, StreamedHttpLayer) and layer is not outer)


def plain_answer(request: bytes) -> bytes:
    return b"HTTP/1.1 200 Fine\r\nX-From: origin\r\ncontent-length: 5\r\n\r\nplain"


class Flood:
    """Writes `total` bytes in pieces of 64 KiB and counts what it offered."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.offered = 0

    async def __call__(self, flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ((b"content-length", b"%d" % self.total),))
        piece = bytes(2**16)
        while self.offered < self.total:
            self.offered += len(piece)
            await writer.chunk(piece)
        await writer.end()


async def stalled(flood: Flood) -> int:
    """How much was offered once nothing moves any more."""
    offered, quiet = 0, 0
    async with asyncio.timeout(LIMIT_S):
        while quiet < 200:
            quiet = quiet + 1 if flood.offered == offered > 0 else 0
            offered = flood.offered
            await asyncio.sleep(0)
    return offered


async def mid_stream(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.head(200, EVENT_STREAM)
    await writer.chunk(b"first")
    await asyncio.Event().wait()


async def flooding(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await Flood(2**26)(flow, writer)


class Pausing:
    """An addon whose hook of this name does not return until released."""

    def __init__(self, hook: str) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        vars(self)[hook] = self.pause

    async def pause(self, flow: HTTPFlow) -> None:
        self.entered.set()
        await self.release.wait()
