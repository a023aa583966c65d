"""Configurations and catalogs for tests of model lists."""

from collections.abc import Mapping, Sequence
from typing import Any

from combos.core.catalog import Catalog, CatalogRow, build_catalog
from combos.core.catalog_member import Capabilities, DiscoveredModel
from combos.core.config import parse_config
from combos.core.registry import Registry, build_registry

CHATGPT = {
    "adapter": "openai-responses",
    "baseUrl": "https://chatgpt.com/backend-api/codex",
    "authMode": "forward",
}
NATIVE_ALIAS = {"alias": "gpt-5.6-sol", "nativeAlias": True, "displayName": "Nova1 - sol"}


def provider(**fields: Any) -> dict[str, Any]:
    """A provider that answers Chat Completions."""
    return {"adapter": "openai-chat", "baseUrl": "https://up.example/v1", **fields}


def targets(*keys: str) -> list[dict[str, str]]:
    """Targets from `provider/model`."""
    return [dict(zip(("provider", "model"), key.split("/", 1), strict=True)) for key in keys]


def registry(document: dict[str, Any]) -> Registry:
    """The registry of a configuration document."""
    return build_registry(parse_config(document), 1)


def catalog(document: dict[str, Any], discovered: Mapping[str, Sequence[DiscoveredModel]] | None = None) -> Catalog:
    """The catalog of a configuration document."""
    return build_catalog(registry(document), discovered)


def ids(rows: Sequence[CatalogRow]) -> list[str]:
    """The public ids of rows, in order."""
    return [row.id for row in rows]


def row(found: Catalog, id: str) -> CatalogRow:
    """The row of this id; there must be one."""
    (only,) = [candidate for candidate in found.rows if candidate.id == id]
    return only


def discovered(id: str, **capabilities: Any) -> DiscoveredModel:
    """A row of a provider's list."""
    return DiscoveredModel(id, capabilities=Capabilities(**capabilities))
