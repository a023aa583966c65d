"""A real mitmproxy master inside the test's event loop, with real sockets, and plain clients to talk to it."""

import asyncio
import os
import ssl
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
from mitmproxy.options import Options

with warnings.catch_warnings():
    # ldap3, which mitmproxy imports for its proxyauth, uses two old names of pyasn1.
    warnings.simplefilter("ignore", DeprecationWarning)
    from mitmproxy.tools.dump import DumpMaster

LIMIT_S = 10
"""No single step of a test takes longer; only reached when something hangs."""


class Started:
    def __init__(self) -> None:
        self.event = asyncio.Event()

    def running(self) -> None:
        self.event.set()


class Proxy:
    """A running master: `master`, `port`, `ca` (path of the certificate authority), `handlers` (live clients)."""

    def __init__(self, master: DumpMaster, confdir: Path) -> None:
        self.master = master
        self.ca = confdir / "mitmproxy-ca-cert.pem"
        self.server = master.addons.get("proxyserver")
        self.port: int = self.server.listen_addrs()[0][1]

    @property
    def handlers(self) -> list[Any]:
        return list(self.server.connections.values())

    def client_tls(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(list(protocols))
        return context


@asynccontextmanager
async def running_proxy(confdir: Path, *addons: object, **options: Any) -> AsyncIterator[Proxy]:
    """Start a master with these addons and options on an ephemeral port of 127.0.0.1; leave nothing behind.

    `confdir` holds the certificate authority: share one over a session, creating it takes a while.
    """
    settings: dict[str, Any] = {"connection_strategy": "lazy", **options}
    master = DumpMaster(
        Options(confdir=str(confdir), listen_host="127.0.0.1", listen_port=0), with_termlog=False, with_dumper=False
    )
    master.options.update(**settings)
    started = Started()
    master.addons.add(*addons, started)
    run = asyncio.create_task(master.run())
    try:
        waiting = asyncio.create_task(started.event.wait())
        await asyncio.wait((run, waiting), return_when=asyncio.FIRST_COMPLETED, timeout=LIMIT_S)
        waiting.cancel()
        if run.done():
            run.result()
        yield Proxy(master, confdir)
    finally:
        await _stop(master, run)


async def _stop(master: DumpMaster, run: "asyncio.Task[None]") -> None:
    master.shutdown()
    await asyncio.wait_for(run, LIMIT_S)
    server = master.addons.get("proxyserver")
    # The end of the process closes these in real life.
    await server.servers.update([])
    for handler in list(server.connections.values()):
        for io in list(handler.transports.values()):
            if io.handler is not None:
                io.handler.cancel()
    await settle(lambda: not server.connections)
    await settle(lambda: not _others())


async def settle(condition: Callable[[], bool]) -> None:
    """Let the event loop run until the condition holds."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - mitmproxy offers no event for these
            await asyncio.sleep(0.001)


def _others() -> list["asyncio.Task[Any]"]:
    """Tasks that are neither the test nor its fixtures."""
    current = asyncio.current_task()
    return [
        task
        for task in asyncio.all_tasks()
        if task is not current and not task.done() and "created in" in task.get_name()
    ]


def open_files() -> set[str]:
    """Descriptors of this process, by what they point to."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except FileNotFoundError:
            continue
    return found


@contextmanager
def no_leaked_sockets() -> Iterator[None]:
    """Fail when a socket is still open that was not before."""
    before = open_files()
    yield
    leaked = sorted(name for name in open_files() - before if "socket" in name)
    assert not leaked


class H1Client:
    """A raw HTTP/1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), LIMIT_S)

    async def chunk(self) -> bytes:
        """One piece of a chunked body; b"" is its end."""
        size = int(await asyncio.wait_for(self.reader.readline(), LIMIT_S), 16)
        data = await asyncio.wait_for(self.reader.readexactly(size + 2), LIMIT_S)
        return data[:-2]

    async def exactly(self, size: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(size), LIMIT_S)

    async def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        return await asyncio.wait_for(self.reader.read(-1), LIMIT_S)

    async def close(self) -> None:
        self.writer.close()
        try:
            await asyncio.wait_for(self.writer.wait_closed(), LIMIT_S)
        except (ConnectionError, ssl.SSLError):
            return


@asynccontextmanager
async def h1_client(proxy: Proxy, *, read_limit: int = 2**16) -> AsyncIterator[H1Client]:
    client = H1Client(*await asyncio.open_connection("127.0.0.1", proxy.port, limit=read_limit))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def tunnel(proxy: Proxy, host: str, *protocols: str) -> AsyncIterator[H1Client]:
    """CONNECT to the host and speak TLS with it, offering these ALPN protocols."""
    async with h1_client(proxy) as client:
        client.send(b"CONNECT %s:443 HTTP/1.1\r\nhost: %s:443\r\n\r\n" % (host.encode(), host.encode()))
        assert b" 200 " in await client.head()
        await asyncio.wait_for(client.writer.start_tls(proxy.client_tls(*protocols), server_hostname=host), LIMIT_S)
        yield client


class H2Client:
    """An HTTP/2 connection; `grant=False` leaves the flow-control windows as they are."""

    def __init__(self, raw: H1Client, host: str, *, grant: bool = True) -> None:
        self.raw = raw
        self.host = host
        self.grant = grant
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.heads: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.reset: dict[int, int] = {}

    def start(self, window: int | None = None) -> None:
        if window is not None:
            self.conn.local_settings = h2.settings.Settings(
                client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
            )
        self.conn.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.raw.send(self.conn.data_to_send())

    def request(self, path: str, method: str = "GET", body: bytes = b"") -> int:
        stream_id = self.conn.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", self.host), (":path", path)]
        self.conn.send_headers(stream_id, head, end_stream=not body)
        if body:
            self.conn.send_data(stream_id, body, end_stream=True)
        self.bodies[stream_id] = b""
        self.flush()
        return stream_id

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read from the connection until the condition holds."""
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                data = await self.raw.reader.read(2**16)
                assert data, "the proxy closed the connection"
                for event in self.conn.receive_data(data):
                    self._take(event)
                self.flush()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ResponseReceived():
                self.heads[event.stream_id] = dict(event.headers)
            case h2.events.DataReceived():
                self.bodies[event.stream_id] += event.data
                if self.grant and event.flow_controlled_length:
                    self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamReset():
                self.reset[event.stream_id] = int(event.error_code)
        if isinstance(event, h2.events.StreamEnded):
            self.ended.add(event.stream_id)


@asynccontextmanager
async def h2_client(
    proxy: Proxy, host: str = "models.test", *, grant: bool = True, window: int | None = None
) -> AsyncIterator[H2Client]:
    async with tunnel(proxy, host, "h2") as raw:
        client = H2Client(raw, host, grant=grant)
        client.start(window)
        yield client


@asynccontextmanager
async def origin(answer: Callable[[bytes], bytes]) -> AsyncIterator[int]:
    """A plain server: `answer` maps a request's head to the bytes to send; yields its port."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while True:
                writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()
