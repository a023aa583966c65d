"""A client on a plain socket: one request per connection, the answer as exact bytes, and whether it ended cleanly."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rawserver import Pairs

LIMIT_S = 10
"""No single step of a test takes longer; only reached when something hangs."""


@dataclass
class Answer:
    """A response. `clean`: its framing said that it is complete."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    clean: bool

    def header(self, name: str) -> str | None:
        """The first value of a header, or None."""
        return next((v.decode("latin-1") for k, v in self.headers if k.lower() == name.lower().encode()), None)

    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


class Talk:
    """A connection on which one request was sent and whose answer is read step by step."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers."""
        raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), LIMIT_S)
        first, *lines = raw[:-4].split(b"\r\n")
        fields = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        return int(first.split(b" ")[1]), fields

    async def piece(self) -> bytes:
        """One chunk of a chunked body; b"" is its clean end. IncompleteReadError: cut off."""
        size = int((await asyncio.wait_for(self.reader.readuntil(b"\r\n"), LIMIT_S)).split(b";")[0], 16)
        return (await asyncio.wait_for(self.reader.readexactly(size + 2), LIMIT_S))[:-2]

    async def until(self, text: bytes) -> bytes:
        """Chunks up to the one with which `text` has arrived."""
        got = b""
        while text not in got:
            got += await self.piece()
        return got

    async def rest(self, fields: list[tuple[bytes, bytes]], *, bodiless: bool = False) -> tuple[bytes, bool]:
        """The body by its framing, and whether it was complete."""
        named = {name.lower(): value for name, value in fields}
        got = b""
        try:
            if bodiless:
                return b"", True
            if b"content-length" in named:
                return await asyncio.wait_for(self.reader.readexactly(int(named[b"content-length"])), LIMIT_S), True
            if named.get(b"transfer-encoding") != b"chunked":
                return await asyncio.wait_for(self.reader.read(-1), LIMIT_S), True
            while data := await self.piece():
                got += data
        except asyncio.IncompleteReadError as cut:
            return got + cut.partial, False
        except ConnectionError:
            return got, False
        return got, True

    def leave(self) -> None:
        """Close the connection now, without waiting for anything."""
        self.writer.transport.abort()


def request_bytes(method: str, target: str, headers: Pairs, body: bytes) -> bytes:
    """A request; Content-Length is added when there is a body."""
    length = [(b"Content-Length", b"%d" % len(body))] if body or method == "POST" else []
    lines = [f"{method} {target} HTTP/1.1".encode(), *(k + b": " + v for k, v in [*headers, *length])]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@asynccontextmanager
async def talk(port: int, request: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Talk]:
    """Connect to 127.0.0.1, send, and hand over what is left to read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22, ssl=tls)
    try:
        writer.write(request)
        yield Talk(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await asyncio.wait_for(writer.wait_closed(), LIMIT_S)


async def ask(
    port: int, method: str, target: str, *, headers: Pairs = (), body: bytes = b"", host: bytes | None = None
) -> Answer:
    """One exchange with the server on this port of 127.0.0.1."""
    shown = host or b"127.0.0.1:%d" % port
    fields = [(b"Host", shown), *headers]
    async with talk(port, request_bytes(method, target, fields, body)) as started:
        return await answer_of(started, bodiless=method == "HEAD")


async def answer_of(started: Talk, *, bodiless: bool = False) -> Answer:
    """The whole answer of a connection on which a request was sent."""
    status, fields = await started.head()
    got, clean = await started.rest(fields, bodiless=bodiless or status in (204, 304))
    return Answer(status, fields, got, clean)
