import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Scope, TransportFault, Verdict
from combos.core.failure_codes import CODE_ROWS
from combos.core.failure_facts import AccountRefusal, FailureFacts
from combos.core.failures import RULES, classify

NONE, TARGET, PROVIDER = Scope.NONE, Scope.TARGET, Scope.PROVIDER


def facts(status: int, code: str = "", **members: object) -> FailureFacts:
    return FailureFacts(status, code=code, codes=frozenset({code} - {""}), **members)


HOP_STATUSES = [404, 408, 425, 429, *range(500, 512), 520, 522, 524, 527, 529, 599]
STOP_STATUSES = [300, 302, 304, 307, 400, 405, 406, 409, 410, 411, 413, 415, 418, 422, 424, 451, 499]


@pytest.mark.parametrize("status", HOP_STATUSES)
def test_hop_statuses(status: int) -> None:
    assert classify(facts(status)) == Verdict("status-retryable", True, TARGET)


@pytest.mark.parametrize("status", STOP_STATUSES)
def test_stop_statuses(status: int) -> None:
    assert not classify(facts(status)).hop


@pytest.mark.parametrize("status", [401, 402, 403])
def test_credential_statuses(status: int) -> None:
    assert classify(facts(status, "brand_new")) == Verdict("credentials", True, PROVIDER)


CASES = [
    (facts(499), "client-cancelled", False, NONE),
    (facts(503, "client_closed_request"), "client-cancelled", False, NONE),
    (facts(403, "origin_rejected"), "origin-rejected", False, NONE),
    (facts(502, text="edge: Origin_Rejected"), "origin-rejected", False, NONE),
    (facts(502, non_replayable=True), "non-replayable", False, NONE),
    (facts(500, "bio_policy"), "policy-refusal", False, NONE),
    (facts(500, text='{"x":{"code" : "CYBER_policy"}}'), "policy-refusal", False, NONE),
    (facts(404, text="the model cyber_policy-eval"), "status-retryable", True, TARGET),
    (facts(403, message="flagged: cyber activity"), "policy-refusal", False, NONE),
    (facts(502, "upstream_error", fault=TransportFault.RESET), "transport", True, TARGET),
    (facts(410, "model_eol"), "gone-model", True, TARGET),
    (facts(410, "model_not_found"), "gone-model", True, TARGET),
    (facts(410, message="model m was sunset"), "gone-model", True, TARGET),
    (facts(410, "rate_limit_exceeded"), "gone", False, NONE),
    (facts(400, account_refusal=AccountRefusal.COMPETING), "account-model-competing", False, NONE),
    (facts(400, "unsupported_model", account_refusal=AccountRefusal.COMPETING), "account-model-competing", False, NONE),
    (facts(400, account_refusal=AccountRefusal.EXACT), "account-model-refusal", True, TARGET),
    (facts(413, "input_admission_refused", message="exceeds the context window"), "input-admission", True, NONE),
    (facts(429, "context_length_exceeded"), "context-overflow", False, NONE),
    (facts(502, message="maximum context length is 8192"), "context-overflow", False, NONE),
    (facts(429, message="too many tokens"), "status-retryable", True, TARGET),
    (facts(404, message="too many tokens"), "status-retryable", True, TARGET),
    (facts(400, "free_rate_limited"), "free-tier-prompt", True, NONE),
    (facts(400, text='{"reason":"ERR_FREE_PROMPT_CAP"}'), "free-tier-prompt", True, NONE),
    (facts(400, message="The free tier caps the prompt"), "free-tier-prompt", True, NONE),
    (facts(403, "free_rate_limited"), "free-tier", True, TARGET),
    (facts(429, "gousagelimiterror"), "monthly-cap", True, PROVIDER),
    (facts(429, "other", error_type="gousagelimiterror"), "monthly-cap", True, PROVIDER),
    (facts(429, message="Monthly usage limit reached"), "monthly-cap", True, PROVIDER),
    (facts(502, message="Monthly usage limit reached"), "status-retryable", True, TARGET),
    (facts(403, "model_not_found"), "model-unavailable", True, TARGET),
    (facts(400, request_local="user"), "request-local", True, NONE),
    (facts(422, request_local="user"), "caller-error", False, NONE),
    (facts(413, "rate_limit_exceeded"), "request-too-large", False, NONE),
    (facts(500, "billing_error"), "provider-account", True, PROVIDER),
    (facts(500, "billing_error", garbled=True), "status-retryable", True, TARGET),
    (facts(409, "invalid_api_key"), "classified-provider", True, PROVIDER),
    (facts(409, "upstream_server_error"), "classified", True, TARGET),
    (facts(400, "permission_denied"), "classified", True, TARGET),
    (facts(400, "gousagelimiterror"), "caller-error", False, NONE),
    (
        facts(
            400,
            error_type="invalid_request_error",
            message="Your credit balance is too low to access the Anthropic API.",
        ),
        "credit-balance",
        True,
        PROVIDER,
    ),
    (facts(422, message="Your credit balance is too low to access the Anthropic API."), "caller-error", False, NONE),
    (facts(400, message="Rate limit reached, too many requests"), "classified-prose", True, TARGET),
    (facts(400, "unheard_of", message="too many requests"), "caller-error", False, NONE),
    (facts(400, error_type="invalid_argument", message="rate limit"), "caller-error", False, NONE),
    (facts(400, "invalid_request_error"), "caller-error", False, NONE),
]


@pytest.mark.parametrize(("failure", "rule", "hop", "scope"), CASES)
def test_rules(failure: FailureFacts, rule: str, hop: bool, scope: Scope) -> None:
    assert classify(failure) == Verdict(rule, hop, scope)


def test_hard_stops_are_looked_for_in_every_carrier() -> None:
    for code in ("cyber_policy", "origin_rejected", "client_cancelled", "context_length_exceeded"):
        assert not classify(FailureFacts(503, code="server_is_overloaded", codes=frozenset({code}))).hop


def test_overflow_hops_uncooled_when_the_combo_chose_so() -> None:
    overflow = facts(400, "context_length_exceeded")
    assert classify(overflow, overflow_hops=True) == Verdict("context-overflow", True, NONE)
    assert not classify(facts(413), overflow_hops=True).hop


def test_every_rule_has_a_metric_name_and_a_sentence_and_is_reached() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
    assert all(rule.sentence.endswith(".") for rule in RULES)
    assert {rule for _, rule, _, _ in CASES} | {"credentials"} == set(names)


def test_only_hops_cool() -> None:
    assert all(rule.scope is NONE for rule in RULES if not rule.hop)


CODES = st.sampled_from([code for row in CODE_ROWS for code in row.codes]) | st.text(max_size=20) | st.just("")


@given(st.integers(100, 999), CODES, st.frozensets(CODES, max_size=3), st.text(max_size=200))
def test_a_verdict_depends_on_the_facts_alone(status: int, code: str, codes: frozenset[str], message: str) -> None:
    first = FailureFacts(status, code=code, codes=codes, message=message, text=message)
    again = FailureFacts(status, code=code, codes=codes, message=message, text=message)
    verdict = classify(first)
    assert verdict == classify(again)
    assert verdict.hop or verdict.scope is NONE
    assert verdict.rule in {rule.name for rule in RULES}
