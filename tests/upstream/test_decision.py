"""Decisions over the wire: every gate against a loopback service, keys, private networks, cancellation."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import aiohttp.resolver
import pytest

from authority import Authority
from combos.core.registry import Registry
from combos.decision.decide import Question, question_of
from combos.decision.evidence import Evidence
from combos.decision.gates import Closed, Gate
from combos.decision.model import ModelReply
from combos.decision.options import Candidate
from combos.decision.probe import TrialRefused
from combos.decision.service import Hosted, Secrets
from combos.engine.commands import Decide
from combos.engine.record import DecisionRecord
from combos.upstream.decision import Decider, Invoke, probe_decision, probe_provider
from combos.upstream.proxies import ProxySettings
from combos.upstream.session import Upstream, UpstreamSettings
from combos.upstream.tls import TlsSettings
from decisions import facts, main_of, registry, row
from rawserver import closed_port, head, response
from systemone import Behaviour, SystemOne, answer, choosing, closing, hanging, options, sending

TWO = (Candidate("alpha", "m1", ("low", "medium")), Candidate("beta", "m2"))
KEYS = {"TYPESAFE_API_KEY": "sk-typesafe", "JEV_API_KEY": "sk-jev"}
JSON = (b"Content-Type", b"application/json")


def question(provider: str | None = "tev", candidates: Sequence[Candidate] = TWO, **given: Any) -> Question:
    return Question(provider, given.pop("model", None), tuple(candidates), partial(Evidence, "x"), **given)


def made(service: SystemOne | str, **fields: Any) -> Registry:
    return registry(providers={"tev": row(service if isinstance(service, str) else service.url, **fields)})


def decider(
    upstream: Upstream, environ: Mapping[str, str] = KEYS, invoke: Invoke | None = None, hosted: Hosted | None = None
) -> Decider:
    return Decider(upstream, lambda: Secrets(environ), invoke, hosted)


async def decide(
    upstream: Upstream, *behaviours: Behaviour, asked: Question | None = None, **fields: Any
) -> tuple[DecisionRecord, SystemOne]:
    async with SystemOne(*behaviours) as service:
        return await decider(upstream).decide(asked or question(), made(service, **fields)), service


async def test_an_answer_is_applied(upstream: Upstream) -> None:
    usage = {"input_tokens": 410, "output_tokens": 6}
    shares = {"alpha/m1:low": 0.9, "alpha/m1:medium": 0.05, "beta/m2:none": 0.05}
    reply = choosing("alpha/m1:low", usage, confidence=0.83, probabilities=shares)
    record, service = await decide(upstream, reply)
    assert (record.gate, record.backend, record.target, record.effort) == ("apply", "systemone", "alpha/m1", "low")
    assert (record.confidence, record.probability, record.usage) == (0.83, 0.9, usage)
    assert 0 <= record.latency_ms < 4_000
    assert options(service.documents[0]) == ["alpha/m1:low", "alpha/m1:medium", "beta/m2:none"]


async def test_the_request_holds_nothing_but_what_it_must(upstream: Upstream) -> None:
    _, service = await decide(upstream, apiKey="own-key", headers={"X-Extra": "1"})
    (request,) = service.requests
    names = sorted(name.lower().decode() for name, _ in request.headers)
    assert names == ["accept-encoding", "authorization", "content-length", "content-type", "host"]
    assert request.header("authorization") == "Bearer own-key"
    assert request.header("content-type") == "application/json"
    assert list(json.loads(request.body)) == ["model", "state", "questions"]


async def test_typesafe_is_asked_with_objects_and_its_own_model(upstream: Upstream) -> None:
    async with SystemOne(choosing("alpha/m1:low")) as service:
        asked = decider(upstream, hosted=Hosted(service.url, allow_private=True))
        record = await asked.decide(question(None), registry())
    assert (record.gate, record.backend) == ("apply", "typesafe")
    assert service.requests[0].header("authorization") == "Bearer sk-typesafe"
    assert service.documents[0]["model"] == "jev-latest"
    criteria = service.documents[0]["questions"]["route"]["criteria"]
    assert criteria["beta/m2:none"] == {
        "target": "beta/m2",
        "provider": "beta",
        "model": "m2",
        "reasoning_effort": None,
    }


BIG = response(200, answer("beta/m2:none") + b" " * 70_000)
GATES: dict[str, tuple[Behaviour, Gate]] = {
    "close": (closing, Gate.NETWORK),
    "cut off": (sending(head(200, [JSON, (b"Content-Length", b"999")]) + b"{", closing), Gate.NETWORK),
    "no http": (sending(b"hello\r\n\r\n"), Gate.NETWORK),
    "302": (sending(response(302, b"", [(b"Location", b"http://127.0.0.1:1/v1/systemone")])), Gate.REDIRECT),
    "304": (sending(head(304)), Gate.REDIRECT),
    "401": (sending(response(401, b"{}")), Gate.HTTP),
    "422 that echoes the state": (sending(response(422, b'{"detail":[{"input":"x"}]}')), Gate.HTTP),
    "500": (sending(response(500, answer("beta/m2:none"))), Gate.HTTP),
    "529": (sending(response(529, b"")), Gate.HTTP),
    "70 KiB": (sending(BIG), Gate.MALFORMED),
    "latin-1": (sending(response(200, b'{"model":"gr\xfcn"}')), Gate.MALFORMED),
    "no json": (sending(response(200, b"<html>")), Gate.MALFORMED),
    "nothing": (sending(response(200, b"")), Gate.MALFORMED),
    "unknown coding": (
        sending(response(200, answer("beta/m2:none"), [JSON, (b"Content-Encoding", b"zip")])),
        Gate.MALFORMED,
    ),
    "wrong key": (choosing("beta/m2:max"), Gate.INVALID),
    "incomplete probabilities": (choosing("beta/m2:none", probabilities={"beta/m2:none": 1}), Gate.INVALID),
    "inconsistent probabilities": (
        choosing("beta/m2:none", probabilities={"alpha/m1:low": 0.6, "alpha/m1:medium": 0.2, "beta/m2:none": 0.2}),
        Gate.INVALID,
    ),
}


@pytest.mark.parametrize("name", GATES)
async def test_every_failure_is_a_gate_and_fails_open(upstream: Upstream, name: str) -> None:
    behaviour, gate = GATES[name]
    record, service = await decide(upstream, behaviour)
    assert (record.gate, record.target, record.effort) == (gate, "alpha/m1", "medium")
    assert len(service.requests) == 1, "a decision is not tried again"
    assert record.usage is None


async def test_a_confidence_out_of_range_is_dropped(upstream: Upstream) -> None:
    record, _ = await decide(upstream, choosing("beta/m2:none", confidence=7))
    assert (record.gate, record.confidence) == ("apply", None)


async def test_nobody_listens(upstream: Upstream) -> None:
    with closed_port() as port:
        record = await decider(upstream).decide(question(), made(f"http://127.0.0.1:{port}/v1/systemone"))
    assert (record.gate, record.target) == ("network", "alpha/m1")


@pytest.mark.parametrize("first", [b"", head(200, [JSON, (b"Content-Length", b"999")]) + b"{"], ids=["head", "body"])
async def test_the_deadline_covers_head_and_body(
    upstream: Upstream, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Question, "deadline_ms", 50)
    left = asyncio.Event()
    async with SystemOne(hanging(left=left, first=first)) as service:
        record = await decider(upstream).decide(question(), made(service))
        await asyncio.wait_for(left.wait(), 5)
    assert (record.gate, record.target) == ("timeout", "alpha/m1")
    assert record.latency_ms >= 49


@pytest.mark.parametrize(
    ("asked", "gate"),
    [
        (question(candidates=()), "no_choices"),
        (question(candidates=TWO[1:]), "no_choices"),
        (question(candidates=[Candidate("p", f"m{n}", ("low", "high")) for n in range(14)]), "invalid"),
        (Question("tev", None, TWO, partial(Evidence, "")), "no_state"),
        (Question("tev", None, TWO, partial(Evidence, "x" * 66_000)), "invalid"),
        (question("nobody"), "missing_key"),
        (question("jev", TWO), "missing_key"),
        (question(model="alpha/m1", provider=None), "missing_key"),
    ],
)
async def test_gates_that_send_nothing(upstream: Upstream, asked: Question, gate: str) -> None:
    async with SystemOne() as service:
        record = await Decider(upstream, lambda: Secrets({})).decide(asked, made(service))
    assert record.gate == gate
    assert service.server.connections == 0


async def test_twenty_six_options_are_sent(upstream: Upstream) -> None:
    many = [Candidate("p", f"m{n}", ("low", "high")) for n in range(13)]
    record, service = await decide(upstream, asked=question(candidates=many))
    assert (record.gate, record.target, record.effort) == ("apply", "p/m12", "high")
    assert len(options(service.documents[0])) == 26


class TestKeys:
    @pytest.mark.parametrize("status", [200, 401, 302])
    async def test_typesafes_keys_never_reach_a_compatible_row(self, upstream: Upstream, status: int) -> None:
        reply = response(status, b"{}", [JSON, (b"Location", b"/v1/systemone")])
        _, service = await decide(upstream, sending(reply))
        assert len(service.requests) == 1
        assert service.requests[0].header("authorization") is None
        assert b"sk-" not in service.requests[0].head + service.requests[0].body

    @pytest.mark.parametrize("written", ["$TYPESAFE_API_KEY", "${JEV_API_KEY}", "keychain:jev", "sk-jev", "$UNSET"])
    async def test_a_row_with_a_foreign_key_is_not_asked(self, upstream: Upstream, written: str) -> None:
        record, service = await decide(upstream, apiKey=written)
        assert record.gate == "missing_key"
        assert service.server.connections == 0

    async def test_no_key_shows_in_a_log(self, upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger="combos")
        await decide(upstream, closing, apiKey="sk-own")
        assert "decision by systemone: network" in caplog.text
        assert "sk-" not in caplog.text


class Names:
    """A resolver that answers as the test says."""

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts
        self.asked: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def resolve(_: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
            self.asked.append(host)
            return [
                {"hostname": host, "host": address, "port": port, "family": 2, "proto": 6, "flags": 0}
                for address in self.hosts
            ]

        monkeypatch.setattr(aiohttp.resolver.ThreadedResolver, "resolve", resolve)


class TestDestinations:
    async def test_localhost_is_pinned_to_what_was_checked(
        self, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = Names("127.0.0.1")
        names.install(monkeypatch)
        async with SystemOne() as service:
            url = service.url.replace("127.0.0.1", "localhost")
            record = await decider(upstream).decide(question(), made(url))
        assert record.gate == "apply"
        assert names.asked == ["localhost"], "one look-up, whose answer is connected to"

    @pytest.mark.parametrize("address", ["93.184.216.34", "169.254.169.254", "0.0.0.0", "100.64.0.1"])
    async def test_every_address_of_localhost_must_be_private(
        self, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        Names("127.0.0.1", address).install(monkeypatch)
        async with SystemOne() as service:
            url = service.url.replace("127.0.0.1", "localhost")
            record = await decider(upstream).decide(question(), made(url))
        assert record.gate == "network"
        assert service.server.connections == 0

    async def test_a_public_name_that_leads_into_a_private_network(
        self, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Names("127.0.0.1").install(monkeypatch)
        async with SystemOne() as service:
            url = f"https://decide.example:{service.server.port}/v1/systemone"
            record = await decider(upstream).decide(question(), made(url, allowPrivateNetwork=False))
        assert record.gate == "network"
        assert service.server.connections == 0

    async def test_no_outbound_proxy_without_tls(self, upstream: Upstream) -> None:
        async with SystemOne() as proxy:
            record = await decider(upstream).decide(
                question(), made("http://10.1.2.3:80/v1/systemone", proxy=proxy.server.url)
            )
            assert record.gate == "network"
            assert proxy.server.connections == 0

    async def test_an_exempted_host_is_asked_directly(self) -> None:
        async with SystemOne() as proxy, SystemOne() as service:
            upstream = Upstream(UpstreamSettings(proxy=ProxySettings(proxy.server.url)))
            exempt = made(service, proxy=proxy.server.url, noProxy="127.0.0.1")
            record = await decider(upstream).decide(question(), exempt)
            await upstream.close()
        assert record.gate == "apply"
        assert proxy.server.connections == 0

    async def test_the_proxy_itself(self) -> None:
        async with SystemOne() as service:
            upstream = Upstream(UpstreamSettings(listening=(("127.0.0.1", service.server.port),)))
            record = await decider(upstream).decide(question(), made(service))
            await upstream.close()
        assert record.gate == "network"
        assert service.server.connections == 0

    async def test_a_certificate_that_nobody_trusts(self, upstream: Upstream, authority: Authority) -> None:
        async with SystemOne(tls=authority.server("127.0.0.1")) as service:
            record = await decider(upstream).decide(question(), made(service))
            trusting = Upstream(UpstreamSettings(tls=TlsSettings(trusted_ca=str(authority.ca_file))))
            trusted = await decider(trusting).decide(question(), made(service))
            await trusting.close()
        assert (record.gate, trusted.gate) == ("network", "apply")
        assert len(service.requests) == 1


async def test_cancelling_closes_the_socket_and_is_no_gate(upstream: Upstream) -> None:
    begun, left = asyncio.Event(), asyncio.Event()
    async with SystemOne(hanging(begun, left)) as service:
        task = asyncio.create_task(decider(upstream).decide(question(), made(service)))
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(left.wait(), 5)


async def test_many_decisions_at_once(upstream: Upstream) -> None:
    async with SystemOne() as service:
        asked = decider(upstream)
        records = await asyncio.gather(*(asked.decide(question(), made(service)) for _ in range(20)))
    assert [record.gate for record in records] == ["apply"] * 20


class TestModel:
    ASKED = question(None, model="alpha/m1")

    async def test_the_reply_is_applied(self, upstream: Upstream) -> None:
        bodies: list[bytes] = []

        async def invoke(_: Registry, body: bytes) -> ModelReply:
            bodies.append(body)
            text = {"type": "output_text", "text": '{"choice":"beta/m2:none"}'}
            document = {"status": "completed", "output": [{"type": "message", "content": [text]}]}
            return ModelReply(200, json.dumps(document).encode(), streamed=False)

        record = await decider(upstream, invoke=invoke).decide(self.ASKED, registry())
        assert (record.gate, record.backend, record.target, record.effort) == ("apply", "model", "beta/m2", None)
        assert json.loads(bodies[0])["model"] == "alpha/m1"

    @pytest.mark.parametrize("gate", [Gate.MISSING_KEY, Gate.MALFORMED])
    async def test_a_turn_that_cannot_be_run(self, upstream: Upstream, gate: Gate) -> None:
        async def invoke(_: Registry, __: bytes) -> ModelReply:
            raise Closed(gate)

        assert (await decider(upstream, invoke=invoke).decide(self.ASKED, registry())).gate == gate

    async def test_an_unexpected_error_is_said_by_kind_and_fails_open(
        self, upstream: Upstream, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def invoke(_: Registry, __: bytes) -> ModelReply:
            raise ZeroDivisionError("secret text")

        record = await decider(upstream, invoke=invoke).decide(self.ASKED, registry())
        assert (record.gate, record.target) == ("network", "alpha/m1")
        assert "ZeroDivisionError" in caplog.text
        assert "secret" not in caplog.text


CANARY = "CANARY"
IMAGE = {"type": "input_image", "image_url": CANARY}


async def test_no_secret_of_a_request_leaves(upstream: Upstream) -> None:
    conversation = [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "see"}, IMAGE],
        },
        {"type": "reasoning", "encrypted_content": CANARY},
        {"type": "function_call", "call_id": "c", "name": "shell", "arguments": CANARY},
        {"type": "function_call_output", "call_id": "c", "output": "fine"},
    ]
    async with SystemOne() as service:
        configured = registry(providers={"tev": row(service.url)}, decisionProvider="tev")
        combo = main_of(configured)
        request = facts(input=conversation, instructions=CANARY, metadata={"k": CANARY}, previous_response_id=CANARY)
        record = await decider(upstream).answer(Decide(combo, combo.targets, request, configured))
    assert record.gate == "apply"
    sent = service.requests[0]
    assert CANARY.encode() not in sent.head + sent.body
    assert service.documents[0]["state"] == {
        "task": "see",
        "signals": {"has_image": True, "tool_history": True},
        "step": {"type": "tool_step", "last_tool_output_tail": "fine", "tool_call": {"name": "shell"}},
    }


class TestProbes:
    async def test_a_row(self, upstream: Upstream) -> None:
        async with SystemOne() as service:
            result = await probe_provider(decider(upstream), made(service), "tev")
        assert (result["ok"], result["message"]) == (True, "Decision service answered")
        assert options(service.documents[0]) == ["jev/probe:low", "jev/probe:high"]

    async def test_a_row_that_answers_badly(self, upstream: Upstream) -> None:
        async with SystemOne(sending(response(500, b"secret"))) as service:
            result = await probe_provider(decider(upstream), made(service), "tev")
        assert (result["ok"], result["error"]) == (False, "http")

    async def test_a_row_named_jev_that_points_elsewhere(self, upstream: Upstream) -> None:
        async with SystemOne() as service:
            elsewhere = registry(providers={"jev": row(service.url)})
            result = await probe_provider(decider(upstream), elsewhere, "jev")
        assert result == {"applicable": False, "reason": "retargeted", "latencyMs": 0}
        assert service.server.connections == 0

    async def test_a_method(self, upstream: Upstream) -> None:
        async with SystemOne() as service:
            result = await probe_decision(decider(upstream), made(service), {"decisionProvider": "tev"})
        assert result.pop("latencyMs") is not None
        assert result == {"ok": True, "backend": "systemone", "gate": "apply", "effort": "high"}

    async def test_a_method_that_cannot_be_tried(self, upstream: Upstream) -> None:
        with pytest.raises(TrialRefused):
            await probe_decision(decider(upstream), registry(), {"decisionProvider": "nobody"})


def test_a_turns_question_has_the_deadline_of_its_combo() -> None:
    configured = registry(decisionTimeoutMs=1_000)
    combo = main_of(configured)
    assert question_of(Decide(combo, combo.targets, facts(input="x"), configured)).deadline_ms == 1_000
