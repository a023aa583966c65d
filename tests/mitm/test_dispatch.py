"""The commands of a turn carried out: what is written, sent, awaited, and closed when the client leaves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, get_args

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import taddons, tflow

from combos.core.facts import Dialect, Headers, Now, TransportFault
from combos.core.registry import build_registry
from combos.engine.commands import (
    AttemptEnded,
    Break,
    Command,
    Commit,
    Discard,
    End,
    Finish,
    Limit,
    OutboundRequest,
    Relay,
    Reply,
    Send,
    Timeouts,
    Wait,
)
from combos.engine.events import ChunkReceived, ClientGone, Ended, Event, Failed, HeadReceived, Started, WaitOver
from combos.engine.record import AttemptRecord, DecisionRecord, Outcome, TurnRecord
from combos.mitm.dispatch import _CARRIED_OUT, Dispatch, Services, clock
from combos.mitm.options import AttemptFlows
from combos.mitm.recorder import Recorder
from combos.upstream.faults import UpstreamFault
from combos.upstream.pool import Charge
from configs import config, document, provider

NOW = Now(1, 2)


class Writer:
    """Notes what the client is sent."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.capture_limit = 0

    @property
    def started(self) -> bool:
        return bool(self.calls)

    async def head(self, status: int, headers: Headers, first: bytes = b"") -> None:
        self.calls.append(("head", status))
        if first:
            await self.chunk(first)

    async def chunk(self, data: bytes) -> None:
        self.calls.append(("chunk", data))

    async def end(self) -> None:
        self.calls.append(("end",))

    async def error(self, message: str) -> None:
        self.calls.append(("error", message))

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        self.calls.append(("respond", status, body))


class Turn:
    """Gives prepared commands for each event, and notes the events."""

    def __init__(self, *steps: list[Command]) -> None:
        self.record = TurnRecord("combo/main", "main", 0, outcome=Outcome.SUCCESS)
        self.events: list[Event] = []
        self.is_over = False
        self._steps = list(steps)

    def handle(self, event: Event, now: Now) -> list[Command]:
        assert now == NOW
        self.events.append(event)
        if self.is_over:
            return []
        if isinstance(event, ClientGone):
            self.record.outcome = Outcome.CANCELLED
            return [Discard(0), AttemptEnded(AttemptRecord(0, "alpha", "m1", 0)), Finish(self.record)]
        commands = self._steps.pop(0) if self._steps else []
        self.is_over = any(isinstance(command, Finish) for command in commands)
        return commands


class Answer:
    def __init__(self, *pieces: bytes, hang: bool = False) -> None:
        self.status, self.headers, self.pool = 200, (), None
        self.closed = asyncio.Event()
        self.reading = asyncio.Event()
        self.limits: list[tuple[int, int | None]] = []
        self._pieces = list(pieces)
        self._hang = hang

    async def read_some(self) -> bytes:
        if not self._pieces and self._hang:
            self.reading.set()
            await asyncio.Event().wait()
        return self._pieces.pop(0) if self._pieces else b""

    def limit(self, idle_ms: int, total_ms: int | None) -> None:
        self.limits.append((idle_ms, total_ms))

    def close(self) -> None:
        self.closed.set()


class Upstream:
    """Gives these answers, one for each request; a fault is raised."""

    def __init__(self, *answers: Answer | UpstreamFault) -> None:
        self.sent: list[tuple[OutboundRequest, Headers]] = []
        self._answers = list(answers)

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers, charge: Charge) -> Answer:
        assert charge.model
        self.sent.append((request, secrets))
        answer = self._answers.pop(0)
        if isinstance(answer, UpstreamFault):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def master() -> Iterator[None]:
    with taddons.context(loadcore=False):
        yield


def send(attempt: int = 0) -> Send:
    registry = build_registry(config(document(providers={"alpha": provider(), "beta": provider()})), 1)
    target = registry.combos["main"].targets[0]
    assert target.provider is not None
    request = OutboundRequest("POST", "https://alpha.example/v1/chat/completions", (), b"{}", target.provider)
    return Send(attempt, target, request, Timeouts(1, 2, 3))


class Run:
    """One dispatch with everything around it replaced."""

    def __init__(self, turn: Turn, upstream: Upstream) -> None:
        self.turn, self.upstream, self.writer = turn, upstream, Writer()
        self.flow = tflow.tflow()
        self.finished: list[tuple[Outcome | None, bool]] = []
        services = Services(upstream, lambda: NOW, self._finished, self._decide)  # type: ignore[arg-type]
        recorder = Recorder(self.flow, AttemptFlows.NONE, 0)
        credentials: Callable[[Any], Headers] = lambda _: ((b"authorization", b"secret"),)  # noqa: E731
        self.dispatch = Dispatch(services, turn, recorder, credentials, Dialect.CHAT)  # type: ignore[arg-type]

    def _finished(self, flow: HTTPFlow, record: TurnRecord, changed: bool) -> None:
        assert flow is self.flow
        self.finished.append((record.outcome, changed))

    async def _decide(self, command: object) -> DecisionRecord:
        raise AssertionError("nothing is to be decided")

    async def __call__(self) -> None:
        await asyncio.wait_for(self.dispatch.run(self.flow, self.writer), 5)  # type: ignore[arg-type]


FINISH = Finish(TurnRecord("combo/main", "main", 0, outcome=Outcome.SUCCESS))


