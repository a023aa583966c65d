"""The live state of combos as the API shows it: every target with why it is out, until when, and what it did last."""

from collections.abc import Callable
from typing import Any

from combos.admin.activity import Activity, LastError
from combos.admin.combo_view import public_model
from combos.core.config_combo import Strategy
from combos.core.facts import Now
from combos.core.names import split_selector
from combos.core.registry import Combo, Provider, Registry
from combos.engine.explain import Explanation, TargetExplanation, explain
from combos.engine.state import EngineState

type Unusable = Callable[[Provider], str | None]

_WEIGHTED = frozenset({Strategy.ROUND_ROBIN.value, Strategy.RANDOM.value})


def state_row(explanation: Explanation, combo: Combo, activity: Activity, now: Now) -> dict[str, Any]:
    """One combo: the target of the next request, and all targets in order. Instants are epoch milliseconds."""
    retry = explanation.retry_after_ms
    return {
        "id": combo.id,
        "model": public_model(combo.id, combo.config),
        "strategy": explanation.strategy,
        "next": explanation.next,
        "batch": explanation.batch,
        "stickyLimit": explanation.sticky_limit,
        "firstBackAt": None if retry is None else now.epoch_ms + retry,
        "targets": [
            _target(target, explanation, activity.last_error(combo.id, target.key), now)
            for target in explanation.targets
        ],
    }


def dry_run(
    combo: Combo, registry: Registry, state: EngineState, now: Now, *, unusable: Unusable, activity: Activity
) -> dict[str, Any]:
    """What the next request would do, target after target if each of them failed in a way that hops."""
    first = explain(combo, registry, state, now, unusable=unusable)
    wait = _wait(combo, first)
    return {
        "action": "dispatch" if _has_ready(first) else "wait" if wait else "refuse",
        "waitMs": wait,
        "refusal": None if _has_ready(first) or wait else _refusal(first),
        "order": _order(combo, registry, state, now, unusable),
        **state_row(first, combo, activity, now),
    }


def _order(combo: Combo, registry: Registry, state: EngineState, now: Now, unusable: Unusable) -> list[str]:
    """The targets in the order in which one request would ask them; empty for a random draw among several."""
    tried: list[str] = []
    while len(tried) < len(combo.targets):
        seen = explain(combo, registry, state, now, unusable=unusable, spent=lambda target: target.key in tried)
        if seen.next is None:
            break
        tried.append(seen.next)
    return tried


def _has_ready(explanation: Explanation) -> bool:
    return any(target.reason is None for target in explanation.targets)


def _wait(combo: Combo, explanation: Explanation) -> int | None:
    """How long the request would be held for a target that comes back in time."""
    rests = [target.cooling_ms for target in explanation.targets if target.reason == "cooling"]
    first = min(rests, default=None)
    if _has_ready(explanation) or first is None or first > combo.config.wait_for_cooldown_ms:
        return None
    return first


def _refusal(explanation: Explanation) -> dict[str, Any]:
    retry = explanation.retry_after_ms
    return {"status": 503, "code": "combo_unavailable", "retryAfterMs": retry}


def _target(target: TargetExplanation, of: Explanation, error: LastError | None, now: Now) -> dict[str, Any]:
    selector = split_selector(target.key)
    total = sum(other.weight for other in of.targets)
    return {
        "target": target.key,
        "provider": selector.provider if selector else "",
        "model": selector.model if selector else "",
        "eligible": target.reason is None,
        "reason": target.reason,
        "coolingUntil": now.epoch_ms + target.cooling_ms if target.cooling_ms else None,
        "cooldown": _cooldown(target),
        "weight": target.weight,
        "share": round(target.weight / total, 4) if of.strategy in _WEIGHTED else None,
        "position": target.current,
        "active": target.is_active,
        "successes": target.successes,
        "lastResort": target.is_last_resort,
        "dialect": target.dialect,
        "lastError": _last_error(error),
    }


def _cooldown(target: TargetExplanation) -> dict[str, Any] | None:
    if not target.cooling_ms:
        return None
    return {
        "leftMs": target.cooling_ms,
        "rule": target.cooldown_rule,
        "source": target.cooldown_source,
        "status": target.cooldown_status,
    }


def _last_error(error: LastError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {
        "at": error.at,
        "rule": error.rule,
        "status": error.status,
        "result": error.result or None,
        "code": error.code or None,
    }
