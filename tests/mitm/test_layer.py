"""Streamed responses in a real proxy with real sockets: arrival, framing, back-pressure, cancellation, neighbours."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from mitmproxy import exceptions
from mitmproxy.http import HTTPFlow, Response
from mitmproxy.proxy.server import TimeoutWatchdog

from combos.mitm.internals import HttpStream, connection_handler, keep_client_open
from combos.mitm.layer import (
    TASK_NAME,
    StreamedHttpLayer,
    StreamedResponses,
    ToStream,
    answer_whole,
    hold_request,
    respond_with,
)
from combos.mitm.writer import Responder, ResponseWriter
from mitm.harness import (
    LIMIT_S,
    H1Client,
    Proxy,
    h1_client,
    h2_client,
    no_leaked_sockets,
    origin,
    running_proxy,
    settle,
    tunnel,
)

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


@pytest.fixture
async def start(confdir: Path) -> AsyncIterator[Start]:
    """Starts proxies; afterwards nothing of them may be left: no task, no socket."""
    before = asyncio.all_tasks()
    with no_leaked_sockets():
        async with AsyncExitStack() as stack:

            async def run(*addons: object, **options: Any) -> Proxy:
                return await stack.enter_async_context(running_proxy(confdir, StreamedResponses(), *addons, **options))

            yield run
        await settle(lambda: not {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()})


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


# --- arrival and framing


async def test_chunks_arrive_as_they_are_produced(start: Start) -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def stepwise(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM)
        for number, step in enumerate(steps):
            await step.wait()
            await writer.chunk(b"%d" % number)
        await writer.end()

    proxy = await start(Answering(stepwise))
    async with h1_client(proxy) as client:
        client.send(GET)
        head = await client.head()
        assert head == b"HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        for number, step in enumerate(steps):
            step.set()
            assert await client.chunk() == b"%d" % number
        assert await client.chunk() == b""


async def test_one_connection_carries_ours_and_ordinary_requests_in_turn(start: Start) -> None:
    async with origin(plain_answer) as port:
        proxy = await start(Answering(greet))
        async with h1_client(proxy) as client:
            for _ in range(3):
                client.send(GET)
                await client.head()
                assert await body_of(client) == b"onetwothree"
                client.send(b"GET http://127.0.0.1:%d/theirs HTTP/1.1\r\nhost: x\r\n\r\n" % port)
                assert await client.head() == b"HTTP/1.1 200 Fine\r\nX-From: origin\r\ncontent-length: 5\r\n\r\n"
                assert await client.exactly(5) == b"plain"


async def test_an_event_stream_of_a_server_passes_unchanged(start: Start) -> None:
    raw = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\ndata:\r\n0\r\n\r\n"
    )
    async with origin(lambda request: raw) as port:
        proxy = await start(
            Answering(greet), Hooks(responseheaders=lambda flow: setattr(flow.response, "stream", True))
        )
        async with h1_client(proxy) as client:
            client.send(b"GET http://127.0.0.1:%d/theirs HTTP/1.1\r\nhost: x\r\n\r\n" % port)
            assert await client.exactly(len(raw)) == raw


async def test_a_whole_response_keeps_the_connection(start: Start) -> None:
    proxy = await start(Answering(whole))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            assert (
                await client.head() == b"HTTP/1.1 200 \r\nContent-Type: application/json\r\ncontent-length: 7\r\n\r\n"
            )
            assert await client.exactly(7) == b'{"a":1}'


async def test_an_announced_length_is_kept(start: Start) -> None:
    async def announced(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ((b"Content-Length", b"6"),))
        await writer.chunk(b"abc")
        await writer.chunk(b"def")
        await writer.end()

    proxy = await start(Answering(announced))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            assert await client.head() == b"HTTP/1.1 200 \r\nContent-Length: 6\r\n\r\n"
            assert await client.exactly(6) == b"abcdef"


async def test_first_and_last_pieces_may_go_with_head_and_end(start: Start) -> None:
    async def short(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM, b"one")
        await writer.chunk(b"two")
        await writer.end(b"three")

    proxy = await start(Answering(short))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            await client.head()
            assert [await client.chunk() for _ in range(4)] == [b"one", b"two", b"three", b""]


async def test_an_http10_client_reads_until_close(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        client.send(b"GET http://models.test/ours HTTP/1.0\r\n\r\n")
        assert await client.rest() == b"HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\n\r\nonetwothree"


@pytest.mark.parametrize("responder", [greet, whole])
async def test_head_gets_no_body_and_keeps_the_connection(start: Start, responder: Responder) -> None:
    proxy = await start(Answering(responder))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(b"HEAD http://models.test/ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 200 \r\nContent-Type: ")
        client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 200 \r\n")


async def test_aiohttp_reads_it_and_reuses_the_connection(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get("http://models.test/ours", proxy=f"http://127.0.0.1:{proxy.port}") as answer:
                assert await answer.read() == b"onetwothree"
        assert len(proxy.handlers) == 1


# --- where it works


async def test_inside_connect_and_tls(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with tunnel(proxy, "models.test", "http/1.1") as client:
        for _ in range(2):
            client.send(b"GET /ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 200 \r\n")
            assert await body_of(client) == b"onetwothree"


async def test_one_http2_connection_carries_ours_and_ordinary_streams(start: Start) -> None:
    async with origin(plain_answer) as port:

        def redirect(flow: HTTPFlow) -> None:
            if flow.request.path == "/theirs":
                flow.request.scheme, flow.request.host, flow.request.port = "http", "127.0.0.1", port

        proxy = await start(Answering(greet), Hooks(request=redirect))
        async with h2_client(proxy) as client:
            streams = [client.request(path) for path in ("/ours", "/theirs", "/ours", "/theirs", "/ours")]
            await client.until(lambda: client.ended >= set(streams))
            assert [client.bodies[stream] for stream in streams] == [b"onetwothree", b"plain"] * 2 + [b"onetwothree"]
            assert client.heads[streams[0]] == {":status": "200", "content-type": "text/event-stream"}


async def test_many_streams_at_once(start: Start) -> None:
    everybody = asyncio.Barrier(60)

    async def together(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ())
        await everybody.wait()
        for _ in range(5):
            await writer.chunk(flow.request.path.encode())
        await writer.end()

    proxy = await start(Answering(together))
    async with h2_client(proxy) as client:
        streams = {client.request(f"/ours/{number}"): number for number in range(60)}
        await client.until(lambda: client.ended >= set(streams))
        for stream, number in streams.items():
            assert client.bodies[stream] == f"/ours/{number}".encode() * 5


async def test_reverse_mode(start: Start) -> None:
    async with origin(plain_answer) as port:
        proxy = await start(Answering(greet), mode=[f"reverse:http://127.0.0.1:{port}"])
        async with h1_client(proxy) as client:
            client.send(b"GET /ours HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.head()
            assert await body_of(client) == b"onetwothree"
            client.send(b"GET /theirs HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.head()
            assert await client.exactly(5) == b"plain"


async def test_upstream_mode_needs_no_upstream_proxy(start: Start) -> None:
    proxy = await start(Answering(greet), mode=["upstream:http://127.0.0.1:1"])
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    async with h2_client(proxy) as second:
        stream = second.request("/ours")
        await second.until(lambda: stream in second.ended)
        assert second.bodies[stream] == b"onetwothree"


async def test_origin_form_on_the_proxy_port(start: Start) -> None:
    proxy = await start(Answering(whole))
    async with h1_client(proxy) as client:
        client.send(b"GET /ours HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % proxy.port)
        assert (await client.head()).startswith(b"HTTP/1.1 200 \r\n")


async def test_a_client_that_speaks_no_http_is_left_alone(start: Start) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        await client.head()
        client.send(b"\0\1\2\3")
        assert await client.rest() == b"\0\1\2\3"
    server.close()
    await server.wait_closed()


# --- back-pressure


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


async def test_a_slow_http1_client_holds_the_writer_back(start: Start) -> None:
    flood = Flood(24 * 2**20)
    proxy = await start(Answering(flood))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**14)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", proxy.port))
    client = H1Client(*await asyncio.open_connection(sock=sock, limit=2**14))
    client.send(GET)
    assert await stalled(flood) < flood.total / 2  # what the kernel's socket buffers take
    await client.head()
    assert len(await client.exactly(flood.total)) == flood.total
    await client.close()


async def test_an_http2_window_holds_the_writer_back_until_it_opens(start: Start) -> None:
    flood = Flood(2**20)
    proxy = await start(Answering(flood))
    async with h2_client(proxy, grant=False) as client:
        stream = client.request("/ours")
        await client.until(lambda: len(client.bodies[stream]) == 65535)
        assert await stalled(flood) <= 2**17
        client.conn.increment_flow_control_window(2**20)
        client.conn.increment_flow_control_window(2**20, stream)
        client.flush()
        await client.until(lambda: stream in client.ended)
        assert len(client.bodies[stream]) == flood.total


async def test_a_closed_http2_window_does_not_hold_back_other_streams(start: Start) -> None:
    async def both(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await (Flood(2**20) if flow.request.path == "/ours/big" else greet)(flow, writer)

    proxy = await start(Answering(both))
    async with h2_client(proxy, grant=False, window=2**12) as client:
        client.request("/ours/big")
        small = client.request("/ours/small")
        await client.until(lambda: small in client.ended)
        assert client.bodies[small] == b"onetwothree"


# --- the client leaves


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


@pytest.mark.parametrize(("name", "body"), [("before the head", forever), ("mid-stream", mid_stream)])
async def test_a_disconnect_cancels_at_once(start: Start, name: str, body: Responder) -> None:
    watched = Watched(body)
    proxy = await start(Answering(watched))
    async with h1_client(proxy) as client:
        client.send(GET)
        await asyncio.wait_for(watched.entered.wait(), LIMIT_S)
        if name == "mid-stream":
            await client.head()
            assert await client.chunk() == b"first"
    await watched.was_cancelled()


async def test_a_disconnect_cancels_a_writer_that_waits_for_the_socket(start: Start) -> None:
    flood = Flood(2**26)
    watched = Watched(flood)
    proxy = await start(Answering(watched))
    async with h1_client(proxy, read_limit=2**12) as client:
        client.send(GET)
        await stalled(flood)
    await watched.was_cancelled()


@pytest.mark.parametrize("hook", ["responseheaders", "response"])
async def test_a_disconnect_cancels_while_a_hook_holds_the_stream(start: Start, hook: str) -> None:
    watched, pausing = Watched(greet), Pausing(hook)
    proxy = await start(Answering(watched), pausing)
    async with h1_client(proxy) as client:
        client.send(GET)
        await asyncio.wait_for(pausing.entered.wait(), LIMIT_S)
    await watched.was_cancelled()
    assert responders() == []
    pausing.release.set()


@pytest.mark.parametrize(("name", "body"), [("before", forever), ("mid-stream", mid_stream), ("window", flooding)])
async def test_a_stream_reset_cancels_that_stream_alone(start: Start, name: str, body: Responder) -> None:
    watched = Watched(body)

    async def choose(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await (greet if flow.request.path == "/ours/good" else watched)(flow, writer)

    proxy = await start(Answering(choose))
    async with h2_client(proxy, grant=False) as client:
        doomed = client.request("/ours/doomed")
        await asyncio.wait_for(watched.entered.wait(), LIMIT_S)
        if name == "mid-stream":
            await client.until(lambda: client.bodies[doomed] == b"first")
        if name == "window":
            await client.until(lambda: len(client.bodies[doomed]) == 65535)
        client.conn.reset_stream(doomed, CANCEL)
        client.conn.increment_flow_control_window(2**16)
        client.flush()
        await watched.was_cancelled()
        good = client.request("/ours/good")
        await client.until(lambda: good in client.ended)
        assert client.bodies[good] == b"onetwothree"


async def test_a_lost_http2_connection_cancels_all_its_streams(start: Start) -> None:
    entered = []
    cancelled = []

    async def wait(flow: HTTPFlow, writer: ResponseWriter) -> None:
        entered.append(flow)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(flow)

    proxy = await start(Answering(wait))
    async with h2_client(proxy) as client:
        for _ in range(20):
            client.request("/ours")
        await settle(lambda: len(entered) == 20)
    await settle(lambda: len(cancelled) == 20)


async def test_any_task_that_writes_learns_that_the_client_is_gone(start: Start) -> None:
    outcome: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    gone = asyncio.Event()

    async def child(writer: ResponseWriter) -> None:
        await gone.wait()
        try:
            await writer.chunk(b"late")
        except asyncio.CancelledError as error:
            outcome.set_result(error)

    late: list[asyncio.Task[None]] = []

    async def delegating(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ())
        late.append(asyncio.create_task(child(writer)))
        await asyncio.Event().wait()

    watched = Watched(delegating)
    proxy = await start(Answering(watched))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
    await watched.was_cancelled()
    gone.set()
    assert isinstance(await asyncio.wait_for(outcome, LIMIT_S), asyncio.CancelledError)
    await late[0]


async def test_work_after_the_end_outlives_the_client(start: Start) -> None:
    left, written_down = asyncio.Event(), asyncio.Event()

    async def recording(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await greet(flow, writer)
        await left.wait()
        written_down.set()

    proxy = await start(Answering(recording))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    await settle(lambda: not proxy.handlers)
    left.set()
    await asyncio.wait_for(written_down.wait(), LIMIT_S)


async def test_pieces_for_a_stream_that_is_gone_are_acknowledged(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
        handler = proxy.handlers[0]
        layer = next(layer for layer in handler.layer.context.layers if isinstance(layer, StreamedHttpLayer))
        stale = layer.context.fork()
        event = ToStream(HttpStream(stale, 1), ())  # type: ignore[arg-type]
        await handler.server_event(event)
        assert event.handled


# --- failures of the responder


async def broken_before(flow: HTTPFlow, writer: ResponseWriter) -> None:
    raise ValueError("sk-secret")


async def broken_after(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.head(200, EVENT_STREAM)
    await writer.chunk(b"part")
    raise ValueError("sk-secret")


async def unfinished_before(flow: HTTPFlow, writer: ResponseWriter) -> None:
    return


async def unfinished_after(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.head(200, EVENT_STREAM)
    await writer.chunk(b"part")


async def bad_header(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.respond(200, ((b"x-a", b"1\r\nx-b: 2"),), b"")


@pytest.mark.parametrize("body", [broken_before, unfinished_before, bad_header])
async def test_a_failure_before_the_head_is_a_502(start: Start, body: Responder) -> None:
    proxy = await start(Answering(body))
    async with h1_client(proxy) as client:
        client.send(GET)
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"secret" not in answer
        assert b"x-b" not in answer
    async with h2_client(proxy) as second:
        stream = second.request("/ours")
        await second.until(lambda: stream in second.ended)
        assert second.heads[stream][":status"] == "502"


@pytest.mark.parametrize("body", [broken_after, unfinished_after])
async def test_a_failure_after_the_head_shows_no_end(start: Start, body: Responder) -> None:
    proxy = await start(Answering(body))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b"4\r\npart\r\n"
    async with h2_client(proxy) as second:
        stream = second.request("/ours")
        await second.until(lambda: stream in second.reset)
        assert second.bodies[stream] == b"part"
        assert stream not in second.ended


async def test_a_failure_is_logged_once_and_quotes_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    proxy = await start(Answering(broken_before))
    caplog.clear()
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.rest()
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "ValueError" in errors[0]
    assert "broken_before" in errors[0]
    assert "secret" not in caplog.text


async def test_the_responder_goes_on_after_its_own_error(start: Start) -> None:
    async def own_error(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM)
        await writer.error("the target broke off")
        await asyncio.sleep(0)

    watched = Watched(own_error)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b""
    await asyncio.wait_for(watched.completed.wait(), LIMIT_S)
    assert answering.flows[0].error is not None
    assert answering.flows[0].error.msg == "the target broke off"


# --- mitmproxy's own features


async def test_an_intercepted_response_waits_for_the_user(start: Start) -> None:
    intercepted: asyncio.Future[HTTPFlow] = asyncio.get_running_loop().create_future()

    def intercept(flow: HTTPFlow) -> None:
        flow.intercept()
        intercepted.set_result(flow)

    watched = Watched(greet)
    proxy = await start(Answering(watched), Hooks(responseheaders=intercept))
    async with h1_client(proxy) as client:
        client.send(GET)
        flow = await asyncio.wait_for(intercepted, LIMIT_S)
        assert not watched.completed.is_set()
        flow.resume()
        await client.head()
        assert await body_of(client) == b"onetwothree"


async def test_killing_an_intercepted_response_cancels_the_responder(start: Start) -> None:
    def intercept(flow: HTTPFlow) -> None:
        flow.intercept()
        flow.kill()

    watched = Watched(greet)
    proxy = await start(Answering(watched), Hooks(responseheaders=intercept))
    async with h1_client(proxy) as client:
        client.send(GET)
        assert await client.rest() == b""
    await watched.was_cancelled()


async def test_a_kill_in_mid_stream_is_noticed_at_the_next_chunk(start: Start) -> None:
    killed = asyncio.Event()

    async def until_killed(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM)
        await writer.chunk(b"before")
        await killed.wait()
        await writer.chunk(b"after")

    watched = Watched(until_killed)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h2_client(proxy) as client:
        stream = client.request("/ours")
        await client.until(lambda: client.bodies[stream] == b"before")
        answering.flows[0].kill()
        killed.set()
        assert list(inner_layer(proxy).streams) == [stream]
        await client.until(lambda: stream in client.reset)
        assert client.bodies[stream] == b"before"
        assert inner_layer(proxy).streams == {}
    await watched.was_cancelled()


async def test_a_response_set_by_another_addon_wins(start: Start) -> None:
    watched = Watched(greet)
    proxy = await start(
        Answering(watched), Hooks(request=lambda flow: setattr(flow, "response", Response.make(418, b"tea")))
    )
    async with h1_client(proxy) as client:
        client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 418 ")
    assert not watched.entered.is_set()


async def test_response_hooks_fire_in_order_and_may_change_a_whole_body(start: Start) -> None:
    seen = []

    def response(flow: HTTPFlow) -> None:
        seen.append("response")
        flow.response.content = b"changed"

    proxy = await start(
        Answering(whole), Hooks(responseheaders=lambda flow: seen.append("responseheaders"), response=response)
    )
    async with h1_client(proxy) as client:
        client.send(GET)
        assert b"content-length: 7" in await client.head()
        assert await client.exactly(7) == b"changed"
    assert seen == ["responseheaders", "response"]


async def test_a_stream_function_of_another_addon_is_applied(start: Start) -> None:
    proxy = await start(
        Answering(greet),
        Hooks(responseheaders=lambda flow: setattr(flow.response, "stream", lambda data: data.upper())),
    )
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"ONETWOTHREE"


async def test_a_broken_stream_function_of_another_addon_breaks_the_answer_off(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(data: bytes) -> bytes:
        raise KeyError("sk-secret")

    proxy = await start(Answering(greet), Hooks(responseheaders=streams(broken)))
    caplog.clear()
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b""
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "KeyError" in errors[0]
    assert "broken" in errors[0]


async def test_no_log_line_names_a_server_that_was_not_asked(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    assert "client connect" in caplog.text
    assert "Streaming response" not in caplog.text


async def test_debugging_of_the_proxy_core_shows_no_bodies_of_ours(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    proxy = await start(Answering(greet), proxy_debug=True)
    async with tunnel(proxy, "models.test", "http/1.1") as client:
        client.send(b"GET /ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
        await client.head()
        assert await body_of(client) == b"onetwothree"
    assert ">> ToStream({})" in caplog.text


async def test_the_first_bytes_of_a_streamed_body_stay_in_the_flow(start: Start) -> None:
    async def capturing(flow: HTTPFlow, writer: ResponseWriter) -> None:
        writer.capture_limit = 5
        await greet(flow, writer)
        assert not writer.captured_all

    answering = Answering(capturing)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    assert answering.flows[0].response.raw_content == b"onetw"


async def test_what_was_captured_stays_when_the_client_leaves(start: Start) -> None:
    async def capturing(flow: HTTPFlow, writer: ResponseWriter) -> None:
        writer.capture_limit = 100
        await mid_stream(flow, writer)

    watched = Watched(capturing)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await client.chunk()
    await watched.was_cancelled()
    assert answering.flows[0].response.raw_content == b"first"


async def test_store_streamed_bodies_keeps_all_of_it(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering, store_streamed_bodies=True)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    assert answering.flows[0].response.raw_content == b"onetwothree"


async def test_a_response_over_the_size_limit_is_refused(start: Start) -> None:
    watched = Watched(Flood(2**20))
    proxy = await start(Answering(watched), body_size_limit="1k")
    async with h1_client(proxy) as client:
        client.send(GET)
        assert (await client.rest()).startswith(b"HTTP/1.1 502 ")
    await watched.was_cancelled()


BIG = b"x" * 3000
WITH_LENGTH = b"POST http://models.test/ours HTTP/1.1\r\nhost: models.test\r\ncontent-length: 3000\r\n\r\n" + BIG
CHUNKED = (
    b"POST http://models.test/ours HTTP/1.1\r\nhost: models.test\r\ntransfer-encoding: chunked\r\n\r\n"
    b"5dc\r\n" + BIG[:1500] + b"\r\n5dc\r\n" + BIG[1500:] + b"\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("request_bytes", [WITH_LENGTH, CHUNKED])
async def test_a_held_request_is_collected_despite_stream_large_bodies(start: Start, request_bytes: bytes) -> None:
    async def echo(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.respond(200, (), flow.request.raw_content or b"")

    proxy = await start(Answering(echo), Hooks(requestheaders=hold_request), stream_large_bodies="1k")
    async with h1_client(proxy) as client:
        client.send(request_bytes)
        assert b"content-length: 3000" in await client.head()
        assert await client.exactly(3000) == BIG


async def test_a_held_request_over_the_size_limit_is_refused(start: Start) -> None:
    proxy = await start(Answering(greet), Hooks(requestheaders=hold_request), body_size_limit="1k")
    async with h1_client(proxy) as client:
        client.send(CHUNKED)
        assert (await client.rest()).startswith(b"HTTP/1.1 413 ")


async def test_a_request_that_was_streamed_upstream_gets_no_responder(start: Start) -> None:
    raised: list[RuntimeError] = []

    def late(flow: HTTPFlow) -> None:
        try:
            respond_with(flow, greet)
        except RuntimeError as error:
            raised.append(error)

    async with origin(plain_answer) as port:
        proxy = await start(Hooks(request=late), stream_large_bodies="1k")
        async with h1_client(proxy) as client:
            client.send(WITH_LENGTH.replace(b"models.test/", b"127.0.0.1:%d/" % port))
            await client.head()
            assert await client.exactly(5) == b"plain"
    assert len(raised) == 1


async def test_a_replayed_flow_is_answered_whole(start: Start) -> None:
    replayed: asyncio.Future[HTTPFlow] = asyncio.get_running_loop().create_future()

    async def request(flow: HTTPFlow) -> None:
        if flow.is_replay == "request":
            await answer_whole(flow, greet)
        else:
            respond_with(flow, greet)

    def response(flow: HTTPFlow) -> None:
        if flow.is_replay == "request":
            replayed.set_result(flow)

    answering = Hooks(request=request, response=response)
    flows: list[HTTPFlow] = []
    proxy = await start(answering, Hooks(response=flows.append))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    proxy.master.commands.call("replay.client", [flows[0].copy()])
    flow = await asyncio.wait_for(replayed, LIMIT_S)
    assert flow.response.raw_content == b"onetwothree"
    assert flow.response.headers["content-length"] == "11"
    proxy.master.commands.call("replay.client.stop")


async def test_a_flow_does_not_keep_its_responder(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    assert greet not in vars(answering.flows[0]).values()


async def test_the_watchdog_leaves_a_silent_answer_alone() -> None:
    closed: list[bool] = []

    async def close() -> None:
        closed.append(True)

    async def silence(*, guarded: bool) -> bool:
        closed.clear()
        watchdog = TimeoutWatchdog(1, close)
        watchdog.timeout = 0.1  # type: ignore[assignment]
        watching = asyncio.create_task(watchdog.watch())
        with watchdog.disarm():  # a slow hook, over the first check
            await asyncio.sleep(0.12)
        with keep_client_open(watchdog) if guarded else watchdog.disarm():
            await asyncio.sleep(0.15)
        watching.cancel()
        return bool(closed)

    assert await silence(guarded=False)  # the reason why `disarm` alone is not relied upon
    assert not await silence(guarded=True)


# --- the addon goes


async def test_cancel_all_ends_every_answer(start: Start) -> None:
    watched = [Watched(forever), Watched(mid_stream)]

    async def choose(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await watched[int(flow.request.path[-1])](flow, writer)

    proxy = await start(Answering(choose))
    async with h2_client(proxy) as client:
        waiting, streaming = client.request("/ours/0"), client.request("/ours/1")
        await client.until(lambda: client.bodies[streaming] == b"first")
        assert StreamedResponses().cancel_all() == 2
        await client.until(lambda: waiting in client.ended and streaming in client.reset)
        assert client.heads[waiting][":status"] == "502"
    for one in watched:
        await one.was_cancelled()
    assert responders() == []


async def test_removing_the_addon_ends_every_answer(start: Start) -> None:
    watched = Watched(mid_stream)
    proxy = await start(Answering(watched))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await client.chunk()
        proxy.master.addons.remove(proxy.master.addons.get("streamedresponses"))
        assert await client.rest() == b""
    await watched.was_cancelled()


async def test_cancel_all_lets_a_finished_answer_out(start: Start) -> None:
    pausing = Pausing("response")
    proxy = await start(Answering(greet), pausing)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await asyncio.wait_for(pausing.entered.wait(), LIMIT_S)
        StreamedResponses().cancel_all()
        pausing.release.set()
        assert await body_of(client) == b"onetwothree"


async def test_a_reloaded_addon_serves_connections_that_are_already_open(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            await client.head()
            assert await body_of(client) == b"onetwothree"
            proxy.master.addons.remove(proxy.master.addons.get("streamedresponses"))
            proxy.master.addons.add(StreamedResponses())


# --- what is relied upon


async def test_the_handler_of_a_client_is_found_by_its_id(start: Start) -> None:
    found = []

    async def look(flow: HTTPFlow, writer: ResponseWriter) -> None:
        found.append(connection_handler(flow.client_conn))
        await greet(flow, writer)

    proxy = await start(Answering(look))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert found == proxy.handlers
        await body_of(client)


async def test_a_flow_can_be_killed_only_while_it_is_live(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    with pytest.raises(exceptions.ControlException):
        answering.flows[0].kill()
