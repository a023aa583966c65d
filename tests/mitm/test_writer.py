"""Framing, order and limits of a written response, without a proxy."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.http import Headers as HeaderMap
from mitmproxy.http import HTTPFlow, Request, Response
from mitmproxy.test import tflow

from combos.mitm.internals import (
    ErrorCode,
    HttpEvent,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)
from combos.mitm.writer import ResponseWriter, WholeSink, whole_events

JSON = ((b"Content-Type", b"application/json"),)
LENGTH = ((b"Content-Length", b"6"),)


class Recorder:
    """A sink that keeps what it gets and notes every wait."""

    def __init__(self) -> None:
        self.batches: list[tuple[HttpEvent, ...]] = []
        self.drains = 0
        self.waited: list[bool] = []

    async def put(self, events: tuple[HttpEvent, ...], *, wait: bool = True) -> None:
        self.batches.append(events)
        self.waited.append(wait)

    async def whole(self, response: Response, body: bytes) -> None:
        await self.put(whole_events(7, response, body))

    async def drain(self) -> None:
        self.drains += 1

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        head = self.batches[0][0]
        assert isinstance(head, ResponseHeaders)
        return head.response.headers.fields


def flow_of(method: str = "GET", version: str = "HTTP/1.1") -> HTTPFlow:
    flow = tflow.tflow()
    flow.request = Request.make(method, "http://models.test/")
    flow.request.http_version = version
    flow.response = None
    return flow


def pair(method: str = "GET", version: str = "HTTP/1.1") -> tuple[ResponseWriter, Recorder]:
    sink = Recorder()
    return ResponseWriter(flow_of(method, version), 7, sink), sink


@pytest.mark.parametrize(
    ("method", "status", "given_headers", "fields", "body_sent"),
    [
        ("GET", 200, JSON, (*JSON, (b"content-length", b"4")), True),
        ("GET", 200, (*JSON, (b"Content-Length", b"99")), (*JSON, (b"content-length", b"4")), True),
        ("GET", 503, (), ((b"content-length", b"4"),), True),
        ("HEAD", 200, (), ((b"content-length", b"4"),), False),
        ("HEAD", 200, LENGTH, LENGTH, False),
        ("GET", 204, LENGTH, (), False),
        ("GET", 304, (), (), False),
        ("GET", 304, LENGTH, LENGTH, False),
    ],
)
async def test_a_whole_response_goes_in_one_round(
    method: str,
    status: int,
    given_headers: tuple[tuple[bytes, bytes], ...],
    fields: tuple[tuple[bytes, bytes], ...],
    body_sent: bool,
) -> None:
    writer, sink = pair(method)
    await writer.respond(status, given_headers, b"body")
    assert len(sink.batches) == 1
    assert sink.fields == fields
    assert [event.data for event in sink.batches[0] if isinstance(event, ResponseData)] == [b"body"] * body_sent
    assert isinstance(sink.batches[0][-1], ResponseEndOfMessage)
    assert writer.started
    assert writer.finished


@pytest.mark.parametrize(
    ("method", "version", "given_headers", "fields"),
    [
        ("GET", "HTTP/1.1", (), ((b"transfer-encoding", b"chunked"),)),
        ("GET", "HTTP/1.1", LENGTH, LENGTH),
        ("GET", "HTTP/1.0", JSON, JSON),
        ("GET", "HTTP/2.0", JSON, JSON),
        ("HEAD", "HTTP/1.1", JSON, JSON),
        ("GET", "HTTP/2.0", ((b"Connection", b"close"), (b"Keep-Alive", b"5"), (b"Transfer-Encoding", b"gzip")), ()),
        ("GET", "HTTP/1.1", ((b"Transfer-Encoding", b"x"),), ((b"transfer-encoding", b"chunked"),)),
    ],
)
async def test_framing_of_a_streamed_head(
    method: str, version: str, given_headers: tuple[tuple[bytes, bytes], ...], fields: tuple[tuple[bytes, bytes], ...]
) -> None:
    writer, sink = pair(method, version)
    await writer.head(200, given_headers)
    assert sink.fields == fields


async def test_repeated_headers_keep_order_and_case() -> None:
    headers = ((b"Set-Cookie", b"a=1"), (b"X-B", b"\xff"), (b"Set-Cookie", b"b=2"))
    writer, sink = pair("GET", "HTTP/2.0")
    await writer.head(200, headers)
    assert sink.fields == headers


async def test_each_chunk_is_one_round_and_is_drained() -> None:
    writer, sink = pair()
    await writer.head(200, ())
    await writer.chunk(b"a")
    await writer.chunk(b"")
    await writer.chunk(b"b")
    assert [event.data for batch in sink.batches for event in batch if isinstance(event, ResponseData)] == [b"a", b"b"]
    assert sink.drains == 2
    assert not writer.finished
    await writer.end()
    assert isinstance(sink.batches[-1][0], ResponseEndOfMessage)
    assert writer.finished


async def test_the_first_and_the_last_piece_go_with_head_and_end() -> None:
    writer, sink = pair()
    await writer.head(200, (), b"first")
    await writer.end(b"last")
    assert [[type(event) for event in batch] for batch in sink.batches] == [
        [ResponseHeaders, ResponseData],
        [ResponseData, ResponseEndOfMessage],
    ]
    assert sink.drains == 1


async def test_first_and_last_count_towards_the_length() -> None:
    writer, sink = pair()
    await writer.head(200, LENGTH, b"abc")
    with pytest.raises(ValueError, match="shorter"):
        await writer.end(b"de")
    with pytest.raises(ValueError, match="longer"):
        await writer.end(b"defg")
    assert len(sink.batches) == 1
    assert not writer.finished


async def test_chunks_of_a_bodiless_response_are_dropped() -> None:
    writer, sink = pair("HEAD")
    await writer.head(200, LENGTH)
    await writer.chunk(b"abc")
    await writer.end()
    head = sink.batches[0][0]
    assert isinstance(head, ResponseHeaders)
    assert head.end_stream
    assert not head.response.stream
    assert not [event for batch in sink.batches for event in batch if isinstance(event, ResponseData)]


async def test_a_body_must_match_its_announced_length() -> None:
    writer, _ = pair()
    await writer.head(200, LENGTH)
    await writer.chunk(b"abc")
    with pytest.raises(ValueError, match="shorter"):
        await writer.end()
    with pytest.raises(ValueError, match="longer"):
        await writer.chunk(b"defg")


@pytest.mark.parametrize("value", [b"-1", b"+6", b"6, 6", b"six", b"0x6"])
async def test_an_unreadable_length_is_refused(value: bytes) -> None:
    writer, sink = pair()
    with pytest.raises(ValueError, match="content-length"):
        await writer.head(200, ((b"content-length", value),))
    assert not writer.started
    assert sink.batches == []


@pytest.mark.parametrize("field", [(b"x", b"a\nb"), (b"x", b"a\rb"), (b"x\n", b"a"), (b"x", b"a\0b")])
async def test_a_header_that_would_break_the_head_is_refused(field: tuple[bytes, bytes]) -> None:
    writer, sink = pair()
    with pytest.raises(ValueError, match="line break"):
        await writer.respond(200, (field,), b"")
    assert not writer.started
    assert sink.batches == []


@pytest.mark.parametrize("status", [0, 100, 101, 199, 1000])
async def test_only_final_statuses_are_answers(status: int) -> None:
    writer, _ = pair()
    with pytest.raises(ValueError, match="final status"):
        await writer.head(status, ())


async def test_calls_out_of_order_are_refused() -> None:
    writer, _ = pair()
    with pytest.raises(RuntimeError):
        await writer.chunk(b"a")
    with pytest.raises(RuntimeError):
        await writer.end()
    await writer.head(200, ())
    with pytest.raises(RuntimeError):
        await writer.head(200, ())
    with pytest.raises(RuntimeError):
        await writer.respond(200, (), b"")
    await writer.end()
    with pytest.raises(RuntimeError):
        await writer.chunk(b"a")
    with pytest.raises(RuntimeError):
        await writer.end()


async def test_an_error_ends_the_response_once() -> None:
    writer, sink = pair()
    await writer.head(200, ())
    await writer.error("broken", wait=False)
    await writer.error("again")
    assert len(sink.batches) == 2
    assert sink.batches[1] == (ResponseProtocolError(7, "broken", ErrorCode.GENERIC_SERVER_ERROR),)
    assert sink.waited == [True, False]
    assert writer.finished


async def test_no_error_after_the_end() -> None:
    writer, sink = pair()
    await writer.respond(200, (), b"")
    await writer.error("late")
    assert len(sink.batches) == 1


@given(limit=st.integers(0, 12), pieces=st.lists(st.binary(min_size=1, max_size=5), max_size=5))
def test_the_capture_is_a_prefix_within_its_limit(limit: int, pieces: list[bytes]) -> None:
    flow = flow_of()
    writer = ResponseWriter(flow, 1, WholeSink(flow))
    writer.capture_limit = limit

    async def write() -> None:
        await writer.head(200, ())
        flow.response = flow.response or tflow.tflow(resp=True).response
        flow.response.content = None
        for piece in pieces:
            await writer.chunk(piece)
        writer.keep_captured()

    asyncio.run(write())
    body = b"".join(pieces)
    assert (flow.response.raw_content or b"") == body[:limit]
    assert writer.captured_all == (len(body) <= limit)


@given(pieces=st.lists(st.binary(max_size=20), max_size=6))
def test_a_collected_response_has_the_whole_body_and_its_length(pieces: list[bytes]) -> None:
    flow = flow_of()

    async def write() -> None:
        writer = ResponseWriter(flow, 0, WholeSink(flow))
        await writer.head(201, JSON)
        for piece in pieces:
            await writer.chunk(piece)
        await writer.end()

    asyncio.run(write())
    body = b"".join(pieces)
    assert flow.response.raw_content == body
    assert flow.response.status_code == 201
    assert flow.response.headers == HeaderMap((*JSON, (b"content-length", b"%d" % len(body))))


async def test_a_collected_error_is_a_502() -> None:
    flow = flow_of()
    writer = ResponseWriter(flow, 0, WholeSink(flow))
    await writer.head(200, JSON)
    await writer.chunk(b"part")
    await writer.error("broken")
    assert flow.response.status_code == 502
    assert flow.response.text == "broken"


async def test_a_collected_head_keeps_its_length() -> None:
    flow = flow_of("HEAD")
    writer = ResponseWriter(flow, 0, WholeSink(flow))
    await writer.respond(200, LENGTH, b"")
    assert flow.response.headers["content-length"] == "6"
    assert flow.response.raw_content == b""
