"""Numbers that several proxies add to: rotation weights and successes of every combo's targets.

The sums are kept by a server that applies each batch of additions once. A replica shows what the server is known to
have, what it has sent and not yet seen applied, and what it has not sent; so additions commute and none counts twice.
Which sums there are, and how batches travel, is decided elsewhere.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

CELLS_MAX = 65_536
"""Far more than anybody configures; a server that names more is not believed."""
SUM_MAX = 2**53
"""What every reader of the sums can hold exactly."""


class Sum(StrEnum):
    """What is summed: smooth weights of the rotation, or successes."""

    WEIGHT = "w"
    SUCCESSES = "n"


class Cell(NamedTuple):
    """One sum of one target."""

    kind: Sum
    combo: str
    target: str


type Additions = dict[Cell, int]


class Tally:
    """What one replica knows of the sums."""

    def __init__(self) -> None:
        self._totals: Additions = {}
        self._sent: dict[int, Additions] = {}

    def expected(self, cell: Cell) -> int:
        """The sum with everything that was sent."""
        return self._totals.get(cell, 0) + sum(batch.get(cell, 0) for batch in self._sent.values())

    def cells(self) -> set[Cell]:
        """Every sum that is known."""
        return set(self._totals).union(*self._sent.values())

    def send(self, number: int, additions: Additions) -> None:
        """A batch goes out."""
        if additions:
            self._sent[number] = additions

    def applied(self, number: int) -> None:
        """The server has applied every own batch up to this one."""
        self._sent = {sent: batch for sent, batch in self._sent.items() if sent > number}

    def update(self, totals: Mapping[Cell, int]) -> None:
        """The server has told newer sums."""
        for cell, total in totals.items():
            if cell in self._totals or len(self._totals) < CELLS_MAX:
                self._totals[cell] = total

    def forget(self, combos: Iterable[str]) -> None:
        """The sums of these combos begin anew."""
        gone = set(combos)
        self._totals = {cell: total for cell, total in self._totals.items() if cell.combo not in gone}
        self._sent = {
            number: {cell: n for cell, n in batch.items() if cell.combo not in gone}
            for number, batch in self._sent.items()
        }

    def restart(self, totals: Mapping[Cell, int], applied: int | None) -> Additions:
        """Begin with what the server has now; returns what it has lost or never got, to be added once more.

        `applied` is the last own batch that is part of it; None when it has none of what was sent, and never will.
        """
        if applied is not None:
            self.applied(applied)
            lost = self._summed()
        else:
            lost = {}
        self._totals, self._sent = {}, {}
        self.update(totals)
        return lost

    def _summed(self) -> Additions:
        summed: Additions = {}
        for batch in self._sent.values():
            for cell, n in batch.items():
                summed[cell] = summed.get(cell, 0) + n
        return summed
