"""Every field of a combo and of a target: default, accepted values at the bounds, refused values with the message."""

from typing import Any

import pytest

from combos.core.config_combo import (
    Affinity,
    ContextOverflow,
    CooldownWaitPolicy,
    DefaultEffortMode,
    ImageInput,
    ReasoningEffortMode,
    Strategy,
)
from combos.core.config_types import Effort
from configs import TARGET, config, document, problems, with_combo

NOT_INTEGERS = ("1", 1.0, True, False, None, [], {})


def accepted(key: str, value: object) -> Any:
    made = config(with_combo(**{key: value})).combos["main"]
    return getattr(made, next(name for name, field in type(made).model_fields.items() if field.alias == key))


@pytest.mark.parametrize(
    ("attribute", "default"),
    [
        ("strategy", Strategy.FAILOVER),
        ("sticky_limit", 1),
        ("cooldown_ms", None),
        ("wait_for_cooldown_ms", 0),
        ("cooldown_wait_policy", None),
        ("default_effort", None),
        ("default_effort_mode", DefaultEffortMode.FALLBACK),
        ("reasoning_effort_mode", ReasoningEffortMode.STRICT),
        ("image_input", ImageInput.AUTO),
        ("alias", None),
        ("native_alias", False),
        ("display_name", None),
        ("decision_provider", None),
        ("decision_model", None),
        ("decision_timeout_ms", None),
        ("decision_deadline_ms", 4000),
        ("context_overflow", ContextOverflow.STOP),
        ("affinity", Affinity.NONE),
        ("first_output_timeout_ms", None),
        ("hedge_after_ms", None),
    ],
)
def test_defaults(attribute: str, default: object) -> None:
    assert getattr(config().combos["main"], attribute) == default


def test_target_defaults() -> None:
    target = config().combos["main"].targets[0]
    assert (target.provider, target.model, target.weight, target.last_resort) == ("alpha", "m1", 1, False)
    assert (target.reasoning_efforts, target.model_profile) == (None, None)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("stickyLimit", 1, 100),
        ("cooldownMs", 1, 600_000),
        ("waitForCooldownMs", 0, 600_000),
        ("firstOutputTimeoutMs", 1, 600_000),
        ("hedgeAfterMs", 1, 600_000),
    ],
)
def test_integer_bounds(key: str, low: int, high: int) -> None:
    assert accepted(key, low) == low
    assert accepted(key, high) == high
    for value in (low - 1, high + 1):
        message = f"must be an integer from {low} to {high}, got {value}"
        assert problems(with_combo(**{key: value})) == {f"combos.main.{key}": message}


@pytest.mark.parametrize("key", ["stickyLimit", "cooldownMs", "waitForCooldownMs"])
@pytest.mark.parametrize("value", NOT_INTEGERS)
def test_integers_are_not_converted(key: str, value: object) -> None:
    found = problems(with_combo(**{key: value}))
    assert list(found) == [f"combos.main.{key}"]
    assert found[f"combos.main.{key}"].startswith("must be an integer from ")


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1.0"), (True, "true"), (None, "null"), ("1", "a string"), ([], "an array")]
)
def test_messages_name_the_kind(value: object, shown: str) -> None:
    found = problems(with_combo(stickyLimit=value))
    assert found == {"combos.main.stickyLimit": f"must be an integer from 1 to 100, got {shown}"}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("strategy", ["failover", "round-robin", "random", "least-used", "reset-window", "jev"]),
        ("cooldownWaitPolicy", ["before-last-resort", None]),
        ("defaultEffort", ["low", "medium", "high", "xhigh", "max", "ultra", None]),
        ("defaultEffortMode", ["fallback"]),
        ("reasoningEffortMode", ["strict", "adaptive"]),
        ("imageInput", ["auto", "disabled"]),
        ("contextOverflow", ["stop", "hop"]),
        ("affinity", ["none", "conversation"]),
        ("nativeAlias", [False]),
    ],
)
def test_words(key: str, words: list[object]) -> None:
    assert [accepted(key, word) for word in words] == words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("strategy", "Failover"),
        ("strategy", ""),
        ("strategy", None),
        ("strategy", 1),
        ("cooldownWaitPolicy", "before-last-resort "),
        ("cooldownWaitPolicy", False),
        ("defaultEffort", "none"),
        ("defaultEffort", "minimal"),
        ("defaultEffort", 3),
        ("defaultEffortMode", None),
        ("reasoningEffortMode", "loose"),
        ("imageInput", True),
        ("contextOverflow", "HOP"),
        ("affinity", "session"),
        ("nativeAlias", 1),
        ("nativeAlias", "true"),
        ("nativeAlias", None),
        ("alias", 5),
        ("displayName", []),
        ("decisionProvider", ""),
        ("firstOutputTimeoutMs", "1"),
        ("hedgeAfterMs", 0),
    ],
)
def test_wrong_words(key: str, value: object) -> None:
    found = problems(with_combo(**{key: value}))
    assert list(found) == [f"combos.main.{key}"]
    assert " must" in f" {found[f'combos.main.{key}']}"


