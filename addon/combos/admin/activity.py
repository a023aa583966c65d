"""What became of requests, as events, and the last failure of every target. Tells no prompt, no key, no error text."""

from collections.abc import Mapping
from functools import partial

from combos.admin.events import EventBus
from combos.admin.live_config import Change
from combos.core.facts import Now, Verdict
from combos.core.names import target_key
from combos.core.registry import Registry
from combos.core.values import dataclass
from combos.engine.record import AttemptRecord, TurnRecord

_TEXT_MAX = 200  # ids and codes that came from outside


@dataclass(frozen=True, slots=True)
class LastError:
    """The latest failure of a target: when (epoch ms), by which rule, with which status and outside code."""

    at: int
    rule: str
    status: int | None
    result: str
    code: str


class Activity:
    """Told of every finished turn and every look at the configuration; the bus tells it on."""

    def __init__(self, bus: EventBus | None = None) -> None:
        self.bus = bus or EventBus()
        self._errors: dict[tuple[str, str], LastError] = {}

    def last_error(self, combo: str, target: str) -> LastError | None:
        """The latest failure of a target in a combo, if there was one."""
        return self._errors.get((combo, target))

    def turn(self, record: TurnRecord, now: Now) -> None:
        """A turn is over: its attempts, hops and cooldowns, then how it ended."""
        attempts, publish = record.attempts, self.bus.publish
        for place, attempt in enumerate(attempts, 1):
            at = now.epoch_ms - (now.mono_ms - (attempt.ended_ms or now.mono_ms))
            publish("attempt", at, partial(_attempt, record, attempt))
            if attempt.verdict is not None:
                following = attempts[place] if place < len(attempts) else None
                self._failure(record, attempt, attempt.verdict, following, at)
        publish("turn", now.epoch_ms, partial(_turn, record))

    def configuration(self, change: Change, registry: Registry, problems: int, now: Now) -> None:
        """The file was looked at and something came of it."""
        configured = {(combo.id, target.key) for combo in registry.combos.values() for target in combo.targets}
        self._errors = {place: error for place, error in self._errors.items() if place in configured}
        data = {"change": change.value, "generation": registry.generation, "problems": problems}
        self.bus.publish("reload", now.epoch_ms, data)

    def cleared(self, count: int, now: Now) -> None:
        """Somebody ended cooldowns."""
        self.bus.publish("cooldowns_cleared", now.epoch_ms, {"cleared": count})

    def forget(self, combo: str) -> None:
        """Drop what is known of a combo that was redefined."""
        self._errors = {place: error for place, error in self._errors.items() if place[0] != combo}

    def _failure(
        self, record: TurnRecord, attempt: AttemptRecord, verdict: Verdict, following: AttemptRecord | None, at: int
    ) -> None:
        target = target_key(attempt.provider, attempt.model)
        if record.combo is not None:
            error = LastError(at, verdict.rule, attempt.status, attempt.result, attempt.error_code[:_TEXT_MAX])
            self._errors[record.combo, target] = error
        if attempt.cooldown is not None:
            self.bus.publish("cooldown", at, _cooldown(record, attempt, target, at))
        if following is not None:
            to = target_key(following.provider, following.model)
            self.bus.publish("hop", at, {"combo": record.combo, "from": target, "to": to, "rule": verdict.rule})


def _attempt(record: TurnRecord, attempt: AttemptRecord) -> Mapping[str, object]:
    return {
        "combo": record.combo,
        "requestedModel": record.requested_model[:_TEXT_MAX],
        "target": target_key(attempt.provider, attempt.model),
        "ordinal": attempt.ordinal,
        "status": attempt.status,
        "result": attempt.result,
        "durationMs": _since(attempt.started_ms, attempt.ended_ms),
        "firstOutputMs": _since(attempt.started_ms, attempt.first_output_ms),
        "rule": attempt.verdict.rule if attempt.verdict else None,
        "errorCode": attempt.error_code[:_TEXT_MAX] or None,
        "usage": attempt.usage,
    }


def _cooldown(record: TurnRecord, attempt: AttemptRecord, target: str, at: int) -> Mapping[str, object]:
    length = attempt.cooldown.ms if attempt.cooldown else 0
    return {
        "combo": record.combo,
        "target": target,
        "ms": length,
        "until": at + length,
        "source": attempt.cooldown.source if attempt.cooldown else None,
        "rule": attempt.verdict.rule if attempt.verdict else None,
        "scope": attempt.verdict.scope.value if attempt.verdict else None,
    }


def _turn(record: TurnRecord) -> Mapping[str, object]:
    return {
        "combo": record.combo,
        "requestedModel": record.requested_model[:_TEXT_MAX],
        "outcome": record.outcome.value if record.outcome else None,
        "status": record.status,
        "attempts": len(record.attempts),
        "waitedMs": sum(record.waits_ms),
        "durationMs": _since(record.started_ms, record.ended_ms),
    }


def _since(start: int, end: int | None) -> int | None:
    return None if end is None else end - start
