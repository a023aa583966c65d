"""Carries out what a turn asks for: sends, waits, relays, and tells it what comes of it. Decides nothing itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from mitmproxy.http import HTTPFlow

from combos.core.facts import Dialect, Headers, Now
from combos.core.registry import Provider
from combos.core.values import dataclass
from combos.engine.commands import (
    AttemptEnded,
    Break,
    Command,
    Commit,
    Decide,
    Discard,
    End,
    Finish,
    Limit,
    OutboundRequest,
    Relay,
    Reply,
    Send,
    Wait,
)
from combos.engine.events import ChunkReceived, ClientGone, Event, HeadReceived, Started
from combos.engine.record import DecisionRecord, TurnRecord
from combos.engine.turn import Turn
from combos.mitm import marks
from combos.mitm.attempt_flows import AttemptFlow, Outgoing
from combos.mitm.labels import labelled
from combos.mitm.recorder import Recorder
from combos.mitm.sources import CannedSource, DecisionSource, ExchangeSource, Source, Sources, TimerSource
from combos.mitm.writer import ResponseWriter
from combos.upstream.pool import Charge, PooledUpstream


def clock() -> Now:
    """This instant."""
    return Now(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True)
class Services:
    """What every dispatch shares. `finished` is told the record, and whether the flow's look changed with it; `labels`
    says whether answers tell how they were served."""

    upstream: PooledUpstream
    now: Callable[[], Now]
    finished: Callable[[HTTPFlow, TurnRecord, bool], None]
    decide: Callable[[Decide], Awaitable[DecisionRecord]]
    labels: Callable[[], bool] = lambda: False


class Dispatch:
    """Runs one turn for one flow. The client's leaving arrives as a cancellation of `run`."""

    def __init__(
        self,
        services: Services,
        turn: Turn,
        recorder: Recorder,
        credentials: Callable[[Provider], Headers],
        dialect: Dialect,
    ) -> None:
        self._services = services
        self._turn = turn
        self._recorder = recorder
        self._credentials = credentials
        self._dialect = dialect
        self._sources = Sources()
        self._commands: Iterator[Command] = iter(())
        self._head: tuple[int, Headers] | None = None
        self._annotated = False
        self._over = False

    async def run(self, flow: HTTPFlow, writer: ResponseWriter) -> None:
        """Serve the flow. Leaves no exchange, timer or attempt flow behind, however it ends."""
        try:
            await self._feed(Started(), flow, writer)
            while not self._over:
                event = await self._sources.next()
                self._observe(event)
                await self._feed(event, flow, writer)
        except asyncio.CancelledError:
            self._client_gone(flow)
            raise
        finally:
            self._recorder.abandon()
            self._sources.close()

    async def _feed(self, event: Event, flow: HTTPFlow, writer: ResponseWriter) -> None:
        self._commands = iter(self._turn.handle(event, self._services.now()))
        for command in self._commands:
            if self._head is not None:
                await self._open(writer, command)
                if isinstance(command, Relay):
                    continue
            waiting = self._perform(command, flow, writer)
            if waiting is not None:
                await waiting
        if self._head is not None:
            await self._open(writer, None)

    async def _open(self, writer: ResponseWriter, following: Command | None) -> None:
        """Send the head, in one round with the bytes that were held back for it."""
        if self._head is not None:
            (status, headers), self._head = self._head, None
            await writer.head(status, headers, following.data if isinstance(following, Relay) else b"")

    def _observe(self, event: Event) -> None:
        match event:
            case ChunkReceived(attempt, data):
                self._recorder.chunk(attempt, data)
            case HeadReceived(attempt, status, headers):
                self._recorder.head(attempt, status, headers)

    def _perform(self, command: Command, flow: HTTPFlow, writer: ResponseWriter) -> Awaitable[None] | None:
        """Carry out one command; gives what is still to be awaited. No coroutine of its own: most need none."""
        match command:
            case Relay(data):
                return writer.chunk(data)
            case Send():
                return self._send(command)
            case AttemptEnded(record):
                return self._recorder.end(record)
            case Limit(attempt, idle_ms, total_ms):
                self._limit(attempt, idle_ms, total_ms)
            case Wait(wait, ms):
                self._sources.add(("wait", wait), TimerSource(wait, ms))
            case Discard(attempt):
                self._sources.drop(attempt)
            case Decide():
                self._sources.add("decision", DecisionSource(lambda: self._services.decide(command)))
            case Finish(record):
                self._finish(flow, record)
            case _:
                return self._answer(command, flow, writer)
        return None

    def _answer(
        self, command: Commit | End | Break | Reply, flow: HTTPFlow, writer: ResponseWriter
    ) -> Awaitable[None] | None:
        """The commands that the client sees. The flow is annotated before its last hook fires."""
        if isinstance(command, Commit):
            self._recorder.committed(command.attempt)
            self._head = (command.status, self._labelled(command.headers, command.attempt))
            return None
        self._annotate(flow, self._turn.record)
        match command:
            case End():
                return writer.end()
            case Break(tail, reason):
                return _break_off(writer, tail, reason)
            case Reply(status, headers, body, attempt):
                return writer.respond(status, self._labelled(headers, attempt), body)

    def _labelled(self, headers: Headers, attempt: int | None) -> Headers:
        return labelled(headers, self._turn.record, attempt) if self._services.labels() else headers

    async def _send(self, send: Send) -> None:
        outgoing = Outgoing(send.request, self._credentials(send.request.provider))
        attempt = await self._recorder.begin(send, outgoing, translated=send.target.dialect is not self._dialect)
        self._sources.add(send.attempt, self._source(send, outgoing, attempt))

    def _source(self, send: Send, outgoing: Outgoing, attempt: AttemptFlow | None) -> Source:
        if attempt is not None:
            if attempt.is_killed:
                return CannedSource(send.attempt, None)
            if (answer := attempt.answered()) is not None:
                return CannedSource(send.attempt, answer)
            outgoing = attempt.changed()
        request: OutboundRequest = outgoing.request
        secrets = outgoing.credentials
        charge = Charge(send.target.model, lambda: self._turn.charge(send.attempt) is None, send.spares)
        upstream = self._services.upstream
        return ExchangeSource(send.attempt, lambda: upstream.send(request, send.timeouts, secrets, charge))

    def _limit(self, attempt: int, idle_ms: int, total_ms: int | None) -> None:
        source = self._sources.get(attempt)
        if isinstance(source, ExchangeSource):
            source.limit(idle_ms, total_ms)

    def _client_gone(self, flow: HTTPFlow) -> None:
        """Nothing can be awaited any more: note what is to be noted, everything else is closed by `run`.

        A turn that has already ended says nothing more: its last word is then among the commands not yet carried out.
        """
        for command in (*self._commands, *self._turn.handle(ClientGone(), self._services.now())):
            if isinstance(command, Finish):
                self._finish(flow, command.record)

    def _finish(self, flow: HTTPFlow, record: TurnRecord) -> None:
        """Whoever shows flows looks again at the last hook; a flow that was annotated after it has to be shown anew."""
        self._over = True
        changed = not self._annotated and self._annotate(flow, record)
        self._services.finished(flow, record, changed)

    def _annotate(self, flow: HTTPFlow, record: TurnRecord) -> bool:
        self._annotated = True
        return marks.annotate(flow, record)


async def _break_off(writer: ResponseWriter, tail: bytes, reason: str) -> None:
    await writer.chunk(tail)
    await writer.error(reason)
