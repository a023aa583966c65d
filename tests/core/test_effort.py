import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.effort import (
    OMIT,
    EffortPolicy,
    crossing_changes,
    decided_changes,
    decided_crossing_changes,
    effort_changes,
    has_say,
    policy_for,
)
from combos.core.facts import Dialect
from combos.core.registry import Target
from combos.wire.splice import replace_members
from playbook import World, config

WIDE = ("low", "medium", "high", "xhigh")
TOP = ("low", "medium", "high", "xhigh", "max", "ultra")


def policy(ladder: tuple[str, ...] | None, default: str | None = None, **fields: Any) -> EffortPolicy:
    return EffortPolicy(ladder, default, **fields)


def applied(body: dict[str, Any], changes: dict[tuple[str, ...], object]) -> dict[str, Any]:
    """The body with the changes, by the rules of splicing."""
    out: dict[str, Any] = {k: dict(v) if isinstance(v, dict) else v for k, v in body.items()}
    for path, value in changes.items():
        parent = out if len(path) == 1 else out.setdefault(path[0], {})
        if value is None:
            parent.pop(path[-1], None)
        else:
            parent[path[-1]] = value
    return out


def sent(dialect: Dialect, body: dict[str, Any], rule: EffortPolicy, model: str = "m") -> dict[str, Any]:
    return applied(body, effort_changes(dialect, body, model, rule))


def R(**reasoning: Any) -> dict[str, Any]:
    return {"reasoning": reasoning}


FORCED: dict[str, Any] = {"forced": True}
ADAPTIVE: dict[str, Any] = {"adaptive": True}


@pytest.mark.parametrize(
    ("body", "rule", "expected"),
    [
        ({}, policy(WIDE, "max"), R(effort="xhigh")),
        (R(summary="auto"), policy(WIDE, "max"), R(summary="auto", effort="xhigh")),
        (R(effort="low"), policy(WIDE, "max"), R(effort="low")),
        (R(effort="high"), policy(WIDE, "low", **FORCED), R(effort="low")),
        (R(effort="none"), policy(WIDE, "low", **FORCED), R(effort="none")),
        (R(effort="minimal"), policy(WIDE, "high", **FORCED), R(effort="low")),
        (R(effort="odd"), policy(WIDE, "low", **FORCED), R(effort="odd")),
        ({"reasoning": None}, policy(WIDE, "low", **FORCED), {"reasoning": None}),
        (R(effort=None), policy(WIDE, "low"), R(effort=None)),
        (R(effort="high", summary="auto"), policy((), "low"), R(summary="auto")),
        (R(effort="high"), policy((), "low", **FORCED), {}),
        ({}, policy((), "low"), {}),
        (R(effort="high"), policy(None, "low", **ADAPTIVE), {}),
        ({}, policy(None, "low", **ADAPTIVE), {}),
        (R(effort="high"), policy(None, "low", **FORCED), R(effort="high")),
        ({}, policy(None, "low"), {}),
        (R(effort="ultra"), policy(None), R(effort="ultra")),
        ({"reasoning_effort": "high", "thinking": {}, "thinking_budget": 5, "x": 1}, policy(()), {"x": 1}),
        # the caller's own effort on a known ladder
        (R(effort="max"), policy(WIDE), R(effort="xhigh")),
        (R(effort="low"), policy(("high", "xhigh")), R(effort="high")),
        (R(effort="minimal"), policy(("minimal", "low")), R(effort="minimal")),
        (R(effort="minimal"), policy(("high",)), R(effort="high")),
        (R(effort="ultra"), policy(TOP), R(effort="max")),
        ({}, policy(TOP, "ultra"), R(effort="max")),
        (R(effort="high"), policy(("none", "minimal")), R(effort="high")),
        # provider renames
        (R(effort="high"), policy(WIDE, renames={"high": "deep"}), R(effort="deep")),
        (R(effort="high", summary="auto"), policy(WIDE, renames={"high": OMIT}), R(summary="auto")),
        ({}, policy(WIDE, "high", renames={"high": "deep"}), R(effort="deep")),
        # the native backend clamps only the two top rungs
        (R(effort="max"), policy(WIDE, clamps_top_only=True), R(effort="xhigh")),
        (R(effort="minimal"), policy(WIDE, clamps_top_only=True), R(effort="minimal")),
    ],
)
def test_responses(body: dict[str, Any], rule: EffortPolicy, expected: dict[str, Any]) -> None:
    assert sent(Dialect.RESPONSES, body, rule) == expected


