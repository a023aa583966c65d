"""What requests share: who may use it, which provider can be called, and what is remembered of a conversation."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow, tutils

from combos.admin.live_config import LiveConfig
from combos.core import errors
from combos.core.facts import Headers, Now
from combos.core.recall import Selection, lane_key
from combos.core.registry import ComboRoute
from combos.engine.record import Outcome, TurnRecord, trail
from combos.engine.turn import Turn
from combos.mitm.access import caller_of
from combos.mitm.client import Client
from combos.mitm.layer import answer_whole
from combos.mitm.options import Settings
from combos.mitm.recognition import Recognised
from combos.mitm.recorder import AttemptFlows
from combos.mitm.service import Service
from combos.upstream.selfloop import OwnAddresses
from combos.wire.errors import render
from combos.wire.fields import Fields
from combos.wire.request import lane, request_facts
from configs import document, provider, with_provider

FORWARD = {"adapter": "openai-responses", "authMode": "forward"}
SETTINGS = Settings("", None, AttemptFlows.AUTO, 65_536, 1_000, 2_000, 3_000)
NOW = Now(5_000, 1_790_856_000_000)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    made = Service(LiveConfig(tmp_path / "config.json"), SETTINGS)
    made.environ = {"PROXY_KEY": "admitted", "ALPHA_KEY": "alpha-secret"}
    made.now = lambda: NOW
    yield made
    await made.close()


def adopt(service: Service, value: dict[str, Any]) -> None:
    service.config.adopt(value)


def flow(peer: str = "127.0.0.1", headers: Headers = (), body: object = None) -> HTTPFlow:
    raw = b"" if body is None else json.dumps(body).encode()
    made = tflow.tflow(req=tutils.treq(method=b"POST", path=b"/v1/responses", headers=headers, content=raw))
    made.client_conn.peername = (peer, 5555)
    return made


# -- who may use it


@pytest.mark.parametrize(
    ("peer", "headers", "admitted"),
    [
        ("127.0.0.1", (), True),
        ("192.0.2.7", (), False),
        ("192.0.2.7", ((b"authorization", b"Bearer admitted"),), True),
        ("192.0.2.7", ((b"x-api-key", b"admitted"),), True),
        ("192.0.2.7", ((b"x-api-key", b"admitte"),), False),
        ("192.0.2.7", ((b"x-api-key", b"${PROXY_KEY}"),), False),
        ("192.0.2.7", ((b"x-api-key", b"${ABSENT_KEY}"),), False),
    ],
)
async def test_keys_admit_clients_of_other_machines(
    service: Service, peer: str, headers: Headers, admitted: bool
) -> None:
    keys = [{"name": "laptop", "key": "${PROXY_KEY}"}, {"name": "other", "key": "${ABSENT_KEY}"}]
    adopt(service, document(apiKeys=keys))
    asked = flow(peer, headers)
    assert service.admits(asked) is admitted
    holds = bool(headers) and admitted
    assert service.holds_own_key(asked, service.config.registry) is holds


# -- which provider can be called


@pytest.mark.parametrize(
    ("fields", "may_forward", "reason"),
    [
        ({"apiKey": "${ALPHA_KEY}"}, False, None),
        ({"apiKey": "${ABSENT_KEY}"}, True, "no_credentials"),
        (FORWARD, True, None),
        (FORWARD, False, "no_credentials"),
        ({"authMode": "local"}, False, None),
        ({"baseUrl": "http://127.0.0.1:8080/v1", "apiKey": "k", "allowPrivateNetwork": True}, False, "self_loop"),
        ({"baseUrl": "http://localhost:8080/v1", "apiKey": "k", "allowPrivateNetwork": True}, False, "self_loop"),
        ({"baseUrl": "http://127.0.0.1:8081/v1", "apiKey": "k", "allowPrivateNetwork": True}, False, None),
    ],
)
async def test_why_a_provider_cannot_be_called(
    service: Service, fields: dict[str, Any], may_forward: bool, reason: str | None
) -> None:
    service.own = OwnAddresses([("127.0.0.1", 8080)])
    adopt(service, with_provider(**fields))
    assert service.unusable(service.config.registry.providers["alpha"], may_forward=may_forward) == reason


async def test_credentials(service: Service) -> None:
    forwards = provider(**FORWARD)
    adopt(service, document(providers={"alpha": provider(apiKey="${ALPHA_KEY}"), "beta": forwards}))
    alpha, beta = (service.config.registry.providers[name] for name in ("alpha", "beta"))
    caller: Headers = ((b"Authorization", b"Bearer mine"), (b"x-other", b"1"))
    assert service.own_credentials(alpha) == ((b"Authorization", b"Bearer alpha-secret"),)
    assert service.forwarded_credentials(alpha, caller) == service.own_credentials(alpha)
    assert service.own_credentials(beta) == ()
    assert service.forwarded_credentials(beta, caller) == caller[:1]


async def test_explaining_a_combo(service: Service) -> None:
    adopt(service, with_provider(**FORWARD))
    combo = service.config.registry.combos["main"]
    assert service.explain(combo, service.config.registry).next == "alpha/m1"
    refused = service.explain(combo, service.config.registry, lambda _provider: "no_credentials")
    assert (refused.next, refused.targets[0].reason) == (None, "no_credentials")


# -- a turn


async def test_a_turn_knows_who_asks_and_what_about(service: Service) -> None:
    adopt(service, document())
    asked = flow(headers=((b"thread-id", b"t"), (b"authorization", b"Bearer mine")))
    fields = Fields(asked.request.headers.fields)
    found = recognised(service, asked)
    request = service._turn_request(found, client(service, asked, "vendor.test"))
    assert (request.origin, request.caller) == ("vendor.test", caller_of(fields))
    name = lane(fields)
    assert name is not None
    assert request.lane_key == request.conversation == lane_key(request.caller, name)
    other = service._turn_request(found, client(service, asked, None))
    assert other.seed != request.seed  # no two turns make the same ids
    options = service._turn_options()
    assert (options.connect_ms, options.head_ms, options.idle_ms) == (1_000, 2_000, 3_000)


@pytest.mark.parametrize("dialect_path", ["/v1/responses", "/v1/chat/completions", "/v1/messages"])
async def test_a_defect_is_told_in_the_clients_format(
    service: Service, dialect_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(Turn, "handle", breaks)
    adopt(service, document())
    asked = flow()
    facts = request_facts(dialect_path, b'{"model":"combo/main"}')
    usual = recognised(service, asked)
    found = Recognised(facts, usual.fields, usual.route)
    with pytest.raises(RuntimeError):
        await answer_whole(asked, service.responder(asked, found, None))
    assert asked.response is not None
    assert asked.response.status_code == 500
    assert asked.response.content == render(errors.internal_failure(), facts.dialect)[1]
    assert b"secret" not in asked.response.content


def recognised(service: Service, asked: HTTPFlow) -> Recognised:
    facts = request_facts("/v1/responses", json.dumps({"model": "combo/main", "input": "hi"}).encode())
    route = service.config.registry.resolve("combo/main")
    assert route is not None
    return Recognised(facts, Fields(asked.request.headers.fields), route)


def client(service: Service, asked: HTTPFlow, origin: str | None) -> Client:
    return Client(service, asked, service.config.registry, origin)


# -- a turn that is over


def finished(outcome: Outcome) -> TurnRecord:
    return TurnRecord("combo/main", "main", 1_000, outcome=outcome, status=200, ended_ms=1_800)


@pytest.mark.parametrize(("outcome", "level"), [(Outcome.SUCCESS, logging.INFO), (Outcome.CANCELLED, logging.DEBUG)])
async def test_one_line_says_how_a_turn_ended(
    service: Service, caplog: pytest.LogCaptureFixture, outcome: Outcome, level: int
) -> None:
    caplog.set_level(level, "combos.mitm.service")
    record = finished(outcome)
    service._finished(flow(), record, False)
    assert [(row.levelno, row.getMessage()) for row in caplog.records] == [(level, f"combos: {trail(record)}")]


async def test_a_line_that_nobody_takes_is_not_made(
    service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[TurnRecord] = []
    monkeypatch.setattr("combos.mitm.service.trail", made.append)
    caplog.set_level(logging.INFO, "combos.mitm.service")
    with monkeypatch.context() as patched:
        patched.setattr(logging.getLogger(), "handlers", [logging.NullHandler(logging.ERROR)])
        service._finished(flow(), finished(Outcome.SUCCESS), False)
    assert made == []
    service._finished(flow(), finished(Outcome.SUCCESS), False)
    assert len(made) == 1


# -- what is remembered

COMPACTION = {"model": "m-answer", "input": [{"type": "compaction_trigger"}]}
THREAD: Headers = ((b"thread-id", b"t"),)


def recalled(service: Service, asked: HTTPFlow) -> ComboRoute | None:
    request = asked.request
    return service.recall(request.path, Fields(request.headers.fields), request.raw_content or b"")


def remember(service: Service, asked: HTTPFlow) -> None:
    fields = Fields(asked.request.headers.fields)
    name = lane(fields)
    assert name is not None
    key = lane_key(caller_of(fields), name)
    service.state.recall.put(key, Selection("main", "alpha", "m1", "m-answer", NOW.mono_ms, 8))


async def test_a_remembered_combo(service: Service) -> None:
    adopt(service, document())
    asked = flow(headers=THREAD, body=COMPACTION)
    assert recalled(service, asked) is None
    remember(service, asked)
    assert recalled(service, asked) == ComboRoute(service.config.registry.combos["main"])
    # Another caller, another conversation, and a request without one.
    for headers in ((*THREAD, (b"authorization", b"Bearer other")), ((b"thread-id", b"u"),), ()):
        assert recalled(service, flow(headers=headers, body=COMPACTION)) is None


async def test_a_configuration_without_the_combo_forgets_it(service: Service) -> None:
    adopt(service, document())
    remember(service, flow(headers=THREAD))
    adopt(service, {**document(), "combos": {}})
    assert len(service.state.recall) == 0


async def test_sweeping_drops_what_has_expired(service: Service) -> None:
    adopt(service, document())
    remember(service, flow(headers=THREAD))
    service.sweep()
    assert len(service.state.recall) == 1
    service.now = lambda: Now(NOW.mono_ms + 30 * 60_000, NOW.epoch_ms)
    service.sweep()
    assert len(service.state.recall) == 0
