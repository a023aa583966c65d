"""Ids of requests: never the same twice, and seldom asked of the system."""

import os

from combos.mitm.seeds import Seeds


def test_no_seed_comes_twice_and_the_system_is_asked_once_for_many() -> None:
    asked: list[int] = []

    def random_bytes(count: int) -> bytes:
        asked.append(count)
        return os.urandom(count)

    seeds = Seeds(random_bytes)
    given = [seeds.next() for _ in range(1_000)]
    assert len(set(given)) == len(given)
    assert {len(bytes.fromhex(seed)) for seed in given} == {16}
    assert len(asked) < 10
