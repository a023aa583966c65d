"""The bytes of an answer at the listener."""

from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from combos.admin.client_wire import ClientWire


def written(status: int, reason: bytes, fields: Sequence[tuple[bytes, bytes]], more: Any = ()) -> bytes:
    wire = ClientWire(make_mocked_request("GET", "/"), more)
    wire.head(status, reason, fields, bodiless=False)
    return b"".join(wire._pieces)


LENGTH = (b"content-length", b"2")


@pytest.mark.parametrize(
    "field",
    [(b"x-a", b"b\r\nx-hidden: yes"), (b"x-a\nx-hidden", b"yes"), (b"x-a", b"b\0c"), (b"x-a", b"b\rx-hidden: yes")],
)
def test_what_would_break_a_line_is_left_out(field: tuple[bytes, bytes]) -> None:
    plain = written(200, b"OK", [LENGTH])
    assert written(200, b"OK", [LENGTH, field]) == plain
    assert written(200, b"OK", [LENGTH], (field,)) == plain


def test_a_reason_that_would_break_the_line_is_left_out() -> None:
    assert written(200, b"OK\r\nx-hidden: yes", [LENGTH]) == written(200, b"", [LENGTH])


def test_everything_else_is_written_as_it_is() -> None:
    fields = [LENGTH, (b"Set-Cookie", b"a=\xe4; b"), (b"x-a", b"")]
    expected = b"HTTP/1.1 404 Not here\r\ncontent-length: 2\r\nSet-Cookie: a=\xe4; b\r\nx-a: \r\n"
    assert written(404, b"Not here", fields).startswith(expected)
