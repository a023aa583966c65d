"""The bytes of an answer, and what becomes of the connection."""

import asyncio
import socket
import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.http import HttpVersion10, HttpVersion11
from hypothesis import given
from hypothesis import strategies as st

from combos.admin.client_wire import ClientWire
from combos.core.facts import Headers
from combos.upstream.writes import Writes


class Raw:
    """A socket that notes its options."""

    def __init__(self) -> None:
        self.options: list[tuple[int, int, bytes]] = []

    def setsockopt(self, level: int, name: int, value: bytes) -> None:
        self.options.append((level, name, value))


class Transport:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False
        self.raw = Raw()

    def get_extra_info(self, name: str) -> "Raw | None":
        return self.raw if name == "socket" else None

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Request:
    def __init__(self, *, keeps: bool = True, old: bool = False) -> None:
        self.transport: Transport | None = Transport()
        self.keep_alive = keeps
        self.protocol = SimpleNamespace(  # somebody waits: nothing is put off
            _messages=[object()], _message_tail=b"", _upgraded=False, _close=False
        )
        self.version = HttpVersion10 if old else HttpVersion11


def wire_of(request: Request, more: Headers = (), writes: Writes | None = None) -> ClientWire:
    return ClientWire(cast("web.BaseRequest", cast("Any", request)), more, writes)


LENGTH = (b"Content-Length", b"5")
BREAKS = set(b"\r\n\0")
CHUNKED = (b"Transfer-Encoding", b"chunked")


def test_what_goes_out_together_is_one_write() -> None:
    request = Request()
    wire = wire_of(request, ((b"vary", b"Origin"),))
    wire.head(200, b"OK", [(b"x-a", b"b"), LENGTH], bodiless=False)
    wire.chunk(b"")
    wire.chunk(b"hello")
    wire.end()
    wire.flush()
    wire.flush()
    assert request.transport is not None
    assert request.transport.sent == [b"HTTP/1.1 200 OK\r\nx-a: b\r\nContent-Length: 5\r\nvary: Origin\r\n\r\nhello"]
    assert wire.keeps


@pytest.mark.parametrize(("given", "shown"), [(b"", b"Service Unavailable"), (b"Own Words", b"Own Words")])
def test_a_status_has_words_after_it(given: bytes, shown: bytes) -> None:
    request = Request()
    wire = wire_of(request)
    wire.head(503, given, [LENGTH], bodiless=False)
    wire.flush()
    assert request.transport is not None
    assert b"".join(request.transport.sent).startswith(b"HTTP/1.1 503 " + shown + b"\r\n")


WORD = st.binary(max_size=4) | st.sampled_from([b"a\r", b"\n", b"\0", b"x-a", b"a\r\nb: c", b"\n\r"])


