"""Changes of providers and of the lists beside them, as pure functions over the document.

Says what stands in the way of a change: names that are taken, combos that need the provider. Values are judged by the
configuration's own rules.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from combos.admin.redact import HIDDEN
from combos.admin.references import Document, using_provider
from combos.admin.refusal import RefusalError, conflict, invalid, not_found, not_valid
from combos.admin.sparse import stored_provider, unknown_settings
from combos.admin.store import Edit
from combos.core.config import ProviderConfig
from combos.core.config_problems import problem
from combos.core.config_types import near_miss
from combos.core.errors import ConfigProblem
from combos.core.names import COMBO_NAMESPACE


def add_provider(
    document: Document, name: str, provider: object, *, set_default: bool = False, replace: bool = False
) -> Edit[dict[str, Any]]:
    """Add a provider; `replace` allows one that exists. The result is the row as stored. Raises `RefusalError`."""
    providers = document.setdefault("providers", {})
    if not isinstance(provider, dict):
        raise invalid("provider must be an object", "provider_missing", at="provider")
    if name in providers and not replace:
        raise conflict(f"provider {name} exists already", "provider_exists")
    if name in document.get("combos", {}):
        raise conflict(f"{name} is the id of a combo", "name_taken")
    if name == COMBO_NAMESPACE and document.get("combos"):
        raise conflict("combo is the namespace of the combos", "name_taken")
    _refuse_unknown(name, provider, providers.get(name, {}))
    providers[name] = stored_provider(provider)
    if set_default:
        document["defaultProvider"] = name
    return Edit(document, providers[name])


def patch_provider(document: Document, name: str, changes: Mapping[str, Any]) -> Edit[dict[str, Any]]:
    """Change the fields that are given; null removes one, and `headers` are merged the same way."""
    before = _provider(document, name)
    _refuse_unknown(name, changes, before)
    made = _merged(before, {key: value for key, value in changes.items() if key != "headers"})
    if "headers" in changes:
        headers = changes["headers"]
        made["headers"] = _merged(before.get("headers", {}), headers) if isinstance(headers, dict) else headers
    if not made.get("headers"):
        made.pop("headers", None)
    document["providers"][name] = stored_provider(made)
    return Edit(document, document["providers"][name])


def remove_provider(document: Document, name: str) -> Edit[str]:
    """Remove a provider that nothing needs: not the last one, not the default, not one of a combo."""
    _provider(document, name)
    dependents = using_provider(document, name)
    if dependents:
        message = f"provider {name} is used by combos: {', '.join(dependents)}"
        raise conflict(message, "provider_has_dependent_combos", combos=dependents)
    if len(document["providers"]) == 1:
        raise conflict(f"provider {name} is the last one", "last_provider")
    if document.get("defaultProvider") == name:
        raise conflict(f"provider {name} is the default; choose another default first", "default_provider")
    del document["providers"][name]
    return Edit(document, name)


def set_default_provider(document: Document, name: str) -> Edit[str]:
    """The provider that bare model ids fall back to."""
    _provider(document, name)
    document["defaultProvider"] = name
    return Edit(document, name)


def set_disabled_models(document: Document, models: object) -> Edit[list[Any]]:
    """Replace the list of models that are hidden from model lists."""
    if not isinstance(models, list):
        raise invalid("disabledModels must be an array of model ids", "disabled_models_missing", at="disabledModels")
    unique = [model for index, model in enumerate(models) if model not in models[:index]]
    document["disabledModels"] = unique
    if not unique:
        del document["disabledModels"]
    return Edit(document, unique)


def unknown_provider(document: Mapping[str, Any], name: str) -> RefusalError:
    """The refusal for a name that is not configured, with the name that was probably meant."""
    return not_found(f"unknown provider: {name}{near_miss(name, list(document.get('providers', {})))}")


def _provider(document: Document, name: str) -> dict[str, Any]:
    found: dict[str, Any] | None = document.get("providers", {}).get(name)
    if found is None:
        raise unknown_provider(document, name)
    return found


def _refuse_unknown(name: str, sent: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    place = ("providers", name)
    problems = (*unknown_settings(ProviderConfig, sent, before, place), *_masks(sent, place))
    if problems:
        raise not_valid(problems)


def _masks(value: Any, place: tuple[str | int, ...]) -> Iterator[ConfigProblem]:
    """Secrets as they are shown, sent back: storing them would lose the real ones."""
    match value:
        case str() if HIDDEN in value:
            yield problem(place, "is a masked value; leave it out to keep the stored one")
        case dict():
            for key, member in value.items():
                yield from _masks(member, (*place, key))
        case list():
            for index, member in enumerate(value):
                yield from _masks(member, (*place, index))


def _merged(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**before, **changes}.items() if value is not None}