@pytest.mark.parametrize(
    ("body", "rule", "expected"),
    [
        ({}, policy(WIDE, "max"), {"reasoning_effort": "xhigh"}),
        ({"reasoning_effort": "max"}, policy(WIDE, "low"), {"reasoning_effort": "xhigh"}),
        ({"reasoning_effort": "high"}, policy(WIDE, "low", **FORCED), {"reasoning_effort": "low"}),
        (R(effort="high"), policy(WIDE, "low", **FORCED), R(effort="low")),
        (R(summary="auto"), policy(WIDE, "low"), {"reasoning": {"summary": "auto"}, "reasoning_effort": "low"}),
        ({"reasoning_effort": None}, policy(WIDE, "low", **FORCED), {"reasoning_effort": None}),
        ({"reasoning_effort": "high", **R(effort="high", summary="a"), "thinking": {}}, policy(()), R(summary="a")),
        ({"reasoning_effort": "high"}, policy(None), {"reasoning_effort": "high"}),
    ],
)
def test_chat(body: dict[str, Any], rule: EffortPolicy, expected: dict[str, Any]) -> None:
    assert sent(Dialect.CHAT, body, rule) == expected


OLD, NEW = "claude-sonnet-4-5", "claude-opus-4-8"
ADAPT = {"type": "adaptive"}


def level(effort: str, **more: Any) -> dict[str, Any]:
    return {"output_config": {"effort": effort, **more}}


@pytest.mark.parametrize(
    ("model", "body", "rule", "expected"),
    [
        (NEW, {"temperature": 1, "top_p": 1}, policy(WIDE, "high"), {"thinking": ADAPT, **level("high")}),
        (NEW, {"thinking": ADAPT}, policy(WIDE, "high"), {"thinking": ADAPT, **level("high")}),
        (NEW, {"thinking": ADAPT, **level("low")}, policy(WIDE, "high"), {"thinking": ADAPT, **level("low")}),
        (
            NEW,
            {"thinking": ADAPT, **level("low")},
            policy(WIDE, "high", **FORCED),
            {"thinking": ADAPT, **level("high")},
        ),
        (NEW, {"thinking": {"type": "disabled"}}, policy(WIDE, "high", **FORCED), {"thinking": {"type": "disabled"}}),
        (NEW, level("max"), policy(WIDE), level("xhigh")),
        (NEW, level("max", format={}), policy(()), {"output_config": {"format": {}}}),
        (NEW, {"thinking": ADAPT, **level("max")}, policy(None, **ADAPTIVE), {}),
        (
            NEW,
            {"tool_choice": {"type": "any"}},
            policy(WIDE, "high"),
            {"tool_choice": {"type": "any"}, **level("high")},
        ),
        (
            OLD,
            {"max_tokens": 100, "temperature": 1},
            policy(WIDE, "low"),
            {"max_tokens": 12_288, "thinking": {"type": "enabled", "budget_tokens": 4096}},
        ),
        (
            OLD,
            {"max_tokens": 64_000},
            policy(("max",), "max"),
            {"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 27_904}},
        ),
        (OLD, {"tool_choice": {"type": "tool"}}, policy(WIDE, "high"), {"tool_choice": {"type": "tool"}}),
        (
            OLD,
            {"thinking": {"type": "enabled", "budget_tokens": 20_000}, "max_tokens": 30_000},
            policy(WIDE, "low", **FORCED),
            {"thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 30_000},
        ),
        (
            OLD,
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            policy(WIDE, "high"),
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        ),
    ],
)
def test_messages(model: str, body: dict[str, Any], rule: EffortPolicy, expected: dict[str, Any]) -> None:
    assert sent(Dialect.MESSAGES, body, rule, model) == expected


@pytest.mark.parametrize(
    ("model", "adaptive"),
    [
        ("claude-sonnet-5", True),
        ("claude-sonnet-5-20260101", True),
        ("claude-opus-4-7", True),
        ("claude-opus-4-10", True),
        ("claude-opus-5", True),
        ("anthropic/claude-fable-1", True),
        ("claude-opus-4-6", False),
        ("claude-opus-4-20250514", False),
        ("claude-sonnet-4-5-20250929", False),
        ("claude-3-7-sonnet-latest", False),
    ],
)
def test_families_with_effort_levels(model: str, adaptive: bool) -> None:
    changes = effort_changes(Dialect.MESSAGES, {"max_tokens": 100}, model, policy(WIDE, "low"))
    assert (changes[("thinking",)] == ADAPT) is adaptive


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["reasoning", "reasoning_effort", "thinking", "output_config", "tool_choice"]),
        st.none()
        | st.text()
        | st.integers()
        | st.dictionaries(
            st.sampled_from(["effort", "type", "budget_tokens", "summary"]),
            st.none() | st.text(max_size=8) | st.sampled_from(["low", "max", "enabled"]) | st.integers(),
        ),
    ),
    st.sampled_from([(), None, WIDE, ("high",)]),
    st.sampled_from([None, "low", "max"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(list(Dialect)),
)
def test_no_body_is_too_odd_and_a_second_look_changes_nothing(
    body: dict[str, Any],
    ladder: tuple[str, ...] | None,
    default: str | None,
    forced: bool,
    adaptive: bool,
    dialect: Dialect,
) -> None:
    rule = policy(ladder, default, forced=forced, adaptive=adaptive)
    once = sent(dialect, body, rule)
    assert sent(dialect, once, rule) == once


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["reasoning", "reasoning_effort", "thinking", "output_config", "generationConfig"]),
        st.text(max_size=4) | st.just({"effort": "max"}) | st.just({"thinkingConfig": {"thinkingLevel": "high"}}),
    ),
    st.sampled_from([None, (), WIDE]),
    st.sampled_from([None, {}, {"reasoningEffortMode": "adaptive"}, {"defaultEffort": "max"}]),
    st.sampled_from(list(Dialect)),
)
def test_who_has_no_say_changes_nothing(
    body: dict[str, Any], ladder: tuple[str, ...] | None, fields: dict[str, Any] | None, dialect: Dialect
) -> None:
    combo = None if fields is None else World(config(**fields)).registry.combos["main"].config
    target = Target("alpha/m1", "alpha", "m1", None, dialect, ladder=ladder)
    rule = policy_for(target, combo, native=False)
    changes = effort_changes(dialect, body, "m1", rule) | crossing_changes(dialect, body, rule)
    assert has_say(target, combo) or not changes
    assert has_say(target, combo) is (ladder is not None or rule.adaptive)


