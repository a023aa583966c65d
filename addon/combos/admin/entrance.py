"""Which requests at the listener are for models and which for the management, and how they reach either.

Requests for models do not pass through the web application: its router and its middleware cost more than all the rest.
What is answered is decided by the part that serves models, and by the application.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import aiohttp
from aiohttp import web
from aiohttp.http import HttpVersion11
from yarl import URL

from combos.admin.asked import Request
from combos.admin.auth import Gate, is_own_host
from combos.admin.client_wire import ClientWire
from combos.core.errors import ProxyError, bad_request, forbidden
from combos.core.facts import Dialect, Surface
from combos.upstream.writes import Writes
from combos.wire.errors import render
from combos.wire.request import surface_of

_MANAGEMENT = "/api/"
_ROOTS = ("/v1/", "/v1beta/")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_HOSTS_MAX = 64  # Host values found good; a client sends the same one each time

type AppHandler = Callable[[Any], Awaitable[web.StreamResponse]]


class Models(Protocol):
    """Serves requests for models."""

    @property
    def body_limit(self) -> int:
        """How many bytes of a body are taken."""

    async def serve(self, request: Request, target: str, body: bytes | None, wire: ClientWire) -> None:
        """Answer a request whose path and query are `target`. `body` is None when it exceeds the limit.

        The client's leaving arrives as a cancellation.
        """


def is_for_models(path: str) -> bool:
    """Whether a path, without its query, is one of those where models are served."""
    if path.startswith(_MANAGEMENT):
        return False
    # Who opens a base URL by hand asks for it without anything behind it.
    return f"{path}/".startswith(_ROOTS) or surface_of(path) is not None or "/models/" in path


class Entrance:
    """The handler of every request at the listener."""

    def __init__(self, models: Models, manage: AppHandler, gate: Gate) -> None:
        self._models = models
        self._manage = manage
        self._gate = gate
        self._hosts: set[str] = set()
        self._writes = Writes()
        self._managing: set[asyncio.Future[web.StreamResponse]] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request that came the long way."""
        if self.takes(request.raw_path):
            return _Answered(keeps=await self.serve(request))
        return await self._managed(request)

    def takes(self, target: str) -> bool:
        """Whether a request is for models, by what its first line names."""
        return target.startswith(_ROOTS) or is_for_models(_address(target)[0].partition("?")[0])

    async def serve(self, request: Request) -> bool:
        """Answer a request for models; whether the connection can take another request."""
        target, host = _address(request.raw_path)
        if host is None:
            host = request.headers.get("Host", "")
        origin = request.headers.get("Origin")
        wire = ClientWire(request, self._gate.grants(origin) if origin is not None else (), self._writes)
        if not self._is_own(host):
            _refuse(request, wire, forbidden("This listener is addressed by a name of this machine only"))
        elif origin is not None and self._gate.is_preflight(request):
            self._preflight(request, wire, origin)
        else:
            try:
                await self._served(request, target, wire)
            except Exception:
                if wire.begun:  # the HTTP server would add another answer
                    wire.break_off()
                raise
        return wire.keeps

    async def _served(self, request: Request, target: str, wire: ClientWire) -> None:
        content, limit = request.content, self._models.body_limit
        try:
            is_there = content.is_eof() and content.total_bytes <= limit
            body = content.read_nowait() if is_there else await self._body(request, limit)
        except ConnectionError:
            wire.keeps = False  # nobody is there to read an answer
        except (aiohttp.ClientPayloadError, web.RequestPayloadError):
            _refuse(request, wire, bad_request("The request body is not framed as announced"), keeps=False)
        except ProxyError as error:
            _refuse(request, wire, error, keeps=False)
        else:
            wire.keeps &= body is not None
            await self._models.serve(request, target, body, wire)

    async def _body(self, request: Request, limit: int) -> bytes | None:
        """A body that is still to come, as it is sent, None when it exceeds the limit. Raises `ProxyError` for an
        expectation not met."""
        if int(request.headers.get("Content-Length") or 0) > limit:
            return None
        self._writes.now()
        _go_on(request)
        parts = bytearray()
        while part := await request.content.readany():
            parts += part
            if len(parts) > limit:
                return None
        return bytes(parts)

    def _preflight(self, request: Request, wire: ClientWire, origin: str) -> None:
        if not self._gate.is_allowed_origin(origin):
            _refuse(request, wire, forbidden("Pages of this origin may not use this listener"))
            return
        asked = request.headers.get("Access-Control-Request-Headers", "")
        allowed = (b"access-control-allow-headers", asked.encode("latin-1", "replace"))
        wire.head(204, b"No Content", (allowed,), bodiless=True)
        wire.end()
        wire.flush()

    def _is_own(self, host: str) -> bool:
        """Whether a Host value means this machine: otherwise a page whose name was rebound to it would be served."""
        if host in self._hosts:
            return True
        if not is_own_host(host):
            return False
        if len(self._hosts) < _HOSTS_MAX:
            self._hosts.add(host)
        return True

    async def _managed(self, request: web.BaseRequest) -> web.StreamResponse:
        """By the application, to its end: a change of the configuration is not left half done by who asked for it."""
        self._writes.now()  # the application writes directly
        work = asyncio.ensure_future(self._manage(request))
        self._managing.add(work)
        work.add_done_callback(self._managing.discard)
        return await asyncio.shield(work)


class _Answered(web.StreamResponse):
    """Tells the HTTP server that the whole answer was sent already."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps

    @property
    def keep_alive(self) -> bool:
        return self._keeps

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002 - the base class's signature
        return None

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002 - the base class's signature
        return None


def _address(target: str) -> tuple[str, str | None]:
    """Path with query, and the host, if the request line has a whole address: it counts for both then."""
    if target.startswith("/") or "://" not in target:
        return target, None
    try:
        url = URL(target, encoded=True)
        return url.raw_path_qs, url.authority
    except ValueError:
        return target, ""


def _go_on(request: Request) -> None:
    """Tell a client that waits for it to send its body. Raises `ProxyError` for any other expectation."""
    expect = request.headers.get("Expect")
    if expect is None or request.version < HttpVersion11:
        return
    if expect.lower() != "100-continue":
        raise ProxyError(417, "invalid_request_error", "expectation_failed", "Only 100-continue can be expected")
    if request.transport is not None:
        request.transport.write(_CONTINUE)


def _refuse(request: Request, wire: ClientWire, error: ProxyError, *, keeps: bool = True) -> None:
    wire.keeps &= keeps
    headers, body = render(error, _dialect(request))
    bodiless = request.method == "HEAD"
    wire.head(error.status, b"", (*headers, (b"content-length", b"%d" % len(body))), bodiless=bodiless)
    if not bodiless:
        wire.chunk(body)
    wire.end()
    wire.flush()


def _dialect(request: Request) -> Dialect:
    """Whose client asks, as far as path and header fields tell."""
    surface = surface_of(_address(request.raw_path)[0])
    if surface is not None and surface[1] is not Surface.MODELS:
        return surface[0]
    return Dialect.MESSAGES if "anthropic-version" in request.headers else Dialect.CHAT
