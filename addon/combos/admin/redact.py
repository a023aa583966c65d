"""A configuration without its secrets, for people and programs to look at.

References (`${NAME}`, `keychain:…`) are shown as they are. Keys, header values and proxy passwords never are, nor are
values of unknown settings: one of them may be a misspelt `apiKey`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from combos.core.config import Config, ProviderConfig
from combos.core.config_document import key_names, to_document
from combos.core.config_types import ConfigModel
from combos.core.secrets import is_reference

HIDDEN = "****"
_SHORT = 8

type Mask = Callable[[str], str]


def hidden(_: str) -> str:
    """Nothing of the key: for answers of the API."""
    return HIDDEN


def hinted(key: str) -> str:
    """Enough of a key to tell it from another: the first and last four characters; nothing of a short one."""
    return HIDDEN if len(key) <= _SHORT else f"{key[:4]}{HIDDEN}{key[-4:]}"


def redacted(value: Config | ProviderConfig, mask: Mask = hidden) -> dict[str, Any]:
    """The document of a configuration, or of a provider, with every secret masked."""
    return dict(_shown(value, mask))


def _shown(value: Any, mask: Mask) -> Any:
    match value:
        case ConfigModel():
            return _members(value, mask)
        case SecretStr():
            return _key(value.get_secret_value(), mask)
        case StrEnum():
            return value.value
        case list() | tuple():
            return [_shown(member, mask) for member in value]
        case _ if hasattr(value, "items"):
            return {key: _shown(member, mask) for key, member in value.items()}
        case _:
            return value


def _members(model: ConfigModel, mask: Mask) -> Any:
    """The keys that were written, in their order."""
    names = {key: name for name, key in key_names(type(model)).items()}
    written = to_document(model)
    if isinstance(written, str):  # the short way of writing a key
        return _key(written, mask)
    keys = model.key_order or tuple(written if isinstance(written, dict) else ())
    return {key: _member(model, key, names.get(key), mask) for key in keys}


def _member(model: ConfigModel, key: str, name: str | None, mask: Mask) -> Any:
    if name is None:
        return _unknown((model.model_extra or {}).get(key))
    value = getattr(model, name)
    if isinstance(model, ProviderConfig) and key == "headers":
        return dict.fromkeys(value, HIDDEN)
    if isinstance(model, ProviderConfig) and key == "proxy" and value:
        return _without_password(value)
    return _shown(value, mask)


def _key(text: str, mask: Mask) -> str:
    return text if is_reference(text) else mask(text)


def _unknown(value: Any) -> Any:
    """Numbers and flags as they are; any text may be a secret."""
    match value:
        case str():
            return HIDDEN
        case dict():
            return {key: _unknown(member) for key, member in value.items()}
        case list():
            return [_unknown(member) for member in value]
        case _:
            return value


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{HIDDEN}@{host}")) if at and credentials else url