# -- the effort of a decision


def decided(dialect: Dialect, body: dict[str, Any], effort: str | None, rule: EffortPolicy, model: str = "m") -> Any:
    return applied(body, decided_changes(dialect, body, model, rule, effort))


@pytest.mark.parametrize(
    ("body", "effort", "expected"),
    [
        ({}, "high", R(effort="high")),
        (R(effort="low", summary="auto"), "high", R(effort="high", summary="auto")),
        (R(effort="high"), "high", R(effort="high")),
        (R(summary="auto"), None, R(summary="auto")),
        (R(effort="low", summary="auto"), None, R(summary="auto")),
        (R(effort="low"), None, {}),
        (
            {"reasoning_effort": "low", "thinking_budget": 5, "thinking": {"type": "enabled"}, "input": "x"},
            "medium",
            {"input": "x", **R(effort="medium")},
        ),
        ({"reasoning_effort": "low", "thinking_budget": 5, "thinking": {}}, None, {}),
        ({}, None, {}),
        ({}, "ultra", R(effort="max")),
    ],
)
def test_a_decision_sets_the_effort_of_a_responses_body(body: Any, effort: str | None, expected: Any) -> None:
    assert decided(Dialect.RESPONSES, body, effort, policy(TOP)) == expected


def test_a_reasoning_that_is_no_object_becomes_one() -> None:
    assert decided_changes(Dialect.RESPONSES, {"reasoning": None}, "m", policy(TOP), "low") == {
        ("reasoning", "effort"): "low"
    }


