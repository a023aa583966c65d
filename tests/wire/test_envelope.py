import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable
from types import ModuleType

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core import account_refusal, failures, prose, request_local, retry_after, xai_policy
from combos.core.facts import Dialect, Headers
from combos.core.failure_facts import AccountRefusal, FailureFacts, Signals
from combos.core.failures import classify
from combos.wire import envelope, envelope_shapes, stream_status
from combos.wire.envelope import BODY_LIMIT, failure_facts, stream_failure_facts
from combos.wire.terminal import FailureTerminal

USER = b'{"error":{"type":"invalid_request_error","param":"user","message":"Unsupported parameter: user"}}'
S = "The 'demo-5.5' model is not supported when using Codex with a ChatGPT account."


def facts(status: int, body: bytes | str, *headers: tuple[bytes, bytes]) -> FailureFacts:
    return failure_facts(status, headers, body if isinstance(body, bytes) else body.encode())


def test_status_alone_speaks_when_there_is_no_body() -> None:
    assert facts(502, b"").message == ""
    assert failure_facts(429, ((b"Retry-After", b"7"),), None) == FailureFacts(
        429, text="Provider error 429", signals=Signals("7")
    )


def test_bodies_over_the_bound_are_not_read() -> None:
    padding = " " * (BODY_LIMIT - len('{"error":{"code":"c"}}'))
    assert facts(400, '{"error":{"code":"c"}}' + padding).code == "c"
    assert facts(400, '{"error":{"code":"c"}}' + padding + " ") == FailureFacts(400, text="Provider error 400")
    bomb = gzip.compress(b" " * (BODY_LIMIT + 1))
    assert facts(400, bomb, (b"content-encoding", b"gzip")) == FailureFacts(400, text="Provider error 400")


def test_bodies_that_do_not_decode_are_not_read() -> None:
    for coding in (b"gzip", b"snappy"):
        assert facts(400, USER, (b"content-encoding", coding)).request_local is None
    assert facts(400, USER, (b"content-encoding", b"identity")).request_local == "user"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (502, "bad gateway", "bad gateway"),
        (502, "\ufeff bad gateway\n", "bad gateway"),
        (502, "Provider error 502: bad gateway", "bad gateway"),
        (502, "Provider error 503: bad gateway", "Provider error 503: bad gateway"),
        (502, "<html><body>rate limit</body></html>", ""),
        (502, "  <?xml version='1.0'?><Error>rate limit</Error>", ""),
        (502, "Bad <!DOCTYPE html> rate limit", ""),
        (502, '{"error":{"message":"rate limit"}', ""),
        (502, "[rate limit", ""),
        (502, "data: rate limit\n\ndata: more", ""),
        (502, "event: error\ndata: rate limit", ""),
        (502, '{"unknown":"rate limit"}', ""),
    ],
)
def test_prose(status: int, body: str, message: str) -> None:
    assert facts(status, body).message == message


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (429, 'Provider error 429: {"error":{"code":"1302"}}', "1302"),
        (429, 'Provider error 430: {"error":{"code":"1302"}}', ""),
        (429, 'Provider error 429: Provider error 429: {"error":{"code":"1302"}}', ""),
        (429, 'data: {"error":{"code":"1302"}}\n\n', "1302"),
        (429, 'Provider error 429: data: {"error":{"code":"1302"}}', "1302"),
        (429, 'data: data: {"error":{"code":"1302"}}', ""),
        (429, 'data: {"error":\ndata: {"code":"1302"}}', ""),
    ],
)
def test_prefixes_are_peeled_once(status: int, body: str, code: str) -> None:
    assert facts(status, body).code == code


def test_raw_text_is_kept_for_token_scans() -> None:
    assert classify(facts(502, '{"broken": "origin_rejected"')).rule == "origin-rejected"
    assert classify(facts(502, '<html>"code":"cyber_policy"')).rule == "policy-refusal"
    assert classify(facts(502, json.dumps({"echo": '"code":"cyber_policy"'}))).rule == "status-retryable"


def test_a_5xx_body_with_broken_utf8_is_no_quota_evidence() -> None:
    body = b'{"error":{"code":"insufficient_quota","message":"usage limit reached \xff"}}'
    assert facts(502, body).garbled
    assert classify(facts(502, body)).rule == "status-retryable"
    assert not facts(429, body).garbled
    assert classify(facts(429, body)).rule == "provider-account"


def test_request_local_rows_need_a_400() -> None:
    assert facts(400, USER).request_local == "user"
    assert facts(400, b"Provider error 400: " + USER).request_local == "user"
    assert facts(400, b"data: " + USER).request_local is None
    assert facts(422, USER).request_local is None
    assert facts(400, USER + b" " * 16_384).request_local is None


def test_account_refusals_need_a_400() -> None:
    detail = json.dumps({"detail": S, "trace": "x" * 50_000})
    assert facts(400, detail).account_refusal is AccountRefusal.EXACT
    assert facts(400, f"Provider error 400: {S}").account_refusal is AccountRefusal.EXACT
    assert facts(400, f"Provider error 400: Provider error 400: {S}").account_refusal is None
    assert facts(422, detail).account_refusal is None
    assert facts(400, json.dumps({"detail": S, "error": None})).account_refusal is AccountRefusal.COMPETING
    assert facts(400, '{"detail":"' + S).account_refusal is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [("upstream_no_response", True), (" upstream_no_response ", True), ("Upstream_No_Response", False), ("x", False)],
)
def test_non_replayable_codes_are_exact(code: str, expected: bool) -> None:
    assert facts(504, json.dumps({"response": {"error": {"code": code}}})).non_replayable is expected


