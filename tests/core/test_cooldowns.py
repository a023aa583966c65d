from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.cooldowns import CooldownEntry, CooldownKey, Cooldowns

A, B, OTHER = CooldownKey("main", "a/m"), CooldownKey("main", "b/m"), CooldownKey("other", "a/m")


def until(ms: int) -> CooldownEntry:
    return CooldownEntry(ms, "rule", "default", 503)


def test_remaining_runs_down_and_ends_at_the_expiry() -> None:
    store = Cooldowns()
    store.replace(A, until(100))
    assert [store.remaining(A, now) for now in (0, 99, 100, 101)] == [100, 1, 0, 0]
    assert len(store) == 0


def test_a_write_replaces_longer_or_shorter() -> None:
    store = Cooldowns()
    store.replace(A, until(600))
    store.replace(A, until(5))
    assert store.remaining(A, 0) == 5


def test_a_siblings_write_never_shortens() -> None:
    store = Cooldowns()
    store.replace(A, until(600))
    store.extend(A, until(5))
    store.extend(B, until(5))
    assert (store.remaining(A, 0), store.remaining(B, 0)) == (600, 5)
    store.extend(A, until(900))
    assert store.remaining(A, 0) == 900


def test_earliest_is_the_smallest_positive_of_the_combo() -> None:
    store = Cooldowns()
    assert store.earliest("main", 0) is None
    for key, entry in ((A, until(40)), (B, until(25)), (OTHER, until(1))):
        store.replace(key, entry)
    assert [store.earliest("main", now) for now in (0, 25, 40)] == [25, 15, None]


def test_clear_matches_combo_and_target() -> None:
    for combo, target, left in (
        ("main", None, 1),
        (None, "a/m", 1),
        ("main", "b/m", 2),
        (None, None, 0),
        ("x", None, 3),
    ):
        store = Cooldowns()
        for key in (A, B, OTHER):
            store.replace(key, until(9))
        assert store.clear(combo, target) == 3 - left
        assert len(store) == left


def test_deleted_combos_are_forgotten() -> None:
    store = Cooldowns()
    store.replace(A, until(9))
    store.replace(OTHER, until(9))
    assert store.keep_combos({"main"}) == 1
    assert [key for key, _ in store.running(0)] == [A]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([A, B, OTHER]), st.integers(1, 50)), max_size=20), st.integers(0, 60))
def test_sweep_drops_exactly_what_nobody_sees(writes: list[tuple[CooldownKey, int]], now: int) -> None:
    store = Cooldowns()
    for key, ms in writes:
        store.replace(key, until(ms))
    visible = dict(store.running(now))
    gone = len(store) - len(visible)
    assert store.sweep(now) == gone
    assert len(store) == len(visible)
    assert all(store.get(key, now) == entry for key, entry in visible.items())
