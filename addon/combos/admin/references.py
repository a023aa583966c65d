"""Where a configuration names a combo by its public id: who depends on one, and how names follow a rename.

A bare native alias is never followed: the same word also means the dormant native model.
"""

from collections.abc import Mapping
from typing import Any

from combos.core.config import ComboConfig, parse_config
from combos.core.names import canonical_model, combo_id_of
from combos.core.registry import DirectRoute, Registry, build_registry

type Document = dict[str, Any]


def public_names(combo_id: str, combo: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that mean this combo and nothing else: `combo/<id>`, and its alias unless that is native."""
    alias = combo.get("alias")
    names = [canonical_model(combo_id)]
    if isinstance(alias, str) and alias.strip() and not combo.get("nativeAlias"):
        names.append(alias.strip())
    return tuple(names)


def renamed(old: tuple[str, Mapping[str, Any]], new: tuple[str, Mapping[str, Any]]) -> dict[str, str]:
    """Name → what it is called now, for every name of a definition that its successor no longer has."""
    before, after = public_names(*old), public_names(*new)
    moved = {name: after[-1] for name in before[1:] if name not in after}
    if before[0] != after[0]:
        moved[before[0]] = after[0]
    return moved


def follow(document: Document, moved: Mapping[str, str]) -> None:
    """Rewrite every reference to a moved name, in place."""
    if "disabledModels" in document:
        document["disabledModels"] = list(dict.fromkeys(moved.get(name, name) for name in document["disabledModels"]))
    redirects = document.get("blockedModelRedirects", {})
    for model, instead in redirects.items():
        redirects[model] = moved.get(instead, instead)
    for combo in document.get("combos", {}).values():
        model = combo.get("decisionModel")
        if isinstance(model, str):
            combo["decisionModel"] = _followed(model, moved)
    budgets = document.get("budgets", {})
    if "combos" in budgets:
        ids = {combo_id_of(name): combo_id_of(instead) for name, instead in moved.items()}
        budgets["combos"] = {ids.get(name) or name: budget for name, budget in budgets["combos"].items()}


def forget(document: Document, names: tuple[str, ...]) -> None:
    """Take the names of a combo that is gone from the list of hidden models, in place."""
    if "disabledModels" in document:
        document["disabledModels"] = [name for name in document["disabledModels"] if name not in names]


def deciding_by(document: Document, names: tuple[str, ...]) -> list[str]:
    """Ids of the combos whose decision model is one of these names, with or without a suffix."""
    found = []
    for combo_id, combo in document.get("combos", {}).items():
        model = combo.get("decisionModel")
        if isinstance(model, str) and any(_means(model, name) for name in names):
            found.append(combo_id)
    return found


def using_provider(document: Document, provider: str) -> list[str]:
    """Ids of the combos of a valid document that need a provider: as a target, to decide, for the model that does."""
    registry = build_registry(parse_config(document), 0)
    return [combo_id for combo_id, combo in registry.combos.items() if _uses(combo.config, registry, provider)]


def _uses(combo: ComboConfig, registry: Registry, provider: str) -> bool:
    if combo.decision_provider == provider or any(target.provider == provider for target in combo.targets):
        return True
    model = combo.decision_model
    if model is None:
        return False
    if model.startswith(f"{provider}/"):
        return True
    # By an alias, or as a bare id that one of the provider's lists answers for.
    route = registry.resolve(model) or registry.resolve_bare(model)
    return isinstance(route, DirectRoute) and route.target.provider_name == provider


def _means(model: str, name: str) -> bool:
    return model == name or model.startswith(f"{name}--")


def _followed(model: str, moved: Mapping[str, str]) -> str:
    name = next((name for name in moved if _means(model, name)), None)
    return model if name is None else moved[name] + model[len(name) :]
