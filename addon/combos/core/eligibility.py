"""Why a target may not be asked now: an ordered table of named reasons.

The first reason that holds is the one that logs and `explain` show. What the host alone can know (usable credentials,
a provider that is this proxy itself, spent quota) comes in as functions; order and meaning are decided here.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from combos.core.config_provider import Adapter
from combos.core.registry import Provider, Target, is_canonical_chatgpt


class Reason(StrEnum):
    """Names of the reasons, in the order in which they are tested."""

    PROVIDER_MISSING = "provider_missing"
    PROVIDER_DISABLED = "provider_disabled"
    DECISION_ONLY = "decision_only"
    UNSUPPORTED = "unsupported_by_target"
    NO_CREDENTIALS = "no_credentials"
    SELF_LOOP = "self_loop"
    ENCRYPTED_TASK = "encrypted_task"
    QUOTA = "quota"
    BUDGET = "budget"
    TRIED = "tried"
    COOLING = "cooling"


def within_budget(_target: Target) -> bool:
    """No budget is spent: what holds where none is configured."""
    return False


class Asked(Protocol):
    """What one request asks of a target. `can_speak` is False when the request is known not to be sayable in the
    target's wire format. `unusable` names why a provider cannot be called, None when it can; `spent` tells exhausted
    quota, `over_budget` a spent budget of the configuration; `tried` holds target keys already asked; `cooling_ms` is 0
    when not cooling."""

    encrypted: bool

    @property
    def tried(self) -> Container[str]: ...

    def can_speak(self, target: Target, /) -> bool: ...

    def unusable(self, provider: Provider, /) -> str | None: ...

    def spent(self, target: Target, /) -> bool: ...

    def cooling_ms(self, target: Target, /) -> int: ...

    def over_budget(self, target: Target, /) -> bool: ...


@dataclass(slots=True)
class Constraints:
    """What is asked of a target, put together from functions."""

    can_speak: Callable[[Target], bool]
    encrypted: bool
    unusable: Callable[[Provider], str | None]
    spent: Callable[[Target], bool]
    tried: Container[str]
    cooling_ms: Callable[[Target], int]
    over_budget: Callable[[Target], bool] = within_budget


def _missing(target: Target, _asked: Asked) -> str | None:
    return Reason.PROVIDER_MISSING if target.provider is None else None


def _disabled(target: Target, _asked: Asked) -> str | None:
    return Reason.PROVIDER_DISABLED if target.provider is not None and target.provider.config.disabled else None


def _decision_only(target: Target, _asked: Asked) -> str | None:
    return Reason.DECISION_ONLY if target.adapter is Adapter.JEV_DECISION else None


def _unsupported(target: Target, asked: Asked) -> str | None:
    return None if target.dialect is not None and asked.can_speak(target) else Reason.UNSUPPORTED


def _unusable(target: Target, asked: Asked) -> str | None:
    return None if target.provider is None else asked.unusable(target.provider)


def _unreadable(target: Target, asked: Asked) -> str | None:
    if not asked.encrypted or (target.provider is not None and is_canonical_chatgpt(target.provider)):
        return None
    return Reason.ENCRYPTED_TASK


def _spent(target: Target, asked: Asked) -> str | None:
    return Reason.QUOTA if asked.spent(target) else None


def _over_budget(target: Target, asked: Asked) -> str | None:
    return Reason.BUDGET if asked.over_budget(target) else None


def _tried(target: Target, asked: Asked) -> str | None:
    return Reason.TRIED if target.key in asked.tried else None


def _cooling(target: Target, asked: Asked) -> str | None:
    return Reason.COOLING if asked.cooling_ms(target) > 0 else None


type Rule = Callable[[Target, Asked], str | None]

STANDING: tuple[Rule, ...] = (
    _missing, _disabled, _decision_only, _unsupported, _unusable, _unreadable, _spent, _over_budget,
    _tried,
)  # fmt: skip
"""The rules that no waiting lifts, in order; the first that gives a reason decides."""

RULES: tuple[Rule, ...] = (*STANDING, _cooling)

_UNREST: frozenset[Rule] = frozenset({_unreadable, _spent, _over_budget, _tried, _cooling})
AT_REST: tuple[Rule, ...] = tuple(rule for rule in RULES if rule not in _UNREST)
"""The rules that are left for a readable request that was sent nowhere yet, while nothing is cooling, no quota is known
and no budget is set."""


def standing_reason(target: Target, asked: Asked) -> str | None:
    """The first reason that no waiting removes (everything but `cooling`), or None."""
    return _first(STANDING, target, asked)


def reason_out(target: Target, asked: Asked, rules: tuple[Rule, ...] = RULES) -> str | None:
    """The first reason why `target` may not be asked now, or None when it may."""
    return _first(rules, target, asked)


def _first(rules: tuple[Rule, ...], target: Target, asked: Asked) -> str | None:
    for rule in rules:
        reason = rule(target, asked)
        if reason is not None:
            return reason
    return None