@pytest.mark.parametrize(
    ("body", "effort", "expected"),
    [
        ({}, "high", {"reasoning_effort": "high"}),
        ({"reasoning_effort": "low"}, "high", {"reasoning_effort": "high"}),
        ({"reasoning_effort": "low", **R(effort="low", x=1)}, "high", {"reasoning_effort": "high", **R(x=1)}),
        ({"reasoning_effort": "low", "thinking": {}}, None, {}),
    ],
)
def test_a_decision_sets_the_effort_of_a_chat_body(body: Any, effort: str | None, expected: Any) -> None:
    assert decided(Dialect.CHAT, body, effort, policy(WIDE)) == expected


ADAPTIVE_MODEL = "claude-opus-4-8"
BUDGET_MODEL = "claude-haiku-4-5"


@pytest.mark.parametrize(
    ("model", "body", "effort", "expected"),
    [
        (ADAPTIVE_MODEL, {}, "high", {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}),
        (
            ADAPTIVE_MODEL,
            {"output_config": {"effort": "high", "format": 1}, "thinking": {"type": "enabled", "budget_tokens": 9}},
            "low",
            {"output_config": {"effort": "low", "format": 1}, "thinking": {"type": "adaptive"}},
        ),
        (
            ADAPTIVE_MODEL,
            {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}},
            "high",
            {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}},
        ),
        (
            ADAPTIVE_MODEL,
            {"tool_choice": {"type": "any"}, "thinking": {"type": "enabled", "budget_tokens": 9}},
            "low",
            {"tool_choice": {"type": "any"}, "output_config": {"effort": "low"}},
        ),
        (
            BUDGET_MODEL,
            {"max_tokens": 9, "output_config": {"effort": "high"}, "thinking": {"type": "disabled"}, "top_p": 1},
            "low",
            {"max_tokens": 12288, "thinking": {"type": "enabled", "budget_tokens": 4096}},
        ),
        (BUDGET_MODEL, {"output_config": {"effort": "x", "y": 1}, "thinking": {}}, None, {"output_config": {"y": 1}}),
        (ADAPTIVE_MODEL, {"output_config": {"effort": "x"}, "thinking": {}}, None, {}),
    ],
)
def test_a_decision_sets_the_effort_of_a_messages_body(
    model: str, body: Any, effort: str | None, expected: Any
) -> None:
    assert decided(Dialect.MESSAGES, body, effort, policy(WIDE), model) == expected


@pytest.mark.parametrize("dialect", [Dialect.RESPONSES, Dialect.CHAT])
def test_a_decided_effort_keeps_to_the_ladder_and_the_renames_of_the_target(dialect: Dialect) -> None:
    path = ("reasoning", "effort") if dialect is Dialect.RESPONSES else ("reasoning_effort",)
    assert decided_changes(dialect, {}, "m", policy(("low", "high")), "medium") == {path: "low"}
    renamed = policy(WIDE, renames={"high": "turbo", "low": OMIT})
    assert decided_changes(dialect, {}, "m", renamed, "high") == {path: "turbo"}
    assert decided_changes(dialect, {}, "m", renamed, "low") == {}


@settings(max_examples=200)
@given(
    st.sampled_from([Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES]),
    st.sampled_from([ADAPTIVE_MODEL, BUDGET_MODEL]),
    st.sampled_from([None, *TOP]),
    st.dictionaries(
        st.sampled_from(["reasoning", "reasoning_effort", "thinking", "output_config", "thinking_budget", "x"]),
        st.sampled_from([None, "low", 5, {}, {"effort": "high"}, {"effort": "low", "summary": "auto"}]),
    ),
)
def test_no_body_is_too_odd_for_a_decision(dialect: Dialect, model: str, effort: str | None, body: Any) -> None:
    changes = decided_changes(dialect, body, model, policy(TOP), effort)
    raw = json.dumps(body).encode()
    spliced = replace_members(
        raw,
        {path: None if value is None else json.dumps(value).encode() for path, value in changes.items()},
    )
    after = json.loads(spliced)
    assert after.get("x") == body.get("x")
    if effort is None:
        reasoning, level_ = after.get("reasoning"), after.get("output_config")
        assert not {"thinking"} & set(after)
        assert not (isinstance(reasoning, dict) and dialect is not Dialect.MESSAGES and "effort" in reasoning)
        assert not (isinstance(level_, dict) and dialect is Dialect.MESSAGES and "effort" in level_)


def G(**thinking: Any) -> dict[str, Any]:
    return {"generationConfig": {"thinkingConfig": thinking}}


