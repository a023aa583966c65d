"""Connections at the listener: the short way gives what the long way gives, however the bytes come."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.http import HttpRequestParser
from hypothesis import given
from hypothesis import strategies as st

from admin.test_entrance import Echo, listening
from combos.admin.asked import Request
from combos.admin.auth import Gate
from combos.admin.client_wire import ClientWire
from combos.admin.connection import Connection, admit, is_known
from combos.admin.entrance import Entrance
from combos.core.limits import INBOUND_HEAD_MAX, INBOUND_HEAD_S
from rawclient import request_bytes, talk
from stage import until

HOST = [(b"Host", b"127.0.0.1")]
POST = request_bytes("POST", "/v1/responses", HOST, b"{}")


class Transport(asyncio.Transport):
    """Notes what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False
        self.reading = True

    def write(self, data: Any) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


async def manage(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text=f"{request.method} {request.raw_path} {len(await request.read())}")


def connected(*, short: bool, echo: Echo | None = None) -> tuple[Connection, Transport]:
    gate = Gate(lambda: "t", tuple, lambda _: False)
    entrance = Entrance(echo or Echo(), manage, gate)
    server = web.Server(
        entrance.handle, handler_cancellation=True, auto_decompress=False, access_log=None,
        max_line_size=INBOUND_HEAD_MAX, max_field_size=INBOUND_HEAD_MAX,
    )  # fmt: skip
    admit(server, entrance if short else None)
    connection, transport = cast("Connection", server()), Transport()
    connection.connection_made(transport)
    return connection, transport


async def quiet() -> None:
    """Return when a connection has done what it can."""
    for _ in range(12):
        await asyncio.sleep(0)


async def said(pieces: list[bytes], *, short: bool) -> tuple[bytes, bool]:
    """What was answered to what came in these pieces, and whether the connection was closed after it."""
    connection, transport = connected(short=short)
    for piece in pieces:
        if transport.reading and not transport.closed:
            connection.data_received(piece)
        await quiet()
    result = re.sub(rb"Date: [^\r]*\r\n", b"", transport.sent), transport.closed
    connection.connection_lost(None)
    await quiet()
    return result


def _head(method: bytes, target: bytes, version: bytes, fields: list[bytes]) -> bytes:
    return b"\r\n".join([b"%b %b HTTP/%b" % (method, target, version), *fields, b"", b""])


