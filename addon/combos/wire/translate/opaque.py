"""Seals provider-bound reasoning state so that it survives in another dialect's slot, and opens it again.

A sealed value is neither secret nor trusted: it only ever becomes the same provider's own blob again.
"""

import base64
import binascii

from combos.core.facts import Dialect
from combos.wire.translate.ir import Opaque
from combos.wire.translate.shape import as_str, dump, load_object

PREFIX = "cmb1."
MAX_SEALED = 1 << 20
"""Characters; anything longer is dropped like a foreign value (wire dialects, opaque state)."""

_NONE = "none"
_GEMINI_PREFIX = base64.b64encode(PREFIX.encode() + b"e").decode()[:6]


def provider_of(key: str) -> str:
    """The provider in a target key."""
    return key.partition("/")[0]


def seal(opaque: Opaque | None, target_key: str) -> str:
    """The value for the client's slot. No state is sealed too, so that the block is recognised when it comes back."""
    if opaque is None:
        content = {"d": _NONE}
    else:
        content = {"d": opaque.dialect.value, "t": target_key, "b": opaque.blob}
        for key, value in (("id", opaque.item_id), ("x", opaque.text), ("p", opaque.place)):
            if value:
                content[key] = value
        if opaque.redacted:
            content["red"] = "1"
    return PREFIX + base64.urlsafe_b64encode(dump(content)).decode().rstrip("=")


def is_sealed(value: object) -> bool:
    """Whether a value in a client's slot was sealed here."""
    return isinstance(value, str) and value.startswith(PREFIX)


def unseal(value: str) -> Opaque | None:
    """The state in a sealed value; None when there is none, or when it does not decode."""
    if len(value) > MAX_SEALED:
        return None
    body = value[len(PREFIX) :]
    try:
        content = load_object(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        dialect = Dialect(as_str((content or {}).get("d")))
    except (ValueError, binascii.Error):
        return None
    got = {key: as_str((content or {}).get(key)) for key in ("b", "t", "id", "x", "p", "red")}
    return Opaque(dialect, got["b"], got["t"], got["id"], bool(got["red"]), got["x"], got["p"])


def read(value: object, dialect: Dialect) -> Opaque | None:
    """The state in a client's slot of `dialect`: sealed, native (origin unknown), or none."""
    if not isinstance(value, str) or not value:
        return None
    if is_sealed(value):
        return unseal(value)
    return Opaque(dialect, value)


def fits(opaque: Opaque | None, dialect: Dialect, target_key: str) -> bool:
    """Whether the target's provider made this state."""
    if opaque is None or opaque.dialect is not dialect or not opaque.origin or not opaque.blob:
        return False
    return provider_of(opaque.origin) == provider_of(target_key)


def to_gemini_slot(sealed: str) -> str:
    """Gemini clients decode the slot as base64, so the sealed text is wrapped once more."""
    return base64.b64encode(sealed.encode()).decode()


def from_gemini_slot(value: object) -> object:
    """The sealed text in a Gemini client's slot, or the value as it is."""
    if not isinstance(value, str) or not value.startswith(_GEMINI_PREFIX):
        return value
    try:
        text = base64.b64decode(value).decode("ascii")
    except ValueError:
        return value
    return text if text.startswith(PREFIX) else value
