"""The collector's settings come and go with the addon."""

import gc
from collections.abc import Iterator

import pytest

from combos.mitm.collector import FULL_AFTER, YOUNG_AFTER, Collector


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.enable()


class Node:
    """Something that can be garbage in a circle."""

    alive = 0

    def __init__(self) -> None:
        Node.alive += 1
        self.itself = self

    def __del__(self) -> None:
        Node.alive -= 1


def test_what_is_there_is_set_aside_and_what_comes_later_is_collected() -> None:
    collector = Collector()
    collector.install()
    assert gc.get_freeze_count() > 0
    young, _, full = gc.get_threshold()
    assert (young, full) == (YOUNG_AFTER, FULL_AFTER)
    Node()
    gc.collect()
    assert Node.alive == 0


def test_garbage_is_collected_before_anything_is_set_aside() -> None:
    Node()
    Collector().install()
    assert Node.alive == 0


def test_afterwards_everything_is_as_it_was() -> None:
    gc.set_threshold(900, 9, 8)
    collector = Collector()
    collector.install()
    collector.install()
    assert gc.get_threshold() == (YOUNG_AFTER, 9, FULL_AFTER)
    collector.remove()
    collector.remove()
    assert gc.get_threshold() == (900, 9, 8)
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("chosen", [(70_000, 10, 1_000), (70_000, 3, 12)])
def test_rarer_collections_stay_rare(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    Collector().install()
    assert gc.get_threshold() == chosen


def test_full_collections_come_no_sooner_than_by_600_000_new_objects() -> None:
    gc.set_threshold(2_000, 10, 0)
    Collector().install()
    young, middle, full = gc.get_threshold()
    assert young * middle * full == 600_000


def test_a_collector_that_is_switched_off_by_its_threshold_is_left_alone() -> None:
    gc.set_threshold(0, 10, 10)
    Collector().install()
    assert gc.get_threshold() == (0, 10, 10)
    assert gc.get_freeze_count() == 0


def test_a_collector_that_is_switched_off_is_left_alone() -> None:
    gc.disable()
    before = gc.get_threshold()
    Collector().install()
    assert not gc.isenabled()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_what_was_chosen_meanwhile_stays() -> None:
    collector = Collector()
    collector.install()
    gc.set_threshold(900, 9, 8)
    later = [Node() for _ in range(10_000)]
    gc.freeze()
    collector.remove()
    assert gc.get_threshold() == (900, 9, 8)
    assert gc.get_freeze_count() > len(later)


def test_what_others_had_set_aside_stays() -> None:
    gc.freeze()
    collector = Collector()
    collector.install()
    collector.remove()
    assert gc.get_freeze_count() > 0
