"""A load generator: raw asyncio HTTP/1.1 clients, keep-alive or a new connection for each request."""

import asyncio
import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """What is asked for: where, how often, by how many at once."""

    port: int
    host: str
    path: str
    model: str
    requests: int
    concurrency: int
    stream: bool = False
    new_connection: bool = False

    def message(self) -> bytes:
        stream = ',"stream":true' if self.stream else ""
        body = '{"model":"%s"%s,"messages":[{"role":"user","content":"%s"}]}' % (self.model, stream, "q" * 200)
        head = f"POST {self.path} HTTP/1.1\r\nhost: {self.host}\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


@dataclass
class Result:
    """Latencies in seconds, of whole answers and of first body bytes."""

    seconds: float = 0.0
    whole: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    errors: int = 0

    @property
    def rate(self) -> float:
        return len(self.whole) / self.seconds

    def percentile(self, share: float, values: list[float] | None = None) -> float:
        ordered = sorted(self.whole if values is None else values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


class _Client(asyncio.Protocol):
    """One client, one request after another.

    A protocol and not a pair of streams: those cost as much per request as a fast proxy does, and what generates the
    load must not be what limits it.
    """

    def __init__(self, job: Job, count: int, result: Result) -> None:
        self._job = job
        self._message = job.message()
        self._left = count
        self._result = result
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[object] | None = None
        self._asked = False
        self.done: asyncio.Future[None] = self._loop.create_future()

    def begin(self) -> None:
        """Send the next request, on a connection that is there or on a new one."""
        if not self._left:
            self.done.set_result(None)
            if self._transport is not None:
                self._transport.close()
            return
        self._left -= 1
        self._asked = True
        self._data = b""
        self._ending: tuple[int, bytes] | None = None
        self._start = time.perf_counter()
        if self._transport is None:
            self._opening = asyncio.create_task(self._open())
        else:
            self._transport.write(self._message)

    async def _open(self) -> None:
        try:
            await self._loop.create_connection(lambda: self, "127.0.0.1", self._job.port)
        except OSError:
            self._failed()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._message)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class's signature
        self._transport = None
        if self._asked:
            self._failed()

    def data_received(self, data: bytes) -> None:
        self._data = data = self._data + data
        if self._ending is None:
            head, _, body = data.partition(b"\r\n\r\n")
            if not body:
                return
            self._ending = self._ending_of(head.lower())
            self._result.first.append(time.perf_counter() - self._start)
        size, last = self._ending
        if len(data) >= size and data.endswith(last):
            self._whole()
        elif last:
            self._data = data[-8:]

    def _ending_of(self, head: bytes) -> tuple[int, bytes]:
        """How many bytes the answer has at least, and what it ends with."""
        if not head.startswith(b"http/1.1 200"):
            self._result.errors += 1
        if b"transfer-encoding: chunked" in head:
            return 0, b"0\r\n\r\n"
        return len(head) + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]), b""

    def _whole(self) -> None:
        self._asked = False
        self._result.whole.append(time.perf_counter() - self._start)
        if self._job.new_connection and self._transport is not None:
            self._transport.abort()
            self._transport.set_protocol(asyncio.Protocol())  # what is said of the old one is no news
            self._transport = None
        self.begin()

    def _failed(self) -> None:
        self._asked = False
        self._result.errors += 1
        self.begin()


async def _worker(job: Job, count: int, result: Result) -> None:
    client = _Client(job, count, result)
    client.begin()
    await client.done


async def run(job: Job) -> Result:
    """Do the job once."""
    result = Result()
    each = job.requests // job.concurrency
    start = time.perf_counter()
    await asyncio.gather(*(_worker(job, each, result) for _ in range(job.concurrency)))
    result.seconds = time.perf_counter() - start
    return result


async def hold(job: Job, count: int) -> list[asyncio.StreamWriter]:
    """Open streams and leave them open after their first byte."""
    writers = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", job.port)
        writer.write(job.message())
        await reader.readuntil(b"data:")
        writers.append(writer)
    return writers