def _body(framing: str, body: bytes) -> tuple[list[bytes], bytes]:
    if framing == "length":
        return [b"Content-Length: %d" % len(body)], body
    chunks = [body[at : at + 7] for at in range(0, len(body), 7)]
    return [b"Transfer-Encoding: chunked"], b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One request, or something like it."""
    method = draw(st.sampled_from([b"POST", b"POST", b"GET", b"HEAD", b"OPTIONS", b"CONNECT"]))
    target = draw(
        st.sampled_from([b"/v1/responses", b"/v1/a?b=c", b"/api/x", b"http://localhost/v1/b", b"http://[/v1/c"])
    )
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0"]))
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=3))
    host = draw(st.sampled_from([[b"Host: 127.0.0.1"]] * 4 + [[b"Host: evil.test"], []]))
    framing, body = b"", draw(st.binary(max_size=30) | st.just(b"x" * 1_001))
    lines, framing = _body(draw(st.sampled_from(["length", "chunks"])), body) if method == b"POST" else ([], b"")
    return _head(method, target, version, [*host, *fields, *lines]) + framing


FIELDS = [
    b"Connection: close", b"Connection: keep-alive", b"Expect: 100-continue", b"Expect: more", b"Origin: http://localhost",
    b"Origin: http://evil.test", b"Access-Control-Request-Method: POST", b"Connection: upgrade\r\nUpgrade: websocket",
    b"anthropic-version: 1", b"bad", b"Content-Encoding: gzip",
]  # fmt: skip


@st.composite
def pieces(draw: st.DrawFn) -> list[bytes]:
    """Requests one after another, cut at any places."""
    said = b"".join(draw(st.lists(requests(), min_size=1, max_size=4)))
    said = said[: draw(st.sampled_from([None, None, -1, len(said) // 2]))]
    cuts = sorted(draw(st.sets(st.integers(0, len(said)), max_size=5)))
    return [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True) if a < b]


@given(pieces())
async def test_both_ways_answer_the_same(pieces: list[bytes]) -> None:
    assert await said(pieces, short=True) == await said(pieces, short=False)


@pytest.mark.parametrize("short", [True, False])
def test_another_version_of_the_http_server_has_no_short_way(short: bool) -> None:
    class Older:
        pass

    assert is_known(web.RequestHandler, HttpRequestParser if short else Older) is short
    assert not is_known(Older, HttpRequestParser)


async def test_the_short_way_is_taken_where_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    long: list[str] = []
    handle = Entrance.handle

    async def noting(entrance: Entrance, request: web.BaseRequest) -> web.StreamResponse:
        long.append(request.raw_path)
        return await handle(entrance, request)

    monkeypatch.setattr(Entrance, "handle", noting)
    head = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answers, _ = await said(
        [POST, POST[:50], POST[50:], *(head % path for path in (b"/v1/a?b", b"/x", b"/v1/c"))], short=True
    )
    assert answers.count(b"HTTP/1.1 200") == 5
    assert long == ["/x", "/v1/c"]


async def test_requests_in_any_pieces_are_answered_in_order() -> None:
    message = b"".join(request_bytes("POST", f"/v1/{n}", HOST, b"{%d}" % n) for n in range(5))
    whole = await said([message], short=True)
    assert [int(n) for n in re.findall(rb"/v1/(\d)", whole[0])] == [0, 1, 2, 3, 4]
    assert await said([bytes([byte]) for byte in message], short=True) == whole


@pytest.mark.parametrize("short", [True, False])
async def test_a_body_of_very_many_chunks_does_not_hold_up_the_one_after_it(short: bool) -> None:
    echo = Echo()
    echo.body_limit = 1_000_000
    connection, transport = connected(short=short, echo=echo)
    fields = [b"Host: 127.0.0.1", b"Transfer-Encoding: chunked"]
    many = _head(b"POST", b"/v1/many", b"1.1", fields) + b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n"
    large = request_bytes("POST", "/v1/large", HOST, b"y" * 300_000)
    for sent in (many, large[:1_000], large[1_000:150_000], large[150_000:]):
        assert transport.reading
        connection.data_received(sent)
        await quiet()
    answers = transport.sent.split(b"HTTP/1.1 200")
    assert [len(answer) > size for answer, size in zip(answers, (-1, 40_000, 300_000), strict=True)] == [True] * 3
    connection.connection_lost(None)


NO_BODIES = {
    "no size": b"zz\r\n",
    "a negative size": b"-5\r\n",
    "a size beyond all": b"f" * 20 + b"\r\n",
    "more than its size": b"2\r\n{}}\r\n0\r\n\r\n",
    "a line that ends early": b"2\n{}\n",
    "no chunk after one": b"2\r\n{}\r\nzz\r\n",
    "a trailer that is none": b"2\r\n{}\r\n0\r\nbad\r\n\r\n",
    "a NUL in a trailer": b"0\r\nx: a\0b\r\n\r\n",
    "too many trailers": b"0\r\n" + b"x: y\r\n" * 1_000,
    "a trailer too long": b"0\r\nx: " + b"y" * (INBOUND_HEAD_MAX + 1),
}


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("path", [b"/v1/x", b"/api/x"])
@pytest.mark.parametrize("body", NO_BODIES.values(), ids=NO_BODIES)
async def test_a_body_that_turns_out_to_be_none_is_waited_for_no_longer(
    body: bytes, path: bytes, short: bool, ahead: int
) -> None:
    connection, transport = connected(short=short)
    connection.data_received(
        POST * ahead + _head(b"POST", path, b"1.1", [b"Host: 127.0.0.1", b"Transfer-Encoding: chunked"])
    )
    if not ahead:
        await quiet()  # it is served already
    for piece in (body, b"more", b"and more"):
        connection.data_received(piece)
        if not transport.closed:
            await quiet()
    await until(lambda: transport.closed)
    assert transport.sent.count(b"HTTP/1.1 200") == ahead
    assert transport.sent.count(b"HTTP/1.") <= ahead + 1
    if path.startswith(b"/v1"):
        assert b"framed" in transport.sent
    connection.connection_lost(None)
    await quiet()


async def test_a_client_that_sends_ahead_is_held_back() -> None:
    echo = Echo()
    connection, transport = connected(short=True, echo=echo)
    slow = request_bytes("POST", "/v1/slow", HOST, b"{}")
    connection.data_received(slow)
    await quiet()
    connection.data_received(POST * 40)
    assert not transport.reading
    assert not transport.sent
    connection.connection_lost(None)
    await asyncio.wait_for(echo.left.wait(), 10)


async def test_what_was_held_back_is_answered() -> None:
    connection, transport = connected(short=True)
    connection.data_received(POST * 100)
    await until(lambda: transport.sent.count(b"HTTP/1.1 200") == 100)
    assert transport.reading
    connection.connection_lost(None)


MANAGE = request_bytes("POST", "/api/x", HOST, b"{}")
BEHIND = [POST, MANAGE, *(request_bytes("GET", target, HOST, b"") for target in ("/v1/x", "/api/x"))]


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("message", [POST, MANAGE])
@pytest.mark.parametrize(("late", "ahead"), [(1, 100), (33, 2)])
async def test_requests_whose_bodies_came_later_hold_up_none_behind_them(
    late: int, ahead: int, message: bytes, behind: bytes, short: bool
) -> None:
    connection, transport = connected(short=short)
    for _ in range(late):
        for part in (message[:-1], message[-1:]):
            connection.data_received(part)
            await quiet()
    connection.data_received(behind * ahead)
    await until(lambda: transport.sent.count(b"HTTP/1.1 200") == late + ahead)
    assert transport.reading
    connection.connection_lost(None)


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("message", [POST, MANAGE])
async def test_many_requests_that_come_with_the_end_of_a_body_are_answered(
    message: bytes, behind: bytes, short: bool
) -> None:
    connection, transport = connected(short=short)
    connection.data_received(message[:-1])
    await quiet()
    connection.data_received(message[-1:] + behind * 100)
    await until(lambda: transport.sent.count(b"HTTP/1.1 200") == 101)
    assert transport.reading
    connection.connection_lost(None)


async def test_a_body_too_large_is_read_to_its_end_and_the_connection_closed() -> None:
    connection, transport = connected(short=True)
    message = request_bytes("POST", "/v1/responses", HOST, b"x" * 5_000)
    connection.data_received(message[:3_000])
    await quiet()
    assert b"HTTP/1.1 200" in transport.sent  # `Echo` answers it
    assert not transport.closed
    connection.data_received(message[3_000:])
    await quiet()
    assert transport.closed


async def test_closing_the_listener_ends_what_is_being_answered(tmp_path: Path) -> None:
    echo = Echo()
    async with listening(tmp_path, echo) as (_, port), talk(port, request_bytes("POST", "/v1/slow", HOST, b"{}")):
        await asyncio.wait_for(echo.begun.wait(), 10)
    assert echo.left.is_set()


class Held(Echo):
    """Answers when it is told to; `left` to itself it does not."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()

    async def serve(self, request: Request, target: str, body: bytes | None, wire: ClientWire) -> None:
        await self.go_on.wait()
        await super().serve(request, target, body, wire)


