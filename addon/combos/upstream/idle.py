"""Connections that have served a request and wait for the next, by what they were opened for.

It knows when one has waited too long or is of no use any more; opening, judging and using them is for others.
"""

import asyncio
from collections.abc import Hashable
from typing import Protocol

KEEPALIVE_S = 60.0  # most vendors keep idle connections for at least a minute; dead ones are replaced anyway


class Waiting(Protocol):
    """A connection."""

    @property
    def is_usable(self) -> bool:
        """Whether it can take a request."""

    def close(self) -> None:
        """Close it in order."""

    def abort(self) -> None:
        """Close it at once."""


class Idle[L: Waiting]:
    """The connections that nobody uses. Each is here or with its user, never in both places."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[tuple[float, L]]] = {}
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def take(self, key: Hashable) -> L | None:
        """The one that was used last: most likely the other end has kept it as well. What has said something that
        nobody asked for is closed on the way."""
        waiting = self._waiting.get(key)
        while waiting:
            since, link = waiting.pop()
            if not link.is_usable:
                link.abort()
            elif since + KEEPALIVE_S >= self._loop.time():
                return link
            else:
                link.close()
        return None

    def keep(self, key: Hashable, link: L) -> None:
        """It waits from now on."""
        if self._closed:
            link.close()
            return
        self._waiting.setdefault(key, []).append((self._loop.time(), link))
        if self._timer is None:
            self._timer = self._loop.call_later(KEEPALIVE_S, self._sweep)

    def distrust(self, key: Hashable) -> None:
        """One of them was dead: close the others."""
        for _, link in self._waiting.pop(key, ()):
            link.abort()

    def close(self) -> None:
        """Close all of them, and what comes later."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for links in waiting.values():
            for _, link in links:
                link.close()

    def _sweep(self) -> None:
        """Close what has waited too long or is of no use any more."""
        self._timer = None
        begun = self._loop.time() - KEEPALIVE_S
        waiting, self._waiting = self._waiting, {}
        for key, links in waiting.items():
            for since, link in links:
                if since > begun and link.is_usable:
                    self._waiting.setdefault(key, []).append((since, link))
                else:
                    link.close()
        if self._waiting:
            self._timer = self._loop.call_later(KEEPALIVE_S, self._sweep)
