"""What is reported together, what only stops a save, what is only a warning."""

from typing import Any

import pytest

from combos.core.config import config_warnings, save_problems
from combos.core.config_rules import RULES, SAVE_RULES, WARNINGS
from combos.core.facts import Surface
from configs import combo, config, document, problems, provider, with_provider

ROW = provider(adapter="jev-decision", baseUrl="https://x.example/systemone", defaultModel="d")


def test_rule_names_are_unique() -> None:
    names = [name for name, _ in (*RULES, *SAVE_RULES)]
    assert len(set(names)) == len(names)
    assert {name for name, _ in SAVE_RULES} < {name for name, _ in WARNINGS}


def test_everything_is_reported_at_once() -> None:
    value = {
        "port": "x",
        "providers": {"a-": provider(), "b": provider(adapter="nope"), "c": provider(baseUrl="ftp://x")},
        "combos": {"-": combo(), "m": combo(stickyLimit=0), "n": combo(alias="combo/x", targets=[])},
        "apiKeys": ["$"],
    }
    assert set(problems(value)) == {
        "port",
        "providers.a-",
        "providers.b.adapter",
        "providers.c.baseUrl",
        "combos.-",
        "combos.m.stickyLimit",
        "combos.n.alias",
        "combos.n.targets",
        "apiKeys[0]",
    }


@pytest.mark.parametrize(
    ("providers", "message"),
    [
        ({"alpha": provider(disabled=True)}, "must hold a target whose provider is enabled"),
        ({"alpha": provider()}, None),
        ({}, None),
    ],
)
def test_one_enabled_provider(providers: dict[str, Any], message: str | None) -> None:
    made = config(document(providers=providers))
    found = {problem.path: problem.message for problem in save_problems(made)}
    assert found == ({"combos.main.targets": message} if message else {})


def test_an_unconfigured_target_keeps_the_enabled_rule_out() -> None:
    two = [{"provider": "alpha", "model": "m"}, {"provider": "absent", "model": "m"}]
    made = config(document(providers={"alpha": provider(disabled=True)}, combos={"m": {"targets": two}}))
    assert save_problems(made) == ()


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (ROW, None),
        ({**ROW, "defaultModel": None, "models": ["d"]}, None),
        ({**ROW, "disabled": True}, "enabled"),
        ({**ROW, "defaultModel": None}, "defaultModel"),
    ],
)
def test_decision_rows_are_usable_when_saved(row: dict[str, Any], word: str | None) -> None:
    combos = {"m": combo(strategy="jev", decisionProvider="row")}
    made = config({"providers": {"alpha": provider(), "row": row}, "combos": combos})
    found = {problem.path: problem.message for problem in save_problems(made)}
    assert list(found) == ([] if word is None else ["combos.m.decisionProvider"])
    assert word is None or word in found["combos.m.decisionProvider"]


def test_warnings() -> None:
    value = document(
        combos={"m": {"targets": [{"provider": "alhpa", "model": "m"}], "stickyLimitt": 2}},
        provider={},
    )
    found = {problem.path: problem.message for problem in config_warnings(config(value))}
    assert found == {
        "combos.m.targets[0].provider": (
            'is not a configured provider, so this target is never used; did you mean "alpha"?'
        ),
        "provider": 'is not a known setting; did you mean "providers"?',
        "combos.m.stickyLimitt": 'is not a known setting; did you mean "stickyLimit"?',
    }


def test_a_healthy_configuration_has_no_warnings() -> None:
    assert config_warnings(config()) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("requestPacing", {"requestsPerMinute": 1}),
        ("upstreamHttpVersion", "http2"),
        ("modelDefaultReasoningEfforts", {"m": "low"}),
        ("pinnedReasoningEffort", "low"),
    ],
)
def test_a_providers_setting_without_effect_is_a_warning(key: str, value: Any) -> None:
    made = config(with_provider(**{key: value}))
    assert [(found.path, found.message) for found in config_warnings(made)] == [
        (f"providers.alpha.{key}", "is kept and has no effect here")
    ]


@pytest.mark.parametrize(
    ("key", "value"), [("port", 9000), ("hostname", "0.0.0.0"), ("blockedModelRedirects", {"old": "new"})]
)
def test_a_setting_without_effect_is_a_warning(key: str, value: Any) -> None:
    made = config(document(**{key: value}))
    assert [found.path for found in config_warnings(made)] == [key]


def test_what_is_written_as_it_would_be_anyway_is_no_warning() -> None:
    usual = with_provider(upstreamHttpVersion="auto") | {"port": 10100, "hostname": "127.0.0.1"}
    assert config_warnings(config(usual)) == ()


@pytest.mark.parametrize("surface", [surface for surface in Surface if surface is not Surface.GENERATE])
@pytest.mark.parametrize("end", ["", "/"])
def test_a_base_url_that_names_the_endpoint_is_a_warning(surface: Surface, end: str) -> None:
    made = config(with_provider(baseUrl=f"https://x.example/v1/{surface}{end}"))
    (found,) = config_warnings(made)
    assert found.path == "providers.alpha.baseUrl"
    assert found.message.startswith(f"ends in /{surface}, ")


@pytest.mark.parametrize("path", ["", "/v1", "/messages/v1", "/v1/chatcompletions", "/my-messages", "/models-of-mine"])
def test_a_base_url_that_ends_before_the_endpoint_is_none(path: str) -> None:
    assert config_warnings(config(with_provider(baseUrl=f"https://x.example{path}"))) == ()
