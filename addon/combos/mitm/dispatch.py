"""Carries out what a turn asks for: sends, waits, relays, and tells it what comes of it. Decides nothing itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from mitmproxy.http import HTTPFlow

from combos.core import errors
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
from combos.mitm.refusals import refuse_with
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
        """Serve the flow. Leaves no exchange, timer or attempt flow behind, however it ends.

        What goes wrong in here is raised; the client is told of it, unless an answer has begun.
        """
        self._flow, self._writer = flow, writer
        writer.capture_limit = self._recorder.body_limit
        event: Event = Started()
        now = self._services.now()
        try:
            while True:
                commands = self._turn.handle(event, now)
                if commands:
                    await self._carry_out(commands)
                    if self._over:
                        return
                following = None if commands else self._sources.ready()
                if following is None:
                    following = await self._sources.next()
                    now = self._services.now()  # no time has passed before what was ready
                event = following
                self._observe(event)
        except asyncio.CancelledError:
            self._client_gone()
            raise
        except Exception:
            if not writer.started:
                await refuse_with(errors.internal_failure(), self._dialect)(flow, writer)
            raise
        finally:
            self._recorder.abandon()
            self._sources.close()

    async def _carry_out(self, commands: list[Command]) -> None:
        self._commands = iter(commands)
        for command in self._commands:
            if self._head is not None:
                await self._open(command)
                if type(command) is Relay:
                    continue
            # No coroutine for a command that has nothing to wait for: most have not.
            waiting = _CARRIED_OUT[type(command)](self, command)
            if waiting is not None:
                await waiting
        if self._head is not None:
            await self._open(None)

    async def _open(self, following: Command | None) -> None:
        """Send the head, in one round with the bytes that were held back for it."""
        if self._head is not None:
            (status, headers), self._head = self._head, None
            await self._writer.head(status, headers, following.data if isinstance(following, Relay) else b"")

    def _observe(self, event: Event) -> None:
        if type(event) is ChunkReceived:
            self._recorder.chunk(event.attempt, event.data)
        elif type(event) is HeadReceived:
            self._recorder.head(event.attempt, event.status, event.headers)

    # -- commands: each gives what is still to be awaited

    def _relay(self, relay: Relay) -> Awaitable[None]:
        return self._writer.chunk(relay.data)

    def _commit(self, commit: Commit) -> None:
        self._recorder.committed(commit.attempt)
        self._head = (commit.status, self._labelled(commit.headers, commit.attempt))

    def _end(self, _: End) -> Awaitable[None]:
        self._annotate()
        return self._writer.end()

    def _break(self, broken: Break) -> Awaitable[None]:
        self._annotate()
        return _break_off(self._writer, broken.tail, broken.reason)

    def _reply(self, reply: Reply) -> Awaitable[None]:
        self._annotate()
        return self._writer.respond(reply.status, self._labelled(reply.headers, reply.attempt), reply.body)

    def _attempt_ended(self, ended: AttemptEnded) -> Awaitable[None] | None:
        return self._recorder.end(ended.record)

    def _wait(self, wait: Wait) -> None:
        self._sources.add(("wait", wait.wait), TimerSource(wait.wait, wait.ms))

    def _discard(self, discard: Discard) -> None:
        self._sources.drop(discard.attempt)

    def _decide(self, decide: Decide) -> None:
        self._sources.add("decision", DecisionSource(lambda: self._services.decide(decide)))

    def _limit(self, limit: Limit) -> None:
        source = self._sources.get(limit.attempt)
        if isinstance(source, ExchangeSource):
            source.limit(limit.idle_ms, limit.total_ms)

    def _send(self, send: Send) -> Awaitable[None] | None:
        outgoing = Outgoing(send.request, self._credentials(send.request.provider))
        attempt = self._recorder.begin(send, outgoing, translated=send.target.dialect is not self._dialect)
        if attempt is not None:
            return self._send_shown(send, attempt)
        self._sources.add(send.attempt, self._exchange(send, outgoing))
        return None

    async def _send_shown(self, send: Send, attempt: AttemptFlow) -> None:
        """An attempt that is a flow: other addons may change, answer or kill it before it is sent."""
        await attempt.announce()
        source: Source
        if attempt.is_killed:
            source = CannedSource(send.attempt, None)
        elif (answer := attempt.answered()) is not None:
            source = CannedSource(send.attempt, answer)
        else:
            source = self._exchange(send, attempt.changed())
        self._sources.add(send.attempt, source)

    def _exchange(self, send: Send, outgoing: Outgoing) -> ExchangeSource:
        charge = Charge(send.target.model, lambda: self._turn.charge(send.attempt) is None, send.spares)
        request, secrets = outgoing.request, outgoing.credentials
        return ExchangeSource(
            send.attempt, partial(self._services.upstream.send, request, send.timeouts, secrets, charge)
        )

    def _finish(self, finish: Finish) -> None:
        """Whoever shows flows looks again at the last hook; a flow that was annotated after it has to be shown anew."""
        self._over = True
        changed = not self._annotated and self._annotate()
        self._services.finished(self._flow, finish.record, changed)

    # -- the end

    def _client_gone(self) -> None:
        """Nothing can be awaited any more: note what is to be noted, everything else is closed by `run`.

        A turn that has already ended says nothing more: its last word is then among the commands not yet carried out.
        """
        for command in (*self._commands, *self._turn.handle(ClientGone(), self._services.now())):
            if isinstance(command, Finish):
                self._finish(command)

    def _labelled(self, headers: Headers, attempt: int | None) -> Headers:
        return labelled(headers, self._turn.record, attempt) if self._services.labels() else headers

    def _annotate(self) -> bool:
        """Before the last hook of the flow fires."""
        self._annotated = True
        return marks.annotate(self._flow, self._turn.record)


_CARRIED_OUT: Mapping[type[Command], Callable[[Dispatch, Any], Awaitable[None] | None]] = {
    Relay: Dispatch._relay,
    Commit: Dispatch._commit,
    End: Dispatch._end,
    Break: Dispatch._break,
    Reply: Dispatch._reply,
    Send: Dispatch._send,
    AttemptEnded: Dispatch._attempt_ended,
    Limit: Dispatch._limit,
    Wait: Dispatch._wait,
    Discard: Dispatch._discard,
    Decide: Dispatch._decide,
    Finish: Dispatch._finish,
}


async def _break_off(writer: ResponseWriter, tail: bytes, reason: str) -> None:
    await writer.chunk(tail)
    await writer.error(reason)
