"""Which of the eligible targets a request goes to, by the combo's strategy.

Pure functions over the eligible targets in configuration order and a small explicit state; the caller brings the
random number and the quota evidence. Who is eligible, and that a last resort stands back, is decided before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from combos.core.config_combo import Strategy
from combos.core.registry import Target


@dataclass(slots=True)
class RotationState:
    """What selection remembers of one combo: the active round-robin selection and its successes, the smooth weights
    of its targets, and the successes of each target since the process started."""

    active: str | None = None
    served: int = 0
    weights: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def succeeded(self, key: str, sticky_limit: int) -> None:
        """Count a turn that ended well; the active selection is released after `sticky_limit` of them."""
        self.counts[key] = self.counts.get(key, 0) + 1
        if key == self.active:
            self.served += 1
            if self.served >= sticky_limit:
                self.release(key)

    def release(self, key: str) -> None:
        """End the batch of `key` if it is the active selection; any hop does that."""
        if key == self.active:
            self.active = None
            self.served = 0

    def keep(self, keys: Iterable[str]) -> None:
        """Forget targets that are no longer configured."""
        kept = set(keys)
        if self.active not in kept:
            self.active = None
            self.served = 0
        self.weights = {key: weight for key, weight in self.weights.items() if key in kept}
        self.counts = {key: count for key, count in self.counts.items() if key in kept}


class Evidence(NamedTuple):
    """What a draw may look at besides the targets: a float in [0, 1) on demand, and the epoch ms of a quota reset."""

    draw: Callable[[], float]
    reset_at: Callable[[Target], int | None]


def choose(strategy: Strategy, eligible: Sequence[Target], state: RotationState, evidence: Evidence) -> Target:
    """One of `eligible`, which is not empty and in configuration order."""
    match strategy:
        case Strategy.ROUND_ROBIN:
            return round_robin(eligible, state)
        case Strategy.RANDOM:
            return weighted(eligible, evidence.draw())
        case Strategy.LEAST_USED:
            return least_used(eligible, state)
        case Strategy.RESET_WINDOW:
            return soonest_reset(eligible, evidence.reset_at)
        case _:  # failover, and jev for every pick that no decision has settled
            return eligible[0]


def round_robin(eligible: Sequence[Target], state: RotationState) -> Target:
    """Smooth weighted round-robin: the active selection while its batch lasts, else everybody gains its weight, the
    richest is selected (ties: configuration order) and pays the sum."""
    if state.active is not None:
        for target in eligible:
            if target.key == state.active:
                return target
    weights = state.weights
    total = 0
    best = eligible[0]
    best_weight: int | None = None
    for target in eligible:
        total += target.weight
        weight = weights[target.key] = weights.get(target.key, 0) + target.weight
        if best_weight is None or weight > best_weight:
            best, best_weight = target, weight
    weights[best.key] -= total
    state.active = best.key
    state.served = 0
    return best


def weighted(eligible: Sequence[Target], draw: float) -> Target:
    """The target in whose share of the summed weights `draw` (in [0, 1)) falls."""
    point = draw * sum(target.weight for target in eligible)
    for target in eligible:
        point -= target.weight
        if point < 0:
            return target
    return eligible[-1]


def least_used(eligible: Sequence[Target], state: RotationState) -> Target:
    """The target with the fewest successes; ties keep configuration order."""
    counts = state.counts
    return min(eligible, key=lambda target: counts.get(target.key, 0))


def soonest_reset(eligible: Sequence[Target], reset_at: Callable[[Target], int | None]) -> Target:
    """The target whose quota resets first; those without evidence, and ties, keep configuration order."""
    best = eligible[0]
    best_at: int | None = None
    for target in eligible:
        at = reset_at(target)
        if at is not None and (best_at is None or at < best_at):
            best, best_at = target, at
    return best
