"""How long one try to send may wait: for its connection first, then for the head of the answer.

All tries share one timer of the event loop, and a deadline that moves away costs nothing. A timer of its own for each
try, set, moved and cancelled, is a tenth of what a whole exchange costs.
"""

import asyncio
from types import TracebackType

from combos.engine.commands import Timeouts


class Deadlines:
    """The clocks that run, and the timer that looks at them when the first of them is due."""

    def __init__(self) -> None:
        self._running: set[Clock] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, clock: "Clock") -> None:
        """Look at this clock when it is due."""
        self._running.add(clock)
        self.nearer(clock)

    def nearer(self, clock: "Clock") -> None:
        """The clock may be due before all others now."""
        if self._timer is None or clock.at < self._timer.when():
            self._stop()
            self._timer = clock.loop.call_at(clock.at, self._look, clock.loop)

    def discard(self, clock: "Clock") -> None:
        """Forget a clock. The timer stays: the next clock needs it."""
        self._running.discard(clock)

    def close(self) -> None:
        """The time of every try is up."""
        self._stop()
        running, self._running = self._running, set()
        for clock in running:
            clock.expire()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for clock in [clock for clock in self._running if clock.at <= now]:
            self._running.discard(clock)
            clock.expire()
        if self._running:
            self._timer = loop.call_at(min(clock.at for clock in self._running), self._look, loop)


class Clock:
    """The limits of one try, as a context of the task that waits. A try that takes too long ends with `TimeoutError`.

    Cancels the task as `asyncio.timeout` does, and tells its own cancellation from others in the same way.
    """

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_head_s", "_over", "_task", "at", "loop")

    def __init__(self, deadlines: Deadlines, timeouts: Timeouts) -> None:
        self.loop = asyncio.get_running_loop()
        self.at = self.loop.time() + timeouts.connect_ms / 1000
        self._deadlines = deadlines
        self._head_s = timeouts.head_ms / 1000
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._expired = False
        self._over = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a try to send needs a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._deadlines.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._deadlines.discard(self)
        task, self._task = self._task, None
        if not self._expired or task is None:
            return
        is_ours = task.uncancel() <= self._cancelling
        if is_ours and isinstance(exc, asyncio.CancelledError):
            raise TimeoutError from exc

    def restart(self) -> None:
        """From now on the head may take its full time. Does nothing when the wait is over."""
        if not self._over and not self._expired:
            self.at = self.loop.time() + self._head_s
            self._deadlines.nearer(self)

    def expire(self) -> None:
        """The time is up."""
        self._expired = True
        if self._task is not None:
            self._task.cancel()
