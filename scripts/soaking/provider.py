"""The providers: one server that plays a plan for every request and writes down what reached it and when."""

import asyncio
import contextlib
import json
import random
import re
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field

from faults import plan_of
from plans import Asked, Plan
from scene import PROVIDERS, Provider

_REQUEST = re.compile(rb"soak-(\d+)-")
_CANARY = re.compile(rb"canary-[a-z]+(?:-[a-z0-9]+)*")
_GEMINI_MODEL = re.compile(r"/models/([^:/]+):(\w+)")
_HEADERS = {"chat": "authorization", "responses": "authorization", "messages": "x-api-key", "gemini": "x-goog-api-key"}


@dataclass
class Send:
    """One request as it reached a provider, and what became of it."""

    request: int
    target: str
    key: str
    plan: Plan
    begun: float
    ended: float | None = None
    left: bool = False
    """The proxy closed the connection before the plan was over."""
    reused: bool = False
    stale: bool = False
    """The connection was closed on reuse: the proxy sends once more."""


@dataclass
class Book:
    """What reached the providers. `faults`: what should never have."""

    seed: int
    patience_s: float
    stalls: bool = True
    sends: dict[int, list[Send]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    total: int = 0
    open: int = 0
    aborted: set[int] = field(default_factory=set)

    def of(self, request: int) -> list[Send]:
        """The sends of one request so far."""
        return self.sends.get(request, [])

    def plan(self, request: int, provider: Provider, model: str, key: str, stream: bool) -> tuple[Plan, bool]:
        """What is done with this send, and whether a reused connection is to be found dead."""
        target = f"{provider.name}/{model}"
        rng = random.Random(f"{self.seed}:{request}:{target}:{key}")
        ident = f"r{request}.{len(self.of(request))}.{target}.{key[-1]}"
        asked = Asked(provider.dialect, stream, model, request, ident, self.patience_s)
        return plan_of(rng, asked, stalls=self.stalls), rng.random() < 0.02


@dataclass(frozen=True)
class _Message:
    target: str
    headers: dict[str, str]
    body: bytes
    raw: bytes


class Connection:
    """One connection from the proxy."""

    def __init__(self, book: Book, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._book = book
        self._reader = reader
        self._writer = writer
        self._served = 0

    async def serve(self) -> None:
        """Play one request after the other."""
        while (message := await self._message()) is not None:
            send = self._note(message)
            if send is None or send.stale:
                return
            try:
                keeps = await self._play(send.plan)
            except (OSError, asyncio.IncompleteReadError):
                send.left = True
                return
            except asyncio.CancelledError:
                send.left = True
                raise
            finally:
                send.ended = time.monotonic()
            self._served += 1
            if not keeps:
                return

    async def _message(self) -> _Message | None:
        try:
            raw = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = raw.decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, OSError):
            return None
        return _Message(first.split(" ")[1], headers, body, raw)

    def _note(self, message: _Message) -> Send | None:
        book = self._book
        book.total += 1
        found = _REQUEST.search(message.body)
        provider = PROVIDERS.get(message.target.split("/")[1])
        if found is None or provider is None:
            book.faults.append(f"a provider got a request without a mark: {message.target} {message.body[:200]!r}")
            return None
        request, key = int(found[1]), message.headers.get(_HEADERS[provider.dialect], "").removeprefix("Bearer ")
        self._check(message, provider, key, request)
        model, stream = _wanted(message, provider)
        plan, dead = book.plan(request, provider, model, key, stream)
        reused = self._served > 0
        send = Send(
            request, f"{provider.name}/{model}", key, plan, time.monotonic(), reused=reused, stale=dead and reused
        )
        if send.stale:
            send.ended = send.begun
        book.sends.setdefault(request, []).append(send)
        return send

    def _check(self, message: _Message, provider: Provider, key: str, request: int) -> None:
        allowed = {provider.key(number).encode() for number in range(provider.keys)}
        found = set(_CANARY.findall(message.raw)) | set(_CANARY.findall(message.body))
        if found - allowed or key.encode() not in allowed:
            self._book.faults.append(f"request {request}: {provider.name} got credentials {sorted(found)} and {key!r}")
        if b"combo/" in message.body or b"combo/" in message.raw:
            self._book.faults.append(f"request {request}: {provider.name} got the name of a combo")

    async def _play(self, plan: Plan) -> bool:
        """Whether the connection can go on. Raises `ConnectionError` when the proxy leaves meanwhile."""
        leaving = asyncio.ensure_future(self._proxy_leaves())
        try:
            for step in plan.steps:
                if self._reader.at_eof():
                    raise ConnectionError
                await self._step(step, leaving)
                if step in ("close", "reset"):
                    return False
        finally:
            leaving.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await leaving
        return plan.keeps

    async def _proxy_leaves(self) -> None:
        """Returns when the proxy closed, without taking what it sends next."""
        while not self._reader.at_eof() and not self._reader._buffer:  # type: ignore[attr-defined]
            await self._reader._wait_for_data("leaving")  # type: ignore[attr-defined]

    async def _step(self, step: object, leaving: "asyncio.Future[None]") -> None:
        match step:
            case bytes():
                self._writer.write(step)
                await self._writer.drain()
            case float() | int():
                await asyncio.sleep(step)
            case "reset":
                sock = self._writer.get_extra_info("socket")
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._writer.transport.abort()
            case "half":
                if self._writer.can_write_eof():
                    self._writer.write_eof()
            case "stall":
                await asyncio.wait([leaving], timeout=self._book.patience_s * 20)
                if not leaving.done():
                    self._book.faults.append("a silent provider was not left in time")
                raise ConnectionError


def _wanted(message: _Message, provider: Provider) -> tuple[str, bool]:
    if provider.dialect == "gemini":
        found = _GEMINI_MODEL.search(message.target)
        return (found[1], found[2] == "streamGenerateContent") if found else ("?", False)
    document = json.loads(message.body)
    return str(document.get("model")), document.get("stream") is True


class Servers:
    """All listening sockets of the providers."""

    def __init__(self, book: Book, certificate: str) -> None:
        self.book = book
        self._certificate = certificate
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._holder = socket.socket()
        self.origins: dict[str, str] = {}

    async def start(self) -> None:
        """Listen on ports of its own."""
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self._certificate)
        self._holder.bind(("127.0.0.1", 0))
        self.origins = {
            "plain": f"http://127.0.0.1:{await self._listen(self._serve)}",
            "tls": f"https://127.0.0.1:{await self._listen(self._serve, tls)}",
            "mute": f"https://127.0.0.1:{await self._listen(self._mute)}",
            "dead": f"http://127.0.0.1:{self._holder.getsockname()[1]}",
        }

    async def _listen(self, serve: object, tls: ssl.SSLContext | None = None) -> int:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, backlog=2048, limit=2**24)  # type: ignore[arg-type]
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.book.open += 1
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await Connection(self.book, reader, writer).serve()
        except asyncio.CancelledError:
            pass
        finally:
            self.book.open -= 1
            self._tasks.discard(task)
            writer.close()

    async def _mute(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes a TLS greeting for noise."""
        with contextlib.suppress(OSError):
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def close(self) -> None:
        """Close everything."""
        for server in self._servers:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._holder.close()
