"""A configuration back as a JSON document: what was written, in the order it was written, unknown keys included."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from pydantic import SecretStr

from combos.core.config_problems import problem
from combos.core.config_types import ConfigModel, near_miss
from combos.core.errors import ConfigProblem


def to_document(value: object) -> object:
    """The JSON value of a configuration or a part of it; keys as written, so this text is not for showing."""
    match value:
        case ConfigModel():
            return value.written_short() or {key: to_document(member) for key, member in _members(value)}
        case SecretStr():
            return value.get_secret_value()
        case StrEnum():
            return value.value
        case Mapping():
            return {key: to_document(member) for key, member in value.items()}
        case list() | tuple():
            return [to_document(member) for member in value]
        case _:
            return value


def _members(model: ConfigModel) -> Iterator[tuple[str, object]]:
    """Keys that were written, by their names in the file."""
    names = key_names(type(model))
    by_key = {key: name for name, key in names.items()}
    extra = model.model_extra or {}
    for key in model.key_order or tuple(name for name in names if name in model.model_fields_set):
        name = by_key.get(key, key)
        if name in names:
            yield names[name], getattr(model, name)
        else:
            yield key, extra[key]


def key_names(model: type[ConfigModel]) -> dict[str, str]:
    """Attribute name → key in the file."""
    return {name: field.alias or name for name, field in model.model_fields.items()}


def unknown_keys(value: object, path: tuple[str | int, ...] = ()) -> tuple[ConfigProblem, ...]:
    """Keys that mean nothing here, with what was probably meant. They are kept in the file."""
    return tuple(_unknown(value, path))


def _unknown(value: object, path: tuple[str | int, ...]) -> Iterator[ConfigProblem]:
    match value:
        case ConfigModel():
            names = key_names(type(value))
            for key in value.model_extra or {}:
                yield problem((*path, key), f"is not a known setting{near_miss(key, list(names.values()))}")
            for name, key in names.items():
                yield from _unknown(getattr(value, name), (*path, key))
        case Mapping():
            for key, member in value.items():
                yield from _unknown(member, (*path, key))
        case tuple():
            for index, member in enumerate(value):
                yield from _unknown(member, (*path, index))
