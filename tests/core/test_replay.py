"""The replay store: found by id, bounded in number, bytes and time, the oldest goes first."""

from hypothesis import given
from hypothesis import strategies as st

from combos.core.replay import BYTES_MAX, ENTRIES_MAX, ENTRY_BYTES_MAX, TTL_MS, Exchange, ReplayStore


def exchange(body: bytes = b"{}", output: bytes = b"[]") -> Exchange:
    return Exchange("caller", None, body, output, frozenset({"alpha"}))


def test_an_exchange_is_found_by_its_id_for_a_day() -> None:
    store = ReplayStore()
    assert store.put("resp_1", exchange(), 1_000)
    assert store.get("resp_1", 1_000 + TTL_MS - 1) == exchange()
    assert store.get("resp_1", 1_000 + TTL_MS) is None
    assert store.get("resp_2", 1_000) is None


def test_reading_does_not_refresh_and_writing_does() -> None:
    store = ReplayStore()
    store.put("a", exchange(), 0)
    store.get("a", TTL_MS - 1)
    assert store.sweep(TTL_MS) == 1
    store.put("a", exchange(), 0)
    store.put("a", exchange(b"later"), 10)
    assert store.get("a", TTL_MS) == exchange(b"later")
    assert (len(store), store.resident_bytes) == (1, 7)


def test_what_is_too_large_is_not_kept_and_leaves_nothing_under_its_id() -> None:
    store = ReplayStore()
    assert store.put("a", exchange(b"x" * (ENTRY_BYTES_MAX - 2)), 0)
    assert not store.put("a", exchange(b"x" * (ENTRY_BYTES_MAX - 1)), 0)
    assert (len(store), store.resident_bytes, store.get("a", 0)) == (0, 0, None)


def test_the_thousand_and_first_ends_the_oldest() -> None:
    store = ReplayStore()
    for number in range(ENTRIES_MAX + 1):
        store.put(str(number), exchange(), number)
    assert len(store) == ENTRIES_MAX
    assert store.get("0", 0) is None
    assert store.get("1", 1) is not None


def test_the_bytes_of_all_are_bounded() -> None:
    store = ReplayStore()
    body = b"x" * (ENTRY_BYTES_MAX - 2)
    for number in range(BYTES_MAX // ENTRY_BYTES_MAX + 1):
        store.put(str(number), exchange(body), 0)
    assert store.resident_bytes == BYTES_MAX
    assert store.get("0", 0) is None


def test_any_text_may_be_an_id() -> None:
    store = ReplayStore()
    for name in ("", "\ud800", "x" * 100_000):
        assert store.put(name, exchange(), 0)
        assert store.get(name, 0) is not None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 200), st.integers(0, 3))))
def test_the_count_of_bytes_is_exact(writes: list[tuple[str, int, int]]) -> None:
    store, known, now = ReplayStore(), dict[str, int](), 0
    for name, size, rest in writes:
        now += rest
        store.put(name, exchange(b"x" * size, b""), now)
        known[name] = size
        assert store.resident_bytes == sum(known.values())
        assert len(store) == len(known)
    store.sweep(now + TTL_MS)
    assert (len(store), store.resident_bytes) == (0, 0)
