"""How a link to the server of shared state stands: whether it holds, how long to wait before the next attempt, and what
is said of it.

That a server can be joined proves little: it may refuse what is pushed, or lose it. A link is connected when a push of
its own has come back on the channel. One that breaks soon, again and again, has to last before that counts.
"""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

PAUSE_S = (0.2, 10.0)
"""Between two attempts to connect: the first, and the longest."""
STEADY_S = 30.0
"""A connection that has lasted so long holds, whatever happened to those before it."""
SHORT_MAX = 4
"""Fewer connections in a row that did not last are accidents; from so many on, the trouble is one that goes on."""


class Standing:
    """Of one link to the server with this `label`; `now_s` is a monotonic clock in seconds."""

    def __init__(self, label: str, now_s: Callable[[], float]) -> None:
        self.is_connected = False
        self.is_lost = False
        self._label = label
        self._now_s = now_s
        self._joined_at: float | None = None
        self._short = 0
        self._pause_s: float | None = None
        self._was_connected = False

    def joined(self) -> None:
        """The server has told what it has."""
        self._joined_at = self._now_s()

    def proved(self) -> None:
        """A push of this connection has come back."""
        self.is_connected = True
        if self._has_lasted():
            self._short = 0
        if self._short < SHORT_MAX:
            self._pause_s = None
            self._say_connected()

    def failed(self, reason: str, *, is_rejoin: bool = False) -> float:
        """The attempt or the connection is over; how long to wait, in seconds. `is_rejoin`: something was missed, which
        is nothing to speak of unless it goes on."""
        if self._joined_at is not None:
            self._short = 0 if self._has_lasted() else self._short + 1
        self.is_connected, self._joined_at = False, None
        if not is_rejoin or self._short >= SHORT_MAX:
            self._say_lost(reason)
        pause_s = PAUSE_S[0] if self._pause_s is None else self._pause_s
        self._pause_s = min(pause_s * 2, PAUSE_S[1])
        return pause_s

    def _has_lasted(self) -> bool:
        return self.is_connected and self._joined_at is not None and self._now_s() - self._joined_at >= STEADY_S

    def _say_connected(self) -> None:
        if self.is_lost:
            logger.info(f"combos: the shared state at {self._label} is back")
        elif not self._was_connected:
            logger.info(f"combos: state is shared at {self._label}")
        self.is_lost, self._was_connected = False, True

    def _say_lost(self, reason: str) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        logger.warning(
            f"combos: the shared state at {self._label} is out of reach: {reason};"
            " every proxy goes on with its own until it is back"
        )