def failed(kind: str, event: dict[str, object], headers: Headers = ()) -> FailureFacts:
    return stream_failure_facts(FailureTerminal(Dialect.RESPONSES, kind, event), headers)


def test_streams_have_the_status_their_failure_would_have_had() -> None:
    made = failed("failed", {"response": {"error": {"code": "rate_limit_exceeded"}}}, ((b"retry-after", b"9"),))
    assert (made.status, made.code, made.from_stream, made.signals.retry_after) == (
        429,
        "rate_limit_exceeded",
        True,
        "9",
    )
    assert failed("error", {"status": 410, "error": {"code": "model_eol"}}).status == 410
    assert failed("eof", {}).status == 502


def test_streams_may_refuse_a_model_for_the_account() -> None:
    exact = failed("failed", {"response": {"error": {"message": S}}})
    assert (exact.status, exact.account_refusal) == (400, AccountRefusal.EXACT)
    rival = failed("failed", {"detail": S, "response": {"error": {"code": "unsupported_model", "message": "bad"}}})
    assert (rival.status, rival.account_refusal) == (400, AccountRefusal.COMPETING)
    stated = failed("error", {"status": 503, "error": {"message": S}})
    assert (stated.status, stated.account_refusal) == (503, None)
    whole = failed("failed", {"status": "failed", "error": {"message": S}})
    assert whole.account_refusal is AccountRefusal.EXACT


def test_streams_are_searched_for_hard_stops_in_every_carrier() -> None:
    made = failed("error", {"code": "cyber_policy", "error": {"message": "busy", "code": "server_is_overloaded"}})
    assert classify(made).rule == "policy-refusal"
    assert failed(
        "failed", {"error": {"code": "upstream_no_response"}, "response": {"error": {"code": "x"}}}
    ).non_replayable


def test_streams_may_refuse_an_optional_part() -> None:
    error = json.loads(USER)["error"]
    assert failed("failed", {"response": {"error": error}}).request_local == "user"
    assert classify(failed("error", {"error": error})).rule == "request-local"


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "gzip, br": lambda body: brotli.compress(gzip.compress(body)),
}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(max_size=20)
    | st.sampled_from([S, "cyber_policy"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "response", "last_error", "detail", "message", "code", "type", "param", "status"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BODIES = st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode())


@given(st.sampled_from([400, 401, 404, 410, 413, 429, 499, 500, 502]), BODIES)
def test_any_body_has_facts_and_one_verdict(status: int, body: bytes) -> None:
    first = facts(status, body)
    assert first == facts(status, body)
    assert classify(first) == classify(facts(status, body))


@given(st.sampled_from(sorted(CODERS)), BODIES)
def test_a_coded_body_says_what_the_plain_one_says(coding: str, body: bytes) -> None:
    plain = facts(400, body)
    assert facts(400, CODERS[coding](body), (b"Content-Encoding", coding.encode())) == plain


@given(st.sampled_from(["failed", "error", "incomplete", "eof", "malformed"]), JSON)
def test_any_event_has_facts(kind: str, event: object) -> None:
    made = failed(kind, event if isinstance(event, dict) else {})
    assert 400 <= made.status <= 599
    assert classify(made) == classify(made)


HOSTILE = {
    "spaces after a key": lambda size: '{"x": "' + '\\"code\\"' + " " * size + '"}',
    "keys and spaces": lambda size: '"code"   ' * (size // 9),
    "wrapped text": lambda size: json.dumps({"error": {"message": "Provider error 400: " * (size // 20)}}),
    "almost the refusal": lambda size: "The '" + "m" * size,
    "words": lambda size: "model " * (size // 6),
    "tags": lambda size: "a<" * (size // 2),
    "brackets": lambda size: "[" * size,
    "many details": lambda size: json.dumps({"detail": [{"msg": "x"}] * (size // 20)}),
    "deep envelopes": lambda size: deep(size),
}


def deep(size: int) -> str:
    text = "usage limit reached"
    while len(text) < size // 3:
        text = json.dumps({"error": {"message": text}})
    return text


def steps(action: Callable[[], object]) -> int:
    """Lines of Python that an action runs."""
    count = 0

    def trace(_frame: object, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_take_steps_in_proportion_to_their_size(name: str) -> None:
    small, large = (HOSTILE[name](size).encode() for size in (BODY_LIMIT // 4 - 400, BODY_LIMIT - 1600))
    assert len(large) <= BODY_LIMIT
    few, many = (steps(lambda body=body: classify(facts(400, body))) for body in (small, large))
    assert many <= 5 * few


def patterns(value: object) -> list[str]:
    if isinstance(value, re.Pattern):
        return [value.pattern]
    return [text for item in value for text in patterns(item)] if isinstance(value, tuple) else []


@pytest.mark.parametrize(
    "module",
    [
        account_refusal,
        failures,
        prose,
        request_local,
        retry_after,
        xai_policy,
        envelope,
        envelope_shapes,
        stream_status,
    ],
    ids=lambda module: module.__name__,
)
def test_patterns_repeat_single_classes_only(module: ModuleType) -> None:
    """A repeated group or an unbounded dot is how a pattern comes to backtrack over the whole body."""
    texts = [text for value in vars(module).values() for text in patterns(value)]
    assert not [text for text in texts if re.search(r"(?<!\\)\)[*+{]|(?<!\\)\.[*+]", text)]


def test_the_pattern_test_can_fail() -> None:
    assert patterns((re.compile("(a+)+"), 3)) == ["(a+)+"]
    assert any(patterns(value) for value in vars(retry_after).values())
