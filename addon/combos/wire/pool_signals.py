"""What an error answer says to a credential pool: a dated reset in the body, and the windows that refused."""

from collections.abc import Mapping
from datetime import datetime

from combos.core.facts import Headers
from combos.core.pools import PoolSignals
from combos.core.quota import reset_ms
from combos.wire.bodies import BodyError, decode
from combos.wire.envelope import BODY_LIMIT
from combos.wire.envelope_shapes import parse_json
from combos.wire.quota_headers import rejected_resets
from combos.wire.signals import joined

_MOMENTS = ("resets_at", "reset_at", "resetsAt", "resetAt", "reset_time", "next_flush_time")
_SPANS = ("resets_in_seconds", "reset_in_seconds")


def pool_signals(headers: Headers, body: bytes | None, epoch_ms: int, *, spares: bool = False) -> PoolSignals:
    """The signals of one failed answer. `body` is None when it could not be read."""
    return PoolSignals(_dated(headers, body, epoch_ms), rejected_resets(headers), spares)


def _dated(headers: Headers, body: bytes | None, epoch_ms: int) -> int | None:
    document = _document(headers, body)
    error = document.get("error") if isinstance(document, Mapping) else None
    for row in (error, document):
        if isinstance(row, Mapping):
            found = _moment(row, epoch_ms)
            if found is not None:
                return found
    return None


def _moment(row: Mapping[str, object], epoch_ms: int) -> int | None:
    for name in _MOMENTS:
        found = _instant(row.get(name))
        if found is not None:
            return found
    for name in _SPANS:
        value = row.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**9:
            return epoch_ms + round(value * 1000)
    return None


def _instant(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return reset_ms(value)
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else round(moment.timestamp() * 1000)


def _document(headers: Headers, body: bytes | None) -> object:
    if body is None:
        return None
    try:
        text = decode(joined(headers, "content-encoding"), body, BODY_LIMIT).decode("utf-8", "replace").strip()
    except BodyError:
        return None
    return parse_json(text) if text.startswith("{") else None
