"""Which decision services this configuration has, and which of its models look like one. Asks nobody."""

from collections.abc import Iterator

from combos.core.config_provider import Adapter
from combos.core.names import TYPESAFE_PROVIDER
from combos.core.registry import Provider, Registry, is_routable, known_models
from combos.decision.service import Issue, usable_row

ROWS_MAX = 50
_TOKENS = ("jev", "systemone", "system-one", "decision")

type Json = dict[str, object]


def discover(registry: Registry, query: str = "") -> Json:
    """`{configured, discovered}`: the compatible rows, and models whose name suggests a decision service.

    `query` narrows both by a part of the provider or model name, whatever its case.
    """
    wanted = query.strip().lower()
    rows = (row for row in registry.providers.values() if row.config.adapter is Adapter.JEV_DECISION)
    configured = [
        _configured(row, registry) for row in rows if row.name != TYPESAFE_PROVIDER and wanted in row.name.lower()
    ]
    found = [entry for entry in _suggested(registry) if wanted in f"{entry['provider']}/{entry['model']}".lower()]
    return {"configured": configured[:ROWS_MAX], "discovered": found[:ROWS_MAX]}


def _configured(row: Provider, registry: Registry) -> Json:
    shown: Json = {"id": row.name, "url": row.config.base_url}
    try:
        _, model = usable_row(row.name, registry)
    except Issue as issue:
        return {**shown, "usable": False, "issue": issue.name}
    return {**shown, "model": model, "usable": True}


def _suggested(registry: Registry) -> Iterator[Json]:
    for provider in registry.providers.values():
        if not is_routable(provider):
            continue
        base = provider.config.base_url.rstrip("/")
        for model in sorted(known_models(provider.config)):
            if any(token in model.lower() for token in _TOKENS):
                yield {"provider": provider.name, "model": model, "endpoint": f"{base}/systemone"}
