"""The rows of the model list for management: also those that are hidden from clients, marked as such."""

from dataclasses import replace
from typing import Any

from combos.core.catalog import CatalogRow, Discovered, RowKind, build_catalog
from combos.core.registry import Registry
from combos.core.visibility import Visibility, visibility_of


def model_rows(registry: Registry, discovered: Discovered) -> list[dict[str, Any]]:
    """Every row, ready for JSON. `provider` is `combo` for combos; `namespaced` names the row without aliases."""
    shown = replace(registry, config=registry.config.model_copy(update={"disabled_models": ()}))
    visibility = visibility_of(registry)
    return [_row(row, registry, visibility) for row in build_catalog(shown, discovered).rows]


def _row(row: CatalogRow, registry: Registry, visibility: Visibility) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": row.id,
        "provider": row.namespace,
        "namespaced": f"{row.namespace}/{row.name}",
        "displayName": row.label,
        "disabled": _is_hidden(row, registry, visibility),
        "inputModalities": list(row.can.modalities),
        "contextWindow": row.can.context,
        "reasoningEfforts": list(row.can.ladder),
        "targets": list(row.targets),
    }
    if row.can.default_effort is not None:
        made["defaultReasoningEffort"] = row.can.default_effort
    if row.kind in (RowKind.NATIVE, RowKind.NATIVE_ALIAS):
        made["native"] = True
    return made


def _is_hidden(row: CatalogRow, registry: Registry, visibility: Visibility) -> bool:
    if row.is_combo:
        return visibility.hides_combo(registry.combos[row.name])
    if row.kind is RowKind.NATIVE:
        return visibility.hides_native(row.name)
    return visibility.hides_routed(row.namespace, row.name)
