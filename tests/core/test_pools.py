"""Pools: who serves, what passes to another member, how long a failed one rests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config_provider import PoolStrategy, ProviderConfig
from combos.core.facts import Now, Scope, Verdict
from combos.core.failure_facts import AccountRefusal, FailureFacts, Signals
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.pools import (
    AVOID_MS,
    MemberState,
    PoolKind,
    PoolNote,
    PoolSignals,
    PoolState,
    Rest,
    first_member,
    is_denial,
    is_transient,
    kind_of,
    next_member,
    rest_for,
    sends_per_attempt,
    soonest_back,
    spared,
)
from configs import provider

NOW = Now(1_000_000, 1_790_856_000_000)
ABC = ("a", "b", "c")
FILE = {"id": "x", "tokenFile": "/t/x"}


def failed(status: int, code: str = "", **signals: Any) -> FailureFacts:
    return FailureFacts(status, code=code, signals=Signals(**signals))


def cooled(*names: str, until: int = 2_000_000) -> PoolState:
    state = PoolState()
    for name in names:
        state.member(name).cooled_until = until
    return state


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"apiKey": "k"}, None),
        ({"apiKeyPool": [{"id": "a", "key": "k"}]}, PoolKind.API_KEYS),
        ({"authMode": "local", "apiKeyPool": [{"id": "a", "key": "k"}]}, None),
        ({"authMode": "oauth", "accountPool": [FILE], "adapter": "anthropic"}, PoolKind.ANTHROPIC),
        (
            {
                "authMode": "oauth",
                "accountPool": [FILE],
                "adapter": "openai-responses",
                "baseUrl": CHATGPT_BASE_URL + "/",
            },
            PoolKind.CODEX,
        ),
        ({"authMode": "oauth", "accountPool": [FILE], "adapter": "openai-responses"}, PoolKind.OAUTH),
        ({"authMode": "oauth"}, None),
    ],
)
def test_kinds(fields: dict[str, Any], kind: PoolKind | None) -> None:
    assert kind_of(ProviderConfig.model_validate(provider(**fields))) is kind


@pytest.mark.parametrize(
    ("strategy", "last", "out", "first"),
    [
        (None, None, "", "a"),
        (None, "b", "", "b"),
        (None, "b", "b", "c"),
        (None, "c", "c", "a"),
        (PoolStrategy.FILL_FIRST, "c", "", "a"),
        (PoolStrategy.FILL_FIRST, "c", "a", "b"),
        (PoolStrategy.ROUND_ROBIN, None, "", "a"),
        (PoolStrategy.ROUND_ROBIN, "a", "", "b"),
        (PoolStrategy.ROUND_ROBIN, "a", "b", "c"),
        (PoolStrategy.ROUND_ROBIN, "c", "", "a"),
        (PoolStrategy.QUOTA, "a", "", "b"),
        (PoolStrategy.QUOTA, "a", "b", "c"),
        (None, "a", "abc", None),
    ],
)
def test_the_first_member(strategy: PoolStrategy | None, last: str | None, out: str, first: str | None) -> None:
    state = cooled(*out)
    state.last = last
    used = {"a": 90.0, "b": 10.0, "c": 50.0}
    assert first_member(ABC, state, strategy, "m", NOW.mono_ms, used.__getitem__) == first


def test_the_quota_strategy_keeps_list_order_without_evidence() -> None:
    assert first_member(ABC, PoolState(), PoolStrategy.QUOTA, "m", 0) == "a"


def test_round_robin_shares_evenly() -> None:
    state = PoolState()
    served = []
    for _ in range(9):
        state.last = first_member(ABC, state, PoolStrategy.ROUND_ROBIN, "m", 0)
        served.append(state.last)
    assert served == list("abcabcabc")


def test_the_next_member_follows_in_list_order_around_the_end() -> None:
    assert next_member(ABC, PoolState(), "b", ["b"], "m", 0) == "c"
    assert next_member(ABC, PoolState(), "c", ["c"], "m", 0) == "a"
    assert next_member(ABC, cooled("a"), "c", ["c"], "m", 0) == "b"
    assert next_member(ABC, PoolState(), "a", list(ABC), "m", 0) is None


def test_a_member_that_left_the_list_loses_its_place() -> None:
    state = cooled("gone", "a")
    state.last = "gone"
    assert first_member(ABC, state, None, "m", 0) == "b"
    state.keep(ABC)
    assert state.last is None
    assert "gone" not in state.members
    assert state.member("a").is_out("m", 0)


def test_who_is_back_first() -> None:
    state = cooled("a", "b", "c")
    state.member("b").cooled_until = 5
    assert soonest_back(ABC, state, "m") == "b"
    state.member("b").denied["m"] = 10**9
    assert soonest_back(ABC, state, "m") == "a"


@pytest.mark.parametrize(
    ("kind", "members", "sends"),
    [(PoolKind.API_KEYS, 9, 9), (PoolKind.ANTHROPIC, 9, 4), (PoolKind.CODEX, 9, 2), (PoolKind.OAUTH, 3, 3)],
)
def test_sends_per_attempt(kind: PoolKind, members: int, sends: int) -> None:
    assert sends_per_attempt(kind, members) == sends


SECOND = NOW.epoch_ms // 1000
KEYS, CLAUDE, CODEX, OAUTH = PoolKind.API_KEYS, PoolKind.ANTHROPIC, PoolKind.CODEX, PoolKind.OAUTH


@pytest.mark.parametrize(
    ("kind", "facts", "signals", "rest"),
    [
        (KEYS, failed(401), {}, Rest(600_000, rotates=True)),
        (KEYS, failed(429), {}, Rest(60_000, rotates=True)),
        (KEYS, failed(429, retry_after="7"), {}, Rest(7_000, rotates=True)),
        (KEYS, failed(429, retry_after="0"), {}, Rest(1, rotates=True)),
        (KEYS, failed(429, retry_after="7200"), {}, Rest(600_000, rotates=True)),
        (KEYS, failed(429, retry_after="7"), {"dated": NOW.epoch_ms + 9_000}, Rest(9_000, rotates=True)),
        (KEYS, failed(429, retry_after="7"), {"dated": NOW.epoch_ms - 1}, Rest(7_000, rotates=True)),
        (KEYS, failed(429), {"dated": NOW.epoch_ms + 33 * 86_400_000}, Rest(60_000, rotates=True)),
        (KEYS, failed(429, "credit_balance_exhausted"), {}, Rest(None, rotates=False)),
        (KEYS, failed(429, "organization_spend_limit_exceeded"), {}, Rest(None, rotates=False)),
        (KEYS, failed(500), {}, Rest(None, rotates=False)),
        (KEYS, failed(402), {}, Rest(None, rotates=False)),
        (CLAUDE, failed(429), {}, Rest(60_000, rotates=True)),
        (CLAUDE, failed(429, retry_after="7200"), {}, Rest(7_200_000, rotates=True)),
        (CLAUDE, failed(429), {"rejected": (NOW.epoch_ms + 5, NOW.epoch_ms + 50)}, Rest(50, rotates=True)),
        (CLAUDE, failed(429), {"rejected": (NOW.epoch_ms - 5,)}, Rest(60_000, rotates=True)),
        (CLAUDE, failed(401), {}, Rest(None, rotates=False)),
        (CLAUDE, failed(529), {}, Rest(None, rotates=False)),
        (CODEX, failed(429), {}, Rest(60_000, rotates=True)),
        (CODEX, failed(402), {}, Rest(60_000, rotates=True)),
        (CODEX, failed(429, retry_after="90000"), {}, Rest(86_400_000, rotates=True)),
        (CODEX, failed(429, codex_resets=(str(SECOND + 100),)), {}, Rest(100_000, rotates=True)),
        (CODEX, failed(429, codex_resets=(str(SECOND + 9_000),)), {}, Rest(900_000, rotates=True)),
        (CODEX, failed(429, codex_resets=(str(SECOND + 100),)), {"spares": True}, Rest(None, rotates=True)),
        (CODEX, failed(429, retry_after="5", codex_resets=("1",)), {"spares": True}, Rest(5_000, rotates=True)),
        (CODEX, failed(502, "usage_limit_reached"), {}, Rest(60_000, rotates=True)),
        (CODEX, failed(502), {}, Rest(None, rotates=True)),
        (CODEX, FailureFacts(502, from_stream=True), {}, Rest(None, rotates=False)),
        (CODEX, FailureFacts(400, account_refusal=AccountRefusal.EXACT), {}, Rest(None, rotates=True)),
        (CODEX, FailureFacts(400, account_refusal=AccountRefusal.COMPETING), {}, Rest(None, rotates=False)),
        (CODEX, failed(400), {}, Rest(None, rotates=False)),
        (CODEX, failed(401), {}, Rest(None, rotates=False)),
        (OAUTH, failed(429, retry_after="7200"), {}, Rest(600_000, rotates=True)),
        (OAUTH, failed(429), {}, Rest(60_000, rotates=True)),
        (OAUTH, failed(401), {}, Rest(None, rotates=False)),
        (KEYS, FailureFacts(429, non_replayable=True), {}, Rest(None, rotates=False)),
    ],
)
def test_rests(kind: PoolKind, facts: FailureFacts, signals: dict[str, Any], rest: Rest) -> None:
    assert rest_for(kind, facts, PoolSignals(**signals), NOW) == rest


def test_the_third_passing_failure_in_a_row_makes_an_account_avoided_for_longer_each_time() -> None:
    member = MemberState()
    at = 0
    avoided = []
    for _ in range(7):
        member.stumbled(at)
        avoided.append(max(0, member.avoided_until - at))
        at += 1000
    assert avoided[:2] == [0, 0]
    assert avoided[2:] == [AVOID_MS[0], *AVOID_MS[1:], AVOID_MS[-1]]


def test_a_run_of_passing_failures_ends_with_an_answer_or_a_pause() -> None:
    member = MemberState()
    member.stumbled(0)
    member.stumbled(1)
    member.succeeded()
    member.stumbled(2)
    assert member.avoided_until == 0
    member.stumbled(300_003)
    assert member.transient == 1
    member.stumbled(600_003)
    assert member.transient == 2


def test_a_denied_model_keeps_the_account_for_others() -> None:
    member = MemberState(denied={"m": 100})
    assert member.is_out("m", 99)
    assert not member.is_out("n", 99)
    assert not member.is_out("m", 100)


def test_what_counts_as_passing_and_as_denial() -> None:
    assert is_transient(failed(503))
    assert not is_transient(failed(503, "usage_limit_reached"))
    assert not is_transient(failed(429))
    assert is_denial(CODEX, FailureFacts(400, account_refusal=AccountRefusal.EXACT))
    assert not is_denial(CLAUDE, FailureFacts(400, account_refusal=AccountRefusal.EXACT))


TARGET = Verdict("status-retryable", hop=True, scope=Scope.TARGET)


@pytest.mark.parametrize(
    ("note", "status", "verdict", "scope"),
    [
        (PoolNote(CLAUDE, "a", cooled=True), 429, TARGET, Scope.NONE),
        (PoolNote(CODEX, "a", cooled=True), 429, TARGET, Scope.NONE),
        (PoolNote(CODEX, "a", cooled=False), 429, TARGET, Scope.TARGET),
        (PoolNote(CODEX, None, cooled=True), 429, TARGET, Scope.TARGET),
        (PoolNote(CODEX, "a", cooled=True), 503, TARGET, Scope.TARGET),
        (PoolNote(KEYS, "a", cooled=True), 429, TARGET, Scope.TARGET),
        (PoolNote(OAUTH, "a", cooled=True), 429, TARGET, Scope.TARGET),
        (PoolNote(CODEX, "a", cooled=True), 429, Verdict("p", hop=True, scope=Scope.PROVIDER), Scope.PROVIDER),
        (PoolNote(CODEX, "a", cooled=True), 429, Verdict("s", hop=False), Scope.NONE),
        (None, 429, TARGET, Scope.TARGET),
    ],
)
def test_a_cooled_accounts_429_spares_the_target(
    note: PoolNote | None, status: int, verdict: Verdict, scope: Scope
) -> None:
    judged = spared(verdict, status, note)
    assert judged == Verdict(verdict.rule, verdict.hop, scope)


@given(
    st.sampled_from([None, *PoolStrategy]),
    st.sets(st.sampled_from(ABC)),
    st.sampled_from([None, *ABC]),
)
def test_whoever_begins_does_not_rest(strategy: PoolStrategy | None, out: set[str], last: str | None) -> None:
    state = cooled(*out)
    state.last = last
    first = first_member(ABC, state, strategy, "m", NOW.mono_ms)
    assert (first is None) == (out == set(ABC))
    assert first not in out
