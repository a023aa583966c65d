"""A scripted upstream on raw sockets: plays exact bytes, splits, closes, resets and silences, and records requests.

Each connection plays one script, a list of steps; the n-th connection plays the n-th script, and the last script serves
all further connections. A script that ends closes its connection.

    async with RawServer([Expect(), Send(response(200, b"{}"))]) as server:
        ...  # server.url, server.requests, server.connections
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

type Pairs = Sequence[tuple[bytes, bytes]]


@dataclass
class Request:
    """A request as it arrived. `headers` are raw and in order; `body` is without its transfer coding."""

    method: str
    target: str
    version: str
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    head: bytes = b""
    connection: int = 0

    def header(self, name: str) -> str | None:
        """The first value of a header, or None."""
        return next((v.decode("latin-1") for k, v in self.headers if k.lower() == name.lower().encode()), None)

    def all(self, name: str) -> list[str]:
        """Every value of a header, in order."""
        return [v.decode("latin-1") for k, v in self.headers if k.lower() == name.lower().encode()]


@dataclass
class Connection:
    """One accepted connection while its script runs."""

    index: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: "RawServer"
    received: bytes = b""

    @property
    def socket(self) -> socket.socket:
        """The socket below, also below TLS."""
        found: socket.socket = self.writer.get_extra_info("socket")
        return found

    async def request(self) -> Request:
        """Read one whole request. Raises `asyncio.IncompleteReadError` when the client leaves."""
        made = parse_head(await self.reader.readuntil(b"\r\n\r\n"))
        made.connection = self.index
        if made.method != "CONNECT":
            made.body = await self._body(made)
        self.server.requests.append(made)
        return made

    async def _body(self, request: Request) -> bytes:
        if "chunked" in (request.header("transfer-encoding") or ""):
            return await self._chunks()
        return await self.reader.readexactly(int(request.header("content-length") or 0))

    async def _chunks(self) -> bytes:
        parts = []
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            parts.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readline()
        return b"".join(parts)

    def reset(self) -> None:
        """Send RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


type Step = Callable[[Connection], Awaitable[object]]


@dataclass
class Expect:
    """Read one request; `check`, if given, may assert on it."""

    check: Callable[[Request], object] | None = None

    async def __call__(self, connection: Connection) -> None:
        request = await connection.request()
        if self.check is not None:
            self.check(request)


@dataclass
class ExpectHead:
    """Read a request's head and leave its body unread."""

    async def __call__(self, connection: Connection) -> None:
        request = parse_head(await connection.reader.readuntil(b"\r\n\r\n"))
        request.connection = connection.index
        connection.server.requests.append(request)


@dataclass
class Send:
    """Send bytes, in pieces of `split` bytes if given: each piece is a segment of its own."""

    data: bytes
    split: int | None = None

    async def __call__(self, connection: Connection) -> None:
        size = self.split or max(1, len(self.data))
        for start in range(0, len(self.data), size):
            connection.writer.write(self.data[start : start + size])
            await connection.writer.drain()
            await asyncio.sleep(0)


@dataclass
class Close:
    """Close in order (FIN, with TLS a close_notify before it)."""

    async def __call__(self, connection: Connection) -> None:
        connection.writer.close()
        with contextlib.suppress(OSError):
            await connection.writer.wait_closed()


@dataclass
class Reset:
    """Close with RST."""

    async def __call__(self, connection: Connection) -> None:
        connection.reset()


@dataclass
class Stall:
    """Do nothing until `event`, or until the client leaves."""

    event: asyncio.Event | None = None

    async def __call__(self, connection: Connection) -> None:
        if self.event is not None:
            await self.event.wait()
        else:
            await ClientGone()(connection)


@dataclass
class Signal:
    """Tell the test that the script has come this far."""

    event: asyncio.Event

    async def __call__(self, connection: Connection) -> None:
        self.event.set()


@dataclass
class ClientGone:
    """Wait until the client closes or resets, then set `event` if given. What it sends meanwhile is kept."""

    event: asyncio.Event | None = None

    async def __call__(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):
            while data := await connection.reader.read(65536):
                connection.received += data
        if self.event is not None:
            self.event.set()


@dataclass
class PauseReading:
    """Take nothing more from the socket, so that the client's writes back up."""

    async def __call__(self, connection: Connection) -> None:
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]


@dataclass
class Again:
    """Repeat steps until the client leaves: a server with keep-alive."""

    steps: Sequence[Step]

    async def __call__(self, connection: Connection) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await play(self.steps, connection)


async def play(steps: Sequence[Step], connection: Connection) -> None:
    """Run steps in order."""
    for step in steps:
        await step(connection)


@dataclass
class RawServer:
    """The scripted server. `connections` counts accepted connections, `live` those not yet closed."""

    scripts: tuple[Sequence[Step], ...]
    tls: ssl.SSLContext | None
    host: str
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    live: set[asyncio.Task[None]] = field(default_factory=set)
    errors: list[BaseException] = field(default_factory=list)
    port: int = 0
    _server: asyncio.Server | None = None

    def __init__(self, *scripts: Sequence[Step], tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.scripts = scripts
        self.tls = tls
        self.host = host
        self.requests = []
        self.connections = 0
        self.live = set()
        self.errors = []
        self._server = None

    @property
    def url(self) -> str:
        """The server's origin, by address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self.live):
            task.cancel()
        await asyncio.gather(*self.live, return_exceptions=True)
        await self._server.wait_closed()
        if self.errors and exc is None:
            raise self.errors[0]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        lowest = writer.transport
        self.live.add(task)
        index, self.connections = self.connections, self.connections + 1
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(index, reader, writer, self)
        try:
            await play(self.scripts[min(index, len(self.scripts) - 1)], connection)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client left: what it saw is the test's concern
        except asyncio.CancelledError:
            pass  # the server is being closed
        except Exception as exc:
            self.errors.append(exc)
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(0.2):
                    await writer.wait_closed()
            lowest.abort()  # also what a failed upgrade to TLS left open
            self.live.discard(task)


def parse_head(data: bytes) -> Request:
    """A request head (up to and with its blank line) as a `Request` without body."""
    lines = data.split(b"\r\n")
    method, target, version = lines[0].decode("latin-1").split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines[1:] if line)]
    return Request(method, target, version, headers, head=data)


def head(status: int = 200, headers: Pairs = (), reason: str = "OK") -> bytes:
    """A response head with exactly these headers."""
    lines = [f"HTTP/1.1 {status} {reason}".encode(), *(name + b": " + value for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def response(status: int = 200, body: bytes = b"", headers: Pairs = ((b"Content-Type", b"application/json"),)) -> bytes:
    """A whole response with Content-Length."""
    return head(status, [*headers, (b"Content-Length", str(len(body)).encode())]) + body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def event_head() -> bytes:
    """The head of a chunked event stream."""
    return head(200, [(b"Content-Type", b"text/event-stream"), (b"Transfer-Encoding", b"chunked")])


def event_stream(*events: bytes) -> bytes:
    """A whole event stream, one chunk per event."""
    return event_head() + b"".join(map(chunk, events)) + LAST_CHUNK


@contextlib.contextmanager
def closed_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port on which nobody listens: held by a bound socket that never listens."""
    with socket.socket() as holder:
        holder.bind((host, 0))
        yield holder.getsockname()[1]
