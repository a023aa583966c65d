"""Laws of failures: any status, headers and body give a verdict, a bounded cooldown and a sound error of the client."""

import gzip
import json
import re
from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from combos.core.cooldown import codex_reset_ms, cooldown_for
from combos.core.facts import Dialect, Now
from combos.core.failures import classify
from combos.core.limits import COOLDOWN_MAX_MS
from combos.core.retry_after import CEILING_MS, retry_after_ms
from combos.wire.dialect import FailureTerminal, whole_answer
from combos.wire.envelope import BODY_LIMIT, failure_facts, stream_failure_facts
from combos.wire.pool_signals import pool_signals
from combos.wire.quota_headers import header_snapshot
from combos.wire.translate import retry_after_s, translate_error
from fuzzing import damaged, header_values, headers, law, moments

dialects = st.sampled_from(list(Dialect))
statuses = st.one_of(
    st.sampled_from([300, 400, 401, 403, 404, 410, 413, 429, 499, 500, 503, 529]), st.integers(300, 999)
)


@st.composite
def wrapped(draw: st.DrawFn) -> bytes:
    """An error that relays have quoted in each other's messages, as deep as they like."""
    inner = draw(damaged()).decode("utf-8", "replace")
    for _ in range(draw(st.integers(1, 6))):
        prefix = draw(st.sampled_from(["Provider error 400: ", "Provider error 429: ", ""]))
        inner = json.dumps(
            {"error": {"message": prefix + inner, "code": draw(st.sampled_from(["", "upstream_error"]))}}
        )
    return inner.encode()


bodies = st.one_of(
    st.none(),
    st.binary(max_size=200),
    damaged(),
    wrapped(),
    damaged().map(lambda raw: b"data: " + raw),
    damaged().map(gzip.compress),
    st.sampled_from([b"x" * (BODY_LIMIT + 1), b"<html>" * 9000, b"{" * 60000, b"\xff" * 60000, b" " * 65000]),
)


@law
@given(statuses, headers, bodies, moments, st.one_of(st.none(), st.integers(0, COOLDOWN_MAX_MS)), st.booleans())
def test_every_answer_has_a_verdict(
    status: int, fields: object, body: bytes | None, epoch_ms: int, configured: int | None, overflow_hops: bool
) -> None:
    facts = failure_facts(status, fields, body)  # type: ignore[arg-type]
    verdict = classify(facts, overflow_hops=overflow_hops)
    cooldown = cooldown_for(verdict, facts, cooldown_ms=configured, now=Now(0, epoch_ms))
    assert cooldown is None or 1 <= cooldown.ms <= CEILING_MS
    assert verdict.hop or cooldown is None
    assert len(facts.text) <= BODY_LIMIT
    assert facts.summary.isprintable()
    facts.summary.encode()


@law
@given(headers, bodies, moments)
def test_signals_are_read_or_left(fields: object, body: bytes | None, epoch_ms: int) -> None:
    signals = pool_signals(fields, body, epoch_ms)  # type: ignore[arg-type]
    assert signals.dated is None or isinstance(signals.dated, int)
    header_snapshot(fields, epoch_ms)  # type: ignore[arg-type]


@law
@given(st.one_of(header_values.map(lambda raw: raw.decode("latin-1")), st.text(max_size=140)), moments)
def test_delays_are_bounded(value: str, epoch_ms: int) -> None:
    delay = retry_after_ms(value, epoch_ms)
    assert delay is None or 1 <= delay <= CEILING_MS
    reset = codex_reset_ms([value], epoch_ms)
    assert reset is None or reset >= 1


@law
@given(st.integers(1, 86_000), st.integers(10**9, 4 * 10**9))
def test_a_date_means_what_it_says(seconds: int, now_s: int) -> None:
    assert retry_after_ms(formatdate(now_s + seconds, usegmt=True), now_s * 1000) == seconds * 1000
    assert retry_after_ms(str(seconds), now_s * 1000) == seconds * 1000


@law
@given(bodies.filter(lambda body: body is not None), dialects, dialects, statuses)
def test_a_failure_becomes_json_of_the_client(body: bytes, client: Dialect, target: Dialect, status: int) -> None:
    given_status, made = translate_error(status, body, client, target)
    assert 400 <= given_status <= 599 or given_status == status
    assert made == body if client is target else isinstance(json.loads(made), dict)
    delay = retry_after_s(body, target)
    assert delay is None or delay >= 0


@law
@given(bodies.filter(lambda body: body is not None), dialects)
def test_a_whole_answer_is_read_or_malformed(body: bytes, dialect: Dialect) -> None:
    answer = whole_answer(dialect, body)
    assert answer.ok or answer.failure is not None
    if isinstance(answer.terminal, FailureTerminal):
        facts = stream_failure_facts(answer.terminal, ())
        assert re.fullmatch(r"[a-z0-9-]+", classify(facts).rule)
