"""What may wait for how long: a connection that is opened, the head of an answer, the next bytes of its body.

All of them share one timer of the event loop, and a deadline that moves away costs nothing. A timer of its own for each
exchange, set, moved and cancelled, is a tenth of what the whole costs.
"""

import asyncio
import math
from types import TracebackType
from typing import Protocol


class Deadline(Protocol):
    """Something that may wait until `at`, by the clock of the event loop; infinity while it waits for nothing. It may
    move away while it is looked after."""

    at: float

    def expire(self) -> None:
        """The time is up."""


class Deadlines:
    """The deadlines that are looked after, and the timer that looks at them when the first of them is due."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when the timer looks

    def add(self, deadline: Deadline) -> None:
        """Let it expire when it is due. Also to be called when it has come nearer."""
        self._running.add(deadline)
        if self._timer is None or deadline.at < self._due:
            self._stop()
            self._set(asyncio.get_running_loop(), deadline.at)

    def discard(self, deadline: Deadline) -> None:
        """Forget it. The timer stays: the next one needs it."""
        self._running.discard(deadline)

    def close(self) -> None:
        """The time of all is up."""
        self._stop()
        running, self._running = self._running, set()
        for deadline in running:
            deadline.expire()

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self._due = at
        self._timer = loop.call_at(at, self._look, loop)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for deadline in [deadline for deadline in self._running if deadline.at <= now]:
            self._running.discard(deadline)
            deadline.expire()
        nearest = min((deadline.at for deadline in self._running), default=math.inf)
        if nearest < math.inf:
            self._set(loop, nearest)


class Clock:
    """How long the current task may wait, as a context. A wait that takes too long ends with `TimeoutError`.

    Cancels the task as `asyncio.timeout` does, and tells its own cancellation from others in the same way.
    """

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "at")

    def __init__(self, deadlines: Deadlines, ms: int) -> None:
        self.at = asyncio.get_running_loop().time() + ms / 1000
        self._deadlines = deadlines
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("opening a connection needs a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._deadlines.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.discard(self)
        task, self._task = self._task, None
        if not self._expired or task is None:
            return
        is_ours = task.uncancel() <= self._cancelling
        if is_ours and isinstance(exc, asyncio.CancelledError):
            raise TimeoutError from exc

    def expire(self) -> None:
        """The time is up."""
        self._expired = True
        if self._task is not None:
            self._task.cancel()
