"""The combo `jev-auto` for the command line and the management API: shown as it is proposed, or stored.

What it holds is decided in `combos.decision.template`; here is what stands in its way.
"""

from typing import Any

from combos.admin.combo_edits import ComboPut, put_combo
from combos.admin.refusal import RefusalError, conflict, invalid, not_found
from combos.admin.store import Document, Edit
from combos.core.config import Config, parse_config
from combos.core.config_provider import Adapter
from combos.core.config_types import near_miss
from combos.core.names import TYPESAFE_PROVIDER
from combos.core.registry import Registry, build_registry
from combos.decision.service import Issue, usable_row
from combos.decision.template import jev_auto


def template_row(registry: Registry, provider: str | None) -> dict[str, Any]:
    """`{id, combo, existing, missing}`, ready for JSON. Raises `RefusalError` for a row that cannot decide."""
    if provider is not None and provider != TYPESAFE_PROVIDER:
        _check_row(registry, provider)
    made = jev_auto(registry, provider)
    return {"id": made.id, "combo": made.combo, "existing": made.existing, "missing": list(made.missing)}


def template_of(config: Config, provider: str | None) -> dict[str, Any]:
    """The same for a configuration file."""
    return template_row(build_registry(config, 1), provider)


def save_template(document: Document, provider: str | None) -> Edit[dict[str, Any]]:
    """Store the combo. Raises `RefusalError`: an id or alias `jev-auto` exists, or there is no target to begin with."""
    row = template_of(parse_config(document), provider)
    existing = row["existing"]
    if existing is not None:
        raise conflict(f"combo {existing} has the id or alias {row['id']} already", "template_exists", combo=existing)
    check_targets(row)
    return put_combo(document, ComboPut(row["id"], row["combo"]))


def check_targets(row: dict[str, Any]) -> None:
    """Raises `RefusalError` for a template that could not be stored as it is: a combo has a target."""
    if not row["combo"]["targets"]:
        message = f"none of its targets can be used here: {', '.join(row['missing'])}"
        raise invalid(message, "template_without_targets")


def _check_row(registry: Registry, provider: str) -> None:
    try:
        usable_row(provider, registry)
    except Issue as issue:
        if issue.name == "missing":
            raise _unknown(registry, provider) from None
        message = f"decision service {provider} cannot be used: {issue.name}"
        raise invalid(message, "decision_row_unusable") from None


def _unknown(registry: Registry, provider: str) -> RefusalError:
    rows = [row.name for row in registry.providers.values() if row.config.adapter is Adapter.JEV_DECISION]
    return not_found(f"unknown decision service: {provider}{near_miss(provider, rows)}")
