"""How long a hopped target rests: ordered sources, the first usable one wins.

Explicit delays of the upstream, then Codex reset headers, the combo's setting, the ten-minute hold, the request-rate
fallback and the default. Only headers are signals: a delay in prose changes nothing. Refuses to know where cooldowns
are stored.
"""

from collections.abc import Callable, Iterable

from combos.core import prose
from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.core.failure_codes import GENERIC_CODES, PROVIDER_WIDE, QUOTA_EVIDENCE, CodeClass, code_class
from combos.core.failure_facts import FailureFacts
from combos.core.failures import is_credit_balance
from combos.core.retry_after import LONGEST_VALUE, decimal_ms, retry_after_ms

HOLD_MS = 600_000
"""Ten minutes: a spent usage window, or a credential or billing failure, will not mend itself sooner."""
REQUEST_RATE_MS = 5_000
"""Five seconds for codes 1302 and 1305: too many requests at once, not too many in all."""
DEFAULT_MS = 60_000
CEILING_MS = 600_000
"""Longest cooldown that is not an explicit delay of the upstream."""

_MILLISECONDS_FROM = 10**12
"""Reset values from here on are milliseconds since the epoch, smaller ones seconds."""

type Source = Callable[[FailureFacts, int | None, Now], int | None]


def _retry_after(facts: FailureFacts, _configured: int | None, now: Now) -> int | None:
    """The header `Retry-After`: seconds, also with a fraction, or an HTTP date."""
    return retry_after_ms(facts.signals.retry_after, now.epoch_ms)


def _codex_reset(facts: FailureFacts, _configured: int | None, now: Now) -> int | None:
    """The soonest of the `x-codex-…-reset-at` headers that is ahead; for 402, 429 and failures that name a quota."""
    # The headers ride on every reply, so the failure itself has to speak of a quota.
    if facts.status not in (402, 429) and not _is_quota_failure(facts):
        return None
    return codex_reset_ms(facts.signals.codex_resets, now.epoch_ms)


def _configured(_facts: FailureFacts, configured: int | None, _now: Now) -> int | None:
    """The combo's `cooldownMs`."""
    return configured


def _hold(facts: FailureFacts, _configured: int | None, _now: Now) -> int | None:
    """Ten minutes for a spent usage window and for what speaks of the key or the bill, a bare 401 or 402 included."""
    if facts.garbled:
        return None
    kind = code_class(facts.code)
    spent = kind is CodeClass.WINDOW or prose.is_spent_window(facts.prose)
    bare = facts.status in (401, 402) and facts.code in GENERIC_CODES
    account = kind in PROVIDER_WIDE or bare or is_credit_balance(facts)
    return HOLD_MS if spent or account else None


def _request_rate(facts: FailureFacts, _configured: int | None, _now: Now) -> int | None:
    """Five seconds for too many requests in a short time, by code or by wording."""
    kind = code_class(facts.code)
    worded = prose.is_request_rate(facts.prose) and kind not in QUOTA_EVIDENCE
    return REQUEST_RATE_MS if kind is CodeClass.REQUEST_RATE or worded else None


def _default(_facts: FailureFacts, _configured: int | None, _now: Now) -> int | None:
    """One minute for everything else."""
    return DEFAULT_MS


SOURCES: tuple[tuple[str, Source, int | None], ...] = (
    ("retry-after", _retry_after, None),
    ("codex-reset", _codex_reset, CEILING_MS),
    ("configured", _configured, CEILING_MS),
    ("hold", _hold, CEILING_MS),
    ("request-rate", _request_rate, CEILING_MS),
    ("default", _default, CEILING_MS),
)
"""Name, value in milliseconds or None, ceiling (`Retry-After` brings its own)."""


def cooldown_for(verdict: Verdict, facts: FailureFacts, *, cooldown_ms: int | None, now: Now) -> Cooldown | None:
    """The cooldown a failure causes; None when the verdict cools nothing. `cooldown_ms` is the combo's setting."""
    if not verdict.hop or verdict.scope is Scope.NONE:
        return None
    for name, source, ceiling in SOURCES:
        value = source(facts, cooldown_ms, now)
        if value is not None:
            return Cooldown(max(1, value if ceiling is None else min(value, ceiling)), name)
    raise AssertionError("the default source always has a value")


def codex_reset_ms(values: Iterable[str], epoch_ms: int) -> int | None:
    """Milliseconds to the soonest reset ahead that the headers state; None when they state none."""
    moments = (_reset_ms(value) for value in values)
    ahead = [moment - epoch_ms for moment in moments if moment is not None and moment > epoch_ms]
    return min(ahead) if ahead else None


def _is_quota_failure(facts: FailureFacts) -> bool:
    """The body confirms a quota: by its code, or by the words for a spent window."""
    return not facts.garbled and (code_class(facts.code) in QUOTA_EVIDENCE or prose.is_spent_window(facts.prose))


def _reset_ms(value: str) -> int | None:
    """A reset header as milliseconds since the epoch; None when it is not a positive decimal number."""
    thousandfold = decimal_ms(value.strip(" \t")) if len(value) <= LONGEST_VALUE else None
    if not thousandfold:
        return None
    is_seconds = thousandfold < _MILLISECONDS_FROM * 1000
    return thousandfold if is_seconds else -(-thousandfold // 1000)
