"""Quota that rides on answers."""

from typing import Any

import pytest

from combos.core.facts import Headers
from combos.core.quota import Snapshot, Window
from combos.wire.quota_headers import header_snapshot, place_windows, rejected_resets

NOW = 1_790_856_000_000
SECOND = NOW // 1000


def raw(fields: dict[str, Any]) -> Headers:
    return tuple((name.encode(), str(value).encode()) for name, value in fields.items())


def codex(**fields: Any) -> Headers:
    return raw({f"X-Codex-{name.replace('_', '-')}": value for name, value in fields.items()})


@pytest.mark.parametrize(
    ("headers", "snapshot"),
    [
        (
            codex(
                primary_used_percent="12.5", primary_reset_at=SECOND + 60, primary_window_minutes=300,
                secondary_used_percent=40, secondary_reset_at=SECOND + 90, secondary_window_minutes=10080,
            ),
            Snapshot(NOW, Window("primary", 12.5, NOW + 60_000), Window("secondary", 40, NOW + 90_000)),
        ),
        (
            codex(primary_used_percent=7, primary_window_minutes=10080),
            Snapshot(NOW, weekly=Window("primary", 7)),
        ),
        (
            codex(primary_used_percent=7, primary_window_minutes=40320),
            Snapshot(NOW, monthly=Window("primary", 7)),
        ),
        (
            codex(
                primary_used_percent=1, primary_window_minutes=300, secondary_used_percent=2, tertiary_used_percent=3,
            ),
            Snapshot(NOW, Window("primary", 1), Window("secondary", 2), Window("tertiary", 3)),
        ),
        (codex(primary_used_percent=150), Snapshot(NOW, Window("primary", 100))),
        (codex(primary_used_percent="a lot"), None),
        (codex(primary_window_minutes=300), None),
        (codex(primary_used_percent="9" * 80), None),
    ],
)  # fmt: skip
def test_the_chatgpt_backends_windows(headers: Headers, snapshot: Snapshot | None) -> None:
    assert header_snapshot(headers, NOW) == snapshot


def unified(**fields: Any) -> Headers:
    return raw({f"anthropic-ratelimit-unified-{name.replace('_', '-')}": value for name, value in fields.items()})


@pytest.mark.parametrize(
    ("headers", "snapshot"),
    [
        (
            raw(
                {
                    "anthropic-ratelimit-unified-5h-utilization": "0.25",
                    "anthropic-ratelimit-unified-5h-reset": SECOND + 5,
                    "anthropic-ratelimit-unified-7d-utilization": "0",
                }
            ),
            Snapshot(NOW, Window("five-hour", 25, NOW + 5_000), Window("weekly", 0)),
        ),
        (
            raw({"anthropic-ratelimit-unified-7d-status": "rejected", "anthropic-ratelimit-unified-7d-reset": SECOND}),
            Snapshot(NOW, weekly=Window("weekly", 100, NOW)),
        ),
        (raw({"anthropic-ratelimit-requests-remaining": 0, "x-ratelimit-remaining-tokens": 0}), None),
        ((), None),
    ],
)
def test_anthropics_unified_windows(headers: Headers, snapshot: Snapshot | None) -> None:
    assert header_snapshot(headers, NOW) == snapshot


def test_the_windows_that_refused() -> None:
    headers = raw(
        {
            "Anthropic-RateLimit-Unified-5h-Status": "rejected",
            "Anthropic-RateLimit-Unified-5h-Reset": SECOND + 5,
            "Anthropic-RateLimit-Unified-7d-Status": "allowed",
            "Anthropic-RateLimit-Unified-7d-Reset": SECOND + 500,
        }
    )
    assert rejected_resets(headers) == (NOW + 5_000,)
    assert rejected_resets(()) == ()


def test_a_second_window_without_a_place_is_kept_beside() -> None:
    rows = [(Window("a", 1), 10_080.0), (Window("b", 2), 10_080.0), (Window("c", 3), None)]
    placed = place_windows(rows, NOW)  # type: ignore[arg-type]
    assert (placed.weekly, placed.monthly, placed.custom) == (Window("a", 1), Window("b", 2), (Window("c", 3),))
