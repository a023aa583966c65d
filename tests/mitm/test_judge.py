"""What the rules say about the answer in a flow."""

import gzip
import json

import pytest
from mitmproxy.flow import Error
from mitmproxy.http import Headers, HTTPFlow, Response
from mitmproxy.test import tflow, tutils

from combos.core.facts import Dialect, Now, TransportFault
from combos.mitm.judge import dialect_of, judge
from wires import WIRES, Wire

NOW = Now(0, 1_790_856_000_000)


def flow_of(path: str, status: int, body: bytes, **headers: str) -> HTTPFlow:
    flow = tflow.tflow(req=tutils.treq(method=b"POST", path=path.encode()))
    fields = Headers([(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()])
    flow.response = Response.make(status, b"", fields)
    flow.response.raw_content = body
    return flow


def test_a_status() -> None:
    body = json.dumps({"error": {"message": "slow down"}}).encode()
    judged = judge(flow_of("/v1/responses", 429, body, retry_after="9"), NOW)
    assert (judged.seen, judged.action, judged.rest) == ("status 429", "hop", "cooldown 9 s by retry-after")
    assert str(judged) == f"status 429, rule {judged.verdict and judged.verdict.rule}: hop, cooldown 9 s by retry-after"


def test_the_combos_own_cooldown() -> None:
    judged = judge(flow_of("/v1/responses", 500, b""), NOW, cooldown_ms=1234)
    assert judged.rest == "cooldown 1.234 s by configured"


def test_a_terminal_failure() -> None:
    body = json.dumps({"error": {"message": "bad", "type": "invalid_request_error"}}).encode()
    judged = judge(flow_of("/v1/responses", 400, body), NOW)
    assert (judged.action, judged.rest) == ("stop", "no cooldown")


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_success_is_no_failure_streamed_or_whole(wire: Wire) -> None:
    streamed = flow_of(wire.path, 200, b"".join(wire.ok("fine")), content_type="text/event-stream")
    whole = flow_of(wire.path, 200, json.dumps(wire.whole("fine")).encode(), content_type="application/json")
    assert str(judge(streamed, NOW)) == str(judge(whole, NOW)) == "status 200"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_failure_inside_an_answer_of_success(wire: Wire) -> None:
    body = b"".join([*wire.start(), wire.busy()])
    for flow in (
        flow_of(wire.path, 200, body, content_type="text/event-stream"),
        flow_of(wire.path, 200, gzip.compress(body), content_type="text/event-stream", content_encoding="gzip"),
    ):
        judged = judge(flow, NOW)
        assert (judged.seen, judged.action) == ("status 200", "hop")


def test_a_body_kept_in_part_is_not_judged() -> None:
    wire = WIRES[0]
    flow = flow_of(wire.path, 200, b"".join(wire.ok("fine"))[:200], content_type="text/event-stream")
    assert judge(flow, NOW).verdict is None
    assert judge(flow_of(wire.path, 200, b'{"id": "resp_', content_type="application/json"), NOW).verdict is None


@pytest.mark.parametrize("fault", [TransportFault.REFUSED, TransportFault.IDLE_TIMEOUT])
def test_a_fault(fault: TransportFault) -> None:
    flow = tflow.tflow()
    flow.error = Error(fault.value)
    judged = judge(flow, NOW)
    assert (judged.seen, judged.action) == (fault.value, "hop")


def test_what_cannot_be_judged() -> None:
    flow = tflow.tflow()
    assert str(judge(flow, NOW)) == "no answer"
    flow.error = Error("client disconnected")
    assert str(judge(flow, NOW)) == "client disconnected"


@pytest.mark.parametrize(
    ("method", "path", "dialect"),
    [
        ("POST", "/v1/messages?beta=true", Dialect.MESSAGES),
        ("POST", "/v1beta/models/g:generateContent", Dialect.GEMINI),
        ("GET", "/v1/responses", None),
        ("POST", "/upload", None),
    ],
)
def test_dialects(method: str, path: str, dialect: Dialect | None) -> None:
    assert dialect_of(tflow.tflow(req=tutils.treq(method=method.encode(), path=path.encode()))) is dialect
