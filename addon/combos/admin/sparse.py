"""The stored form of combos and providers: what is written although it is the default, and what is left out.

Works on JSON values as they were sent. What is not well formed is passed on for the validation to name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from combos.core.config import ComboConfig, ProviderConfig
from combos.core.config_document import key_names
from combos.core.config_problems import problem
from combos.core.config_types import ConfigModel, near_miss
from combos.core.errors import ConfigProblem
from combos.core.names import TYPESAFE_PROVIDER

# Written in every combo, in this order; other fields only with a value that is not their default.
_ALWAYS = {"strategy": "failover", "stickyLimit": 1, "defaultEffort": None, "targets": None}
_TRIMMED = ("alias", "displayName")
# There is no default to go back to, so null says nothing and is refused instead of dropped.
_NOT_NULLABLE = frozenset({"cooldownMs"})
# What a row of the list identifies itself with, and may send back.
_ROW_KEYS = frozenset({"id", "model"})


def stored_combo(sent: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form of a complete definition; keys in the order of the definition before, then in ours."""
    values = {key: _trimmed(key, value) for key, value in sent.items()}
    kept = {key: value for key, value in values.items() if key not in _ALWAYS and not _is_default(key, value)}
    if kept.get("decisionProvider") == TYPESAFE_PROVIDER:
        del kept["decisionProvider"]
    for key, default in _ALWAYS.items():
        if key != "targets":
            kept[key] = values.get(key, default)
        elif key in values:
            kept[key] = _targets(values[key])
    order = [*before, *_ALWAYS, *key_names(ComboConfig).values(), *kept]
    return {key: kept[key] for key in dict.fromkeys(order) if key in kept}


def stored_provider(sent: Mapping[str, Any]) -> dict[str, Any]:
    """A provider without the fields that hold their default."""
    defaults = _defaults(ProviderConfig)
    return {key: value for key, value in sent.items() if key not in defaults or not _same(value, defaults[key])}


def unknown_settings(
    model: type[ConfigModel], sent: Mapping[str, Any], before: Mapping[str, Any], place: tuple[str | int, ...]
) -> Iterator[ConfigProblem]:
    """Keys that mean nothing and are not in the file already, with what was probably meant."""
    known = list(key_names(model).values())
    for key in sent:
        if key not in known and key not in before:
            yield problem((*place, key), f"is not a known setting{near_miss(key, known)}")


def without_row_keys(sent: Mapping[str, Any]) -> dict[str, Any]:
    """A definition without the id and public model of the row it was made from."""
    return {key: value for key, value in sent.items() if key not in _ROW_KEYS}


def _targets(value: Any) -> Any:
    return [_target(target) for target in value] if isinstance(value, list) else value


def _target(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    made = {"weight": 1, **value}
    profile = made.get("modelProfile", "")
    drop = {"modelProfile"} if profile is None or (isinstance(profile, str) and not profile.strip()) else set()
    drop |= {"reasoningEfforts"} if made.get("reasoningEfforts") is None else set()
    drop |= {"lastResort"} if made.get("lastResort") is False else set()
    order = [key for key in ("provider", "model", "weight") if key in made]
    return {key: made[key] for key in dict.fromkeys([*order, *made]) if key not in drop}


def _trimmed(key: str, value: Any) -> Any:
    return value.strip() or None if key in _TRIMMED and isinstance(value, str) else value


def _is_default(key: str, value: Any) -> bool:
    if value is None and key in _NOT_NULLABLE:
        return False
    defaults = _defaults(ComboConfig)
    return key in defaults and _same(value, defaults[key])


def _defaults(model: type[ConfigModel]) -> dict[str, Any]:
    """Key in the file → default as JSON; required fields have none."""
    names = key_names(model)
    fields = model.model_fields.items()
    return {
        names[name]: _json(field.get_default(call_default_factory=True))
        for name, field in fields
        if not field.is_required()
    }


def _json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _same(value: Any, default: Any) -> bool:
    """Equal, and of one JSON kind: `0` is not `false`."""
    return isinstance(value, bool) == isinstance(default, bool) and bool(value == default)