@pytest.mark.parametrize("short", [True, False])
async def test_a_connection_that_is_to_be_closed_is_closed_after_its_answer(short: bool) -> None:
    connection, transport = connected(short=short, echo=(held := Held()))
    connection.data_received(POST)
    await quiet()
    connection.close()
    assert not transport.closed
    held.go_on.set()
    await quiet()
    assert b"HTTP/1.1 200" in transport.sent
    assert transport.closed


class GivenUp(Echo):
    async def serve(self, *_arguments: object) -> None:
        raise asyncio.CancelledError


async def test_an_answer_that_is_given_up_costs_the_connection() -> None:
    connection, transport = connected(short=True, echo=GivenUp())
    connection.data_received(POST)
    await quiet()
    assert transport.closed


class Stumbling(Echo):
    """Fails in the middle of its answer, or before it."""

    def __init__(self, begins: Callable[[ClientWire], None]) -> None:
        super().__init__()
        self.begins = begins

    async def serve(self, request: Request, target: str, body: bytes | None, wire: ClientWire) -> None:
        self.begins(wire)
        raise LookupError


def _flushed(wire: ClientWire) -> None:
    wire.head(200, b"", [(b"content-length", b"500")], bodiless=False)
    wire.flush()


def _waiting(wire: ClientWire) -> None:
    wire.head(200, b"", [(b"transfer-encoding", b"chunked")], bodiless=False)
    wire.chunk(b"half")


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize(("begins", "status"), [(lambda _: None, b"500"), (_flushed, b"200"), (_waiting, b"200")])
async def test_a_failure_in_the_middle_of_an_answer_is_no_second_answer(
    begins: Callable[[ClientWire], None], status: bytes, short: bool
) -> None:
    connection, transport = connected(short=short, echo=Stumbling(begins))
    connection.data_received(POST)
    await quiet()
    assert re.findall(rb"HTTP/1.1 (\d+)", transport.sent) == [status]
    assert not transport.sent.endswith(b"\r\n0\r\n\r\n")
    assert transport.closed