@given(reason=WORD, fields=st.lists(st.tuples(WORD, WORD), max_size=5))
def test_what_would_break_a_line_of_the_head_is_left_out(reason: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    request = Request()
    wire = wire_of(request, ((b"vary", b"Origin"), (b"bad", b"\r\n")))
    wire.head(200, reason, [LENGTH, *fields], bodiless=True)
    wire.flush()
    assert request.transport is not None
    said = b"" if BREAKS & set(reason) else reason or b"OK"
    kept = [b"%b: %b" % field for field in fields if not BREAKS & set(field[0] + field[1])]
    lines = [b"HTTP/1.1 200 " + said, b"Content-Length: 5", *kept, b"vary: Origin", b"", b""]
    assert request.transport.sent == [b"\r\n".join(lines)]


def test_chunks() -> None:
    request = Request()
    wire = wire_of(request)
    wire.head(200, b"", [CHUNKED], bodiless=False)
    wire.chunk(b"x" * 16)
    wire.end()
    wire.flush()
    assert request.transport is not None
    assert request.transport.sent[0].endswith(b"\r\n\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("old", "asks", "fields", "bodiless", "keeps", "line"),
    [
        (False, True, [LENGTH], False, True, None),
        (False, True, [CHUNKED], False, True, None),
        (False, True, [], True, True, None),
        (False, True, [], False, False, b"close"),
        (False, False, [LENGTH], False, False, b"close"),
        (True, True, [LENGTH], False, True, b"keep-alive"),
        (True, True, [], False, False, b"close"),
        (True, False, [LENGTH], False, False, b"close"),
    ],
)
def test_whether_the_connection_is_kept(
    old: bool, asks: bool, fields: list[tuple[bytes, bytes]], bodiless: bool, keeps: bool, line: bytes | None
) -> None:
    request = Request(keeps=asks, old=old)
    wire = wire_of(request)
    wire.head(204 if bodiless else 200, b"", fields, bodiless=bodiless)
    wire.flush()
    assert request.transport is not None
    said = [part for part in request.transport.sent[0].split(b"\r\n") if part.startswith(b"connection")]
    assert (wire.keeps, said) == (keeps, [] if line is None else [b"connection: " + line])


def test_a_break_shows_no_end() -> None:
    request = Request()
    wire = wire_of(request)
    wire.head(200, b"", [CHUNKED], bodiless=False)
    wire.chunk(b"half")
    transport = request.transport
    assert transport is not None
    wire.break_off()
    assert transport.sent[0].endswith(b"4\r\nhalf\r\n")
    assert (transport.closed, wire.keeps, wire.is_open) == (True, False, False)
    wire.end()
    wire.flush()
    assert len(transport.sent) == 1


@pytest.mark.parametrize(
    ("fields", "old", "resets"),
    [([], False, True), ([], True, True), ([CHUNKED], False, False), ([LENGTH], True, False)],
)
def test_a_break_of_a_body_that_ends_with_the_connection_is_a_reset(
    fields: list[tuple[bytes, bytes]], old: bool, resets: bool
) -> None:
    request = Request(old=old)
    wire = wire_of(request)
    wire.head(200, b"", fields, bodiless=False)
    wire.chunk(b"half")
    transport = request.transport
    assert transport is not None
    wire.break_off()
    wire.break_off()
    assert b"half" in transport.sent[0]
    assert transport.closed
    reset = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert transport.raw.options == ([reset] if resets else [])


@pytest.mark.parametrize(
    ("length", "pieces", "bodiless", "keeps"),
    [
        (b"5", [b"he", b"llo"], False, True),
        (b"5", [b"hell"], False, False),
        (b"5", [b"hello", b"!"], False, False),
        (b"0", [], False, True),
        (b"0", [b"x"], False, False),
        (b"five", [b"hello"], False, False),
        (b"five", [], False, False),
        (b"5", [], True, True),
    ],
)
def test_a_body_of_another_length_than_announced_costs_the_connection(
    length: bytes, pieces: list[bytes], bodiless: bool, keeps: bool
) -> None:
    wire = wire_of(Request())
    wire.head(200, b"", [(b"content-length", length)], bodiless=bodiless)
    for piece in pieces:
        wire.chunk(piece)
    wire.end()
    assert wire.keeps == keeps


def test_nothing_is_written_to_a_client_that_is_gone() -> None:
    request = Request()
    wire = wire_of(request)
    request.transport = None
    wire.head(200, b"", [LENGTH], bodiless=False)
    wire.flush()
    wire.break_off()
    assert not wire.is_open


def answered(request: Request, writes: Writes, *, keeps: bool = True) -> list[bytes]:
    """What is out when an answer has been flushed."""
    wire = wire_of(request, (), writes)
    wire.keeps = keeps
    wire.head(200, b"", [LENGTH], bodiless=False)
    wire.flush()
    assert request.transport is not None
    return request.transport.sent


async def test_answers_of_one_pass_are_written_together_after_it() -> None:
    writes, requests = Writes(), (Request(), Request())
    for request in requests:
        request.protocol._messages.clear()
        assert not answered(request, writes)
    await asyncio.sleep(0)
    for request in requests:
        assert request.transport is not None
        assert len(request.transport.sent) == 1


@pytest.mark.parametrize(
    "reason", ["pipelined", "an upgrade", "behind an upgrade", "closing", "the server ends", "unknown server"]
)
async def test_what_cannot_wait_is_written_at_once_after_what_waits(reason: str) -> None:
    writes, other, request = Writes(), Request(), Request()
    other.protocol._messages.clear()
    waiting = answered(other, writes)
    if reason not in ("pipelined", "unknown server"):
        request.protocol._messages.clear()
    request.protocol._upgraded = "upgrade" in reason
    request.protocol._close = reason == "the server ends"
    request.protocol._message_tail = b"GET" if reason == "behind an upgrade" else b""
    if reason == "unknown server":
        request.protocol = SimpleNamespace()
    assert len(answered(request, writes, keeps=reason != "closing")) == 1
    assert len(waiting) == 1


async def test_a_break_comes_after_what_waits() -> None:
    request = Request()
    request.protocol._messages.clear()
    wire = wire_of(request)
    wire.head(200, b"", [CHUNKED], bodiless=False)
    wire.flush()
    wire.chunk(b"half")
    wire.flush()
    wire.break_off()
    assert request.transport is not None
    assert [b"half" in part for part in request.transport.sent] == [False, True]
    await asyncio.sleep(0)
    assert len(request.transport.sent) == 2
