"""HTTP/1.1 clients: straight to the proxy, in absolute form, or through a tunnel; patient, slow, or gone."""

import asyncio
import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from asks import Ask
from heard import Answer
from sending import Errand, Step, script

type Look = Callable[[int], Awaitable[object]]
"""Asks the proxy about the connection of a client at this port."""

_BROKEN = (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


def _sockets(port: int) -> list[str]:
    """Both ends of the connection from this port, where the kernel tells: addresses, state, bytes unsent and unread."""
    try:
        lines = Path("/proc/net/tcp").read_text().splitlines()
    except OSError:
        return []
    return [" ".join(line.split()[1:5]) for line in lines if f":{port:04X} " in line]


class Client:
    """One connection to the proxy. `token`: that of the management, where the connection is one of its listener."""

    def __init__(self, port: int, entrance: str, tls: ssl.SSLContext, look: Look, token: str = "") -> None:
        self._look = look
        self._token = token
        self._port = port
        self._entrance = entrance
        self._tls = tls
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._writing: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._host = ""
        self._limit: asyncio.Timeout | None = None
        self._patience_s = 0.0

    @property
    def usable(self) -> bool:
        """Whether another request can be sent on it."""
        return self._writer is not None

    async def connect(self, host: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open the connection, and a tunnel to the host where that is the way in."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**16)
        self._reader, self._writer, self._host = reader, writer, host
        if self._entrance in ("tunnel", "http2"):
            writer.write(f"CONNECT {host}:443 HTTP/1.1\r\nhost: {host}:443\r\n\r\n".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in answer.split(b"\r\n")[0]:
                raise ConnectionError(f"no tunnel: {answer[:80]!r}")
            await writer.start_tls(self._tls, server_hostname=host)
        return reader, writer

    async def ask(self, asks: list[Ask], patience_s: float) -> list[Answer]:
        """Send the requests, one behind the other, and read the answers. A broken connection ends all that follow.

        `patience_s`: so long may nothing arrive.
        """
        answers = [Answer() for _ in asks]
        try:
            if self._writer is None:
                await self.connect(asks[0].host)
            self._writing = asyncio.create_task(self._write(self._script(asks)))
            for ask, answer in zip(asks, answers, strict=True):
                answer.sent = not (ask.leaving and ask.leaving.in_request)
                await self._one(ask, answer, patience_s)
                if not answer.clean or ask.sending.closes:
                    self.close()
                if self._writer is None:
                    break
        except _BROKEN as error:
            answers[0].reason = answers[0].reason or repr(error)
            self.close()
        if self._writing is not None and not self._writing.done():
            self.close()  # all is answered, and not all of it was wanted
        return answers

    async def _one(self, ask: Ask, answer: Answer, patience_s: float) -> None:
        leaving = ask.leaving
        if leaving is not None and leaving.in_request:
            if self._writing is not None:
                await asyncio.wait([self._writing], timeout=patience_s)
            await asyncio.sleep(0.001)
            self._leave(answer, leaving.how)
            return
        stays = leaving is None or leaving.after_s is None
        try:
            async with asyncio.timeout(patience_s if stays else leaving.after_s) as limit:
                self._limit, self._patience_s = (limit if stays else None), patience_s
                await self._errands(ask, answer)
                await self._read(ask, answer)
        except TimeoutError:
            answer.hung = stays
            answer.reason = await self.stuck(answer) if stays else ""
            self._leave(answer, leaving.how if leaving else "close")
        except _BROKEN as error:
            answer.reason = repr(error)
            self.close()

    async def stuck(self, answer: Answer) -> str:
        """What both ends of the connection hold, for an answer that does not come."""
        reader, writer = self._reader, self._writer
        if reader is None or writer is None:
            return "no connection"
        unread = len(reader._buffer)  # type: ignore[attr-defined]
        own = f"{len(answer.body)} bytes came, {unread} unread, reading {writer.transport.is_reading()}"  # type: ignore[attr-defined]
        sent = f"all sent {self._writing is None or self._writing.done()}, errands {answer.errands}"
        port = writer.get_extra_info("sockname")[1]
        return f"{own}, {sent}; the kernel: {_sockets(port)}; the proxy: {await self._look(port)}"

    # -- what is sent

    def _script(self, asks: list[Ask]) -> list[Step]:
        """Everything that is written for these requests; a client that leaves in its own sends a part of it."""
        parts = []
        for ask in asks:
            head, body = self._message(ask)
            sending = ask.sending
            if ask.leaving and ask.leaving.in_request:
                end = random.Random(ask.number).randint(1, len(head) + len(body) - 1)
                head, body = head[:end], body[: max(0, end - len(head))]
                sending = replace(sending, expects="")
            ahead = b"".join(errand.message(f"127.0.0.1:{self._port}", self._token) for errand in self._asked(ask))
            parts.append((ahead + head, body, sending))
        return script(parts)

    def _asked(self, ask: Ask) -> tuple[Errand, ...]:
        """What else is asked in front of a request."""
        return ask.sending.errands if self._entrance == "listener" else ()

    def _message(self, ask: Ask) -> tuple[bytes, bytes]:
        body, is_old = ask.body(), ask.sending.old and self._entrance == "listener"
        own = f"127.0.0.1:{self._port}"
        host = {"base": own, "listener": own, "tunnel": self._host}.get(self._entrance, ask.host)
        target = f"http://{host}{ask.path}" if self._entrance == "absolute" else ask.path
        chunked = ask.chunked and not is_old
        framing = ("transfer-encoding", "chunked") if chunked else ("content-length", str(len(body)))
        fields = [("host", host), *ask.fields(), *ask.sending.fields, framing]
        head = f"POST {target} HTTP/1.{0 if is_old else 1}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
        if chunked:
            half = len(body) // 2
            parts = (body[:half], body[half:])
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"
        return head.encode(), body

    async def _write(self, steps: list[Step]) -> None:
        """Send all of it; that the connection is lost is noticed by who reads."""
        writer = self._writer
        assert writer is not None
        with contextlib.suppress(OSError):
            for step in steps:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    await self._wanted.wait()
                    self._wanted.clear()

    # -- what is read

    async def _errands(self, ask: Ask, answer: Answer) -> None:
        """The answers to what was asked in front of it."""
        for errand in self._asked(ask):
            told = Answer()
            await self._read(replace(ask, leaving=None, slow_s=0.0), told, bodiless=errand.method == "HEAD")
            answer.errands += 1
            wrong = told.status != errand.status or b"canary-" in told.body
            if wrong or self._writer is None:
                kept = "" if self._writer else " and the connection closed"
                answer.faults.append(f"{errand.method} {errand.target}: {told.status}{kept} {bytes(told.body)[:200]!r}")
            if self._writer is None:
                raise ConnectionError("closed behind an errand")

    async def _read(self, ask: Ask, answer: Answer, *, bodiless: bool = False) -> None:
        assert self._reader is not None
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        answer.fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        answer.status = int(lines[0].split(" ")[1])
        if answer.status < 200:
            answer.status = 0
            if ask.sending.expects == "waits":
                self._wanted.set()
            await self._read(ask, answer)
            return
        if bodiless:
            answer.clean = True
        else:
            await self._body(ask, answer)
        if answer.fields.get("connection", "").lower() == "close":
            self.close()

    async def _body(self, ask: Ask, answer: Answer) -> None:
        reader, length = self._reader, answer.fields.get("content-length")
        assert reader is not None
        if answer.fields.get("transfer-encoding") == "chunked":
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                await self._take(ask, answer, size)
                await reader.readexactly(2)
            await reader.readuntil(b"\r\n")
        elif length is not None:
            await self._take(ask, answer, int(length))
        elif answer.status not in (204, 304):
            while data := await reader.read(65_536):
                answer.body += data
            self.close()
        answer.clean = True

    async def _take(self, ask: Ask, answer: Answer, size: int) -> None:
        """A piece of the body, in no hurry where the client is slow."""
        assert self._reader is not None
        leaving = ask.leaving
        while size:
            if leaving is not None and leaving.pieces is not None and len(answer.body) > leaving.pieces * 100:
                self._leave(answer, leaving.how)
                raise ConnectionError("left")
            data = await self._reader.read(min(size, 512) if ask.slow_s else size)
            if not data:
                raise asyncio.IncompleteReadError(b"", size)
            answer.body += data
            size -= len(data)
            if self._limit is not None:
                self._limit.reschedule(asyncio.get_running_loop().time() + self._patience_s)
            if ask.slow_s:
                await asyncio.sleep(ask.slow_s)

    def _leave(self, answer: Answer, how: str) -> None:
        answer.left = True
        self._stop_writing()
        writer = self._writer
        if writer is None:
            return
        if how == "half" and writer.can_write_eof():
            writer.write_eof()
            asyncio.get_running_loop().call_later(0.1, writer.close)
            self._writer = None
            return
        if how == "reset":
            raw = writer.get_extra_info("socket")  # a TLS connection that was lost meanwhile has none any more
            with contextlib.suppress(OSError):
                if raw is not None:
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._stop_writing()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _stop_writing(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
        self._wanted.clear()
