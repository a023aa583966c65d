"""Which source wins for one target: list, operator, replaced native model, vendor facts, placeholders."""

from typing import Any

import pytest

from catalogs import discovered, provider, registry, targets
from combos.core.catalog_member import Capabilities, DiscoveredModel, Member, filled, member_of
from combos.core.native_models import NativeModel, native_model
from combos.core.registry import Target


def target(model: str = "m", **fields: Any) -> Target:
    document = {"providers": {"up": provider(**fields)}, "combos": {"c": {"targets": targets(f"up/{model}")}}}
    return registry(document).combos["c"].targets[0]


def member(model: str = "m", listed: DiscoveredModel | None = None, native: str = "", **fields: Any) -> Member:
    replaced: NativeModel | None = native_model(native) if native else None
    made = member_of(target(model, **fields), listed, replaced)
    assert made is not None
    return made


def test_nothing_known_gives_placeholders() -> None:
    made = member()
    assert (made.context, made.modalities, made.known.ladder) == (128_000, ("text",), None)
    assert made.max_input == 128_000


def test_a_target_without_provider_is_no_member() -> None:
    assert member_of(Target("gone/m", "gone", "m", None, None)) is None


def test_the_list_is_believed() -> None:
    made = member(listed=discovered("m", context=64_000, modalities=("text", "audio"), ladder=("low",), max_output=7))
    assert (made.context, made.modalities) == (64_000, ("text", "audio"))
    assert (made.known.ladder, made.known.max_output) == (("low",), 7)


@pytest.mark.parametrize(("operator", "listed", "context"), [(50, 100, 50), (100, 50, 50), (100, None, 100)])
def test_of_two_limits_the_smaller_holds(operator: int, listed: int | None, context: int) -> None:
    assert member(listed=discovered("m", context=listed), contextWindow=operator).context == context
    limits = {"modelMaxInputTokens": {"m": operator}, "modelMaxOutputTokens": {"m": operator}}
    made = member(listed=discovered("m", max_input=listed, max_output=listed), **limits)
    assert (made.known.max_input, made.known.max_output) == (context, context)


def test_a_window_of_the_model_beats_that_of_the_provider() -> None:
    assert member("m:free", contextWindow=10, modelContextWindows={"m": 20}).context == 20


@pytest.mark.parametrize(
    ("fields", "modalities"),
    [
        ({"modelInputModalities": {"m": ["image", "text"]}}, ("image", "text")),
        ({"noVisionModels": ["m"]}, ("text",)),
        ({"noVisionModels": ["m"], "modelInputModalities": {"m": ["text", "image", "audio"]}}, ("text", "audio")),
        ({}, ("text", "image")),
    ],
)
def test_the_operators_modalities_win(fields: dict[str, Any], modalities: tuple[str, ...]) -> None:
    assert member(listed=discovered("m", modalities=("text", "image")), **fields).modalities == modalities


@pytest.mark.parametrize(
    ("fields", "ladder"),
    [
        ({"reasoningEfforts": ["low"]}, ("low",)),
        ({"noReasoningModels": ["m"]}, ()),
        ({"reasoningEfforts": []}, ()),
        ({"reasoningEfforts": ["enabled"]}, ("high",)),
        ({}, ("high",)),
    ],
)
def test_the_operators_ladder_wins(fields: dict[str, Any], ladder: tuple[str, ...]) -> None:
    assert member(listed=discovered("m", ladder=("high",)), **fields).known.ladder == ladder


def test_a_native_alias_fills_what_is_missing() -> None:
    made = member(native="gpt-5.6-sol", listed=DiscoveredModel("m"))
    assert (made.context, made.modalities, made.known.max_output) == (272_000, ("text", "image"), 128_000)
    assert made.known.ladder == ("low", "medium", "high", "xhigh", "max", "ultra")


def test_a_native_alias_raises_and_overrides_nothing() -> None:
    explicit = {"contextWindow": 100_000, "modelInputModalities": {"m": ["text"]}, "reasoningEfforts": ["low"]}
    made = member(native="gpt-5.6-sol", **explicit)
    assert (made.context, made.modalities, made.known.ladder) == (100_000, ("text",), ("low",))
    assert member(native="gpt-5.6-sol", reasoningEfforts=[]).known.ladder == ()


@pytest.mark.parametrize(
    ("model", "context", "modalities"),
    [
        ("claude-opus-4-8", 200_000, ("text", "image")),
        ("anthropic/Claude-Sonnet-5", 200_000, ("text", "image")),
        ("gpt-6-astra", 272_000, ("text", "image")),
        ("gpt-5.9-unheard", 272_000, ("text", "image")),
        ("not-claude-1", 128_000, ("text",)),
    ],
)
def test_vendor_facts_come_before_placeholders(model: str, context: int, modalities: tuple[str, ...]) -> None:
    made = member(model)
    assert (made.context, made.modalities, made.known.ladder) == (context, modalities, None)


def test_filling_changes_gaps_only() -> None:
    first = Capabilities(context=1, ladder=(), fast=False)
    second = Capabilities(context=2, ladder=("low",), fast=True, max_output=3, modalities=("text",))
    assert filled(first, second) == Capabilities(context=1, ladder=(), fast=False, max_output=3, modalities=("text",))
