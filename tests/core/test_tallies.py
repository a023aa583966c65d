"""Sums that many add to: what was sent and not yet seen counts once, whatever becomes of the connection."""

import pytest

from combos.core.tallies import CELLS_MAX, Cell, Sum, Tally

A, B = Cell(Sum.SUCCESSES, "main", "alpha/m1"), Cell(Sum.WEIGHT, "other", "beta/m2")


def test_what_is_sent_counts_until_it_is_part_of_the_total() -> None:
    tally = Tally()
    tally.update({A: 10})
    tally.send(1, {A: 2})
    tally.send(2, {A: 3, B: -1})
    assert (tally.expected(A), tally.expected(B)) == (15, -1)
    tally.applied(1)
    tally.update({A: 12})
    assert (tally.expected(A), tally.expected(B)) == (15, -1)
    tally.applied(2)
    tally.update({A: 15, B: -1})
    assert (tally.expected(A), tally.expected(B)) == (15, -1)
    assert tally.cells() == {A, B}


@pytest.mark.parametrize(
    ("applied", "lost"),
    [(0, {A: 5, B: -1}), (1, {A: 3, B: -1}), (2, {}), (None, {})],
    ids=["none", "one", "all", "new"],
)
def test_a_restart_gives_back_what_never_arrived(applied: int | None, lost: dict[Cell, int]) -> None:
    tally = Tally()
    tally.send(1, {A: 2})
    tally.send(2, {A: 3, B: -1})
    assert tally.restart({A: 100}, applied) == lost
    assert (tally.expected(A), tally.expected(B)) == (100, 0)


def test_a_combo_begins_anew() -> None:
    tally = Tally()
    tally.update({A: 10, B: 5})
    tally.send(1, {A: 2, B: 1})
    tally.forget(["main"])
    assert (tally.expected(A), tally.expected(B)) == (0, 6)


def test_a_server_that_names_more_than_there_can_be_is_not_believed() -> None:
    tally = Tally()
    tally.update({Cell(Sum.WEIGHT, "main", f"alpha/{number}"): 1 for number in range(CELLS_MAX + 1)})
    assert len(tally.cells()) == CELLS_MAX
    tally.update({A: 1})
    assert tally.expected(A) == 0
