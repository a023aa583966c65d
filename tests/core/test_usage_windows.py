"""Windows in local days, over changes of the clock, and instants as they are written."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from combos.core.usage_windows import (
    BUCKET_MS,
    Range,
    Window,
    day_start,
    local_day,
    month_start,
    parse_instant,
    parse_range,
    window_of,
)

BERLIN = ZoneInfo("Europe/Berlin")
KATHMANDU = ZoneInfo("Asia/Kathmandu")


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("wanted", "since"),
    [
        (Range.TODAY, "2026-10-26T00:00:00+01:00"),
        (Range.DAY, "2026-10-25T12:30:00+01:00"),
        (Range.WEEK, "2026-10-20T00:00:00+02:00"),  # the clock went back in between
        (Range.MONTH, "2026-09-27T00:00:00+02:00"),
    ],
)
def test_windows_begin_at_local_midnights(wanted: Range, since: str) -> None:
    now = ms("2026-10-26T12:34:56+01:00")
    assert window_of(wanted, now, BERLIN) == Window(ms(since))


def test_all_is_unbounded() -> None:
    assert window_of(Range.ALL, 1, BERLIN) == Window(None)


@pytest.mark.parametrize(
    "zone", [UTC, BERLIN, KATHMANDU, ZoneInfo("Australia/Lord_Howe"), ZoneInfo("America/St_Johns")]
)
def test_midnights_lie_between_buckets(zone: ZoneInfo) -> None:
    for day in range(1, 366, 7):
        at = ms("2026-01-01T12:00:00+00:00") + day * 86_400_000
        assert day_start(at, zone) % BUCKET_MS == 0
        assert month_start(at, zone) <= day_start(at, zone) <= at


def test_days_have_names() -> None:
    assert local_day(ms("2026-10-01T23:30:00+00:00"), BERLIN) == "2026-10-02"
    assert day_start(ms("2026-10-01T23:30:00+00:00"), BERLIN) == ms("2026-10-02T00:00:00+02:00")
    assert month_start(ms("2026-09-30T23:30:00+00:00"), BERLIN) == ms("2026-10-01T00:00:00+02:00")


def test_the_machines_own_zone_is_used_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = ms("2026-10-26T12:34:56+00:00")
    own = datetime.fromtimestamp(now / 1000).astimezone().tzinfo
    assert day_start(now) == day_start(now, own)


@pytest.mark.parametrize(
    ("text", "wanted"), [("today", Range.TODAY), ("1d", Range.DAY), ("all", Range.ALL), ("x", Range.MONTH)]
)
def test_names(text: str, wanted: Range) -> None:
    assert parse_range(text) is wanted
    assert parse_range(None) is Range.MONTH


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1790856000000", 1_790_856_000_000),
        ("2026-10-01T12:00:00Z", 1_790_856_000_000),
        ("2026-10-01T14:00:00+02:00", 1_790_856_000_000),
        ("2026-10-01T12:00:00", None),
        ("yesterday", None),
        ("", None),
        ("-5", None),
        ("9" * 16, None),
    ],
)
def test_instants(text: str, at: int | None) -> None:
    assert parse_instant(text) == at
