"""One client request from arrival to end: chooses targets, sends, holds back, commits, relays, replies, hops.

Events in, commands out, in the order in which they are to be done. It holds no socket, no clock and no lock; what a
failure means is decided by `core.failures`, who is eligible by `engine.select`, what an answer is by `engine.attempt`,
and how it is given by `engine.delivery`.
"""

from collections.abc import Callable, Collection
from functools import partial

from combos.core import errors
from combos.core.config_combo import Strategy
from combos.core.facts import Now, Surface, TransportFault
from combos.core.registry import DirectRoute
from combos.engine import answers, gates
from combos.engine.accounting import Accounting
from combos.engine.attempt import Attempt, AttemptEvent
from combos.engine.budget import Denial, SendBudget, SendKind
from combos.engine.commands import Command, Decide, Limit, Relay, Send, Wait
from combos.engine.delivery import Delivery, ends_well
from combos.engine.events import OF_ATTEMPT, ChunkReceived, ClientGone, Decided, Ended, Event, Failed, Started, WaitOver
from combos.engine.outbound import outbound_request, timeouts_for
from combos.engine.record import AttemptRecord, DecisionRecord, Outcome, TurnRecord
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.select import Pick, Selection, has_sibling, selector_for
from combos.engine.speech import Speech
from combos.engine.state import EngineState
from combos.engine.steps import Answered, Given, Live, Ready, Refused, Whole
from combos.engine.voice import Voice
from combos.wire.terminal import FailureTerminal, SuccessTerminal


