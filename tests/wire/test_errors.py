"""Refusals on the wire: bodies, header fields and stream tails of the dialects."""

import json

import pytest

from combos.core.errors import ProxyError, combo_unavailable, image_refused, unknown_combo
from combos.core.facts import Dialect
from combos.wire.dialect import FailureTerminal, inspector
from combos.wire.errors import render, stream_tail

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI
UNKNOWN = ProxyError(404, "invalid_request_error", "invalid_request_error", "Unknown combo: nope")


INVALID = "invalid_request_error"
BLAMED = ProxyError(400, INVALID, "bad", "no", param="n")
NOPE = "Unknown combo: nope"
DOWN = "No available targets for combo: x"
NO_IMAGE = 'Combo "x" does not accept image input'


@pytest.mark.parametrize(
    ("error", "dialect", "inner"),
    [
        (UNKNOWN, R, {"message": NOPE, "type": INVALID, "code": INVALID}),
        (UNKNOWN, C, {"message": NOPE, "type": INVALID, "param": None, "code": INVALID}),
        (UNKNOWN, M, {"type": "not_found_error", "message": NOPE}),
        (unknown_combo("nope"), M, {"type": "not_found_error", "message": NOPE}),
        (UNKNOWN, G, {"code": 404, "message": NOPE, "status": "NOT_FOUND"}),
        (combo_unavailable("x"), R, {"message": DOWN, "type": "server_error", "code": "combo_unavailable"}),
        (combo_unavailable("x"), M, {"type": "api_error", "message": f"{DOWN} (combo_unavailable)"}),
        (combo_unavailable("x"), G, {"code": 503, "message": f"{DOWN} (combo_unavailable)", "status": "UNAVAILABLE"}),
        (image_refused("x"), M, {"type": INVALID, "message": NO_IMAGE}),
        (BLAMED, R, {"message": "no", "type": INVALID, "code": "bad", "param": "n"}),
        (BLAMED, C, {"message": "no", "type": INVALID, "param": "n", "code": "bad"}),
    ],
)
def test_bodies(error: ProxyError, dialect: Dialect, inner: dict[str, object]) -> None:
    """Compared as bytes, so that the order of the fields is that of the vendors."""
    outer = {"type": "error", "error": inner} if dialect is M else {"error": inner}
    expected = json.dumps(outer, separators=(",", ":")).encode()
    assert render(error, dialect) == (((b"content-type", b"application/json"),), expected)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_retry_after(dialect: Dialect) -> None:
    headers, _ = render(combo_unavailable("x", 26), dialect)
    assert headers == ((b"content-type", b"application/json"), (b"retry-after", b"26"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (499, "invalid_request_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_messages_type_follows_the_status(status: int, kind: str) -> None:
    _, body = render(ProxyError(status, "t", "t", "text"), M)
    assert json.loads(body)["error"] == {"type": kind, "message": "text"}


@pytest.mark.parametrize(("status", "word"), [(418, "FAILED_PRECONDITION"), (500, "INTERNAL"), (599, "INTERNAL")])
def test_gemini_status_of_other_codes(status: int, word: str) -> None:
    assert json.loads(render(ProxyError(status, "t", "t", "text"), G)[1])["error"]["status"] == word


BROKEN = ProxyError(502, "server_error", "connection_reset", "alpha/m1 broke\r\n\r\noff")


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("before", [b"", b"data: {", b"event: x\ndata: {}\n", b"data: {}\n\n"])
def test_a_tail_is_read_as_a_failure(dialect: Dialect, before: bytes) -> None:
    seen = inspector(dialect)
    seen.output = True
    seen.feed(before + stream_tail(BROKEN, dialect))
    assert isinstance(seen.terminal, FailureTerminal)
    assert seen.terminal.kind == ("failed" if dialect is R else "error")
    assert "alpha/m1 broke" in json.dumps(seen.terminal.event)


def test_a_responses_tail_is_a_failed_response_with_the_announced_id() -> None:
    tail = stream_tail(BROKEN, R, response_id="r1")
    assert tail.startswith(b"\n\nevent: response.failed\ndata: {")
    event = json.loads(tail.split(b"data: ")[1])
    assert event["type"] == "response.failed"
    assert event["response"]["id"] == "r1"
    assert event["response"]["status"] == "failed"
    assert event["response"]["error"] == {"code": "connection_reset", "message": BROKEN.message}
    assert "id" not in json.loads(stream_tail(BROKEN, R).split(b"data: ")[1])["response"]


def test_a_messages_tail_names_its_event() -> None:
    assert stream_tail(BROKEN, M).startswith(b'\n\nevent: error\ndata: {"type":"error","error":{"type":"api_error",')


@pytest.mark.parametrize("dialect", list(Dialect))
def test_nothing_made_here_looks_like_an_answer(dialect: Dialect) -> None:
    text = render(BROKEN, dialect)[1] + stream_tail(BROKEN, dialect)
    for word in (b"choices", b"assistant", b"delta", b"stop_reason", b"[DONE]", b"candidates", b"completed"):
        assert word not in text