class Short(Echo):
    """Finds out at its end that the body is not as long as the head has said, with some or nothing left to send."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__()
        self.pieces = pieces

    async def serve(self, request: Request, target: str, body: bytes | None, wire: ClientWire) -> None:
        wire.head(200, b"", [(b"content-length", b"5")], bodiless=False)
        for piece in self.pieces:
            wire.flush()
            wire.chunk(piece)
        wire.end()
        wire.flush()


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("pieces", [(b"ab",), (b"ab", b""), (b"", b""), (b"ab", b"cdef"), (b"abcdef", b"")])
async def test_what_was_put_off_is_sent_before_the_connection_is_closed(pieces: tuple[bytes, ...], short: bool) -> None:
    connection, transport = connected(short=short, echo=Short(*pieces))
    connection.data_received(POST)
    await quiet()
    assert transport.sent.partition(b"\r\n\r\n")[::2] == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5",
        b"".join(pieces),
    )
    assert transport.closed


@pytest.fixture
async def forward(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[float], None]]:
    """Turns the clock of the event loop forward by so many seconds."""
    loop, ahead = asyncio.get_running_loop(), [0.0]
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + ahead[0])

    def turn(seconds: float) -> None:
        ahead[0] += seconds

    yield turn
    monkeypatch.undo()


type Forward = Callable[[float], None]


@pytest.mark.parametrize("begun", [b"P", POST[:30], b"GET /api", b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
@pytest.mark.parametrize("before", [b"", POST, b"GET /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
async def test_a_head_that_is_not_complete_in_time_closes_the_connection(
    before: bytes, begun: bytes, forward: Forward
) -> None:
    connection, transport = connected(short=True)
    if before:
        connection.data_received(before)
        await quiet()
    for byte in begun:
        connection.data_received(bytes([byte]))
        forward((INBOUND_HEAD_S - 1) / len(begun))
        await quiet()
    assert not transport.closed
    forward(1)
    await quiet()
    assert transport.closed


async def test_a_connection_that_is_used_is_kept(forward: Forward) -> None:
    connection, transport = connected(short=True)
    for number in range(1, 6):
        connection.data_received(POST)
        await quiet()
        forward(3_600)
        await quiet()
        assert transport.sent.count(b"HTTP/1.1 200") == number
        assert not transport.closed
    forward(31)
    await quiet()
    assert transport.closed


async def test_a_head_in_time_may_wait_for_its_answer_and_its_body(forward: Forward) -> None:
    echo = Echo()
    connection, transport = connected(short=True, echo=echo)
    slow = request_bytes("POST", "/v1/slow", HOST, b"{}")
    for part in (slow[:10], slow[10:-1], slow[-1:]):
        connection.data_received(part)
        forward(INBOUND_HEAD_S - 1)
        await quiet()
    forward(10 * INBOUND_HEAD_S)
    await quiet()
    assert echo.begun.is_set()
    assert not transport.closed
    connection.connection_lost(None)


@pytest.mark.parametrize("idle", [b"", b"\r\n", POST])
async def test_an_idle_connection_is_no_head_that_trickles_in(idle: bytes, forward: Forward) -> None:
    connection, transport = connected(short=True)
    connection.data_received(idle)
    await quiet()
    forward(INBOUND_HEAD_S + 1)
    await quiet()
    assert not transport.closed
    connection.data_received(POST)
    await quiet()
    assert b"HTTP/1.1 200" in transport.sent
    forward(3_631)
    await quiet()
    assert transport.closed
