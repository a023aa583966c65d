"""Quota snapshots that ride on answers: the ChatGPT backend's windows and Anthropic's unified windows.

Reads headers only. Per-minute rate limit headers are no quota and are not looked at.
"""

from combos.core.facts import Headers
from combos.core.quota import Snapshot, Window, reset_ms

_DAY_MINUTES = 1_440
_MONTH_MINUTES = 28 * _DAY_MINUTES
_CODEX = b"x-codex-"
_UNIFIED = b"anthropic-ratelimit-unified-"
_UNIFIED_WINDOWS = (("5h", "five-hour"), ("7d", "weekly"))
_LONGEST = 64


def header_snapshot(headers: Headers, epoch_ms: int) -> Snapshot | None:
    """What the headers of any answer say of the account's quota; None when they say nothing."""
    fields = _fields(headers)
    if not fields:
        return None
    made = _codex(fields, epoch_ms) or _unified(fields, epoch_ms)
    return None if made is None or made.is_empty else made


def rejected_resets(headers: Headers) -> tuple[int, ...]:
    """Epoch ms of the resets of the unified windows that refused the request."""
    fields = _fields(headers)
    found = (
        _reset(fields, f"anthropic-ratelimit-unified-{name}-reset")
        for name, _ in _UNIFIED_WINDOWS
        if fields.get(f"anthropic-ratelimit-unified-{name}-status") == "rejected"
    )
    return tuple(at for at in found if at is not None)


def place_windows(windows: list[tuple[Window, float | None]], epoch_ms: int) -> Snapshot:
    """Windows of the ChatGPT backend in their order (primary, secondary, tertiary) with their length in minutes.

    The primary one is the short window below a day, the monthly one from 28 days on, else the weekly one.
    """
    slots: dict[str, Window] = {}
    extra: list[Window] = []
    for index, (window, minutes) in enumerate(windows):
        name = _slot(minutes, is_first=index == 0)
        if index == 1 and "five_hour" in slots:
            name = "weekly"
        if index > 1 or name in slots:
            name = "monthly"
        if name in slots:
            extra.append(window)
        else:
            slots[name] = window
    return Snapshot(epoch_ms, slots.get("five_hour"), slots.get("weekly"), slots.get("monthly"), tuple(extra))


def _slot(minutes: float | None, *, is_first: bool) -> str:
    if minutes is None:
        return "five_hour" if is_first else "weekly"
    if minutes < _DAY_MINUTES:
        return "five_hour"
    return "monthly" if minutes >= _MONTH_MINUTES else "weekly"


def _codex(fields: dict[str, str], epoch_ms: int) -> Snapshot | None:
    windows: list[tuple[Window, float | None]] = []
    for name in ("primary", "secondary", "tertiary"):
        percent = _number(fields.get(f"x-codex-{name}-used-percent"))
        reset = _reset(fields, f"x-codex-{name}-reset-at")
        if percent is None and reset is None:
            continue
        minutes = _number(fields.get(f"x-codex-{name}-window-minutes"))
        windows.append((Window(name, _percent(percent), reset), minutes))
    return place_windows(windows, epoch_ms) if windows else None


def _unified(fields: dict[str, str], epoch_ms: int) -> Snapshot | None:
    found: list[Window | None] = []
    for name, label in _UNIFIED_WINDOWS:
        base = f"anthropic-ratelimit-unified-{name}"
        share = _number(fields.get(f"{base}-utilization"))
        percent = 100.0 if fields.get(f"{base}-status") == "rejected" else _percent(share and share * 100)
        reset = _reset(fields, f"{base}-reset")
        if share == 0:
            percent = percent or 0.0
        found.append(None if percent is None and reset is None else Window(label, percent, reset))
    return Snapshot(epoch_ms, five_hour=found[0], weekly=found[1])


def _fields(headers: Headers) -> dict[str, str]:
    """The fields that speak of quotas, lower case; the first value of each counts."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key.startswith((_CODEX, _UNIFIED)) and len(value) <= _LONGEST:
            found.setdefault(key.decode("latin-1"), value.decode("latin-1").strip().lower())
    return found


def _reset(fields: dict[str, str], name: str) -> int | None:
    value = _number(fields.get(name))
    return None if value is None else reset_ms(value)


def _percent(value: float | None) -> float | None:
    return None if value is None else min(100.0, max(0.0, value))


def _number(text: str | None) -> float | None:
    """An unsigned decimal number."""
    if text is None or not text.replace(".", "", 1).isdecimal() or not text.isascii():
        return None
    return float(text)
