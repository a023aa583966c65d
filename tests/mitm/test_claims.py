"""What is noted on a flow while it is on its way."""

import logging

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow

from combos.mitm import claims
from combos.mitm.writer import ResponseWriter


async def respond(_flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.respond(200, (), b"")


def test_a_responder_is_taken_once_and_remembered() -> None:
    flow = tflow.tflow()
    assert claims.take_responder(flow) is None
    assert not claims.is_answered_here(flow)
    claims.respond_with(flow, respond)
    assert claims.take_responder(flow) is respond
    assert claims.is_answered_here(flow)
    assert claims.take_responder(flow) is None


def test_a_request_that_is_streamed_cannot_be_claimed() -> None:
    flow = tflow.tflow()
    flow.request.stream = True
    with pytest.raises(RuntimeError):
        claims.respond_with(flow, respond)
    claims.hold_request(flow)
    claims.respond_with(flow, respond)
    assert claims.is_held(flow)


def test_notes_are_in_no_flow_file_and_no_copy() -> None:
    flow = tflow.tflow()
    claims.hold_request(flow)
    claims.respond_with(flow, respond)
    claims.enter_at_listener(flow)
    assert claims.is_at_listener(flow)
    assert "combos" not in str(flow.get_state())
    loaded = HTTPFlow.from_state(flow.get_state())
    for is_noted in (claims.is_held, claims.is_at_listener):
        assert not is_noted(loaded)
    assert claims.take_responder(loaded) is None


def test_a_failure_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    try:
        raise ValueError("the-secret-text")
    except ValueError as error:
        claims.log_failure(tflow.tflow(), error)
    assert "ValueError" in caplog.text
    assert "test_claims.py" in caplog.text
    assert "the-secret-text" not in caplog.text
