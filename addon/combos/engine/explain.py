"""What a combo would do now, and why: one row per target, and the target a request would go to.

Reads the same rules and state as a turn and changes neither.
"""

import copy
from collections.abc import Callable

from combos.core.config_combo import Strategy
from combos.core.cooldowns import CooldownKey
from combos.core.eligibility import Constraints, reason_out
from combos.core.facts import Now
from combos.core.registry import Combo, Provider, Registry, Target
from combos.core.strategies import Evidence, RotationState, choose
from combos.core.values import dataclass
from combos.engine.state import EngineState


@dataclass(frozen=True, slots=True)
class TargetExplanation:
    """One target. `reason` is the eligibility rule that excludes it, None when eligible; `cooling_ms` is what is left,
    with the rule, signal and status that set it; `current` is its smooth weight, `is_active` the sticky selection."""

    key: str
    reason: str | None
    cooling_ms: int
    cooldown_rule: str | None
    cooldown_source: str | None
    cooldown_status: int | None
    weight: int
    current: int
    successes: int
    is_active: bool
    is_last_resort: bool
    dialect: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A combo as it stands. `next` is the target of the next request; None when nothing is eligible, and for random
    draws. `batch` counts the successes of the active round-robin selection."""

    combo: str
    generation: int
    strategy: str
    next: str | None
    batch: int
    sticky_limit: int
    retry_after_ms: int | None
    targets: tuple[TargetExplanation, ...]


def explain(
    combo: Combo,
    registry: Registry,
    state: EngineState,
    now: Now,
    *,
    unusable: Callable[[Provider], str | None] = lambda _: None,
    spent: Callable[[Target], bool] = lambda _: False,
    reset_at: Callable[[Target], int | None] = lambda _: None,
    can_speak: Callable[[Target], bool] = lambda _: True,
) -> Explanation:
    """Explain `combo` for a request without special constraints. `unusable`, `spent` and `reset_at` as for a turn:
    beside what the state knows."""
    budgets = registry.config.budgets
    asked = Constraints(
        can_speak,
        encrypted=False,
        unusable=unusable,
        spent=lambda target: spent(target) or state.quota.spent(target, now),
        tried=(),
        cooling_ms=lambda target: state.cooling_ms(combo, target, now),
        over_budget=lambda target: state.spending.over(budgets, target.provider_name, combo.id, now.epoch_ms),
    )

    def evidence(target: Target) -> int | None:
        known = reset_at(target)
        return state.quota.reset_at(target, now) if known is None else known

    rotation = state.peek_rotation(combo.id)
    reasons = {target.key: reason_out(target, asked) for target in combo.targets}
    return Explanation(
        combo=combo.id,
        generation=registry.generation,
        strategy=combo.config.strategy.value,
        next=_next(combo, reasons, rotation, evidence),
        batch=rotation.served,
        sticky_limit=combo.config.sticky_limit,
        retry_after_ms=state.cooldowns.earliest(combo.id, now.mono_ms),
        targets=tuple(_row(combo, target, reasons[target.key], state, rotation, now) for target in combo.targets),
    )


def _next(
    combo: Combo,
    reasons: dict[str, str | None],
    rotation: RotationState,
    reset_at: Callable[[Target], int | None],
) -> str | None:
    eligible = [target for target in combo.targets if reasons[target.key] is None]
    eligible = [target for target in eligible if target in combo.normal] or eligible
    if not eligible or (combo.config.strategy is Strategy.RANDOM and len(eligible) > 1):
        return None
    evidence = Evidence(lambda: 0.0, reset_at)
    return choose(combo.config.strategy, eligible, copy.deepcopy(rotation), evidence).key


def _row(
    combo: Combo, target: Target, reason: str | None, state: EngineState, rotation: RotationState, now: Now
) -> TargetExplanation:
    entry = state.cooldowns.get(CooldownKey(combo.id, target.key), now.mono_ms)
    return TargetExplanation(
        key=target.key,
        reason=reason,
        cooling_ms=entry.expires_ms - now.mono_ms if entry else 0,
        cooldown_rule=entry.rule if entry else None,
        cooldown_source=entry.source if entry else None,
        cooldown_status=entry.status if entry else None,
        weight=target.weight,
        current=rotation.weights.get(target.key, 0),
        successes=rotation.counts.get(target.key, 0),
        is_active=rotation.active == target.key,
        is_last_resort=target.last_resort,
        dialect=target.dialect.value if target.dialect else None,
    )
