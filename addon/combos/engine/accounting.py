"""What an attempt's end means for the state that outlives the request: successes, hops, cooldowns, issued turn state.

Fills the attempt's record on the way. What is sent next, and what the client gets, is decided by the turn.
"""

from dataclasses import dataclass

from combos.core.config_combo import ContextOverflow
from combos.core.cooldown import cooldown_for
from combos.core.facts import Dialect, Now, Scope, TransportFault, Verdict
from combos.core.failure_facts import FailureFacts
from combos.core.failures import CONTEXT_OVERFLOW, classify
from combos.core.pools import spared
from combos.core.recall import Completion
from combos.core.transport import transport_facts
from combos.engine import replay
from combos.engine.attempt import Attempt
from combos.engine.request import TurnRequest
from combos.engine.state import EngineState, PickedFrom
from combos.wire.envelope import stream_failure_facts
from combos.wire.headers import TURN_STATE
from combos.wire.terminal import SuccessTerminal


@dataclass(slots=True)
class Accounting:
    """Bookkeeping of one request. Direct routes and auxiliary endpoints (`counts` False) leave the state alone."""

    request: TurnRequest
    state: EngineState
    counts: bool

    def failed(self, attempt: Attempt, facts: FailureFacts, result: str, now: Now) -> tuple[Verdict, bool]:
        """Record a failure; gives the verdict and whether it stored a cooldown of this very target."""
        verdict = self._classify(attempt, facts)
        record = attempt.record
        record.verdict, record.result = verdict, result
        record.error_code, record.error_message = facts.code, facts.summary
        origin = attempt.pick.origin
        if not self.counts or origin is None or not verdict.hop:
            return verdict, False
        return verdict, self._hop(attempt, origin, verdict, facts, now)

    def succeeded(self, attempt: Attempt, result: str, now: Now) -> None:
        """Record a turn that ended well."""
        attempt.record.result = result
        if self.request.facts.dialect is Dialect.RESPONSES:  # no other goes on by an id
            if attempt.voice is None and attempt.response_id:
                self.state.note_response(attempt.response_id, attempt.pick.target, now)
            self.keep(attempt, now)
        origin = attempt.pick.origin
        if self.counts and origin is not None:
            self.state.succeeded(origin, attempt.pick.target, self.request.lane_key, now)

    def keep(self, attempt: Attempt, now: Now) -> None:
        """Keep the answer for a request that goes on from it, as soon as the client has been told how it ended."""
        replay.keep(self.request, attempt, self.state, now)

    def completed(self, attempt: Attempt, now: Now) -> None:
        """Remember a completed turn for a later compaction on the same lane."""
        origin, lane = attempt.pick.origin, self.request.lane_key
        if self.counts and origin is not None and lane is not None:
            completion = Completion(origin.combo, attempt.pick.target, origin.generation, attempt.record.response_model)
            self.state.completed(self.request.current(), lane, completion, now)

    def settle(self, attempt: Attempt, now: Now) -> None:
        """Account for a committed stream at its terminal, once: before the client's next request can arrive."""
        attempt.settled = True
        match attempt.terminal:
            case SuccessTerminal(kind=kind, empty=empty):
                attempt.note_answer()
                self.succeeded(attempt, "empty" if empty else kind, now)
                if kind == "completed":
                    self.completed(attempt, now)
            case None:
                self.broken(attempt, TransportFault.TRUNCATED, now)
            case failure:
                facts = stream_failure_facts(failure, attempt.headers)
                self.failed(attempt, facts, f"{failure.kind} after output", now)

    def broken(self, attempt: Attempt, fault: TransportFault, now: Now) -> None:
        """Account for a committed stream that broke below HTTP."""
        attempt.settled = True
        self.failed(attempt, transport_facts(fault), f"{fault} after output", now)

    def given(self, attempt: Attempt, now: Now) -> None:
        """An answer reaches the client, and with it state that only this target or its provider can use again."""
        conversation = self.request.conversation
        if conversation is not None and attempt.voice is None and self.request.facts.dialect is not Dialect.CHAT:
            self.state.note_maker(conversation, attempt.pick.target.provider_name, now)
        value = attempt.fields.get(TURN_STATE)
        if value:
            self.state.bind_turn_state(value, attempt.pick.target, now)

    def _classify(self, attempt: Attempt, facts: FailureFacts) -> Verdict:
        verdict = spared(classify(facts), facts.status, attempt.pool)
        origin = attempt.pick.origin
        if verdict.rule == CONTEXT_OVERFLOW and origin is not None:
            return Verdict(verdict.rule, hop=origin.combo.config.context_overflow is ContextOverflow.HOP)
        return verdict

    def _hop(self, attempt: Attempt, origin: PickedFrom, verdict: Verdict, facts: FailureFacts, now: Now) -> bool:
        target = attempt.pick.target
        self.state.hopped(origin, target)
        cooldown = cooldown_for(verdict, facts, cooldown_ms=origin.combo.config.cooldown_ms, now=now)
        if cooldown is None or verdict.scope is Scope.NONE:
            return False
        attempt.record.cooldown = cooldown
        return self.state.cool(origin, target, verdict, cooldown, facts.status, now)
