from combos.core.expiring import ExpiringMap


def test_an_entry_lives_for_its_ttl_from_the_write() -> None:
    store: ExpiringMap[str, int] = ExpiringMap(10, ttl_ms=100)
    store.put("a", 1, 0)
    assert store.get("a", 99) == 1
    assert store.get("a", 100) is None
    assert len(store) == 0


def test_the_one_written_longest_ago_goes_first() -> None:
    store: ExpiringMap[str, int] = ExpiringMap(2, ttl_ms=100)
    store.put("a", 1, 0)
    store.put("b", 2, 0)
    store.put("a", 3, 1)
    store.put("c", 4, 2)
    assert [store.get(key, 3) for key in "abc"] == [3, None, 4]


def test_sweep_and_drop_where() -> None:
    store: ExpiringMap[str, int] = ExpiringMap(9, ttl_ms=10)
    for at, key in enumerate("abc"):
        store.put(key, at, at * 5)
    assert store.sweep(10) == 1
    assert store.drop_where(lambda value: value == 2) == 1
    assert store.get("b", 10) == 1
    assert len(store) == 1
