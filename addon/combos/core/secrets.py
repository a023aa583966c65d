"""Keys as they are written in the configuration, and the keys they stand for.

A text is a key, a reference to an environment variable (`${NAME}`, `$NAME`) or to the keychain (`keychain:provider`,
`keychain:provider/pool-id`). References are whole texts; one that leads nowhere is no key, never its own text.
Environment and keychain come in as arguments.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from pydantic import SecretStr

from combos.core.config_provider import ProviderConfig
from combos.core.names import derived_key_variable
from combos.core.values import dataclass

_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_KEYCHAIN = re.compile(r"keychain:([^/\s]+(?:/[^/\s]+)?)")

type Keychain = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Secret:
    """A usable key. `source` says where it came from: `literal`, a variable's name, or a keychain reference."""

    value: str = field(repr=False)
    source: str = "literal"

    def reveal(self) -> str:
        """The key itself, for the header it is sent in and nothing else."""
        return self.value


@dataclass(frozen=True, slots=True)
class MissingSecret:
    """No key. `name` is the variable or keychain reference that would hold it; empty when none was written."""

    name: str


def variable_of(text: str) -> str | None:
    """The variable a reference names; None for any other text."""
    match = _VARIABLE.fullmatch(text) if text.startswith("$") else None
    return (match[1] or match[2]) if match else None


def is_reference(text: str) -> bool:
    """A reference may be shown as it is; anything else may be a key."""
    return variable_of(text) is not None or _KEYCHAIN.fullmatch(text) is not None


def secret_fault(text: str) -> str | None:
    """What is wrong with the way a key is written, without repeating it."""
    if text != text.strip():
        return "must not begin or end with blanks"
    if text.startswith("$") and variable_of(text) is None:
        return "begins with $ and is not a reference: write ${NAME} or $NAME as the whole value"
    if text.startswith("keychain:") and not is_reference(text):
        return "is not a keychain reference: write keychain:<provider> or keychain:<provider>/<pool id>"
    return None


def resolve_secret(
    value: SecretStr | str | None, environ: Mapping[str, str], keychain: Keychain | None = None
) -> Secret | MissingSecret:
    """The key behind a written value. An unset or empty variable, or an unreadable keychain entry, is a missing key."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not text:
        return MissingSecret("")
    variable = variable_of(text)
    if variable is not None:
        found = environ.get(variable)
        return Secret(found, variable) if found else MissingSecret(variable)
    if text.startswith("keychain:") and _KEYCHAIN.fullmatch(text):
        found = keychain(text.removeprefix("keychain:")) if keychain else None
        return Secret(found, text) if found else MissingSecret(text)
    return MissingSecret("") if secret_fault(text) else Secret(text)


def provider_secret(
    name: str, provider: ProviderConfig, environ: Mapping[str, str], keychain: Keychain | None = None
) -> Secret | MissingSecret:
    """The single key of a provider: the written one, else the variable derived from its name (`MY_ROW_API_KEY`)."""
    if provider.api_key is not None:
        return resolve_secret(provider.api_key, environ, keychain)
    return resolve_secret("$" + derived_key_variable(name), environ) if name else MissingSecret("")


def pool_secrets(
    provider: ProviderConfig, environ: Mapping[str, str], keychain: Keychain | None = None
) -> tuple[tuple[str, Secret | MissingSecret], ...]:
    """The keys of a provider's pool with their ids, in file order."""
    return tuple((entry.id, resolve_secret(entry.key, environ, keychain)) for entry in provider.api_key_pool)


def keychain_name(text: str) -> str | None:
    """The keychain entry a reference names; None for any other text."""
    match = _KEYCHAIN.fullmatch(text)
    return match[1] if match else None