async def test_a_stream_from_start_to_end() -> None:
    answer = Answer(b"one", b"two")
    turn = Turn(
        [send(), Wait(9, 600_000)],
        [Limit(0, 5, 6)],
        [Commit(0, 200, ()), Relay(b"one")],
        [Relay(b"two")],
        [End(), FINISH],
    )
    run = Run(turn, Upstream(answer))
    await run()
    expected = [Started(), HeadReceived(0, 200, ()), ChunkReceived(0, b"one"), ChunkReceived(0, b"two"), Ended(0)]
    assert turn.events == expected
    assert run.writer.calls == [("head", 200), ("chunk", b"one"), ("chunk", b"two"), ("end",)]
    assert answer.limits == [(5, 6)]
    assert run.upstream.sent[0][1] == ((b"authorization", b"secret"),)
    assert run.finished == [(Outcome.SUCCESS, False)]
    assert run.flow.comment


async def test_a_refusal_without_any_target() -> None:
    run = Run(Turn([Reply(404, (), b"no"), FINISH]), Upstream())
    await run()
    assert run.writer.calls == [("respond", 404, b"no")]
    assert run.flow.metadata["combos"]["combo"] == "main"


async def test_a_hop_and_a_break() -> None:
    second = Answer(b"half")
    turn = Turn(
        [send(0)],
        [Discard(0), AttemptEnded(AttemptRecord(0, "alpha", "m1", 0)), send(1)],
        [],
        [Commit(1, 200, ()), Relay(b"half")],
        [Break(b"tail", "connection_reset"), FINISH],
    )
    run = Run(turn, Upstream(UpstreamFault(TransportFault.REFUSED, "nobody"), second))
    await run()
    assert turn.events[1] == Failed(0, TransportFault.REFUSED)
    assert run.writer.calls == [("head", 200), ("chunk", b"half"), ("chunk", b"tail"), ("error", "connection_reset")]


async def test_a_wait() -> None:
    turn = Turn([Wait(4, 1)], [Reply(503, (), b""), FINISH])
    run = Run(turn, Upstream())
    await run()
    assert turn.events == [Started(), WaitOver(4)]


async def test_what_is_discarded_is_closed_and_says_nothing_more() -> None:
    answer = Answer(hang=True)
    turn = Turn([send(), Wait(1, 1)], [], [Discard(0), Reply(503, (), b""), FINISH])
    run = Run(turn, Upstream(answer))
    await run()
    assert answer.closed.is_set()
    assert turn.events[-1] == WaitOver(1)


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[Run, Answer, asyncio.Task[None]]]:
    answer = Answer(hang=True)
    run = Run(Turn([send()]), Upstream(answer))
    task = asyncio.create_task(run())
    await asyncio.wait_for(answer.reading.wait(), 5)
    yield run, answer, task


async def test_a_client_that_leaves_closes_the_exchange() -> None:
    async with hanging() as (run, answer, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert answer.closed.is_set()
        assert run.turn.events[-1] == ClientGone()
        assert run.writer.calls == []
        assert [outcome for outcome, _ in run.finished] == [Outcome.CANCELLED]


@pytest.mark.parametrize(
    ("steps", "call"),
    [
        ([[Reply(503, (), b"no"), FINISH]], "respond"),
        ([[send()], [], [Commit(0, 200, ()), Relay(b"one"), End(), FINISH]], "head"),
        ([[send()], [], [Commit(0, 200, ()), Relay(b"one"), Relay(b"two"), End(), FINISH]], "chunk"),
        ([[send()], [], [Commit(0, 200, ()), Relay(b"one"), End(), FINISH]], "end"),
        ([[send()], [], [Commit(0, 200, ()), Relay(b"one"), Break(b"tail", "reset"), FINISH]], "error"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_client_that_leaves_during_the_last_commands_is_in_the_books(
    steps: list[list[Command]], call: str
) -> None:
    run = Run(Turn(*steps), Upstream(Answer(b"one")))

    async def leaves(*_: object) -> None:
        raise asyncio.CancelledError

    setattr(run.writer, call, leaves)
    with pytest.raises(asyncio.CancelledError):
        await run()
    assert run.finished == [(Outcome.SUCCESS, False)] or run.finished == [(Outcome.SUCCESS, True)]


async def test_nothing_is_left_open_when_the_writer_fails() -> None:
    answer = Answer(b"one", hang=True)
    run = Run(Turn([send()], [], [Commit(0, 200, ()), Relay(b"one")]), Upstream(answer))

    async def fails(data: bytes) -> None:
        raise ValueError("too long")

    run.writer.chunk = fails  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="too long"):
        await run()
    assert answer.closed.is_set()


@pytest.mark.parametrize(
    ("steps", "calls"),
    [
        ([[send()]], ["respond"]),
        ([[send()], [], [Commit(0, 200, ()), Relay(b"one")]], ["head", "chunk"]),
    ],
    ids=["before the head", "after it"],
)
async def test_a_defect_is_told_before_the_head_only(steps: list[list[Command]], calls: list[str]) -> None:
    answer = Answer(b"one", b"two")
    turn = Turn(*steps)
    run = Run(turn, Upstream(answer))
    handle = turn.handle

    def breaks(event: Event, now: Now) -> list[Command]:
        if len(turn.events) == len(steps):
            raise RuntimeError("a secret")
        return handle(event, now)

    turn.handle = breaks  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await run()
    assert [call[0] for call in run.writer.calls] == calls
    assert b"secret" not in repr(run.writer.calls).encode()
    assert answer.closed.is_set()


def test_every_command_can_be_carried_out() -> None:
    assert set(_CARRIED_OUT) == set(get_args(Command.__value__))


def test_the_clock_goes_forward() -> None:
    first, second = clock(), clock()
    assert 0 < first.mono_ms <= second.mono_ms
    assert first.epoch_ms > 1_600_000_000_000
