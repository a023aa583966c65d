"""One decision: the order of its gates, the call it makes, the record it ends with."""

import json
from functools import partial
from typing import Any

import pytest

from combos.core.registry import Registry
from combos.decision.decide import Call, Means, ModelCall, Question, ServiceCall, conclude, prepare, question_of
from combos.decision.evidence import Evidence
from combos.decision.gates import Backend, Closed, Gate
from combos.decision.options import Candidate
from combos.decision.service import Secrets
from combos.decision.systemone import Answer
from combos.engine.commands import Decide
from combos.engine.record import DecisionRecord
from decisions import facts, main_of, registry, row, target

LOCAL = "http://127.0.0.1:11434/v1/systemone"
KEYED = Means(Secrets({"TYPESAFE_API_KEY": "k"}))
TWO = (Candidate("alpha", "m1", ("low", "medium")), Candidate("beta", "m2"))


def untouched() -> Evidence:
    raise AssertionError("the request was read although nobody is asked")


def question(
    candidates: tuple[Candidate, ...] = TWO, *, provider: str | None = None, model: str | None = None, **given: Any
) -> Question:
    return Question(provider, model, candidates, given.pop("evidence", partial(Evidence, "x")), **given)


def call(asked: Question, means: Means = KEYED, made: Registry | None = None) -> Call:
    return prepare(asked, made or registry(providers={"tev": row(LOCAL)}), means)


def gate(asked: Question, means: Means = KEYED, made: Registry | None = None) -> str:
    with pytest.raises(Closed) as closed:
        call(asked, means, made)
    return closed.value.gate.value


def many(count: int) -> tuple[Candidate, ...]:
    return tuple(Candidate("p", f"m{n}", ("low", "high")) for n in range(count))


class TestOrderOfGates:
    NOBODY = Means(Secrets({}), has_models=False)

    def test_no_candidates_comes_before_everything(self) -> None:
        assert gate(question((), evidence=untouched), self.NOBODY) == "no_choices"

    def test_bounds_come_before_the_service(self) -> None:
        assert gate(question(many(65), evidence=untouched), self.NOBODY) == "invalid"

    @pytest.mark.parametrize("asked", [{}, {"provider": "jev"}, {"provider": "nobody"}, {"model": "alpha/m1"}])
    def test_the_service_comes_before_the_state(self, asked: dict[str, str]) -> None:
        assert gate(question(evidence=untouched, **asked), self.NOBODY) == "missing_key"

    def test_the_service_comes_before_the_number_of_options(self) -> None:
        assert gate(question(TWO[1:], provider="nobody", evidence=untouched)) == "missing_key"

    @pytest.mark.parametrize(
        ("candidates", "expected"), [(TWO[1:], "no_choices"), (many(14), "invalid")], ids=["one", "28"]
    )
    def test_the_number_of_options_comes_before_the_state(
        self, candidates: tuple[Candidate, ...], expected: str
    ) -> None:
        assert gate(question(candidates, provider="tev", evidence=untouched)) == expected

    def test_more_options_than_a_model_gets(self) -> None:
        assert gate(question(many(33), model="alpha/m1", evidence=untouched)) == "invalid"

    @pytest.mark.parametrize("asked", [{}, {"provider": "tev"}, {"model": "alpha/m1"}])
    def test_no_state_comes_before_the_size(self, asked: dict[str, str]) -> None:
        assert gate(question(evidence=partial(Evidence, ""), **asked)) == "no_state"

    @pytest.mark.parametrize("asked", [{}, {"provider": "tev"}, {"model": "alpha/m1"}])
    def test_the_size_comes_last(self, asked: dict[str, str]) -> None:
        assert gate(question(evidence=partial(Evidence, "x" * 70_000), **asked)) == "invalid"


def test_thirteen_targets_with_two_efforts_are_asked_about() -> None:
    made = call(question(many(13), provider="tev"))
    assert len(json.loads(made.body)["questions"]["route"]["criteria"]) == 26


def test_a_single_option_is_asked_of_typesafe() -> None:
    assert len(call(question(TWO[1:])).options) == 1


def test_the_call_of_each_method() -> None:
    hosted, own, model = call(question()), call(question(provider="tev")), call(question(model="alpha/m1"))
    assert isinstance(hosted, ServiceCall)
    assert isinstance(own, ServiceCall)
    assert isinstance(model, ModelCall)
    assert (hosted.service.backend, own.service.backend) == (Backend.TYPESAFE, Backend.SYSTEMONE)
    assert [json.loads(made.body)["model"] for made in (hosted, own, model)] == ["jev-latest", "tev1:4b", "alpha/m1"]
    assert json.loads(model.body)["reasoning"] == {"effort": "low"}


def test_a_model_wins_over_a_provider() -> None:
    assert isinstance(call(question(provider="tev", model="alpha/m1")), ModelCall)


@pytest.mark.parametrize(
    ("given", "deadline"), [(1_000, 1_000), (120_000, 120_000), (999, 4_000), (120_001, 4_000), (0, 4_000)]
)
def test_the_deadline_of_a_time_out_of_range_is_the_default(given: int, deadline: int) -> None:
    assert question(timeout_ms=given).deadline_ms == deadline


def test_the_question_of_a_turn() -> None:
    made = registry(
        [target("alpha/m1"), target("beta/m2", modelProfile="slow")], decisionTimeoutMs=1_500, decisionModel="beta/m3"
    )
    combo = main_of(made)
    asked = question_of(Decide(combo, combo.targets, facts(input="do it"), made))
    assert (asked.backend, asked.deadline_ms, asked.model) == (Backend.MODEL, 1_500, "beta/m3")
    assert [candidate.key for candidate in asked.candidates] == ["alpha/m1", "beta/m2"]
    assert asked.evidence() == Evidence("do it")
    prompt = json.loads(json.loads(call(asked, made=made).body)["input"][0]["content"][0]["text"])
    assert prompt["state"]["operator_notes"] == {"beta/m2": "slow"}


def test_the_record_of_an_answer() -> None:
    answer = Answer("alpha/m1:low", 0.8, 0.9, {"input_tokens": 1, "output_tokens": 2})
    record = conclude(question(), answer, 212)
    assert record == DecisionRecord(
        "typesafe", "apply", "alpha", "m1", "low", 212, 0.8, 0.9, {"input_tokens": 1, "output_tokens": 2}
    )
    assert record.target == "alpha/m1"


@pytest.mark.parametrize("ended", [gate for gate in Gate if gate is not Gate.APPLY])
def test_the_record_of_a_failure_names_the_first_candidate(ended: Gate) -> None:
    record = conclude(question(provider="tev"), ended, 3)
    assert record == DecisionRecord("systemone", ended.value, "alpha", "m1", "medium", 3)


def test_the_record_without_candidates_names_nobody() -> None:
    record = conclude(question((), model="a/b"), Gate.NO_CHOICES, 0)
    assert record == DecisionRecord("model", "no_choices", None, None, None, 0)
    assert record.target is None


def test_nothing_of_a_request_shows_in_a_repr() -> None:
    asked = question(evidence=partial(Evidence, "secret task"))
    assert "secret" not in repr(asked) + repr(call(asked)) + repr(call(question(model="alpha/m1")))
