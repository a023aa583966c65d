"""Profiles of configured targets: the operator's words about a model become flags."""

from typing import Any

import pytest

import configs
from combos.core.registry import Provider, Target, make_target
from combos.wire.translate import target_profile


def target(model: str = "m1", **fields: Any) -> Target:
    config = configs.config(configs.with_provider(**fields)).providers["alpha"]
    return make_target(Provider("alpha", config), model)


@pytest.mark.parametrize(
    ("fields", "flag", "value"),
    [
        ({}, "text_only", False),
        ({"noVisionModels": ["m1"]}, "text_only", True),
        ({"noVisionModels": ["m2"]}, "text_only", False),
        ({"modelInputModalities": {"m1": ["text"]}}, "text_only", True),
        ({"modelInputModalities": {"m1": ["text", "image"]}}, "text_only", False),
        ({}, "effort", True),
        ({"reasoningEfforts": []}, "effort", False),
        ({"noReasoningModels": ["m1"]}, "effort", False),
        ({"reasoningEfforts": ["low"]}, "effort", True),
        ({}, "max_output_tokens", None),
        ({"defaultMaxOutputTokens": 5000}, "max_output_tokens", 5000),
        ({"defaultMaxOutputTokens": 5000, "modelMaxOutputTokens": {"m1": 7000}}, "max_output_tokens", 7000),
        ({}, "canonical", False),
        ({"adapter": "ollama-native"}, "legacy_max_tokens", True),
        ({"modelAdapters": {"m1": "anthropic"}}, "sampling", False),
    ],
)
def test_flags(fields: dict[str, Any], flag: str, value: object) -> None:
    profile = target_profile(target(**fields))
    assert profile is not None
    assert getattr(profile, flag) == value
    assert (profile.key, profile.model) == ("alpha/m1", "m1")


def test_the_native_backend_is_canonical() -> None:
    native = target(adapter="openai-responses", authMode="forward", baseUrl="https://chatgpt.com/backend-api/codex")
    profile = target_profile(native)
    assert profile is not None
    assert profile.canonical


def test_targets_that_answer_nothing_have_no_profile() -> None:
    assert target_profile(Target("gone/m", "gone", "m", None, None)) is None
    assert target_profile(target(modelAdapters={"m1": "jev-decision"})) is None
