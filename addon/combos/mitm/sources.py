"""Where a turn's events come from: exchanges with targets and timers, awaited together without losing any.

One exchange alone, by far the usual case, is awaited directly; tasks are made only while there is more than one source.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from combos.core.facts import Headers, TransportFault
from combos.engine.events import ChunkReceived, Decided, Ended, Event, Failed, HeadReceived, WaitOver
from combos.engine.record import DecisionRecord
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.upstream.pool import Reading

type Open = Callable[[], Awaitable[Reading]]


class Source(Protocol):
    """Something that events come from, one at a time."""

    @property
    def is_spent(self) -> bool:
        """Whether nothing more comes."""

    def next(self) -> Coroutine[Any, Any, Event]:
        """Wait for the next event."""

    def close(self) -> None:
        """Let go of what the source holds."""


class ExchangeSource:
    """The upstream side of one attempt: a head, chunks, an end; or a failure at any point."""

    def __init__(self, attempt: int, open_answer: Open) -> None:
        self.is_spent = False
        self._attempt = attempt
        self._open = open_answer
        self._answer: Reading | None = None

    async def next(self) -> Event:
        """`HeadReceived`, `ChunkReceived` for whatever arrives, `Ended`; or `Failed`, and nothing after it."""
        try:
            if self._answer is None:
                self._answer = await self._open()
                return HeadReceived(self._attempt, self._answer.status, self._answer.headers, self._answer.pool)
            data = await self._answer.read_some()
        except UpstreamFault as fault:
            return self._failed(fault)
        return self._read(data)

    def ready(self) -> Event | None:
        """The next event, if it can be had without waiting: a short answer arrives with its head."""
        if self.is_spent or not isinstance(self._answer, Answer):
            return None
        try:
            data = self._answer.arrived()
        except UpstreamFault as fault:
            return self._failed(fault)
        return None if data is None else self._read(data)

    def _read(self, data: bytes) -> Event:
        if data:
            return ChunkReceived(self._attempt, data)
        self.is_spent = True
        return Ended(self._attempt)

    def _failed(self, fault: UpstreamFault) -> Event:
        self.is_spent = True
        return Failed(self._attempt, fault.fault)

    def limit(self, idle_ms: int, total_ms: int | None) -> None:
        """Change the time limits of the rest of the answer."""
        if self._answer is not None:
            self._answer.limit(idle_ms, total_ms)

    def close(self) -> None:
        """Close the answer; its connection stays pooled if the body was read to the end."""
        self.is_spent = True
        if self._answer is not None:
            self._answer.close()


class CannedSource:
    """An attempt that another addon answered or killed in its hooks: the target is not contacted."""

    def __init__(self, attempt: int, answer: tuple[int, Headers, bytes] | None) -> None:
        self.is_spent = False
        if answer is None:
            self._events: list[Event] = [Failed(attempt, TransportFault.CLOSED)]
        else:
            status, headers, body = answer
            chunks: list[Event] = [ChunkReceived(attempt, body)] if body else []
            self._events = [HeadReceived(attempt, status, headers), *chunks, Ended(attempt)]

    async def next(self) -> Event:
        """The next of the prepared events."""
        event = self._events.pop(0)
        self.is_spent = not self._events
        return event

    def close(self) -> None:
        """Drop what has not been taken."""
        self.is_spent = True


class DecisionSource:
    """A decision that is being made. Whoever stops waiting for it cancels it."""

    def __init__(self, decide: Callable[[], Awaitable[DecisionRecord]]) -> None:
        self.is_spent = False
        self._decide = decide

    async def next(self) -> Event:
        """`Decided`, whatever came of it."""
        record = await self._decide()
        self.is_spent = True
        return Decided(record)

    def close(self) -> None:
        """Nothing is held."""
        self.is_spent = True


class TimerSource:
    """One timer of the turn."""

    def __init__(self, wait: int, ms: int) -> None:
        self.is_spent = False
        self._wait = wait
        self._at = asyncio.get_running_loop().time() + ms / 1000

    async def next(self) -> Event:
        """`WaitOver` when the time has come."""
        await asyncio.sleep(self._at - asyncio.get_running_loop().time())
        self.is_spent = True
        return WaitOver(self._wait)

    def close(self) -> None:
        """Nothing is held."""
        self.is_spent = True


class Sources:
    """All sources of one turn. An event that has arrived is never lost, however many sources there are."""

    def __init__(self) -> None:
        self._sources: dict[object, Source] = {}
        self._tasks: dict[object, asyncio.Task[Event]] = {}

    def add(self, key: object, source: Source) -> None:
        """Listen to `source` from now on."""
        self._sources[key] = source

    def get(self, key: object) -> Source | None:
        """The source with this key, if it still is one."""
        source = self._sources.get(key)
        return None if source is None or source.is_spent else source

    def drop(self, key: object) -> None:
        """Close a source and forget it; an event it had ready is dropped with it."""
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()
        source = self._sources.pop(key, None)
        if source is not None:
            source.close()

    def close(self) -> None:
        """Drop every source."""
        for key in list(self._sources):
            self.drop(key)

    def ready(self) -> Event | None:
        """The next event, if it can be had without waiting and nobody else could be heard first."""
        if len(self._sources) == 1 and not self._tasks:
            (source,) = self._sources.values()
            if isinstance(source, ExchangeSource):
                return source.ready()
        return None

    def next(self) -> Coroutine[Any, Any, Event]:
        """Wait for the next event of any source. Raises `RuntimeError` when there is none to wait for."""
        if len(self._sources) == 1 and not self._tasks:
            (source,) = self._sources.values()
            if not source.is_spent:
                return source.next()
        return self._first()

    async def _first(self) -> Event:
        for key in [key for key, source in self._sources.items() if source.is_spent and key not in self._tasks]:
            del self._sources[key]
        if not self._sources:
            raise RuntimeError("a turn that is not over waits for nothing")
        for key, source in self._sources.items():
            if key not in self._tasks:
                self._tasks[key] = asyncio.create_task(source.next(), name=f"combos source {key}")
        await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        key = next(key for key, task in self._tasks.items() if task.done())
        return self._tasks.pop(key).result()