def crossed(dialect: Dialect, body: dict[str, Any], rule: EffortPolicy) -> dict[str, Any]:
    changes = crossing_changes(dialect, body, rule)
    raw = {path: None if value is None else json.dumps(value).encode() for path, value in changes.items()}
    after: dict[str, Any] = json.loads(replace_members(json.dumps(body).encode(), raw))
    return after


def level(effort: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


@pytest.mark.parametrize(
    ("dialect", "body", "rule", "expected"),
    [
        (Dialect.RESPONSES, {}, policy(WIDE, "max"), R(effort="xhigh")),
        (Dialect.CHAT, {}, policy(WIDE, "max"), {"reasoning_effort": "xhigh"}),
        # a Messages body names the level, whatever the target's model is called
        (Dialect.MESSAGES, {}, policy(WIDE, "max"), level("xhigh")),
        (Dialect.MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 4000}}, policy(("high",)), level("high")),
        (
            Dialect.MESSAGES,
            {"thinking": {"type": "enabled", "budget_tokens": 4000}},
            policy(WIDE, "high"),
            {"thinking": {"type": "enabled", "budget_tokens": 4000}},
        ),
        (Dialect.MESSAGES, level("low"), policy(WIDE, "high", **FORCED), level("high")),
        (
            Dialect.MESSAGES,
            {"thinking": {"type": "disabled"}},
            policy(WIDE, "high"),
            {"thinking": {"type": "disabled"}},
        ),
        (Dialect.MESSAGES, level("high"), policy(()), {}),
        (Dialect.MESSAGES, level("high"), policy(None, **ADAPTIVE), {}),
        (Dialect.MESSAGES, level("high"), policy(None), level("high")),
        (Dialect.GEMINI, {}, policy(WIDE, "high"), G(thinkingLevel="high")),
        (Dialect.GEMINI, G(thinkingBudget=100), policy(("high",)), G(thinkingLevel="high")),
        (
            Dialect.GEMINI,
            G(thinkingLevel="LOW", includeThoughts=True),
            policy(("high",)),
            G(includeThoughts=True, thinkingLevel="high"),
        ),
        (Dialect.GEMINI, G(thinkingBudget=0), policy(WIDE, "high"), G(thinkingBudget=0)),
        (Dialect.GEMINI, G(thinkingBudget=-1), policy(WIDE, "low"), G(thinkingLevel="low")),
        (Dialect.GEMINI, {**G(thinkingBudget=9), "contents": []}, policy(()), {"contents": []}),
    ],
)
def test_effort_of_a_body_that_will_be_translated(
    dialect: Dialect, body: dict[str, Any], rule: EffortPolicy, expected: dict[str, Any]
) -> None:
    assert crossed(dialect, body, rule) == expected


@pytest.mark.parametrize(
    ("dialect", "effort", "expected"),
    [
        (Dialect.RESPONSES, "high", {("reasoning", "effort"): "high"}),
        (Dialect.CHAT, None, {}),
        (Dialect.MESSAGES, "high", {("thinking",): {"type": "adaptive"}, ("output_config", "effort"): "high"}),
        (Dialect.MESSAGES, "none", {("thinking",): {"type": "disabled"}}),
        (Dialect.GEMINI, "max", {("generationConfig", "thinkingConfig"): {"thinkingLevel": "xhigh"}}),
        (Dialect.GEMINI, None, {}),
    ],
)
def test_a_decisions_effort_in_a_body_that_will_be_translated(
    dialect: Dialect, effort: str | None, expected: dict[tuple[str, ...], object]
) -> None:
    assert decided_crossing_changes(dialect, {}, policy(WIDE), effort) == expected


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-3-pro", "low", G(thinkingLevel="LOW")),
        ("gemini-3-pro", "xhigh", G(thinkingLevel="HIGH")),
        ("models/gemini-2.5-flash", "high", G(thinkingBudget=16384)),
        ("gemini-2.0-flash", "high", {}),
        ("other", "high", {}),
    ],
)
def test_gemini_models_take_the_effort_in_their_own_form(model: str, effort: str, expected: dict[str, Any]) -> None:
    rule = policy(TOP, effort)
    assert sent(Dialect.GEMINI, {}, rule, model) == expected
    decided = decided_changes(Dialect.GEMINI, {}, model, policy(TOP), effort)
    assert applied({}, decided) == expected
