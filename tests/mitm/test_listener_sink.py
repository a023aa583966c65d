"""What a whole answer looks like on the wire after other addons had it in their hands."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.http import Headers as HeaderMap
from mitmproxy.test import tflow

from combos.admin.client_wire import ClientWire
from combos.mitm.internals import HttpResponseHook, made_headers, made_response
from combos.mitm.listener_sink import ListenerSink


class Noting:
    """A wire that keeps what it is given."""

    def __init__(self) -> None:
        self.keeps = True
        self.fields: tuple[tuple[bytes, bytes], ...] = ()
        self.body = b""
        self.bodiless = False

    def head(self, _status: int, _reason: bytes, fields: tuple[tuple[bytes, bytes], ...], *, bodiless: bool) -> None:
        self.fields, self.bodiless = fields, bodiless

    def chunk(self, data: bytes) -> None:
        self.body += data

    def end(self) -> None:
        pass

    def flush(self) -> None:
        pass


async def sent(
    fields: tuple[tuple[bytes, bytes], ...], body: bytes, changed: Any = None, method: str = "POST"
) -> Noting:
    """What goes out; `changed` is what an addon does with the response in its last hook."""
    flow, wire = tflow.tflow(), Noting()
    flow.request.method = method

    def fire(kind: type, flow: Any, *, follows: bool = False) -> None:
        if kind is HttpResponseHook and changed is not None:
            changed(flow.response)

    sink = ListenerSink(flow, cast("ClientWire", wire), fire)
    await sink.whole(made_response(200, made_headers(fields), 1.0), body)
    return wire


NAMES = st.sampled_from([b"content-length", b"Content-Length", b"transfer-encoding", b"Transfer-Encoding", b"x-a"])
VALUES = st.sampled_from([b"3", b"4", b" 3", b"03", b"chunked", b""])


@given(fields=st.lists(st.tuples(NAMES, VALUES), max_size=4), body=st.sampled_from([b"", b"abc", b"abcd"]))
async def test_the_head_says_how_long_the_body_is(fields: list[tuple[bytes, bytes]], body: bytes) -> None:
    wire = await sent(tuple(fields), body)
    named = HeaderMap(wire.fields)
    if "transfer-encoding" in HeaderMap(fields):
        assert "content-length" not in named
    else:
        assert named.get_all("content-length") == [str(len(body))]
    assert [pair for pair in wire.fields if pair[0] == b"x-a"] == [pair for pair in fields if pair[0] == b"x-a"]
    assert wire.body == body


@pytest.mark.parametrize("field", ["Content-Length", "content-length"])
async def test_a_length_that_is_right_stays_as_it_was_written(field: str) -> None:
    fields = ((b"x-a", b"1"), (field.encode(), b"3"), (b"x-b", b"2"))
    assert (await sent(fields, b"abc")).fields == fields


async def test_a_body_that_an_addon_has_put_there_is_measured() -> None:
    def change(response: Any) -> None:
        response.raw_content = b"longer"

    wire = await sent(((b"content-length", b"3"),), b"abc", change)
    assert (wire.fields, wire.body) == (((b"content-length", b"6"),), b"longer")


async def test_an_answer_without_a_body_keeps_the_length_that_it_tells_of() -> None:
    wire = await sent(((b"content-length", b"7"),), b"", method="head")
    assert (wire.fields, wire.body, wire.bodiless) == (((b"content-length", b"7"),), b"", True)
