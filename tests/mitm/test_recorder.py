"""Which attempts become flows, and when."""

from collections.abc import Iterator
from typing import Any

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import taddons, tflow

from combos.core.facts import Scope, Verdict
from combos.core.registry import build_registry
from combos.engine.commands import OutboundRequest, Send, Timeouts
from combos.engine.record import AttemptRecord
from combos.mitm.attempt_flows import AttemptFlow, Outgoing
from combos.mitm.options import AttemptFlows
from combos.mitm.recorder import Recorder
from configs import config, document, provider

HOP = Verdict("overload", hop=True, scope=Scope.TARGET)
STOP = Verdict("caller", hop=False)


class Seen:
    def __init__(self) -> None:
        self.hooks: list[tuple[str, int]] = []
        self.flows: dict[int, HTTPFlow] = {}

    def _note(self, name: str, flow: HTTPFlow) -> None:
        number = flow.metadata["combos"]["attempt"]
        self.hooks.append((name, number))
        self.flows[number] = flow

    def requestheaders(self, flow: HTTPFlow) -> None:
        assert flow.is_replay == "request"
        self._note("requestheaders", flow)

    def request(self, flow: HTTPFlow) -> None:
        assert flow.is_replay is None
        self._note("request", flow)

    def responseheaders(self, flow: HTTPFlow) -> None:
        self._note("responseheaders", flow)

    def response(self, flow: HTTPFlow) -> None:
        self._note("response", flow)

    def error(self, flow: HTTPFlow) -> None:
        self._note("error", flow)

    def of(self, number: int) -> list[str]:
        return [name for name, attempt in self.hooks if attempt == number]


@pytest.fixture
def seen() -> Iterator[Seen]:
    with taddons.context(loadcore=False) as context:
        made = Seen()
        context.master.addons.add(made)
        yield made


def sent(attempt: int) -> tuple[Send, Outgoing]:
    made = provider(baseUrl="http://alpha.example/v1", headers={"x-team": "secret-header"})
    registry = build_registry(config(document(providers={"alpha": made, "beta": provider()})), 1)
    target = registry.combos["main"].targets[0]
    assert target.provider is not None
    headers = ((b"content-type", b"application/json"), (b"x-team", b"secret-header"))
    request = OutboundRequest("POST", "http://alpha.example/v1/chat/completions?x=1", headers, b"{}", target.provider)
    send = Send(attempt, target, request, Timeouts(1, 1, 1))
    return send, Outgoing(request, ((b"Authorization", b"Bearer secret-key"),))


def over(attempt: int, status: int | None = 503, verdict: Verdict | None = HOP) -> AttemptRecord:
    record = AttemptRecord(attempt, "alpha", "m1", 0, status=status, verdict=verdict)
    record.result = "" if status else "connection_refused"
    return record


def recorder(policy: AttemptFlows, body_limit: int = 8) -> Recorder:
    return Recorder(tflow.tflow(), policy, body_limit)


async def begin(made: Recorder, attempt: int, *, translated: bool = False) -> AttemptFlow | None:
    flow = made.begin(*sent(attempt), translated=translated)
    if flow is not None:
        await flow.announce()
    return flow


async def end(made: Recorder, record: AttemptRecord) -> None:
    if (waiting := made.end(record)) is not None:
        await waiting


async def play(made: Recorder, attempt: int, record: AttemptRecord, *, translated: bool = False) -> Any:
    flow = await begin(made, attempt, translated=translated)
    if record.status is not None:
        made.head(attempt, record.status, ((b"a", b"b"),))
        made.chunk(attempt, b"12345")
        made.chunk(attempt, b"67890")
    await end(made, record)
    return flow


ANSWERED = ["requestheaders", "request", "responseheaders", "response"]
BROKEN = ["requestheaders", "request", "error"]


async def test_none_makes_none(seen: Seen) -> None:
    made = recorder(AttemptFlows.NONE)
    assert await play(made, 0, over(0)) is None
    assert await play(made, 1, over(1), translated=True) is None
    assert seen.hooks == []


async def test_auto_makes_the_first_one_afterwards_when_the_request_hops(seen: Seen) -> None:
    made = recorder(AttemptFlows.AUTO)
    assert await play(made, 0, over(0)) is None
    assert seen.of(1) == ANSWERED
    flow = seen.flows[1]
    assert flow.response is not None
    assert (flow.response.status_code, flow.response.content) == (503, b"12345678")
    assert not flow.live
    assert await play(made, 1, over(1, 200, None)) is not None
    assert seen.of(2) == ANSWERED


@pytest.mark.parametrize("verdict", [None, STOP])
async def test_auto_makes_none_for_a_first_target_that_answers(verdict: Verdict | None, seen: Seen) -> None:
    made = recorder(AttemptFlows.AUTO)
    await play(made, 0, over(0, 200, verdict))
    assert seen.hooks == []


async def test_auto_forgets_what_has_been_committed(seen: Seen) -> None:
    made = recorder(AttemptFlows.AUTO)
    await begin(made, 0)
    made.committed(0)
    await end(made, over(0))
    assert seen.hooks == []


async def test_auto_makes_one_for_a_translated_request_at_once(seen: Seen) -> None:
    made = recorder(AttemptFlows.AUTO)
    assert await begin(made, 0, translated=True) is not None
    assert seen.of(1) == ["requestheaders", "request"]


async def test_a_broken_attempt_ends_in_error(seen: Seen) -> None:
    for policy in (AttemptFlows.AUTO, AttemptFlows.ALL):
        seen.hooks.clear()
        await play(recorder(policy), 0, over(0, None))
        assert seen.of(1) == BROKEN
        assert seen.flows[1].error is not None
        assert seen.flows[1].error.msg == "connection_refused"


async def test_what_is_shown_holds_no_secret(seen: Seen) -> None:
    flow = await play(recorder(AttemptFlows.ALL), 0, over(0))
    state = repr(flow.flow.get_state())
    assert "secret-key" not in state
    assert "secret-header" not in state
    assert flow.flow.request.url == "http://alpha.example/v1/chat/completions?x=1"
    assert flow.flow.request.headers["host"] == "alpha.example"


async def test_what_is_sent_has_the_secrets_and_the_changes_of_others(seen: Seen) -> None:
    flow = await begin(recorder(AttemptFlows.ALL), 0)
    assert flow is not None
    flow.flow.request.headers["x-added"] = "yes"
    flow.flow.request.headers["x-team"] = "theirs"
    flow.flow.request.headers["authorization"] = "theirs"
    flow.flow.request.content = b"changed"
    changed = flow.changed()
    headers = dict(changed.request.headers)
    assert headers[b"x-added"] == b"yes"
    assert headers[b"x-team"] == b"secret-header"
    assert b"theirs" not in repr(changed.request.headers).encode()
    assert changed.request.body == b"changed"
    assert changed.credentials == ((b"Authorization", b"Bearer secret-key"),)


async def test_abandoned_attempts_are_resumed_and_ended(seen: Seen) -> None:
    made = recorder(AttemptFlows.ALL)
    flow = await begin(made, 0)
    assert flow is not None
    flow.flow.intercept()
    made.abandon()
    assert not flow.flow.intercepted
    assert not flow.flow.live
    assert flow.flow.error is not None
    await end(made, over(0))
    assert "response" not in seen.of(1)
