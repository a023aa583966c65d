"""Decisions within a turn: when one is asked for, what becomes of it, and that it is asked for once."""

import json
from dataclasses import replace
from typing import Any

import pytest

from combos.core.facts import Headers, TransportFault
from combos.engine.commands import Decide
from combos.engine.events import ClientGone, Decided, Failed, Started, WaitOver
from combos.engine.record import DecisionRecord, Outcome
from combos.engine.turn import Turn
from playbook import (
    After,
    Play,
    World,
    config,
    decides,
    discards,
    error,
    finishes,
    provider,
    replies,
    sends,
    target,
    waits,
)

LADDER = ["low", "medium", "high"]
ANSWER = b'{"id":"r1","status":"completed","model":"m","output":[{"type":"message"}]}'
RATE_LIMITED = 429
POLICY = "before-last-resort"


def jev(*targets: str | dict[str, object], wire: str = "R", **combo: Any) -> World:
    providers = {name: provider(name, wire, reasoningEfforts=LADDER) for name in ("alpha", "beta")}
    return World(config(*targets, wire=wire, providers=providers, strategy="jev", **combo), wire=wire, fails_open=False)


def chose(key: str | None, effort: str | None = "high", gate: str = "apply") -> Decided:
    name, _, model = (key or "/").partition("/")
    return Decided(DecisionRecord("typesafe", gate, name or None, model or None, effort, 7))


