"""Snapshots: exhaustion, resets, freshness, badges, and whose evidence may steer routing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config_provider import ProviderConfig
from combos.core.quota import (
    FRESH_MS,
    Badge,
    BadgeState,
    Credits,
    Snapshot,
    Window,
    badge,
    binding_of,
    combined,
    is_exhausted,
    is_fresh,
    may_route,
    merged,
    reset_ms,
    soonest_reset,
)
from configs import provider

NOW = 1_790_856_000_000


def windows(*rows: tuple[float | None, int | None], credits: Credits | None = None) -> Snapshot:
    return Snapshot(NOW, custom=tuple(Window("w", percent, reset) for percent, reset in rows), credits=credits)


@pytest.mark.parametrize(
    ("snapshot", "exhausted"),
    [
        (windows((99.9, NOW + 1)), False),
        (windows((100, NOW + 1)), True),
        (windows((100, NOW)), False),
        (windows((100, None)), True),
        (windows((None, NOW + 1)), False),
        (windows((0, None), (100, NOW + 5)), True),
        (windows(credits=Credits(percent=100, remaining=0)), True),
        (windows(credits=Credits(percent=100, remaining=None)), True),
        (windows(credits=Credits(percent=100, remaining=0.01)), False),
        (windows(credits=Credits(percent=100, remaining=0, unlimited=True)), False),
        (windows(credits=Credits(percent=99, remaining=0)), False),
        (Snapshot(NOW), False),
    ],
)
def test_exhaustion(snapshot: Snapshot, exhausted: bool) -> None:
    assert is_exhausted(snapshot, NOW) is exhausted


def test_the_soonest_reset_ahead_counts_whatever_its_percent() -> None:
    snapshot = Snapshot(NOW, Window("five-hour", 3, NOW + 50), Window("weekly", 100, NOW + 9), Window("m", 5, NOW - 1))
    assert soonest_reset(snapshot, NOW) == NOW + 9
    assert soonest_reset(snapshot, NOW + 9) == NOW + 50
    assert soonest_reset(snapshot, NOW + 50) is None


def test_freshness_is_strict_and_the_future_is_not_believed() -> None:
    snapshot = windows((1, None))
    assert is_fresh(snapshot, NOW)
    assert is_fresh(snapshot, NOW + FRESH_MS - 1)
    assert not is_fresh(snapshot, NOW + FRESH_MS)
    assert not is_fresh(snapshot, NOW - 1)


@pytest.mark.parametrize(
    ("snapshot", "shown"),
    [
        (None, Badge(BadgeState.UNKNOWN)),
        (Snapshot(NOW), Badge(BadgeState.UNKNOWN)),
        (windows((50, None)), Badge(BadgeState.AVAILABLE, NOW, NOW + FRESH_MS)),
        (windows((100, NOW + 60_000)), Badge(BadgeState.EXHAUSTED, NOW, NOW + 60_000)),
        (windows((100, NOW + 60_000), (100, NOW + 90_000)), Badge(BadgeState.EXHAUSTED, NOW, NOW + 90_000)),
        (windows((100, NOW + 60_000), (100, None)), Badge(BadgeState.EXHAUSTED, NOW, NOW + FRESH_MS)),
        (windows((100, NOW + FRESH_MS + 1)), Badge(BadgeState.EXHAUSTED, NOW, NOW + FRESH_MS)),
    ],
)
def test_badges(snapshot: Snapshot | None, shown: Badge) -> None:
    assert badge(snapshot, NOW) == shown


def test_a_stale_snapshot_has_no_badge() -> None:
    assert badge(windows((50, None)), NOW + FRESH_MS) == Badge(BadgeState.UNKNOWN)


A, E, U = (Badge(state) for state in (BadgeState.AVAILABLE, BadgeState.EXHAUSTED, BadgeState.UNKNOWN))


@pytest.mark.parametrize(
    ("badges", "state"),
    [([], U), ([A, E, U], A), ([E, U], U), ([E, E], E), ([U], U), ([A], A)],
)
def test_a_combos_state(badges: list[Badge], state: Badge) -> None:
    assert combined(badges) is state.state


@pytest.mark.parametrize(
    ("fields", "routes"),
    [
        ({"apiKey": "k"}, True),
        ({"apiKeyPool": [{"id": "a", "key": "k"}]}, True),
        ({"apiKeyPool": [{"id": "a", "key": "k"}, {"id": "b", "key": "l"}]}, False),
        ({"authMode": "oauth"}, False),
        ({"authMode": "local"}, False),
        ({"disabled": True}, False),
        ({"headers": {"Authorization": "Bearer x"}}, False),
        ({"headers": {"X-Title": "mine"}}, True),
    ],
)
def test_whose_evidence_may_steer_routing(fields: dict[str, Any], routes: bool) -> None:
    assert may_route(ProviderConfig.model_validate(provider(**fields))) is routes


def test_a_binding_tells_credentials_addresses_and_names_apart() -> None:
    base = ProviderConfig.model_validate(provider())
    moved = ProviderConfig.model_validate(provider(baseUrl="https://other.example/v1"))
    bindings = {
        binding_of("alpha", base, "key"), binding_of("alpha", base, "key2"), binding_of("beta", base, "key"),
        binding_of("alpha", moved, "key"),
    }  # fmt: skip
    assert len(bindings) == 4
    assert binding_of("alpha", base, "key") == binding_of("alpha", base, "key")
    assert all(b"key" not in binding for binding in bindings)


@pytest.mark.parametrize(
    ("value", "at"),
    [(1_790_856_000, NOW), (NOW, NOW), (0, None), (-5, None), (10**10, 10**13), (10**10 + 1, 10**10 + 1)],
)
def test_resets_are_seconds_or_milliseconds(value: float, at: int | None) -> None:
    assert reset_ms(value) == at


@pytest.mark.parametrize(
    ("snapshot", "percent"),
    [
        (Snapshot(NOW), 0),
        (windows((10, None), (30, None), (None, None)), 30),
        (windows(credits=Credits(percent=40)), 40),
        (windows((None, 5)), 0),
    ],
)
def test_members_are_ranked_by_what_is_fullest(snapshot: Snapshot, percent: float) -> None:
    assert snapshot.used_percent == percent


def test_a_partial_snapshot_keeps_what_it_does_not_speak_of() -> None:
    old = Snapshot(NOW, Window("five-hour", 10), Window("weekly", 20), credits=Credits(used=1))
    new = Snapshot(NOW + 5, Window("five-hour", 15))
    assert merged(old, new) == Snapshot(NOW + 5, Window("five-hour", 15), Window("weekly", 20), credits=Credits(used=1))
    assert merged(None, new) is new


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(0, 100)),
            st.one_of(st.none(), st.integers(NOW - FRESH_MS, NOW + 2 * FRESH_MS)),
        ),
        max_size=5,
    )
)
def test_an_exhausted_badge_ends_when_the_snapshot_is_not_exhausted_any_more(
    rows: list[tuple[float | None, int | None]],
) -> None:
    snapshot = windows(*rows)
    shown = badge(snapshot, NOW)
    if shown.state is BadgeState.EXHAUSTED and shown.valid_until is not None:
        assert NOW < shown.valid_until <= NOW + FRESH_MS
        assert shown.valid_until == NOW + FRESH_MS or not is_exhausted(snapshot, shown.valid_until)
        assert is_exhausted(snapshot, shown.valid_until - 1)
