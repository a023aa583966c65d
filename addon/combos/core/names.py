"""Grammar of the names in a configuration: combo ids, aliases, provider names, target selectors, reserved words.

Says whether a text is well formed. Whether the thing it names exists is the registry's business.
"""

import re
from typing import NamedTuple

COMBO_NAMESPACE = "combo"
COMBO_PREFIX = "combo/"

# The decision service that needs no provider row.
TYPESAFE_PROVIDER = "jev"

RESERVED_PROVIDER_NAMES = frozenset({"__proto__", "prototype", "constructor", "policy"})
RESERVED_ACCOUNT_NAMESPACES = frozenset({"combo", "openai", "policy"})

COMBO_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
PROVIDER_NAME_PATTERN = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"

_COMBO_ID = re.compile(COMBO_ID_PATTERN)
_ALIAS = re.compile(f"{COMBO_ID_PATTERN}(?:/{COMBO_ID_PATTERN})?")
_PROVIDER_NAME = re.compile(PROVIDER_NAME_PATTERN)
# Bare names of these families belong to native models; `codex-` is reserved although it is not routed as one.
_NATIVE_FAMILY = re.compile(r"(?:gpt-|o1-|o3-|o4-|codex-)")
_NATIVE_ROUTE = re.compile(r"(?:gpt-|o1-|o3-|o4-)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NATIVE_REVIEW = "codex-auto-review"


class Selector(NamedTuple):
    """A `provider/model` text, split at its first slash."""

    provider: str
    model: str


def is_combo_id(text: str) -> bool:
    """A letter or digit, then letters, digits, dots, underscores, hyphens: 64 characters at most."""
    return _COMBO_ID.fullmatch(text) is not None


def is_alias(text: str) -> bool:
    """One or two segments of the combo id grammar, joined by a slash; `is_reserved_alias` judges reserved words."""
    return _ALIAS.fullmatch(text) is not None


def is_reserved_alias(text: str) -> bool:
    """The combo namespace itself, or a name inside it."""
    return text == COMBO_NAMESPACE or text.startswith(COMBO_PREFIX)


def is_provider_name(text: str) -> bool:
    """Like a combo id, but the last character is a letter or digit too; reserved words excluded."""
    return _PROVIDER_NAME.fullmatch(text) is not None and text not in RESERVED_PROVIDER_NAMES


def is_native_family(text: str) -> bool:
    """A bare name that only a native alias may take."""
    return _NATIVE_FAMILY.match(text) is not None and "/" not in text


def is_native_route(text: str) -> bool:
    """A bare name that routes to the native `openai` provider."""
    return "/" not in text and (_NATIVE_ROUTE.match(text) is not None or text == _NATIVE_REVIEW)


def combo_id_of(model: str) -> str | None:
    """The combo id of a canonical selector `combo/<id>`, whether or not it can exist; None outside the namespace."""
    if model.startswith(COMBO_PREFIX) and len(model) > len(COMBO_PREFIX):
        return model[len(COMBO_PREFIX) :]
    return None


def canonical_model(combo_id: str) -> str:
    """The model id that always names the combo."""
    return COMBO_PREFIX + combo_id


def split_selector(text: str) -> Selector | None:
    """Split `provider/model` at the first slash; None when either side is empty."""
    provider, slash, model = text.partition("/")
    return Selector(provider, model) if slash and provider and model else None


def target_key(provider: str, model: str) -> str:
    """The name under which a target cools, counts and is recorded."""
    return f"{provider}/{model}"


def is_printed(text: str) -> bool:
    """Whether a text is free of control characters and lone surrogates: it can stand in a line of its own."""
    return _CONTROL.search(text) is None


def leaves_its_path(model: str) -> bool:
    """Whether a model id, also without its suffix, would lead elsewhere as a part of a URL: a segment `.` or `..`."""
    if "." not in model:
        return False
    return any(part.partition("--")[0] in (".", "..") for part in model.replace("\\", "/").split("/"))


def derived_key_variable(provider: str) -> str:
    """The environment variable a provider without a key falls back to: `my-row` → `MY_ROW_API_KEY`."""
    return re.sub(r"[^A-Za-z0-9]", "_", provider).upper() + "_API_KEY"
