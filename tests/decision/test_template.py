"""The proposed combo: complete, valid, and never a duplicate."""

from typing import Any

import pytest

from combos.core.config import parse_config
from combos.core.registry import build_registry
from combos.decision.template import MODELS, Template, jev_auto
from decisions import provider, registry, row

NATIVE = {"adapter": "openai-responses", "baseUrl": "https://chatgpt.com/backend-api/codex", "authMode": "forward"}


def template(openai: dict[str, Any] | None, service: str | None = None, **top: Any) -> Template:
    providers = {"tev": row("http://127.0.0.1:1/v1/systemone"), **({"openai": openai} if openai else {})}
    return jev_auto(registry(providers=providers, **top), service)


def test_the_whole_template_is_a_valid_combo() -> None:
    made = template(NATIVE)
    assert made.combo == {
        "alias": "jev-auto",
        "strategy": "jev",
        "reasoningEffortMode": "adaptive",
        "targets": [{"provider": "openai", "model": model} for model in MODELS],
    }
    assert (made.id, made.existing, made.missing) == ("jev-auto", None, ())
    assert parse_config({"providers": {"openai": NATIVE}, "combos": {made.id: made.combo}})


@pytest.mark.parametrize(
    ("openai", "models"),
    [
        (None, []),
        ({**NATIVE, "disabled": True}, []),
        ({**NATIVE, "models": ["gpt-5.6-sol"]}, list(MODELS)),
        (provider(), list(MODELS)),
        (provider(models=["gpt-5.6-sol", "other"]), ["gpt-5.6-sol"]),
    ],
)
def test_only_what_is_available_is_proposed(openai: dict[str, Any] | None, models: list[str]) -> None:
    made = template(openai)
    assert [entry["model"] for entry in made.combo["targets"]] == models  # type: ignore[attr-defined]
    assert made.missing == tuple(f"openai/{model}" for model in MODELS if model not in models)


def test_a_disabled_model_is_not_proposed() -> None:
    config = {"providers": {"openai": NATIVE}, "combos": {}, "disabledModels": ["openai/gpt-6-astra"]}
    made = jev_auto(build_registry(parse_config(config), 1))
    assert made.missing == ("openai/gpt-6-astra",)


@pytest.mark.parametrize(("service", "expected"), [("tev", "tev"), ("jev", None), (None, None)])
def test_a_compatible_row_is_preset(service: str | None, expected: str | None) -> None:
    assert template(NATIVE, service).combo.get("decisionProvider") == expected


@pytest.mark.parametrize(
    ("combos", "existing"),
    [
        ({"jev-auto": {"targets": [{"provider": "alpha", "model": "m"}]}}, "jev-auto"),
        ({"mine": {"alias": "jev-auto", "targets": [{"provider": "alpha", "model": "m"}]}}, "mine"),
    ],
)
def test_an_existing_id_or_alias_is_reported(combos: dict[str, Any], existing: str) -> None:
    assert template(NATIVE, combos=combos).existing == existing
