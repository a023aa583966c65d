"""What targets accept: rows per adapter and model family, and an operator's own flags."""

from typing import Any

import pytest

from combos.core.config_provider import Adapter
from combos.wire.translate import ADAPTERS, Thinking, profile_for
from combos.wire.translate.effort import from_budget, known
from translations import DIALECTS

R, C, M, G = DIALECTS


@pytest.mark.parametrize(
    ("model", "thinking", "disable", "sampling"),
    [
        ("claude-opus-4-8", Thinking.ADAPTIVE, False, False),
        ("claude-opus-4-7", Thinking.ADAPTIVE, False, False),
        ("claude-opus-4-10", Thinking.ADAPTIVE, False, False),
        ("claude-opus-5", Thinking.ADAPTIVE, False, False),
        ("claude-fable-5", Thinking.ADAPTIVE, False, False),
        ("claude-sonnet-5", Thinking.ADAPTIVE, True, False),
        ("claude-sonnet-10-1", Thinking.ADAPTIVE, True, False),
        ("anthropic/claude-sonnet-5", Thinking.ADAPTIVE, True, False),
        ("claude-opus-4-6", Thinking.BUDGET, False, True),
        ("claude-opus-4.5", Thinking.BUDGET, False, True),
        ("claude-opus-4-5-20251101", Thinking.BUDGET, False, True),
        ("claude-opus-4-20250514", Thinking.BUDGET, False, True),
        ("claude-opus-4", Thinking.BUDGET, False, True),
        ("claude-opus-4.8", Thinking.ADAPTIVE, False, False),
        ("claude-sonnet-4-5", Thinking.BUDGET, False, True),
        ("claude-haiku-4-5-20251001", Thinking.BUDGET, False, True),
        ("claude-3-7-sonnet", Thinking.BUDGET, False, True),
    ],
)
def test_anthropic_families(model: str, thinking: Thinking, disable: bool, sampling: bool) -> None:
    profile = profile_for("anthropic", f"anthropic/{model}")
    assert (profile.thinking, profile.thinking_disable, profile.sampling) == (thinking, disable, sampling)


@pytest.mark.parametrize(
    ("adapter", "model", "flags"),
    [
        ("openai-chat", "gpt-5.6", {"sampling": False, "developer_role": True, "custom_tools": True, "stop": False}),
        ("openai-chat", "o3-mini", {"sampling": False, "developer_role": True}),
        ("openai-chat", "openai/gpt-5.6", {"sampling": False, "developer_role": True}),
        ("openai-chat", "gpt-4.1", {"sampling": True, "developer_role": False, "custom_tools": False}),
        ("openai-chat", "deepseek-r1", {"effort": False}),
        ("openai-chat", "qwen3", {"effort": True, "legacy_max_tokens": False}),
        ("ollama-native", "qwen3", {"legacy_max_tokens": True}),
        ("openai-responses", "gpt-5.6-sol", {"sampling": False, "custom_tools": True}),
        ("azure-openai", "gpt-4o", {"sampling": True, "custom_tools": True}),
        ("google", "gemini-3-pro", {"thinking": Thinking.LEVEL, "skip_signature": True}),
        ("google", "gemini-2.5-flash", {"thinking": Thinking.BUDGET, "skip_signature": False}),
        ("google", "gemini-2.0-flash", {"thinking": Thinking.NONE}),
    ],
)
def test_other_families(adapter: str, model: str, flags: dict[str, Any]) -> None:
    profile = profile_for(adapter, f"p/{model}")
    assert {name: getattr(profile, name) for name in flags} == flags
    assert (profile.model, profile.provider) == (model, "p")


def test_operators_have_the_last_word_and_unknown_flags_are_ignored() -> None:
    profile = profile_for("anthropic", "a/claude-opus-4-8", {"sampling": True, "key": "x", "model": "y", "zz": 1})
    assert (profile.sampling, profile.key, profile.model) == (True, "a/claude-opus-4-8", "claude-opus-4-8")


def test_every_adapter_that_answers_has_a_row() -> None:
    assert set(ADAPTERS) == {adapter.value for adapter in Adapter} - {"jev-decision"}
    assert {dialect for dialect, _flags in ADAPTERS.values()} == set(DIALECTS)
    with pytest.raises(KeyError):
        profile_for("jev-decision", "p/m")


@pytest.mark.parametrize(
    ("tokens", "effort"),
    [(-1, None), (0, "none"), (1024, "low"), (4096, "low"), (4097, "medium"), (16384, "medium"), (16385, "high")],
)
def test_budgets_amount_to_an_effort(tokens: int, effort: str | None) -> None:
    assert from_budget(tokens) == effort


@pytest.mark.parametrize(
    ("value", "effort"), [("ultra", "max"), ("low", "low"), ("huge", None), (3, None), (None, None)]
)
def test_known_efforts(value: object, effort: str | None) -> None:
    assert known(value) == effort
