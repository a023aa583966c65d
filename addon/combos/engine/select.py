"""Choosing the next target of a combo: who is eligible, who stands back, and how long it is worth waiting.

The steps of the functional spec's "Last-resort targets", with one wait budget per selection attempt. It sleeps by
yielding milliseconds and never sends anything.
"""

import copy
from collections.abc import Callable, Collection, Container, Generator, Sequence
from functools import cache
from typing import Protocol

from combos.core.config_combo import Affinity, Strategy
from combos.core.eligibility import AT_REST, RULES, Reason, Rule, reason_out, standing_reason
from combos.core.facts import Now
from combos.core.registry import Combo, ComboRoute, Provider, Target
from combos.core.strategies import Evidence, RotationState, choose
from combos.core.values import dataclass
from combos.engine.record import DecisionRecord
from combos.engine.request import TurnRequest, never_spent
from combos.engine.state import EngineState, PickedFrom
from combos.wire.request import has_unreadable_task


@dataclass(frozen=True, slots=True)
class Choice:
    """What a decision chose besides the target: its effort, None for a target without a choice of effort."""

    effort: str | None


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen target and where it was picked from; None for the one target of a direct route.

    `choice` is there when a decision chose the target: it replaces the caller's effort and the combo's defaults.
    """

    target: Target
    origin: PickedFrom | None
    choice: Choice | None = None


class Speaker(Protocol):
    """Who knows whether the request can be said to a target. `is_open`: only `problem` can tell, at a cost."""

    def known_problem(self, target: Target, now: Now, /) -> object | None: ...

    def is_open(self, target: Target, now: Now, /) -> bool: ...

    def problem(self, pick: Pick, now: Now, /) -> object | None: ...


type Selection = Generator[int, Now, Pick | None]
"""Yields milliseconds to sleep, takes the instant of waking, returns the pick."""


@dataclass(slots=True)
class Selector:
    """Selection for one request. `origin` moves on to the registry in force whenever the request has slept."""

    request: TurnRequest
    state: EngineState
    origin: PickedFrom
    speaker: Speaker
    encrypted: bool

    def select(self, tried: Collection[str], now: Now) -> Selection:
        """One selection attempt among the targets that are not in `tried`."""
        combo = self.origin.combo
        budget = combo.config.wait_for_cooldown_ms
        if combo.normal is not combo.targets:
            pick = self._pick(combo.normal, tried, now)
            rest = None if pick else self._earliest(combo.normal, tried, now)
            if rest is not None and rest <= budget:
                now = yield rest
                budget -= rest
                if not self._reread():
                    return None
                pick = self._pick(self.origin.combo.normal, tried, now)
            if pick:
                return pick
        pick = self._pick(self.origin.combo.targets, tried, now)
        if pick or budget <= 0:
            return pick
        rest = self._earliest(self.origin.combo.targets, tried, now)
        if rest is None or rest > budget:
            return None
        now = yield rest
        return self._pick_at_once(tried, now) if self._reread() else None

    def first(self, tried: Collection[str], now: Now) -> Pick | None:
        """The pick where one target comes before all others and may be asked: what `select` would give without a
        wait. None: that has to be asked."""
        target = self.origin.combo.first
        return None if target is None else self._first((target,), tried, now)

    def decided(self, decision: DecisionRecord, now: Now) -> Selection:
        """The target that a decision chose, among the targets as configured now; else an ordinary selection."""
        if not self._reread():
            return None
        for target in self.eligible(now):
            if target.key == decision.target:
                return Pick(target, self.origin, Choice(decision.effort))
        return (yield from self.select((), now))

    def eligible(self, now: Now) -> tuple[Target, ...]:
        """Every target that may be asked now, in configuration order, last resorts included."""
        return tuple(target for target in self._eligible(self.origin.combo.targets, (), now) if self._says(target, now))

    def at_once(self, tried: Collection[str], now: Now) -> Pick | None:
        """A pick without waiting, last resorts deferred."""
        return self._pick_at_once(tried, now)

    def has_other(self, tried: Collection[str], now: Now) -> bool:
        """Whether a pick without waiting would find a target; changes nothing."""
        return any(self._says(target, now) for target in self._eligible(self.origin.combo.targets, tried, now))

    def readers(self, now: Now) -> list[Target]:
        """The targets that could be asked if the task were not encrypted."""
        asked = _Asked(self, (), now, encrypted=False)
        return [target for target in self.origin.combo.targets if reason_out(target, asked) is None]

    def reasons(self, tried: Collection[str], now: Now) -> dict[str, str | None]:
        """Per target key the reason why it is out, None for an eligible one."""
        asked = _Asked(self, tried, now, self.encrypted)
        reasons = {target.key: reason_out(target, asked) for target in self.origin.combo.targets}
        for target in self.origin.combo.targets:
            if reasons[target.key] not in _UNASKED and not self._says(target, now):
                reasons[target.key] = Reason.UNSUPPORTED
        return reasons

    def _pick_at_once(self, tried: Collection[str], now: Now) -> Pick | None:
        combo = self.origin.combo
        pick = self._pick(combo.normal, tried, now) if combo.normal is not combo.targets else None
        return pick or self._pick(combo.targets, tried, now)

    def _pick(self, targets: Sequence[Target], tried: Collection[str], now: Now) -> Pick | None:
        if self.origin.combo.is_in_order:
            return self._first(targets, tried, now)
        eligible = self._eligible(targets, tried, now)
        draw = self.request.draw
        while eligible:
            if any(self.speaker.is_open(target, now) for target in eligible):
                draw = cache(self.request.draw)
                likely = self._choose(eligible, draw, copy.deepcopy(self.state.rotation(self.origin)), now)
                if not self._says(likely, now):
                    eligible.remove(likely)
                    continue
            return Pick(self._choose(eligible, draw, self.state.choice_rotation(self.origin), now), self.origin)
        return None

    def _first(self, targets: Sequence[Target], tried: Collection[str], now: Now) -> Pick | None:
        asked, rules = _Asked(self, tried, now, self.encrypted), self._rules(tried)
        for target in targets:
            is_out = reason_out(target, asked, rules) is not None
            if not is_out and (not self.speaker.is_open(target, now) or self._says(target, now)):
                return Pick(target, self.origin)
        return None

    def _rules(self, tried: Collection[str]) -> tuple[Rule, ...]:
        """The rules of eligibility that can give a reason as things are."""
        request = self.request
        if tried or self.encrypted or request.spent is not never_spent or request.current().config.budgets.are_set:
            return RULES
        return AT_REST if self.state.is_at_rest else RULES

    def _says(self, target: Target, now: Now) -> bool:
        return self.speaker.problem(Pick(target, self.origin), now) is None

    def _affine(self, eligible: Sequence[Target], now: Now) -> Target | None:
        if self.origin.combo.config.affinity is not Affinity.CONVERSATION:
            return None
        bound = self.state.bound_target(self.origin.combo, self.request.lane_key, now)
        return next((target for target in eligible if target.key == bound), None)

    def _choose(
        self, eligible: Sequence[Target], draw: Callable[[], float], rotation: RotationState, now: Now
    ) -> Target:
        bound = self._affine(eligible, now)
        if bound is not None:
            return bound
        evidence = Evidence(draw, reset_of(self.request, self.state, now))
        return choose(self.origin.combo.config.strategy, eligible, rotation, evidence)

    def _eligible(self, targets: Sequence[Target], tried: Collection[str], now: Now) -> list[Target]:
        asked, rules = _Asked(self, tried, now, self.encrypted), self._rules(tried)
        return [target for target in targets if reason_out(target, asked, rules) is None]

    def _earliest(self, targets: Sequence[Target], tried: Collection[str], now: Now) -> int | None:
        asked = _Asked(self, tried, now, self.encrypted)
        rests = [
            rest
            for target in targets
            if standing_reason(target, asked) is None
            and (rest := asked.cooling_ms(target)) > 0
            and self._says(target, now)
        ]
        return min(rests, default=None)

    def _reread(self) -> bool:
        """Move to the combo as configured now; False when it is gone."""
        registry = self.request.current()
        combo: Combo | None = registry.combos.get(self.origin.combo.id)
        if combo is None:
            return False
        self.origin = PickedFrom(combo, registry.generation)
        return True


def selector_for(request: TurnRequest, state: EngineState, speaker: Speaker) -> Selector | None:
    """What chooses the targets of a request; None where there is nothing to choose."""
    route = request.route
    if not isinstance(route, ComboRoute):
        return None
    origin = PickedFrom(route.combo, request.registry.generation)
    return Selector(request, state, origin, speaker, has_unreadable_task(request.facts))


@dataclass(slots=True)
class _Asked:
    """What the rules of eligibility ask about a request, at one instant of its selection."""

    selector: Selector
    tried: Container[str]
    now: Now
    encrypted: bool

    def can_speak(self, target: Target, /) -> bool:
        return self.selector.speaker.known_problem(target, self.now) is None

    def unusable(self, provider: Provider, /) -> str | None:
        return self.selector.request.unusable(provider)

    def spent(self, target: Target, /) -> bool:
        return self.selector.request.spent(target) or self.selector.state.quota.spent(target, self.now)

    def over_budget(self, target: Target, /) -> bool:
        selector = self.selector
        return over_budget(selector.request, selector.state, selector.origin.combo.id, self.now)(target)

    def cooling_ms(self, target: Target, /) -> int:
        return self.selector.state.cooling_ms(self.selector.origin.combo, target, self.now)


# With these nothing is said to a target, or the request is known to be beyond it.
_UNASKED = (
    Reason.PROVIDER_MISSING,
    Reason.PROVIDER_DISABLED,
    Reason.DECISION_ONLY,
    Reason.UNSUPPORTED,
    Reason.ENCRYPTED_TASK,
)


def over_budget(request: TurnRequest, state: EngineState, combo: str | None, now: Now) -> Callable[[Target], bool]:
    """Whether a budget as configured now keeps a target out of a request for a combo (None: of a direct route)."""
    budgets = request.current().config.budgets
    return lambda target: state.spending.over(budgets, target.provider_name, combo, now.epoch_ms)


def reset_of(request: TurnRequest, state: EngineState, now: Now) -> Callable[[Target], int | None]:
    """When a target's quota begins anew (epoch ms): what the host knows, else what the state holds."""

    def reset_at(target: Target) -> int | None:
        known = request.reset_at(target)
        return state.quota.reset_at(target, now) if known is None else known

    return reset_at


def has_sibling(pick: Pick, tried: Collection[str]) -> bool:
    """Whether a failover combo has another target at the pick's provider that was not asked yet."""
    provider = pick.target.provider_name
    if pick.origin is None or provider not in pick.origin.combo.shared:
        return False
    if pick.origin.combo.config.strategy is not Strategy.FAILOVER:
        return False
    return any(other.provider_name == provider and other.key not in tried for other in pick.origin.combo.targets)


def only_unsupported(reasons: dict[str, str | None]) -> bool:
    """Whether the wire format alone excludes every target that is configured and enabled."""
    absent = {Reason.PROVIDER_MISSING, Reason.PROVIDER_DISABLED, Reason.DECISION_ONLY}
    rest = {reason for reason in reasons.values() if reason not in absent}
    return rest == {Reason.UNSUPPORTED}
