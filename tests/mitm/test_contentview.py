"""The view of a model's turn, through mitmproxy's own registry of views."""

import json
from pathlib import Path

import pytest
from mitmproxy import contentviews
from mitmproxy.http import HTTPFlow, Response
from mitmproxy.test import tflow, tutils

from combos.mitm.contentview import ModelTurnContentview, register
from stage import Case, stage
from wires import WIRES, C, M, R, Wire, error

DOWN = error(429, {"error": {"message": "slow down", "code": "rate_limited"}}, [(b"Retry-After", b"9")])


@pytest.fixture(autouse=True)
def _registered() -> None:
    register()


def shown(flow: HTTPFlow, view: str = "auto") -> contentviews.ContentviewResult:
    assert flow.response is not None
    return contentviews.prettify_message(flow.response, flow, view)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_hopped_request_and_its_attempts(confdir: Path, wire: Wire, stream: bool) -> None:
    case = Case(wire, alpha=DOWN, beta=wire.answers("beta-ok", stream=stream))
    async with stage(confdir, case) as on:
        await on.ask(case, stream=stream)
        ours = [flow for flow in on.flows if "combos" in flow.metadata]
        (client,) = [flow for flow in ours if "combo" in flow.metadata["combos"]]
        seen = shown(client)
        assert seen.view_name == "Model turn"
        lines = seen.text.splitlines()
        assert lines[0] == client.comment
        assert lines[1].strip().startswith(f"{case.id}-alpha/m1 429, rule ")
        assert lines[1].endswith("cooldown 9000 ms by retry-after")
        assert lines[2].strip() == f"{case.id}-beta/m2 200"
        assert "status: completed (stop)" in lines
        assert lines[-1] == "beta-ok"
        failed, served = (shown(flow).text for flow in ours if flow is not client)
        assert f"attempt 1: {case.id}-alpha/m1" in failed
        assert "hop, cooldown 9 s by retry-after" in failed
        assert "slow down" in failed
        assert f"attempt 2: {case.id}-beta/m2" in served
        assert "beta-ok" in served


async def test_a_stream_that_a_whole_answer_was_made_into(confdir: Path) -> None:
    case = Case(M, alpha=C.answers("made", stream=False), providers={"alpha": {"adapter": "openai-chat"}})
    async with stage(confdir, case) as on:
        await on.ask(case)
        (client,) = [flow for flow in on.flows if "combo" in flow.metadata.get("combos", {})]
        assert "made" in shown(client).text.splitlines()


def asked(path: str = "/v1/responses", body: bytes = b"{}") -> HTTPFlow:
    flow = tflow.tflow(req=tutils.treq(method=b"POST", path=path.encode(), content=body))
    flow.response = Response.make(200, json.dumps(R.whole("vendor")), {"content-type": "application/json"})
    return flow


def test_traffic_that_is_none_of_ours_is_readable_too() -> None:
    seen = shown(asked())
    assert (seen.view_name, seen.text.splitlines()[-1]) == ("Model turn", "vendor")
    failed = asked()
    failed.response = Response.make(503, b'{"error": {"message": "down"}}', {"content-type": "application/json"})
    assert "rule " in shown(failed).text
    assert '"message": "down"' in shown(failed).text
    failed.response = Response.make(502, b"<h1>Bad gateway</h1>", {"content-type": "text/html"})
    assert shown(failed).text.endswith("<h1>Bad gateway</h1>")


def test_other_traffic_keeps_its_views() -> None:
    assert shown(asked("/api/things")).view_name == "JSON"
    with pytest.raises(ValueError, match="not a request for a model"):
        ModelTurnContentview().prettify(b"{}", contentviews.Metadata(flow=asked("/api/things")))


def test_what_cannot_be_read_is_shown_raw() -> None:
    flow = asked()
    flow.response = Response.make(200, b"<html>no model", {"content-type": "text/html"})
    assert "<html>no model" in shown(flow).text


def test_requests_are_shown_on_demand() -> None:
    flow = asked(body=json.dumps(R.request("m")).encode())
    automatic = contentviews.prettify_message(flow.request, flow)
    assert automatic.view_name != "Model turn"
    assert "── user\nhi" in contentviews.prettify_message(flow.request, flow, "model turn").text
    broken = asked(body=b"[]")
    assert "Couldn't parse" in contentviews.prettify_message(broken.request, broken, "model turn").text


def test_a_decision_is_shown() -> None:
    flow = asked()
    decision = {
        "backend": "typesafe",
        "gate": "apply",
        "provider": "a",
        "model": "m",
        "effort": "low",
        "latency_ms": 12,
    }
    flow.metadata["combos"] = {"combo": "main", "comment": "main: a/m 200", "attempts": [], "decision": decision}
    assert "decision: typesafe apply: a/m, effort low, 12 ms" in shown(flow).text
    flow.metadata["combos"]["decision"] = {**decision, "gate": "timeout", "provider": None, "effort": None}
    assert "decision: typesafe timeout: no target, 12 ms" in shown(flow).text
