"""The System One contract: exact request bytes, and which replies are answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.decision.gates import Backend, Closed, Gate
from combos.decision.options import Candidate, options_of
from combos.decision.systemone import Answer, check_count, read_reply, request_body, usage_of

GOLDEN = Path(__file__).parents[1] / "data" / "decision"
CANDIDATES = (Candidate("openai", "gpt-6-astra", ("medium", "high")), Candidate("local", "tiny"))
OPTIONS = options_of(CANDIDATES)
ASTRA, HIGH, TINY = OPTIONS
STATE = {
    "task": "Fix the flaky retry test – größer",
    "signals": {"has_image": False, "tool_history": False},
    "step": {"type": "user_turn"},
}


def body(backend: Backend = Backend.TYPESAFE, state: dict[str, Any] | None = None) -> bytes:
    return request_body(backend, "jev-latest", CANDIDATES, OPTIONS, STATE if state is None else state)


@pytest.mark.parametrize("backend", [Backend.TYPESAFE, Backend.SYSTEMONE])
def test_the_same_input_gives_the_same_bytes(backend: Backend) -> None:
    assert body(backend) == (GOLDEN / f"{backend}.json").read_bytes()


def test_a_body_has_three_members_and_one_question() -> None:
    document = json.loads(body())
    assert list(document) == ["model", "state", "questions"]
    assert list(document["questions"]) == ["route"]
    assert list(document["questions"]["route"]) == ["type", "instructions", "criteria"]


def test_backends_differ_in_criteria_only() -> None:
    typed, plain = json.loads(body()), json.loads(body(Backend.SYSTEMONE))
    assert all(isinstance(value, dict) for value in typed["questions"]["route"].pop("criteria").values())
    assert all(isinstance(value, str) for value in plain["questions"]["route"].pop("criteria").values())
    assert typed == plain


def test_notes_change_only_the_operator_notes() -> None:
    noted = (Candidate("openai", "gpt-6-astra", ("medium", "high"), "cheap"), CANDIDATES[1])
    state = {**STATE, "operator_notes": {"openai/gpt-6-astra": "cheap"}}
    with_notes = json.loads(request_body(Backend.TYPESAFE, "jev-latest", noted, options_of(noted), state))
    assert with_notes["state"].pop("operator_notes") == {"openai/gpt-6-astra": "cheap"}
    assert with_notes == json.loads(body())


@pytest.mark.parametrize("extra", [0, 1])
def test_the_size_is_counted_in_bytes(extra: int) -> None:
    room = 65_536 - len(body(state={"task": ""}))
    state = {"task": "é" * (room // 2) + "x" * (room % 2 + extra)}
    if extra:
        with pytest.raises(Closed, match="invalid"):
            body(state=state)
    else:
        assert len(body(state=state)) == 65_536


@pytest.mark.parametrize(
    ("backend", "count", "gate"),
    [
        (Backend.TYPESAFE, 1, None),
        (Backend.TYPESAFE, 100, None),
        (Backend.SYSTEMONE, 1, Gate.NO_CHOICES),
        (Backend.SYSTEMONE, 2, None),
        (Backend.SYSTEMONE, 26, None),
        (Backend.SYSTEMONE, 27, Gate.INVALID),
    ],
)
def test_how_many_options_a_service_takes(backend: Backend, count: int, gate: Gate | None) -> None:
    options = {str(n): OPTIONS[ASTRA] for n in range(count)}
    if gate is None:
        check_count(backend, options)
        return
    with pytest.raises(Closed, match=gate):
        check_count(backend, options)


def reply(route: Any = None, **fields: Any) -> bytes:
    route = {"type": "choice", "choice": ASTRA, **(route or {})}
    return json.dumps({"model": "jev-1.13.0", "answers": {"route": route}, **fields}).encode()


def test_a_whole_answer() -> None:
    shares = {TINY: 0.1, ASTRA: 0.85, HIGH: 0.05}
    usage = {"input_tokens": 410, "output_tokens": 6}
    got = read_reply(reply({"confidence": 0.83, "probabilities": shares}, usage=usage, extra=1), OPTIONS)
    assert got == Answer(ASTRA, 0.83, 0.85, usage)


def test_the_least_answer() -> None:
    assert read_reply(reply(), OPTIONS) == Answer(ASTRA)


@pytest.mark.parametrize("confidence", [7, -0.1, "0.5", None, True, [0.5]])
def test_a_confidence_that_is_none_is_dropped(confidence: Any) -> None:
    assert read_reply(reply({"confidence": confidence}), OPTIONS) == Answer(ASTRA)


@pytest.mark.parametrize("confidence", [0, 1, 0.5])
def test_a_confidence_of_any_share_counts(confidence: float) -> None:
    assert read_reply(reply({"confidence": confidence}), OPTIONS).confidence == confidence


@pytest.mark.parametrize(
    "shares",
    [
        {ASTRA: 0.5, HIGH: 0.5, TINY: 0.0},
        {ASTRA: 0.4899999, HIGH: 0.49, TINY: 0.02},
        {ASTRA: 0.519, HIGH: 0.25, TINY: 0.25},
        {ASTRA: 1, HIGH: 0, TINY: 0},
    ],
)
def test_a_distribution_in_which_the_choice_leads(shares: dict[str, float]) -> None:
    assert read_reply(reply({"probabilities": shares}), OPTIONS).probability == shares[ASTRA]


@pytest.mark.parametrize(
    "shares",
    [
        {ASTRA: 0.9, HIGH: 0.1},
        {ASTRA: 0.8, HIGH: 0.1, TINY: 0.1, "other": 0.0},
        {ASTRA: 0.8, HIGH: 0.1, TINY: 0.13},
        {ASTRA: 0.8, HIGH: 0.1, TINY: 0.07},
        {ASTRA: 0.4, HIGH: 0.5, TINY: 0.1},
        {ASTRA: 1.1, HIGH: -0.1, TINY: 0.0},
        {ASTRA: "0.8", HIGH: 0.1, TINY: 0.1},
        {ASTRA: True, HIGH: 0, TINY: 0},
        {ASTRA: None, HIGH: 0.5, TINY: 0.5},
        [],
        0.9,
        None,
        {},
    ],
)
def test_no_distribution_over_what_was_offered(shares: Any) -> None:
    with pytest.raises(Closed, match="invalid"):
        read_reply(reply({"probabilities": shares}), OPTIONS)


@pytest.mark.parametrize(
    "document",
    [
        [],
        7,
        None,
        {},
        {"answers": []},
        {"answers": {"route": "x"}},
        {"answers": {"route": {}}},
        {"answers": {"route": {"choice": None}}},
        {"answers": {"route": {"choice": ["openai/gpt-6-astra:medium"]}}},
        {"answers": {"route": {"choice": "openai/gpt-6-astra:max"}}},
        {"answers": {"route": {"choice": " openai/gpt-6-astra:medium"}}},
        {"answers": {"other": {"choice": "openai/gpt-6-astra:medium"}}},
    ],
)
def test_json_without_a_choice_on_offer(document: Any) -> None:
    with pytest.raises(Closed, match="invalid"):
        read_reply(json.dumps(document).encode(), OPTIONS)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b'{"answers":',
        reply().replace(b"jev-1.13.0", b"gr\xfcn"),
        b"[" * 5_000,
        reply() + b" " * 65_536,
    ],
)
def test_bytes_that_are_no_reply(data: bytes) -> None:
    with pytest.raises(Closed, match="malformed"):
        read_reply(data, OPTIONS)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 1, "output_tokens": 0}, {"input_tokens": 1, "output_tokens": 0}),
        ({"inputTokens": 1, "outputTokens": 2, "cost": 3}, {"input_tokens": 1, "output_tokens": 2}),
        ({"input_tokens": -1, "inputTokens": 4, "output_tokens": 2}, {"input_tokens": 4, "output_tokens": 2}),
        ({"input_tokens": 2**53 - 1, "output_tokens": 2}, {"input_tokens": 2**53 - 1, "output_tokens": 2}),
        ({"input_tokens": 2**53, "output_tokens": 2}, None),
        ({"input_tokens": 1}, None),
        ({"input_tokens": 1.0, "output_tokens": 2}, None),
        ({"input_tokens": True, "output_tokens": 2}, None),
        ([], None),
        (None, None),
    ],
)
def test_usage_is_kept_when_both_counts_are_whole(usage: Any, counted: Any) -> None:
    assert usage_of(usage) == counted


MEMBERS = ["answers", "route", "choice", "probabilities", "confidence", "usage", "input_tokens", *OPTIONS]
LEAVES = st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(MEMBERS)
JSON_VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner), max_leaves=15
)


@settings(max_examples=200, deadline=None)
@given(JSON_VALUES, JSON_VALUES, st.booleans())
def test_whatever_comes_is_an_option_on_offer_or_a_gate(value: Any, shares: Any, valid: bool) -> None:
    route = {"choice": HIGH, "probabilities": shares} if valid else value
    data = json.dumps({"answers": {"route": route}, "usage": value}).encode()
    got = _gate_or_answer(data)
    if isinstance(got, Gate):
        assert got in (Gate.INVALID, Gate.MALFORMED)
    else:
        assert got.choice in OPTIONS
        assert got.probability is None or 0 <= got.probability <= 1


def _gate_or_answer(data: bytes) -> Gate | Answer:
    try:
        return read_reply(data, OPTIONS)
    except Closed as closed:
        return closed.gate