class Turn:
    """The machine of one request. Feed `handle` one event after another, `Started` first, never concurrently."""

    # What most turns never come to.
    _last: tuple[Attempt, Given] | None = None
    _waits = 0
    _asked = False
    _deciding = False
    _given_as: Outcome | None = None

    def __init__(
        self, request: TurnRequest, state: EngineState, options: TurnOptions, budget: SendBudget | None = None
    ) -> None:
        facts = request.facts
        self._request = request
        self._state = state
        self._options = options
        self._auxiliary = auxiliary = facts.surface is Surface.COUNT_TOKENS
        self._speech = speech = Speech(request, state)
        self._selector = selector = selector_for(request, state, speech)
        combo = None if selector is None else selector.origin.combo
        self._budget = budget or SendBudget(1 if combo is None else len(combo.targets))
        self.record = record = TurnRecord(
            facts.model,
            None if combo is None else combo.id,
            0,
            id=request.seed,
            dialect=facts.dialect,
            surface=facts.surface,
        )
        self._client = Delivery(request, record)
        self._accounts = Accounting(request, state, combo is not None and not auxiliary)
        self._tried: set[str] = set()
        self._timers: dict[int, Callable[[Now], None]] = {}

    def handle(self, event: Event, now: Now) -> list[Command]:
        """Take one event; gives the commands to carry out, in order. After `Finish` every event is ignored."""
        client = self._client
        owner = client.owner
        if owner is not None and type(event) is ChunkReceived:
            if event.attempt != owner.ordinal:
                return []
            looks = owner.feed(event.data, now.mono_ms)
            data = client.as_asked(event.data) if owner.voice is None else owner.said
            if looks:
                return self._looked_at(owner, data, now)
            return [Relay(data)] if data else []
        if client.finished:
            return []
        if not isinstance(event, OF_ATTEMPT):
            self._dispatch(event, now)
        elif (attempt := client.flying.get(event.attempt)) is not None:
            if attempt is owner:
                self._owner_ended(attempt, event, now)
            elif (step := attempt.handle(event, now)) is not None:
                self._step(attempt, step, now)
        if client.finished:
            self._timers.clear()  # they refer back to the turn
        return client.take()

    def charge(self, attempt: int) -> Denial | None:
        """Charge one further send of an attempt that is under way, with another credential; or say why not."""
        denial = self._budget.charge()
        if denial is None and attempt < len(self.record.attempts):
            self.record.attempts[attempt].sends += 1
        return denial

    def _looked_at(self, owner: Attempt, data: bytes, now: Now) -> list[Command]:
        """Relay a chunk that showed the stream's terminal, or the last comment of an owner that fell silent."""
        if owner.spoiled and not isinstance(owner.terminal, FailureTerminal):
            self._client.out.append(Relay(data))
            self._owner_spoiled(owner, now)
            return self._client.take()
        if not owner.settled and owner.terminal is not None:
            self._accounts.settle(owner, now)
            self._client.let_end(owner)
        self._accounts.keep(owner, now)
        if data:
            self._client.out.append(Relay(data))
        if owner.is_silent:
            self._owner_failed(owner, TransportFault.IDLE_TIMEOUT, now)
        return self._client.take()

    # -- events

    def _dispatch(self, event: Started | WaitOver | Decided | ClientGone, now: Now) -> None:
        match event:
            case Started():
                self._start(now)
            case WaitOver(wait=wait):
                timer = self._timers.pop(wait, None)
                if timer is not None:
                    timer(now)
            case Decided(record=decision):
                self._decided(decision, now)
            case ClientGone():
                self._client_gone(now)

    def _start(self, now: Now) -> None:
        self.record.started_ms = now.mono_ms
        refusal = gates.refusal(self._request)
        if refusal is not None:
            self._client.refuse(refusal, Outcome.REFUSED, now)
        elif self._selector is not None:
            self._select((), SendKind.FIRST, now)
        elif isinstance(self._request.route, DirectRoute):
            self._start_direct(self._request.route, now)

    def _start_direct(self, route: DirectRoute, now: Now) -> None:
        reason = gates.direct_reason(self._request, self._state, self._speech, route.target, now)
        if reason is None:
            self._chosen(Pick(route.target, None), SendKind.FIRST, now)
            return
        self.record.reason = reason
        self._client.refuse(gates.direct_refusal(self._speech, route.target, reason, now), Outcome.REFUSED, now)

    def _step(self, attempt: Attempt, step: Answered | Ready | Refused | Limit, now: Now) -> None:
        match step:
            case Answered():
                self._answered(attempt, step, now)
            case Ready():
                self._commit(attempt, step, now)
            case Refused():
                self._refused(attempt, step, now)
            case Limit():
                self._client.out.append(step)

    def _client_gone(self, now: Now) -> None:
        owner = self._client.owner
        served = owner if owner is not None and isinstance(owner.terminal, SuccessTerminal) else None
        for attempt in self._client.flying.values():
            if attempt is not served:
                attempt.record.result = attempt.record.result or "cancelled"
        if served is not None:
            self._client.finish(Outcome.SUCCESS, served.status, now)
        else:
            self._client.finish(Outcome.CANCELLED, errors.client_cancelled().status, now)

    # -- choosing and sending

    def _select(self, tried: Collection[str], kind: SendKind, now: Now) -> None:
        selector = self._selector
        pick = None if selector is None else selector.first(tried, now)
        if pick is not None:
            self._chosen(pick, kind, now)
        elif selector is not None:
            self._advance(selector.select(tried, now), kind, None, now)

    def _advance(self, selection: Selection, kind: SendKind, woken: Now | None, now: Now) -> None:
        try:
            rest = next(selection) if woken is None else selection.send(woken)
        except StopIteration as chosen:
            self._chosen(chosen.value, kind, now)
            return
        self._close_refused(now)
        self.record.waits_ms.append(rest)
        self._wait(rest, lambda at: self._advance(selection, kind, at, at))

    def _chosen(self, pick: Pick | None, kind: SendKind, now: Now) -> None:
        if pick is not None and kind is SendKind.FIRST and self._must_ask():
            self._ask(now)
            return
        denial = None if pick is None else self._budget.reserve(kind)
        if pick is not None and denial is None:
            self._close_refused(now)
            self._send(pick, kind, now)
            return
        if denial is not None:
            self.record.reason = f"send budget: {denial}"
        if self._last is not None:
            self._give(self._last, Outcome.EXHAUSTED, now)
        elif denial is not None:
            self._client.refuse(errors.send_budget_exhausted(), Outcome.REFUSED, now)
        else:
            self._unavailable(now)

    # -- deciding

    def _must_ask(self) -> bool:
        """Whether a decision is due: for the first dispatch of a combo with strategy jev, once."""
        selector = self._selector
        decides = selector is not None and selector.origin.combo.config.strategy is Strategy.JEV
        return decides and not self._asked and not self._auxiliary and not self._request.decides

    def _ask(self, now: Now) -> None:
        if self._selector is not None:
            self._asked = self._deciding = True
            origin = self._selector.origin
            registry = self._request.registry
            if registry.generation != origin.generation:
                registry = self._request.current()
            ask = Decide(origin.combo, self._selector.eligible(now), self._request.facts, registry)
            self._client.out.append(ask)

    def _decided(self, decision: DecisionRecord, now: Now) -> None:
        if self._selector is not None and self._deciding:
            self._deciding = False
            self.record.decision = decision
            self._advance(self._selector.decided(decision, now), SendKind.FIRST, None, now)

    def _unavailable(self, now: Now) -> None:
        if self._selector is not None:
            reasons = self._selector.reasons((), now)
            self.record.reason = ", ".join(f"{key}: {reason}" for key, reason in reasons.items())
            error = gates.unavailable(self._speech, self._selector, self._state, reasons, now)
            outcome = Outcome.UNAVAILABLE if error.status == 503 else Outcome.REFUSED
            self._client.refuse(error, outcome, now)

    def _send(self, pick: Pick, kind: SendKind, now: Now) -> None:
        target = pick.target
        ordinal = len(self.record.attempts)
        record = AttemptRecord(ordinal, target.provider_name, target.model, now.mono_ms, dialect=target.dialect)
        words = self._speech.words(pick, ordinal, now)
        record.dropped = words.dropped
        request = outbound_request(self._request, target, words, self._state, now)
        timeouts = timeouts_for(request.provider, self._options)
        voice = None if words.context is None else Voice(words.context, streams=self._request.facts.stream)
        attempt = Attempt(
            pick,
            record,
            self._request,
            self._options,
            inspects=not self._auxiliary,
            idle_ms=timeouts.idle_ms,
            voice=voice,
        )
        self.record.attempts.append(record)
        self._client.flying[ordinal] = attempt
        self._tried.add(target.key)
        self._client.out.append(Send(ordinal, target, request, timeouts, has_sibling(pick, self._tried)))
        self._arm(attempt, kind)

    # -- opt-in timers

    def _arm(self, attempt: Attempt, kind: SendKind) -> None:
        if attempt.pick.origin is None or self._auxiliary:
            return
        config = attempt.pick.origin.combo.config
        if config.first_output_timeout_ms is not None and self._request.facts.stream:
            self._wait(config.first_output_timeout_ms, partial(self._first_output_due, attempt))
        if config.hedge_after_ms is not None and kind is SendKind.FIRST:
            self._wait(config.hedge_after_ms, partial(self._hedge_due, attempt))

    def _wait(self, ms: int, then: Callable[[Now], None]) -> None:
        self._waits += 1
        self._timers[self._waits] = then
        self._client.out.append(Wait(self._waits, ms))

    def _first_output_due(self, attempt: Attempt, now: Now) -> None:
        """Hop from a target that showed no output in time, unless there is nobody else to ask: then it may go on."""
        gone = self._client.owner is not None or attempt.ordinal not in self._client.flying
        if self._selector is None or gone or attempt.is_refusing:
            return
        if len(self._client.flying) > 1 or self._selector.has_other(self._tried, now):
            self._refused(attempt, attempt.no_output_in_time(), now)

    def _hedge_due(self, attempt: Attempt, now: Now) -> None:
        """Ask a second target beside a silent first one; whoever commits first wins."""
        selector = self._selector
        if selector is None or self._client.owner is not None or list(self._client.flying) != [attempt.ordinal]:
            return
        if selector.has_other(self._tried, now) and self._budget.reserve(SendKind.HOP) is None:
            pick = selector.at_once(self._tried, now)
            if pick is not None:
                self._send(pick, SendKind.HOP, now)

    # -- what an attempt turned out to be

    def _commit(self, attempt: Attempt, ready: Ready, now: Now) -> None:
        self._client.commit(attempt, ready.status, ready.headers, ready.held, now)
        self._accounts.given(attempt, now)
        if attempt.has_output:
            attempt.record.first_output_ms = now.mono_ms
        if attempt.terminal is not None:
            self._accounts.settle(attempt, now)
            self._client.let_end(attempt)
        if ready.complete:
            self._close_stream(attempt, now)

    def _answered(self, attempt: Attempt, answered: Answered, now: Now) -> None:
        self.record.committed_ms = attempt.record.first_output_ms = now.mono_ms
        self._accounts.given(attempt, now)
        self._accounts.succeeded(attempt, answered.result, now)
        if answered.completed:
            self._accounts.completed(attempt, now)
        self._client.reply(attempt, answered.whole, Outcome.SUCCESS, now)

    def _refused(self, attempt: Attempt, refused: Refused, now: Now) -> None:
        verdict, recorded = self._accounts.failed(attempt, refused.facts, refused.result, now)
        given = refused.given
        if isinstance(given, Whole) and not self._accounts.counts:
            given = answers.without_policy_refusal(self._request, attempt.pick.target, given, now)
            self.record.reason = "policy refusal" if given is not refused.given else self.record.reason
        self._last = (attempt, given)
        if not verdict.hop or not self._accounts.counts:
            self._give(self._last, Outcome.EXHAUSTED if verdict.hop else Outcome.TERMINAL, now)
        elif len(self._client.flying) > 1:
            self._close_refused(now)
        elif recorded and self._may_retry(attempt):
            self._select((), SendKind.RETRY, now)
        else:
            self._select(self._tried, SendKind.HOP, now)

    def _may_retry(self, attempt: Attempt) -> bool:
        """A single target with a wait budget is asked once more, since there is nobody to fail over to."""
        origin = attempt.pick.origin
        if origin is None or len(self.record.attempts) > 1:
            return False
        return len(origin.combo.targets) == 1 and origin.combo.config.wait_for_cooldown_ms > 0

    def _close_refused(self, now: Now) -> None:
        """Close the refused attempt before another is sent or waited for; keep what can be given without it."""
        if self._last is not None:
            attempt, given = self._last
            self._last = (attempt, given.once if isinstance(given, Live) else given)
            if attempt.ordinal in self._client.flying:
                self._client.drop(attempt, now)

    def _give(self, last: tuple[Attempt, Given], outcome: Outcome, now: Now) -> None:
        attempt, given = last
        provider = attempt.pick.target.provider
        idle_ms = self._options.idle_ms if provider is None else timeouts_for(provider, self._options).idle_ms
        self._given_as = outcome
        self._client.give(attempt, given, outcome, idle_ms, now)

    # -- the end of a committed answer

    def _owner_ended(self, attempt: Attempt, event: AttemptEvent, now: Now) -> None:
        match event:
            case Ended():
                attempt.close()
                self._close_stream(attempt, now)
            case Failed(fault=fault):
                self._owner_failed(attempt, fault, now)

    def _owner_failed(self, attempt: Attempt, fault: TransportFault, now: Now) -> None:
        if not attempt.settled:
            self._accounts.broken(attempt, fault, now)
        if ends_well(attempt.terminal):
            self._client.end_stream(attempt, self._outcome_of(attempt), now)
        else:
            self._client.break_stream(attempt, fault, self._outcome_of(attempt), now)

    def _owner_spoiled(self, attempt: Attempt, now: Now) -> None:
        """What the target goes on to say is no answer in the client's format, as the client has just been told."""
        self._accounts.broken(attempt, TransportFault.MALFORMED, now)
        self._client.end_stream(attempt, Outcome.CUT, now, early=True)

    def _close_stream(self, attempt: Attempt, now: Now) -> None:
        """The exchange ended by itself: cleanly for the client only if it has been told how."""
        if not attempt.settled:
            self._accounts.settle(attempt, now)
        if self._given_as is not None or ends_well(attempt.terminal):
            self._client.end_stream(attempt, self._outcome_of(attempt), now)
            self._accounts.keep(attempt, now)
        else:
            self._client.break_stream(attempt, TransportFault.TRUNCATED, self._outcome_of(attempt), now)

    def _outcome_of(self, attempt: Attempt) -> Outcome:
        if self._given_as is not None:
            return self._given_as
        if attempt.spoiled:
            return Outcome.CUT
        return Outcome.SUCCESS if isinstance(attempt.terminal, SuccessTerminal) else Outcome.CUT
