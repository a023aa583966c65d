"""Builders for tests of decisions: configurations with a combo `main` of strategy jev, and requests for it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from combos.core.config import parse_config
from combos.core.registry import Combo, Registry, build_registry
from combos.wire.request import RequestFacts, request_facts

PATHS = {
    "R": "/v1/responses",
    "C": "/v1/chat/completions",
    "M": "/v1/messages",
    "G": "/v1beta/models/combo/main:generateContent",
}


def provider(**fields: Any) -> dict[str, Any]:
    """A provider of models."""
    return {"adapter": "openai-responses", "baseUrl": "https://models.example/v1", "apiKey": "k", **fields}


def row(base_url: str, **fields: Any) -> dict[str, Any]:
    """A decision row on this machine."""
    return {
        "adapter": "jev-decision",
        "baseUrl": base_url,
        "allowPrivateNetwork": True,
        "defaultModel": "tev1:4b",
        "liveModels": False,
        **fields,
    }


def target(key: str, **fields: Any) -> dict[str, Any]:
    """A target from `provider/model`."""
    name, _, model = key.partition("/")
    return {"provider": name, "model": model, **fields}


def registry(
    targets: Sequence[Mapping[str, Any]] = (),
    providers: Mapping[str, Any] | None = None,
    combos: Mapping[str, Any] | None = None,
    **combo: Any,
) -> Registry:
    """A registry whose combo `main` decides."""
    table = {"alpha": provider(reasoningEfforts=["low", "medium", "high"]), "beta": provider(), **(providers or {})}
    main = {"strategy": "jev", "targets": list(targets) or [target("alpha/m1"), target("beta/m2")], **combo}
    return build_registry(parse_config({"providers": table, "combos": {"main": main, **(combos or {})}}), 1)


def main_of(made: Registry) -> Combo:
    """The combo that decides."""
    return made.combos["main"]


def facts(wire: str = "R", **fields: Any) -> RequestFacts:
    """A request for the combo."""
    extra = {"max_tokens": 64} if wire == "M" else {}
    return request_facts(PATHS[wire], json.dumps({"model": "combo/main", **extra, **fields}).encode())
