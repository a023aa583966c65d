"""Why a target may not be asked now: an ordered table of named reasons.

The first reason that holds is the one that logs and `explain` show. What the host alone can know (usable credentials,
a provider that is this proxy itself, spent quota) comes in as functions; order and meaning are decided here.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import StrEnum

from combos.core.config_provider import Adapter
from combos.core.facts import Dialect
from combos.core.registry import Provider, Target, is_canonical_chatgpt


class Reason(StrEnum):
    """Names of the reasons, in the order in which they are tested."""

    PROVIDER_MISSING = "provider_missing"
    PROVIDER_DISABLED = "provider_disabled"
    DECISION_ONLY = "decision_only"
    NO_CREDENTIALS = "no_credentials"
    SELF_LOOP = "self_loop"
    UNSUPPORTED = "unsupported_by_target"
    ENCRYPTED_TASK = "encrypted_task"
    QUOTA = "quota"
    TRIED = "tried"
    COOLING = "cooling"


@dataclass(frozen=True, slots=True)
class Constraints:
    """What one request asks of a target. `unusable` names why a provider cannot be called, None when it can;
    `spent` tells exhausted quota; `tried` holds target keys already asked; `cooling_ms` is 0 when not cooling."""

    can_speak: Callable[[Dialect], bool]
    encrypted: bool
    unusable: Callable[[Provider], str | None]
    spent: Callable[[Target], bool]
    tried: Container[str]
    cooling_ms: Callable[[Target], int]


def standing_reason(target: Target, asked: Constraints) -> str | None:
    """The first reason that no waiting removes (everything but `cooling`), or None."""
    provider = target.provider
    if provider is None:
        return Reason.PROVIDER_MISSING
    if provider.config.disabled:
        return Reason.PROVIDER_DISABLED
    return _dialect_reason(target, asked) or asked.unusable(provider) or _request_reason(target, provider, asked)


def _dialect_reason(target: Target, asked: Constraints) -> str | None:
    if target.adapter is Adapter.JEV_DECISION:
        return Reason.DECISION_ONLY
    if target.dialect is None or not asked.can_speak(target.dialect):
        return Reason.UNSUPPORTED
    return None


def _request_reason(target: Target, provider: Provider, asked: Constraints) -> str | None:
    if asked.encrypted and not is_canonical_chatgpt(provider):
        return Reason.ENCRYPTED_TASK
    if asked.spent(target):
        return Reason.QUOTA
    if target.key in asked.tried:
        return Reason.TRIED
    return None


def reason_out(target: Target, asked: Constraints) -> str | None:
    """The first reason why `target` may not be asked now, or None when it may."""
    reason = standing_reason(target, asked)
    if reason is None and asked.cooling_ms(target) > 0:
        return Reason.COOLING
    return reason
