"""The windows usage is summed over: today, 1, 7 and 30 days, all, or from one instant to another.

Days are those of a time zone that the caller names (None: the machine's own). `7d` begins at the midnight six days ago.
"""

from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

from combos.core.values import dataclass

BUCKET_MS = 900_000
"""A quarter of an hour: midnight lies on a multiple of it in every time zone in use."""
_DAY_MS = 86_400_000


class Range(StrEnum):
    """Names of the windows."""

    TODAY = "today"
    DAY = "1d"
    WEEK = "7d"
    MONTH = "30d"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Window:
    """Epoch milliseconds: `since` included, `until` not; None is unbounded."""

    since: int | None
    until: int | None = None


def parse_range(text: str | None) -> Range:
    """The window of this name; any other text means 30 days."""
    return Range(text) if text in tuple(Range) else Range.MONTH


def window_of(wanted: Range, epoch_ms: int, zone: tzinfo | None = None) -> Window:
    """The window that ends now. `1d` are the last 24 hours, to the bucket."""
    match wanted:
        case Range.ALL:
            return Window(None)
        case Range.DAY:
            since = epoch_ms - _DAY_MS
            return Window(since - since % BUCKET_MS)
        case Range.TODAY:
            return Window(day_start(epoch_ms, zone))
        case Range.WEEK:
            return Window(day_start(epoch_ms, zone, days_ago=6))
        case Range.MONTH:
            return Window(day_start(epoch_ms, zone, days_ago=29))


def day_start(epoch_ms: int, zone: tzinfo | None = None, days_ago: int = 0) -> int:
    """The midnight that began the local day of `epoch_ms`, or the one some days before."""
    day = datetime.fromtimestamp(epoch_ms / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return _instant(day - timedelta(days=days_ago), zone)


def month_start(epoch_ms: int, zone: tzinfo | None = None) -> int:
    """The midnight that began the local month of `epoch_ms`."""
    day = datetime.fromtimestamp(epoch_ms / 1000, zone).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=None
    )
    return _instant(day, zone)


def local_day(epoch_ms: int, zone: tzinfo | None = None) -> str:
    """The local date, `2026-10-01`."""
    return datetime.fromtimestamp(epoch_ms / 1000, zone).date().isoformat()


def parse_instant(text: str) -> int | None:
    """Epoch milliseconds, or an ISO date and time with a zone; None for anything else."""
    if text.isascii() and text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else round(moment.timestamp() * 1000)


def _instant(day: datetime, zone: tzinfo | None) -> int:
    # A clock change may lie between: the offset is that of the wanted midnight, not today's.
    return round((day if zone is None else day.replace(tzinfo=zone)).timestamp() * 1000)
