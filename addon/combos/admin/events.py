"""What happens, as it happens: numbered events, the latest ones kept, slow listeners dropped behind.

Publishing never waits and never fails. To be used inside one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from combos.core.values import dataclass

KEPT = 256  # what a listener that comes back can still be told
LISTENERS_MAX = 32


type Data = Mapping[str, object] | Callable[[], Mapping[str, object]]
"""What an event says, ready for JSON, or what makes it: most events are never looked at by anybody."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `at` is epoch milliseconds."""

    number: int
    kind: str
    at: int
    told: Data

    @property
    def data(self) -> Mapping[str, object]:
        """What the event says, ready for JSON."""
        return self.told() if callable(self.told) else self.told


class TooManyListenersError(Exception):
    """More listeners than a dashboard and a few scripts could be."""


class Listener:
    """A place in the stream. Falls behind by at most `KEPT` events; older ones are lost to it."""

    def __init__(self, backlog: Iterator[Event], is_gone: Callable[[], bool]) -> None:
        self.is_gone = is_gone
        self._waiting: deque[Event | None] = deque(backlog, maxlen=KEPT)
        self._woken = asyncio.Event()

    def put(self, event: Event | None) -> None:
        """Hand over an event; None is the end."""
        self._waiting.append(event)
        self._woken.set()

    async def next(self) -> Event | None:
        """The next event, or None at the end of the stream."""
        while not self._waiting:
            self._woken.clear()
            await self._woken.wait()
        return self._waiting.popleft()


class EventBus:
    """The stream of one process."""

    def __init__(self) -> None:
        self._number = 0
        self._latest: deque[tuple[str, int, Data]] = deque(maxlen=KEPT)
        self._listeners: set[Listener] = set()

    def publish(self, kind: str, at: int, data: Data) -> None:
        """Tell every listener. What makes the data is called for each who looks, and never if nobody does."""
        self._number += 1
        self._latest.append((kind, at, data))
        if self._listeners:
            event = Event(self._number, kind, at, data)
            for listener in self._listeners:
                listener.put(event)

    @contextmanager
    def listen(self, after: int | None = None, is_gone: Callable[[], bool] = lambda: False) -> Iterator[Listener]:
        """Listen, from the event numbered `after` on if it is still known. Raises `TooManyListenersError`.

        Places of listeners that have gone (`is_gone`) without being noticed are given to others.
        """
        if len(self._listeners) >= LISTENERS_MAX:
            self._drop_gone()
        if len(self._listeners) >= LISTENERS_MAX:
            raise TooManyListenersError
        listener = Listener(self._missed(after), is_gone)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def _missed(self, after: int | None) -> Iterator[Event]:
        if after is not None:
            first = self._number - len(self._latest) + 1
            for number, (kind, at, data) in enumerate(self._latest, first):
                if number > after:
                    yield Event(number, kind, at, data)

    def _drop_gone(self) -> None:
        for listener in [listener for listener in self._listeners if listener.is_gone()]:
            self._listeners.discard(listener)
            listener.put(None)

    def close(self) -> None:
        """End the stream for everybody."""
        for listener in self._listeners:
            listener.put(None)
