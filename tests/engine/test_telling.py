"""Failures told to clients of another dialect, or without their body."""

import gzip

from combos.core.errors import ProxyError
from combos.core.facts import Dialect, TransportFault
from combos.engine import telling
from combos.engine.steps import Lost, Whole
from combos.engine.voice import Voice
from combos.wire.fields import Fields
from combos.wire.terminal import FailureTerminal
from translations import C, M, context

CODED = ((b"content-encoding", b"gzip"), (b"retry-after-ms", b"1001"))
BODY = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'


def voice() -> Voice:
    return Voice(context(C, M), streams=False)


def test_a_body_is_decoded_before_it_is_translated() -> None:
    told = telling.status_error(voice(), 529, CODED, gzip.compress(BODY))
    assert told.status == 503
    assert told.headers == ((b"content-type", b"application/json"), (b"retry-after", b"2"))
    assert b"Overloaded" in told.body


def test_a_body_that_cannot_be_decoded_leaves_the_status() -> None:
    told = telling.status_error(voice(), 403, CODED, b"no gzip")
    assert told.status == 403
    assert b"permission_error" in told.body


def test_the_clients_own_dialect_is_given_as_it_came() -> None:
    assert telling.status_error(None, 529, CODED, b"raw") == Whole(529, CODED, b"raw")


def test_a_stream_that_said_nothing_is_lost() -> None:
    for kind in telling.SILENT:
        told = telling.stream_error(voice(), FailureTerminal(Dialect.MESSAGES, kind), 502, ())  # type: ignore[arg-type]
        assert isinstance(told, Lost)
        assert told.error.code == TransportFault.TRUNCATED


def test_a_lost_body_keeps_the_delay() -> None:
    lost = telling.lost_body(429, ((b"Retry-After", b"9"),))
    assert (lost.error.status, lost.retry_after) == (429, "9")


def test_an_unsayable_answer_counts_as_a_failure_of_the_target() -> None:
    refused = telling.unsayable(ProxyError(502, "server_error", "undeclared_tool_call", "no such tool"))
    assert (refused.facts.status, refused.facts.summary, refused.result) == (
        502,
        "no such tool",
        "undeclared_tool_call",
    )


def test_content_codings() -> None:
    codings = [Fields(((b"Content-Encoding", value),)) for value in (b"", b"Identity", b"br")]
    assert [telling.content_coding(fields) for fields in codings] == [None, None, "br"]
    assert telling.content_coding(Fields(())) is None
