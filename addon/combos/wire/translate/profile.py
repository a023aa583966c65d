"""What a concrete target accepts, as data: one row per adapter, refined by rows for model families.

It decides nothing about a request; the renderers read it. Operators override single flags per provider or target.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

from combos.core.facts import Dialect
from combos.core.values import dataclass


class Thinking(StrEnum):
    """How a target takes the amount of thinking."""

    ADAPTIVE = "adaptive"
    BUDGET = "budget"
    LEVEL = "level"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TargetProfile:
    """Flags of one target. `key` is `provider/model`, `model` the bare name that goes on the wire.

    `canonical` marks the native ChatGPT backend, the only target that can make a compaction item itself.
    """

    key: str
    model: str
    thinking: Thinking = Thinking.ADAPTIVE
    thinking_disable: bool = False
    legacy_max_tokens: bool = False
    sampling: bool = True
    stop: bool = True
    developer_role: bool = False
    custom_tools: bool = False
    strict_tools: bool = False
    text_only: bool = False
    reasoning_content: bool = False
    effort: bool = True
    mid_system: bool = False
    cache_markers: bool = True
    skip_signature: bool = False
    canonical: bool = False
    max_output_tokens: int | None = None

    @property
    def provider(self) -> str:
        return self.key.partition("/")[0]


ADAPTERS: Mapping[str, tuple[Dialect, Mapping[str, Any]]] = {
    "openai-responses": (Dialect.RESPONSES, {"custom_tools": True}),
    "azure-openai": (Dialect.RESPONSES, {"custom_tools": True}),
    "openai-chat": (Dialect.CHAT, {}),
    "ollama-native": (Dialect.CHAT, {"legacy_max_tokens": True}),
    "anthropic": (Dialect.MESSAGES, {"sampling": False}),
    "google": (Dialect.GEMINI, {"thinking": Thinking.BUDGET}),
}
"""Adapter of a provider -> the dialect it speaks and its flags. Ollama is reached through its OpenAI surface."""

_OPENAI_REASONING = r"(gpt-(?:[5-9]|\d\d)|o[1-9]|codex)"

MODELS: tuple[tuple[str, Dialect, re.Pattern[str], Mapping[str, Any]], ...] = (
    ("openai-reasoning", Dialect.RESPONSES, re.compile(_OPENAI_REASONING), {"sampling": False}),
    (
        "openai-reasoning-chat",
        Dialect.CHAT,
        re.compile(_OPENAI_REASONING),
        {"sampling": False, "stop": False, "developer_role": True, "custom_tools": True},
    ),
    ("deepseek-reasoner", Dialect.CHAT, re.compile(r"deepseek.*(reasoner|r1)"), {"effort": False}),
    (
        "anthropic-budget",
        Dialect.MESSAGES,
        re.compile(r"claude-(?:3|haiku-|sonnet-[34]|opus-4(?:[-.][0-6])?(?:-2\d{7}|-latest)?(?:[:@\[]|$))"),
        {"thinking": Thinking.BUDGET, "sampling": True},
    ),
    ("anthropic-disable", Dialect.MESSAGES, re.compile(r"claude-sonnet-(?:[5-9]|\d\d)"), {"thinking_disable": True}),
    (
        "gemini-level",
        Dialect.GEMINI,
        re.compile(r"gemini-(?:[3-9]|\d\d)"),
        {"thinking": Thinking.LEVEL, "skip_signature": True},
    ),
    ("gemini-plain", Dialect.GEMINI, re.compile(r"gemini-(?:1|2\.0)"), {"thinking": Thinking.NONE}),
)
"""(row name, dialect, pattern at the start of the bare model, flags); every row that matches is applied in order."""


def profile_for(adapter: str, key: str, overrides: Mapping[str, Any] | None = None) -> TargetProfile:
    """The profile of target `provider/model` behind an adapter. Raises KeyError for an unknown adapter.

    `overrides` are an operator's flags by field name; names that no field has are ignored.
    """
    dialect, flags = ADAPTERS[adapter]
    model = key.partition("/")[2]
    profile = replace(TargetProfile(key, model), **flags)
    family = model.rpartition("/")[2].lower()
    for _name, wanted, pattern, row in MODELS:
        if wanted is dialect and pattern.match(family):
            profile = replace(profile, **row)
    known = {item.name for item in fields(TargetProfile)} - {"key", "model"}
    return replace(profile, **{name: value for name, value in (overrides or {}).items() if name in known})
