"""A load generator: raw asyncio HTTP/1.1 clients, keep-alive or a new connection for each request."""

import asyncio
import contextlib
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


async def _read_answer(reader: asyncio.StreamReader, start: float, result: Result) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        result.errors += 1
    if b"transfer-encoding: chunked" in head:
        data = await reader.read(65_536)
        result.first.append(time.perf_counter() - start)
        while not data.endswith(b"0\r\n\r\n"):
            more = await reader.read(65_536)
            if not more:
                raise ConnectionError("cut")
            data = data[-8:] + more
    else:
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        result.first.append(time.perf_counter() - start)
    result.whole.append(time.perf_counter() - start)


async def _worker(job: Job, count: int, result: Result) -> None:
    message = job.message()
    reader = writer = None
    for _ in range(count):
        start = time.perf_counter()
        try:
            if writer is None or job.new_connection:
                if writer is not None:
                    writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", job.port)
            writer.write(message)
            await _read_answer(reader, start, result)
        except (ConnectionError, asyncio.IncompleteReadError):
            result.errors += 1
            writer = None
    if writer is not None:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


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