def test_a_near_miss_is_suggested() -> None:
    found = problems(with_combo(strategy="failovr"))
    assert found["combos.main.strategy"].endswith('got a string; did you mean "failover"?')


@pytest.mark.parametrize(("value", "stored"), [("", None), ("  ", None), (None, None), (" team/x ", "team/x")])
def test_alias_is_trimmed(value: str | None, stored: str | None) -> None:
    assert accepted("alias", value) == stored


@pytest.mark.parametrize(
    ("value", "stored"), [("", None), (None, None), (" Label ", "Label"), (" " + "x" * 128 + " ", "x" * 128)]
)
def test_display_name_is_trimmed(value: str | None, stored: str | None) -> None:
    assert accepted("displayName", value) == stored


@pytest.mark.parametrize("value", ["x" * 129, "a\nb", "a\x7fb", "a\x00b"])
def test_display_name_bounds(value: str) -> None:
    assert list(problems(with_combo(displayName=value))) == ["combos.main.displayName"]


@pytest.mark.parametrize(("value", "valid"), [(999, False), (1000, True), (120_000, True), (120_001, False)])
def test_decision_timeout(value: int, valid: bool) -> None:
    found = problems(with_combo(strategy="jev", decisionTimeoutMs=value))
    assert (found == {}) is valid
    if valid:
        made = config(with_combo(strategy="jev", decisionTimeoutMs=value)).combos["main"]
        assert made.decision_deadline_ms == value


@pytest.mark.parametrize(("length", "valid"), [(1, True), (512, True), (513, False), (0, False)])
def test_decision_model_length(length: int, valid: bool) -> None:
    assert (problems(with_combo(strategy="jev", decisionModel="m" * length)) == {}) is valid


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"weight": 1}, None),
        ({"weight": 10_000}, None),
        ({"weight": 0}, "weight"),
        ({"weight": 10_001}, "weight"),
        ({"weight": "2"}, "weight"),
        ({"weight": True}, "weight"),
        ({"weight": 2.0}, "weight"),
        ({"weight": None}, "weight"),
        ({"lastResort": True}, None),
        ({"lastResort": 1}, "lastResort"),
        ({"lastResort": None}, "lastResort"),
        ({"reasoningEfforts": ["low", "ultra"]}, None),
        ({"reasoningEfforts": ["low", "minimal"]}, "reasoningEfforts[1]"),
        ({"reasoningEfforts": "low"}, "reasoningEfforts"),
        ({"modelProfile": "x"}, None),
        ({"modelProfile": "a\tb\r\nc"}, None),
        ({"modelProfile": "x" * 512}, None),
        ({"modelProfile": "x" * 513}, "modelProfile"),
        ({"modelProfile": ""}, None),
        ({"modelProfile": "a\x0bb"}, "modelProfile"),
        ({"model": ""}, "model"),
        ({"model": "x" * 512}, None),
        ({"model": "x" * 513}, "model"),
        ({"model": 3}, "model"),
        ({"provider": None}, "provider"),
    ],
)
def test_target_fields(fields: dict[str, Any], path: str | None) -> None:
    found = problems(with_combo(targets=[{**TARGET, **fields}]))
    assert list(found) == ([] if path is None else [f"combos.main.targets[0].{path}"])


def test_example_message() -> None:
    value = document(combos={"balanced": {"targets": [TARGET, {"provider": "beta", "model": "m", "weight": 0}]}})
    assert problems(value) == {"combos.balanced.targets[1].weight": "must be an integer from 1 to 10000, got 0"}


@pytest.mark.parametrize("missing", ["provider", "model"])
def test_targets_are_pairs(missing: str) -> None:
    target = {key: value for key, value in TARGET.items() if key != missing}
    assert problems(with_combo(targets=[target])) == {f"combos.main.targets[0].{missing}": "is required"}


@pytest.mark.parametrize("value", [None, {}, "alpha/m1", 3])
def test_targets_are_an_array(value: object) -> None:
    assert list(problems(with_combo(targets=value))) == ["combos.main.targets"]


def test_targets_are_required() -> None:
    assert problems(document(combos={"main": {}})) == {"combos.main.targets": "is required"}


def test_enums_carry_their_words() -> None:
    assert accepted("cooldownWaitPolicy", "before-last-resort") is CooldownWaitPolicy.BEFORE_LAST_RESORT
    assert accepted("defaultEffort", "ultra") is Effort.ULTRA