def sent(play: Play, n: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(play.sends[n].request.body)
    return document


def asked(play: Play) -> list[Decide]:
    return [command for command in play.log if isinstance(command, Decide)]


def test_the_choice_comes_first_and_the_answer_is_given() -> None:
    world = jev()
    play = world.turn(stream=False) >> Started() << decides("alpha/m1", "beta/m2")
    play >> chose("beta/m2") << sends("beta/m2")
    play.answer(0, 200, ANSWER) << replies(200, ANSWER) << discards(0) << finishes(Outcome.SUCCESS)
    record = play.done()
    assert record.decision == chose("beta/m2").record
    assert sent(play)["reasoning"] == {"effort": "high"}
    assert sent(play)["model"] == "m2"


def test_the_command_carries_what_a_decision_needs() -> None:
    world = jev()
    play = world.turn() >> Started()
    (ask,) = asked(play)
    assert (ask.combo.id, ask.facts, ask.registry) == ("main", play.request.facts, world.registry)
    assert "hi" not in repr(ask)


def test_a_hop_after_a_decision_asks_nobody_again_and_follows_the_normal_rules() -> None:
    world = jev("alpha/m1", "beta/m2", "gamma/m3", defaultEffort="low")
    play = world.turn() >> Started() << decides("alpha/m1", "beta/m2", "gamma/m3")
    play >> chose("beta/m2") << sends("beta/m2")
    play.answer(0, RATE_LIMITED, error()) << discards(0) << sends("alpha/m1")
    play.answer(1, RATE_LIMITED, error()) << discards(1) << sends("gamma/m3")
    assert len(asked(play)) == 1
    assert [sent(play, n).get("reasoning") for n in range(3)] == [{"effort": "high"}, {"effort": "low"}, None]
    assert set(world.cooling()) == {"alpha/m1", "beta/m2"}


@pytest.mark.parametrize("gate", ["timeout", "missing_key", "invalid"])
def test_a_decision_that_failed_dispatches_what_it_names(gate: str) -> None:
    play = jev().turn(reasoning={"effort": "high", "summary": "auto"}) >> Started() << decides("alpha/m1", "beta/m2")
    play >> chose("alpha/m1", "medium", gate) << sends("alpha/m1")
    assert sent(play)["reasoning"] == {"effort": "medium", "summary": "auto"}
    assert play.record.decision is not None
    assert play.record.decision.gate == gate


def test_a_decision_without_candidates_leaves_the_ordinary_choice() -> None:
    play = jev(defaultEffort="low").turn() >> Started() << decides("alpha/m1", "beta/m2")
    play >> chose(None, None, "no_choices") << sends("alpha/m1")
    assert sent(play)["reasoning"] == {"effort": "low"}


def test_no_effort_strips_every_control_and_the_service_tier() -> None:
    body = {"reasoning": {"effort": "high", "summary": "auto"}, "service_tier": "priority", "thinking_budget": 9}
    play = jev().turn(**body) >> Started() << decides("alpha/m1", "beta/m2") >> chose("beta/m2", None)
    document = sent(play << sends("beta/m2"))
    assert document["reasoning"] == {"summary": "auto"}
    assert not {"service_tier", "thinking_budget"} & set(document)


def test_a_decision_stands_above_the_suffix_of_the_model_id() -> None:
    world = jev()
    play = world.turn(model="combo/main--fast") >> Started() << decides("alpha/m1", "beta/m2") >> chose("alpha/m1")
    play << sends("alpha/m1")
    assert "service_tier" not in sent(play)
    assert sent(play)["reasoning"] == {"effort": "high"}


@pytest.mark.parametrize(
    ("wire", "effort"),
    [("C", {"reasoning_effort": "low"}), ("M", {"thinking": {"type": "enabled", "budget_tokens": 4096}})],
)
def test_the_effort_in_the_other_dialects(wire: str, effort: dict[str, Any]) -> None:
    play = jev(wire=wire).turn() >> Started() << decides("alpha/m1", "beta/m2") >> chose("beta/m2", "low")
    document = sent(play << sends("beta/m2"))
    assert {name: document.get(name) for name in effort} == effort


class TestWhoIsAskedAbout:
    def test_only_the_eligible(self) -> None:
        world = jev("alpha/m1", "beta/m2", "gamma/m3")
        world.unusable = {"gamma": "no_credentials"}
        world.turn() >> Started() << decides("alpha/m1", "beta/m2") >> chose("alpha/m1") << sends("alpha/m1")

    def test_nobody_eligible_no_decision(self) -> None:
        world = jev()
        world.unusable = {"alpha": "no_credentials", "beta": "no_credentials"}
        play = world.turn() >> Started() << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
        assert play.done().decision is None

    def test_a_cooldown_is_waited_for_before_anything_is_decided(self) -> None:
        world = jev("alpha/m1", waitForCooldownMs=90_000)
        first = world.turn() >> Started() << decides("alpha/m1") >> chose("alpha/m1") << sends("alpha/m1")
        first.answer(0, RATE_LIMITED, error())
        play = world.turn() >> Started() << waits(60_000) >> After(60_000) >> WaitOver(1)
        play << decides("alpha/m1") >> chose("alpha/m1") << sends("alpha/m1")

    def test_a_last_resort_is_among_the_eligible(self) -> None:
        world = jev(target("alpha/m1", lastResort=True), "beta/m2", cooldownWaitPolicy=POLICY)
        world.turn() >> Started() << decides("alpha/m1", "beta/m2") >> chose("beta/m2") << sends("beta/m2")


class TestNoDecision:
    def test_for_another_strategy(self) -> None:
        play = World(config()).turn() >> Started() << sends("alpha/m1")
        assert asked(play) == []

    def test_for_a_direct_route(self) -> None:
        play = jev().turn(model="alpha/m1") >> Started() << sends("alpha/m1")
        assert asked(play) == []

    def test_for_a_count_of_tokens(self) -> None:
        world = jev(wire="M")
        world.turn(path="/v1/messages/count_tokens") >> Started() << sends("alpha/m1")

    def test_for_the_retry_of_a_single_target(self) -> None:
        world = jev("alpha/m1", waitForCooldownMs=90_000)
        play = world.turn() >> Started() << decides("alpha/m1") >> chose("alpha/m1") << sends("alpha/m1")
        play.answer(0, RATE_LIMITED, error()) << discards(0) << waits(60_000)
        play >> After(60_000) >> WaitOver(1) << sends("alpha/m1")
        assert len(asked(play)) == 1


class TestRecursion:
    def internal(self, world: World, model: str = "combo/main") -> Play:
        request = replace(world.request(model), decides=True)
        return Play(world, Turn(request, world.state, world.options), request)

    def test_the_turn_of_a_decision_may_not_ask_for_one(self) -> None:
        play = self.internal(jev()) >> Started()
        play << replies(400, code="recursive_decision") << finishes(Outcome.REFUSED)
        play.done()

    def test_not_even_when_its_combo_becomes_one_while_it_waits(self) -> None:
        world = World(config("alpha/m1", waitForCooldownMs=90_000))
        first = world.turn() >> Started() << sends("alpha/m1")
        first.answer(0, RATE_LIMITED, error())
        play = self.internal(world) >> Started() << waits(60_000)
        world.reload(config("alpha/m1", strategy="jev"))
        play >> After(60_000) >> WaitOver(1) << sends("alpha/m1")

    def test_a_plain_combo_may_serve(self) -> None:
        self.internal(World(config())) >> Started() << sends("alpha/m1")


class TestWhileItIsDecided:
    def test_a_client_that_leaves_gets_no_dispatch(self) -> None:
        world = jev()
        play = world.turn() >> Started() << decides("alpha/m1", "beta/m2") >> ClientGone()
        play << finishes(Outcome.CANCELLED)
        record = play.done()
        assert (record.status, record.attempts, record.decision) == (499, [], None)
        assert play.feed(chose("alpha/m1")) == []
        assert world.cooling() == {}

    def test_a_choice_that_began_to_cool_is_replaced_by_the_ordinary_one(self) -> None:
        world = jev(defaultEffort="low")
        play = world.turn() >> Started() << decides("alpha/m1", "beta/m2")
        other = world.turn() >> Started() << decides("alpha/m1", "beta/m2") >> chose("alpha/m1") << sends("alpha/m1")
        other >> Failed(0, TransportFault.RESET)
        play >> chose("alpha/m1") << sends("beta/m2")
        assert sent(play)["reasoning"] == {"effort": "low"}

    def test_a_choice_that_left_the_configuration_is_replaced(self) -> None:
        world = jev()
        play = world.turn() >> Started() << decides("alpha/m1", "beta/m2")
        world.reload(config("beta/m2", "gamma/m3", strategy="jev"))
        play >> chose("alpha/m1") << sends("beta/m2")

    def test_a_combo_that_is_gone_is_unavailable(self) -> None:
        world = jev()
        play = world.turn() >> Started() << decides("alpha/m1", "beta/m2")
        world.reload({**config(), "combos": {}})
        play >> chose("alpha/m1") << replies(503) << finishes(Outcome.UNAVAILABLE)

    def test_the_registry_in_force_after_a_wait_is_the_one_decided_from(self) -> None:
        world = jev("alpha/m1", waitForCooldownMs=90_000)
        first = world.turn() >> Started() << decides("alpha/m1") >> chose("alpha/m1") << sends("alpha/m1")
        first.answer(0, RATE_LIMITED, error())
        play = world.turn() >> Started() << waits(60_000)
        world.reload(config("alpha/m1", "beta/m2", strategy="jev"))
        play >> After(60_000) >> WaitOver(1) << decides("alpha/m1", "beta/m2")
        assert asked(play)[0].registry is world.registry

    def test_a_second_result_is_ignored(self) -> None:
        play = jev().turn() >> Started() << decides("alpha/m1", "beta/m2") >> chose("beta/m2") << sends("beta/m2")
        assert play.feed(chose("alpha/m1")) == []
        assert play.record.decision == chose("beta/m2").record

    def test_a_result_that_nobody_asked_for_is_ignored(self) -> None:
        play = World(config()).turn() >> Started() << sends("alpha/m1")
        assert play.feed(chose("beta/m2")) == []


def test_a_decision_does_not_count_as_a_send() -> None:
    world = jev("alpha/m1")
    play = world.turn() >> Started() << decides("alpha/m1")
    assert play.turn._budget.used == 0
    play >> chose("alpha/m1") << sends("alpha/m1")
    assert play.turn._budget.used == 1


def test_headers_of_the_caller_are_no_part_of_the_question() -> None:
    headers: Headers = ((b"authorization", b"Bearer CANARY"),)
    play = jev().turn(headers=headers) >> Started()
    assert not hasattr(asked(play)[0], "headers")
