"""The response headers that failure rules look at: delays and content coding. Reads text, judges nothing."""

from combos.core.facts import Headers
from combos.core.failure_facts import Signals

CODEX_RESETS = ("x-codex-primary-reset-at", "x-codex-secondary-reset-at", "x-codex-tertiary-reset-at")

_NAMES = frozenset(name.encode() for name in (*CODEX_RESETS, "retry-after"))
_NO_SIGNALS = Signals()


def joined(headers: Headers, name: str) -> str | None:
    """All values of a header joined with `, `, as RFC 9110 allows; None when it is absent. `name` is lower case."""
    wanted = name.encode("ascii")
    length = len(wanted)
    values = [value.decode("latin-1") for key, value in headers if len(key) == length and key.lower() == wanted]
    return ", ".join(values) if values else None


def failure_signals(headers: Headers) -> Signals:
    """`Retry-After` and the Codex reset headers that are present."""
    if _NAMES.isdisjoint([name.lower() for name, _ in headers]):
        return _NO_SIGNALS
    resets = (joined(headers, name) for name in CODEX_RESETS)
    return Signals(joined(headers, "retry-after"), tuple(value for value in resets if value is not None))
