"""The ordered failure rules: what one failed attempt means for the request, hop or stop, and what a hop cools.

The first matching row decides, and its name is what logs, metrics and flow comments show (functional spec, "What
happens when a target fails"). Refuses to know bytes, clocks and durations.
"""

import re
from collections.abc import Callable

from combos.core import prose
from combos.core.facts import Scope, Verdict
from combos.core.failure_codes import (
    CALLER_ERROR_TYPES,
    GENERIC_CODES,
    PROVIDER_WIDE,
    CodeClass,
    any_of,
    code_class,
    code_row,
)
from combos.core.failure_facts import AccountRefusal, FailureFacts
from combos.core.values import dataclass

type Predicate = Callable[[FailureFacts], bool]

CREDENTIAL_STATUSES = frozenset({401, 402, 403})
RETRYABLE_STATUSES = frozenset({404, 408, 425, 429})
"""Below 500; every status from 500 on is retryable as well."""
OVERFLOW_STATUSES = frozenset({400, 413, 422})
"""Where overflow wording counts, besides 5xx: a 429 that says "too many tokens" speaks about rate."""

_SERIALIZED_CYBER = re.compile(r'"code"\s*:\s*"cyber_policy"')


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: when it applies, what follows, and one sentence for people."""

    name: str
    sentence: str
    applies: Predicate
    hop: bool
    scope: Scope = Scope.NONE


def _is_cancelled(facts: FailureFacts) -> bool:
    return facts.status == 499 or any_of(facts.codes, CodeClass.CANCELLED)


def _is_origin_rejected(facts: FailureFacts) -> bool:
    return any_of(facts.codes, CodeClass.ORIGIN) or "origin_rejected" in facts.text.lower()


def _is_policy(facts: FailureFacts) -> bool:
    if any_of(facts.codes, CodeClass.POLICY) or prose.is_cyber(facts.prose):
        return True
    return _SERIALIZED_CYBER.search(facts.text.lower()) is not None


def _is_gone_model(facts: FailureFacts) -> bool:
    named = facts.code == "model_not_found" or code_class(facts.code) is CodeClass.LIFECYCLE
    return facts.status == 410 and (named or prose.is_model_gone(facts.prose))


def _is_overflow(facts: FailureFacts) -> bool:
    if any_of(facts.codes, CodeClass.OVERFLOW):
        return True
    wording = facts.code == "invalid_request_prompt_too_long" or prose.is_overflow(facts.prose)
    return wording and (facts.status in OVERFLOW_STATUSES or facts.status >= 500)


def _is_free_tier_prompt(facts: FailureFacts) -> bool:
    if facts.status != 400:
        return False
    named = code_class(facts.code) is CodeClass.FREE_TIER or prose.is_free_tier_prompt_cap(facts.prose)
    return named or prose.has_any(facts.text.lower(), ("free_rate_limited", "err_free_prompt_cap"))


def _is_monthly_cap(facts: FailureFacts) -> bool:
    if facts.status != 429:
        return False
    return "gousagelimiterror" in (facts.code, facts.error_type) or prose.is_monthly_cap(facts.prose)


def _is_credential_status(facts: FailureFacts) -> bool:
    return facts.status in CREDENTIAL_STATUSES


def _is_retryable_status(facts: FailureFacts) -> bool:
    return facts.status in RETRYABLE_STATUSES or facts.status >= 500


def _has_provider_code(facts: FailureFacts) -> bool:
    return code_class(facts.code) in PROVIDER_WIDE and not facts.garbled


def _hops_by_code(facts: FailureFacts) -> bool:
    row = code_row(facts.code)
    return row is not None and row.hop_scope is not None


def is_credit_balance(facts: FailureFacts) -> bool:
    """The billing refusal that arrives as a plain 400: recognised by its sentence, unless a code says otherwise."""
    return facts.status == 400 and facts.code in GENERIC_CODES and prose.is_credit_balance(facts.prose)


def _hops_by_prose(facts: FailureFacts) -> bool:
    codeless = facts.code == "" and facts.error_type not in CALLER_ERROR_TYPES
    return codeless and prose.is_hop_class(facts.prose)


def _has_class(kind: CodeClass) -> Predicate:
    return lambda facts: code_class(facts.code) is kind


def _has_status(status: int) -> Predicate:
    return lambda facts: facts.status == status


def _has_refusal(refusal: AccountRefusal) -> Predicate:
    return lambda facts: facts.account_refusal is refusal


CONTEXT_OVERFLOW = "context-overflow"

RULES: tuple[Rule, ...] = (
    Rule("client-cancelled", "The client gave up, so nobody waits for another answer.", _is_cancelled, hop=False),
    Rule("origin-rejected", "The upstream refused where the request came from.", _is_origin_rejected, hop=False),
    Rule(
        "non-replayable",
        "The upstream may already be executing the turn, so it must not run twice.",
        lambda facts: facts.non_replayable,
        hop=False,
    ),
    Rule("policy-refusal", "The request was refused by a safety policy.", _is_policy, hop=False),
    Rule(
        "transport",
        "The exchange broke below HTTP before anything reached the client.",
        lambda facts: facts.fault is not None,
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule("gone-model", "410: the model reached its end of life.", _is_gone_model, hop=True, scope=Scope.TARGET),
    Rule("gone", "410 that names no retired model.", _has_status(410), hop=False),
    Rule(
        "account-model-competing",
        "A refusal of the model by the account stands beside a rival error.",
        _has_refusal(AccountRefusal.COMPETING),
        hop=False,
    ),
    Rule(
        "input-admission",
        "A size check for this one target refused the request.",
        _has_class(CodeClass.ADMISSION),
        hop=True,
    ),
    Rule(CONTEXT_OVERFLOW, "The request does not fit the model's context.", _is_overflow, hop=False),
    Rule(
        "free-tier-prompt",
        "400: the prompt is too long for the target's free tier.",
        _is_free_tier_prompt,
        hop=True,
    ),
    Rule(
        "free-tier",
        "The target's free tier is limited.",
        _has_class(CodeClass.FREE_TIER),
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule("monthly-cap", "429: the plan's monthly cap is spent.", _is_monthly_cap, hop=True, scope=Scope.PROVIDER),
    Rule(
        "model-unavailable",
        "The target does not offer this model.",
        _has_class(CodeClass.MODEL),
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule(
        "account-model-refusal",
        "400: the ChatGPT account may not use this model.",
        _has_refusal(AccountRefusal.EXACT),
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule(
        "request-local",
        "400: this target cannot take an optional part of this request.",
        lambda facts: facts.status == 400 and facts.request_local is not None,
        hop=True,
    ),
    Rule("request-too-large", "413: the request is too large.", _has_status(413), hop=False),
    Rule(
        "credentials",
        "401, 402 or 403: the provider refused the credentials or the account.",
        _is_credential_status,
        hop=True,
        scope=Scope.PROVIDER,
    ),
    Rule(
        "provider-account",
        "A retryable status whose code speaks of the provider's key or billing.",
        lambda facts: _is_retryable_status(facts) and _has_provider_code(facts),
        hop=True,
        scope=Scope.PROVIDER,
    ),
    Rule(
        "status-retryable",
        "404, 408, 425, 429 or any 5xx.",
        _is_retryable_status,
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule(
        "classified-provider",
        "Any other status with a code of the provider's key or billing.",
        _has_provider_code,
        hop=True,
        scope=Scope.PROVIDER,
    ),
    Rule(
        "classified",
        "Any other status with a code of quota, rate, overload, permission or server failure.",
        _hops_by_code,
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule(
        "credit-balance",
        "400: the credit balance is too low.",
        is_credit_balance,
        hop=True,
        scope=Scope.PROVIDER,
    ),
    Rule(
        "classified-prose",
        "Any other status without a code whose message speaks of quota, rate, credentials or overload.",
        _hops_by_prose,
        hop=True,
        scope=Scope.TARGET,
    ),
    Rule("caller-error", "Everything else: another target would say the same.", lambda _: True, hop=False),
)


def classify(facts: FailureFacts, *, overflow_hops: bool = False) -> Verdict:
    """The verdict of the first rule that applies.

    `overflow_hops` is the combo's choice to try another target, uncooled, when the request does not fit this one.
    """
    rule = _first(facts)
    if rule.name == CONTEXT_OVERFLOW and overflow_hops:
        return Verdict(rule.name, hop=True)
    return Verdict(rule.name, rule.hop, rule.scope)


def _first(facts: FailureFacts) -> Rule:
    for rule in RULES:
        if rule.applies(facts):
            return rule
    raise AssertionError("the last rule always applies")
