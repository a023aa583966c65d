"""Trials: what is asked, which bodies are refused, how results read."""

from dataclasses import replace
from typing import Any

import pytest

from combos.decision.gates import Backend
from combos.decision.options import options_of
from combos.decision.probe import (
    TrialRefused,
    is_testable,
    provider_question,
    provider_result,
    trial_question,
    trial_result,
)
from combos.decision.service import TYPESAFE_URL, Hosted
from combos.engine.record import DecisionRecord
from decisions import provider, registry, row, target

LOCAL = "http://127.0.0.1:1/v1/systemone"
MADE = registry(
    providers={
        "tev": row(LOCAL),
        "off": row(LOCAL, disabled=True),
        "elsewhere": row("https://x.example/v1"),
        "bare": {"adapter": "jev-decision", "baseUrl": "https://x.example/v1/systemone"},
    },
    combos={
        "other": {"strategy": "jev", "alias": "decides", "targets": [target("alpha/m1")]},
        "plain": {"targets": [target("alpha/m1")]},
    },
)


def test_the_trial_of_a_row() -> None:
    assert list(options_of(provider_question("jev").candidates)) == ["jev/probe:none"]
    assert list(options_of(provider_question("tev").candidates)) == ["jev/probe:low", "jev/probe:high"]
    asked = provider_question("tev")
    assert (asked.backend, asked.deadline_ms, asked.evidence().is_enough) == (Backend.SYSTEMONE, 4_000, True)


@pytest.mark.parametrize(
    ("jev", "testable"),
    [
        (None, True),
        ({"adapter": "jev-decision", "baseUrl": TYPESAFE_URL}, True),
        ({"adapter": "jev-decision", "baseUrl": "https://x.example/v1/systemone"}, False),
        (provider(), False),
    ],
)
def test_a_row_named_jev_that_points_elsewhere_is_not_tested(jev: dict[str, Any] | None, testable: bool) -> None:
    made = registry(providers={"jev": jev} if jev else {})
    assert is_testable("jev", made, Hosted()) is testable
    assert is_testable("tev", made, Hosted())


def record(gate: str, **fields: Any) -> DecisionRecord:
    return DecisionRecord("systemone", gate, "probe", "decision", "high", 12, **fields)


@pytest.mark.parametrize(
    ("gate", "result"),
    [
        ("apply", {"ok": True, "latencyMs": 12, "message": "Decision service answered"}),
        ("missing_key", {"ok": False, "latencyMs": 12, "error": "not configured"}),
        ("redirect", {"ok": False, "latencyMs": 12, "error": "redirect"}),
    ],
)
def test_the_result_of_a_row(gate: str, result: dict[str, object]) -> None:
    assert provider_result(record(gate)) == result


def test_the_result_of_a_method() -> None:
    told = {"ok": True, "backend": "systemone", "gate": "apply", "latencyMs": 12, "effort": "high"}
    assert trial_result(record("apply")) == told
    assert trial_result(record("http")) == {"ok": False, "backend": "systemone", "gate": "http", "latencyMs": 12}


@pytest.mark.parametrize(
    ("body", "backend"),
    [
        ({}, "typesafe"),
        ({"decisionProvider": None, "decisionModel": None, "decisionTimeoutMs": None, "comboId": None}, "typesafe"),
        ({"decisionProvider": "jev"}, "typesafe"),
        ({"decisionProvider": "tev", "decisionTimeoutMs": 1_000}, "systemone"),
        ({"decisionModel": "alpha/m9", "comboId": "main"}, "model"),
        ({"decisionModel": "combo/plain"}, "model"),
    ],
)
def test_the_method_is_that_of_the_body(body: dict[str, object], backend: str) -> None:
    asked = trial_question(body, MADE)
    assert asked.backend == backend
    assert list(options_of(asked.candidates)) == ["probe/decision:low", "probe/decision:high"]
    assert asked.deadline_ms == (body.get("decisionTimeoutMs") or 4_000)


@pytest.mark.parametrize(
    ("body", "says", "issue"),
    [
        ([], "JSON object", None),
        ({"comboId": 7}, "comboId", None),
        ({"decisionProvider": " "}, "decisionProvider", None),
        ({"decisionModel": []}, "decisionModel", None),
        ({"decisionTimeoutMs": 999}, "from 1000 to 120000", None),
        ({"decisionTimeoutMs": 120_001}, "decisionTimeoutMs", None),
        ({"decisionTimeoutMs": True}, "decisionTimeoutMs", None),
        ({"decisionTimeoutMs": 4000.0}, "decisionTimeoutMs", None),
        ({"decisionProvider": "jev", "decisionModel": "alpha/m"}, "excludes", None),
        ({"decisionProvider": "nobody"}, "not a configured decision service", None),
        ({"decisionProvider": "alpha"}, "not a configured decision service", None),
        ({"decisionProvider": "off"}, "cannot be used", "disabled"),
        ({"decisionProvider": "elsewhere"}, "cannot be used", "endpoint"),
        ({"decisionProvider": "bare"}, "cannot be used", "model"),
        ({"decisionModel": "nobody/m"}, "not a configured provider", None),
        ({"decisionModel": "nomodel"}, "names no configured model", None),
        ({"decisionModel": " alpha/m"}, "blanks", None),
        ({"decisionModel": "m" * 513}, "1 to 512", None),
        ({"decisionModel": "combo/nobody"}, "not configured", None),
        ({"decisionModel": "combo/main", "comboId": "main"}, "this combo", None),
        ({"decisionModel": "combo/plain", "comboId": "plain"}, "this combo", None),
        ({"decisionModel": "decides"}, "strategy jev", None),
        ({"decisionModel": "combo/main--fast"}, "strategy jev", None),
        ({"decisionModel": "tev/x"}, "decision service", None),
        ({"decisionProvder": "tev"}, 'did you mean "decisionProvider"', None),
        ({"combo": {}}, "combo is not expected here", None),
    ],
)
def test_bodies_that_are_refused(body: object, says: str, issue: str | None) -> None:
    with pytest.raises(TrialRefused, match=says) as refused:
        trial_question(body, MADE)
    assert refused.value.issue == issue


@pytest.mark.parametrize("model", ["alpah/m", "nobody/m", "tev/x", "combo/nobody", "combo/other--high"])
def test_a_default_provider_does_not_take_what_a_saved_combo_may_not_name(model: str) -> None:
    made = replace(MADE, config=MADE.config.model_copy(update={"default_provider": "alpha"}))
    with pytest.raises(TrialRefused):
        trial_question({"decisionModel": model}, made)
    assert trial_question({"decisionModel": "m"}, made).model == "m"
