"""A combo as the API and the command line show it: the same keys always, others only where they differ from default."""

from typing import Any

from combos.core.config import ComboConfig, Config
from combos.core.config_document import to_document
from combos.core.names import canonical_model

# After these, and before the targets, come the fields that differ from their default.
_SHOWN = ("strategy", "stickyLimit", "defaultEffort", "alias", "nativeAlias", "displayName")
_SPARSE = (
    "cooldownMs",
    "waitForCooldownMs",
    "cooldownWaitPolicy",
    "imageInput",
    "reasoningEffortMode",
    "defaultEffortMode",
    "decisionProvider",
    "decisionModel",
    "decisionTimeoutMs",
    "contextOverflow",
    "affinity",
    "firstOutputTimeoutMs",
    "hedgeAfterMs",
)
_TARGET_SPARSE = ("lastResort", "reasoningEfforts", "modelProfile")


def public_model(combo_id: str, combo: ComboConfig) -> str:
    """The name under which clients ask for a combo: its alias, else `combo/<id>`."""
    return combo.alias or canonical_model(combo_id)


def combo_row(combo_id: str, combo: ComboConfig) -> dict[str, Any]:
    """One row of the list, ready for JSON."""
    row: dict[str, Any] = {"id": combo_id, "model": public_model(combo_id, combo)}
    row |= {key: to_document(_value(combo, key)) for key in _SHOWN}
    row |= {key: to_document(_value(combo, key)) for key in _SPARSE if _value(combo, key) != _default(combo, key)}
    row["targets"] = [_target(target) for target in combo.targets]
    return row


def combo_rows(config: Config) -> list[dict[str, Any]]:
    """All rows, sorted by id."""
    return [combo_row(combo_id, combo) for combo_id, combo in sorted(config.combos.items())]


def _target(target: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"provider": target.provider, "model": target.model, "weight": target.weight}
    return row | {key: to_document(_value(target, key)) for key in _TARGET_SPARSE if _value(target, key)}


def _value(model: Any, key: str) -> Any:
    return getattr(model, _attribute(key))


def _default(model: Any, key: str) -> Any:
    return type(model).model_fields[_attribute(key)].default


def _attribute(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
