"""Where a turn's events come from: every kind of source, and several at once."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from combos.core.facts import TransportFault
from combos.core.pools import PoolKind, PoolNote
from combos.engine.events import ChunkReceived, Decided, Ended, Event, Failed, HeadReceived, WaitOver
from combos.engine.record import DecisionRecord
from combos.mitm.sources import CannedSource, DecisionSource, ExchangeSource, Source, Sources, TimerSource
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream
from exchanges import PATIENT, outbound
from rawserver import (
    ClientGone,
    Close,
    Expect,
    RawServer,
    Reset,
    Send,
    Step,
    chunk,
    event_head,
    event_stream,
    head,
    response,
)

LOST = UpstreamFault(TransportFault.RESET, "gone")


class Answer:
    """An upstream answer of these pieces; an exception among them is raised."""

    status = 200
    headers = ((b"a", b"b"),)
    pool = PoolNote(PoolKind.API_KEYS, "k1")

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = list(pieces)
        self.closed = 0
        self.limits: list[tuple[int, int | None]] = []

    async def read_some(self) -> bytes:
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    def limit(self, idle_ms: int, total_ms: int | None) -> None:
        self.limits.append((idle_ms, total_ms))

    def close(self) -> None:
        self.closed += 1


def opening(answer: Any) -> Any:
    async def open_answer() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return open_answer


async def all_of(source: Source) -> list[Event]:
    events = []
    while not source.is_spent:
        events.append(await source.next())
    return events


async def test_an_exchange() -> None:
    source = ExchangeSource(3, opening(Answer(b"one", b"two", b"")))
    head = HeadReceived(3, 200, ((b"a", b"b"),), Answer.pool)
    assert await all_of(source) == [head, ChunkReceived(3, b"one"), ChunkReceived(3, b"two"), Ended(3)]


@pytest.mark.parametrize("answer", [LOST, Answer(LOST)], ids=["before the head", "after it"])
async def test_an_exchange_that_breaks(answer: Any) -> None:
    events = await all_of(ExchangeSource(0, opening(answer)))
    assert events[-1] == Failed(0, TransportFault.RESET)
    assert not [event for event in events if isinstance(event, Ended)]


async def test_limits_and_closing_reach_the_answer_once_there_is_one() -> None:
    answer = Answer(b"")
    source = ExchangeSource(0, opening(answer))
    source.limit(1, 2)
    await source.next()
    source.limit(5, None)
    source.close()
    assert (answer.limits, answer.closed, source.is_spent) == ([(5, None)], 1, True)


async def test_closing_before_there_is_an_answer() -> None:
    source = ExchangeSource(0, opening(Answer()))
    source.close()
    assert source.is_spent


async def test_canned_answers() -> None:
    answered = await all_of(CannedSource(1, (418, ((b"a", b"b"),), b"body")))
    assert answered == [HeadReceived(1, 418, ((b"a", b"b"),)), ChunkReceived(1, b"body"), Ended(1)]
    assert await all_of(CannedSource(1, (204, (), b""))) == [HeadReceived(1, 204, ()), Ended(1)]
    assert await all_of(CannedSource(1, None)) == [Failed(1, TransportFault.CLOSED)]
    closed = CannedSource(1, None)
    closed.close()
    assert closed.is_spent


async def test_a_decision() -> None:
    record = DecisionRecord("typesafe", "apply", "alpha", "m", None, 5)

    async def decide() -> DecisionRecord:
        return record

    assert await all_of(DecisionSource(decide)) == [Decided(record)]


async def test_a_decision_that_nobody_waits_for_is_cancelled() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def decide() -> DecisionRecord:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    sources = Sources()
    sources.add("decision", DecisionSource(decide))
    sources.add("timer", TimerSource(1, 60_000))
    waiting = asyncio.create_task(sources.next())
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    sources.close()
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_a_timer_runs_from_its_making() -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    timer = TimerSource(7, 20)
    assert await all_of(timer) == [WaitOver(7)]
    assert loop.time() - begun >= 0.02
    late = TimerSource(8, 0)
    assert await late.next() == WaitOver(8)


class Gated:
    """A source whose one event comes when it is told."""

    def __init__(self, event: Event) -> None:
        self.is_spent = False
        self.gate = asyncio.Event()
        self.closed = False
        self.cancelled = False
        self._event = event

    async def next(self) -> Event:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        self.is_spent = True
        return self._event

    def close(self) -> None:
        self.closed = True


async def soon(awaitable: Awaitable[Event]) -> Event:
    return await asyncio.wait_for(awaitable, 5)


async def test_of_several_sources_none_loses_an_event() -> None:
    sources = Sources()
    gated = [Gated(WaitOver(number)) for number in range(3)]
    for number, source in enumerate(gated):
        sources.add(number, source)
    gated[1].gate.set()
    assert await soon(sources.next()) == WaitOver(1)
    gated[0].gate.set()
    gated[2].gate.set()
    assert {await soon(sources.next()), await soon(sources.next())} == {WaitOver(0), WaitOver(2)}
    with pytest.raises(RuntimeError):
        await sources.next()


async def test_a_source_added_while_another_is_awaited_is_heard() -> None:
    sources = Sources()
    first, second = Gated(WaitOver(1)), Gated(WaitOver(2))
    sources.add("a", first)
    sources.add("b", second)
    second.gate.set()
    assert await soon(sources.next()) == WaitOver(2)
    third = Gated(WaitOver(3))
    sources.add("c", third)
    third.gate.set()
    assert await soon(sources.next()) == WaitOver(3)
    assert sources.get("a") is first
    assert sources.get("b") is None
    first.gate.set()
    assert await soon(sources.next()) == WaitOver(1)


async def test_one_source_alone_needs_no_task() -> None:
    sources = Sources()
    gated = Gated(WaitOver(1))
    gated.gate.set()
    sources.add("a", gated)
    before = asyncio.all_tasks()
    assert await sources.next() == WaitOver(1)
    assert asyncio.all_tasks() == before
    assert sources.get("a") is None, "it has said its last word"
    with pytest.raises(RuntimeError):
        await sources.next()


async def test_one_source_that_is_left_over_is_heard_beside_one_that_is_spent() -> None:
    sources = Sources()
    spent, left = Gated(WaitOver(1)), Gated(WaitOver(2))
    spent.gate.set()
    sources.add("a", spent)
    assert await sources.next() == WaitOver(1)
    sources.add("b", left)
    left.gate.set()
    assert await soon(sources.next()) == WaitOver(2)


async def test_dropping_closes_and_cancels() -> None:
    sources = Sources()
    first, second = Gated(WaitOver(1)), Gated(WaitOver(2))
    sources.add("a", first)
    sources.add("b", second)
    second.gate.set()
    await soon(sources.next())
    sources.drop("a")
    sources.drop("never there")
    await asyncio.sleep(0)
    assert first.closed
    assert first.cancelled
    assert sources.get("a") is None


async def test_closing_drops_all() -> None:
    sources = Sources()
    gated = [Gated(WaitOver(number)) for number in range(2)]
    for number, source in enumerate(gated):
        sources.add(number, source)
    waiting = asyncio.create_task(sources.next())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    sources.close()
    await asyncio.sleep(0)
    assert all(source.closed for source in gated)


# -- what can be had without waiting

ANSWERS: dict[str, list[Step]] = {
    "whole": [Send(response(200, b"{}"))],
    "whole, in pieces": [Send(response(200, b"x" * 5_000), 700)],
    "without a body": [Send(response(204, b""))],
    "stream": [Send(event_stream(b"data: 1\n\n", b"data: 2\n\n"))],
    "stream, byte by byte": [Send(event_stream(b"data: 1\n\n", b"data: 2\n\n"), 1)],
    "until it is closed": [Send(head(200) + b"12345"), Close()],
    "cut short": [Send(head(200, [(b"Content-Length", b"10")]) + b"12345"), Close()],
    "a broken chunk": [Send(event_head() + chunk(b"1") + b"zz\r\n"), ClientGone()],
    "reset": [Send(event_head() + chunk(b"1")), Reset()],
    "no answer": [Close()],
    "a failure": [Send(response(503, b"no"))],
}


async def played(script: list[Step], *, waits: bool) -> tuple[list[Event], bytes]:
    """The events of one exchange, the bytes apart; `waits`: nothing is asked for before it is waited for."""
    upstream, sources = Upstream(), Sources()
    events: list[Event] = []
    body = b""
    async with RawServer([Expect(), *script]) as server:
        request = outbound(server.url)
        sources.add(0, ExchangeSource(0, lambda: upstream.send(request, PATIENT)))
        while not events or not isinstance(events[-1], Ended | Failed):
            event = (None if waits else sources.ready()) or await soon(sources.next())
            if isinstance(event, ChunkReceived):
                body += event.data
            else:
                events.append(event)
        sources.close()
        await upstream.close()
    return events, body


@pytest.mark.parametrize("script", ANSWERS.values(), ids=ANSWERS)
async def test_what_is_ready_is_what_would_have_been_waited_for(script: list[Step]) -> None:
    assert await played(script, waits=False) == await played(script, waits=True)


async def test_a_short_answer_is_ready_with_its_head() -> None:
    upstream, sources = Upstream(), Sources()
    async with RawServer([Expect(), Send(response(200, b"{}"))]) as server:
        request = outbound(server.url)
        sources.add(0, ExchangeSource(0, lambda: upstream.send(request, PATIENT)))
        assert sources.ready() is None
        assert isinstance(await soon(sources.next()), HeadReceived)
        assert [sources.ready() for _ in range(3)] == [ChunkReceived(0, b"{}"), Ended(0), None]
        await upstream.close()


async def test_nothing_is_ready_while_somebody_else_may_be_heard_first() -> None:
    upstream, sources = Upstream(), Sources()
    async with RawServer([Expect(), Send(response(200, b"{}"))]) as server:
        request = outbound(server.url)
        sources.add(0, ExchangeSource(0, lambda: upstream.send(request, PATIENT)))
        await soon(sources.next())
        sources.add("timer", TimerSource(1, 60_000))
        assert sources.ready() is None
        assert await soon(sources.next()) == ChunkReceived(0, b"{}")
        sources.close()
        await upstream.close()
