"""Records of requests: what they hold, what they hide, and that unknown is null."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.admin.usage_record import (
    TEXT_MAX,
    attempt_cost,
    bounded,
    clean,
    counts_in_ledger,
    served_attempt,
    usage_document,
)
from combos.core.facts import Dialect, Surface
from combos.engine.record import Outcome
from records import AT, attempt, decision, failure, registry, turn


def test_a_hop_is_told_attempt_by_attempt() -> None:
    made = usage_document(turn(waits_ms=[50]), registry(), AT)
    assert json.loads(json.dumps(made)) == made
    first, second = made.pop("attempts")
    assert made == {
        "version": 1, "requestId": "r1", "timestamp": AT, "combo": "main", "requestedModel": "combo/main",
        "resolvedModel": "beta/m2", "inboundProtocol": "responses", "outcome": "success", "reason": None,
        "status": 200, "durationMs": 3_000, "firstOutputMs": 1_110, "waitsMs": [50], "usageStatus": "partial",
        "usage": {
            "inputTokens": 25, "outputTokens": 7, "totalTokens": 32, "cacheReadInputTokens": None,
            "cacheCreationInputTokens": None, "reasoningOutputTokens": None,
        },
        "spend": {"sends": 2},
    }  # fmt: skip
    assert first == {
        "ordinal": 0, "provider": "alpha", "model": "m1", "dialect": "responses", "account": None, "served": False,
        "status": 503, "result": "http 503", "rule": "status-retryable", "verdict": "hop", "cooldownMs": 60_000,
        "cooldownSource": "default", "errorCode": None, "upstreamError": None, "startedMs": 10, "durationMs": 900,
        "firstOutputMs": None, "sendCount": 1, "dropped": [], "usageStatus": "unreported", "usage": None,
        "costUsd": None,
    }  # fmt: skip
    assert (second["served"], second["rule"], second["costUsd"]) == (True, None, round((25 * 2 + 7 * 20) / 1e6, 9))


def test_usage_of_several_attempts_is_each_its_own_and_the_total_their_sum() -> None:
    record = turn(
        failure(usage={"input_tokens": 10}), attempt(1, "beta", "m2", usage={"input_tokens": 12, "output_tokens": 3})
    )
    made = usage_document(record, registry(), AT)
    assert [one["usage"]["inputTokens"] for one in made["attempts"]] == [10, 12]
    assert [one["usage"]["outputTokens"] for one in made["attempts"]] == [None, 3]
    assert (made["usage"]["inputTokens"], made["usage"]["outputTokens"]) == (22, 3)
    assert made["usageStatus"] == "reported"


def test_no_usage_anywhere_is_null_and_not_zero() -> None:
    made = usage_document(turn(attempt(usage=None)), registry(), AT)
    assert (made["usage"], made["usageStatus"]) == (None, "unreported")
    nothing = turn(outcome=Outcome.UNAVAILABLE, status=503)
    nothing.attempts.clear()
    made = usage_document(nothing, registry(), AT)
    assert (made["usage"], made["usageStatus"], made["spend"]) == (None, "unreported", {"sends": 0})
    assert usage_document(turn(attempt(usage={"output_tokens": 0})), registry(), AT)["usage"]["outputTokens"] == 0


def test_a_request_that_was_cut_has_nobody_who_served_it() -> None:
    record = turn(outcome=Outcome.CUT)
    assert served_attempt(record) is None
    assert usage_document(record, registry(), AT)["resolvedModel"] is None


def test_the_overtaken_attempt_of_a_hedge_did_not_serve() -> None:
    record = turn(attempt(), attempt(1, "beta", "m2", result="overtaken"))
    assert served_attempt(record) is record.attempts[0]


def test_a_decision_is_kept_as_its_own_object() -> None:
    made = usage_document(turn(decision=decision()), registry(), AT)["jevDecision"]
    assert (made["comboId"], made["selected"]["model"], made["usage"]["totalTokens"]) == ("main", "m1", 406)
    assert "jevDecision" not in usage_document(turn(), registry(), AT)


def test_prices_are_those_of_the_model_and_missing_ones_cost_nothing_known() -> None:
    assert attempt_cost(attempt(dialect=Dialect.CHAT), registry()) == (25 + 70) / 1e6
    assert attempt_cost(attempt(model="m9"), registry()) is None
    assert attempt_cost(attempt(provider="gone"), registry()) is None


def test_counting_tokens_is_no_request_for_output() -> None:
    assert counts_in_ledger(turn())
    assert not counts_in_ledger(turn(surface=Surface.COUNT_TOKENS))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: sk-canary-0123456789abcdef", "Incorrect API key provided: ****"),
        ("bearer abc123", "****"),
        ("token=abc.def.123456", "****"),
        ("api_key: a1b2", "****"),
        ("key AIzaSyA1234567890abcdefghijklmnop is not valid", "**** is not valid"),
        ("eyJhbGciOi1.eyJzdWIiOiIx.c2lnbmF0dXJl", "****"),
        ("The model gpt-5.6-sol is overloaded", "The model gpt-5.6-sol is overloaded"),
        ("two\nlines\x00and more", "two lines and more"),
        ("", ""),
    ],
)
def test_texts_from_outside_are_bounded_and_masked(text: str, shown: str) -> None:
    assert clean(text) == shown
    made = usage_document(turn(failure(error_message=text, error_code="c")), registry(), AT)["attempts"][0]
    assert made["upstreamError"] == (shown or None)


def test_names_of_models_are_no_secrets_however_long_they_are() -> None:
    model = "claude-sonnet-4-5-20250929"
    text = f"The model {model} is overloaded, {model}. Not sk-0123456789 or claude-sonnet-4-5-20250930x"
    record = turn(failure(model=model, error_message=text), reason=f"alpha/{model}: cooling")
    record.requested_model = f"alpha/{model}--high"
    made = usage_document(record, registry(), AT)
    assert made["requestedModel"] == f"alpha/{model}--high"
    assert made["reason"] == f"alpha/{model}: cooling"
    shown = f"The model {model} is overloaded, {model}. Not **** or ****"
    assert made["attempts"][0]["upstreamError"] == shown


@given(st.text(max_size=2_000))
def test_any_text_is_kept_on_one_bounded_line(text: str) -> None:
    assert len(clean(text)) <= TEXT_MAX
    assert "\n" not in clean(text)
    assert "\x00" not in clean(text)
    assert len(bounded(text)) <= TEXT_MAX
    assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in bounded(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", ""), (" combo/main ", "combo/main"), ("a\r\nb\x85c", "a b c"), ("x" * (TEXT_MAX + 1), "x" * TEXT_MAX)],
)
def test_names_stand_on_one_line(text: str, shown: str) -> None:
    assert bounded(text) == shown
