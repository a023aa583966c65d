"""The object that the ledger keeps: exact shape, and nothing that is not what it must be."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.decision.stored import Stored, from_json, to_json
from combos.engine.record import DecisionRecord

USAGE = {"input_tokens": 410, "output_tokens": 6}
RECORD = DecisionRecord("typesafe", "apply", "openai", "gpt-5.6-sol", "medium", 212, 0.83, 0.9, USAGE)
OBJECT = {
    "version": 1,
    "comboId": "jev-auto",
    "backend": "typesafe",
    "selected": {"provider": "openai", "model": "gpt-5.6-sol", "effort": "medium"},
    "gate": "apply",
    "latencyMs": 212,
    "confidence": 0.83,
    "chosenProbability": 0.9,
    "usage": {"inputTokens": 410, "outputTokens": 6, "totalTokens": 416},
}


def test_the_whole_object() -> None:
    assert to_json(RECORD, "jev-auto") == OBJECT
    assert from_json(OBJECT) == Stored("jev-auto", RECORD)


def test_the_least_object() -> None:
    bare = DecisionRecord("model", "timeout", "a", "m", None, 0)
    stored = to_json(bare, "x")
    assert stored is not None
    assert set(stored) == {"version", "comboId", "backend", "selected", "gate", "latencyMs"}
    assert from_json(stored) == Stored("x", bare)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("version", None),
        ("comboId", ""),
        ("comboId", "x" * 129),
        ("comboId", "a\nb"),
        ("backend", "other"),
        ("backend", 7),
        ("gate", "open"),
        ("gate", None),
        ("gate", ["apply"]),
        ("latencyMs", -1),
        ("latencyMs", 1.5),
        ("latencyMs", True),
        ("selected", None),
        ("selected", {"provider": "a" * 513, "model": "m", "effort": None}),
        ("selected", {"provider": "a", "model": "\x7f", "effort": None}),
        ("selected", {"provider": "a", "model": "m", "effort": "none"}),
        ("selected", {"provider": "a", "effort": "low"}),
    ],
)
def test_a_required_field_that_is_wrong_drops_the_object(path: str, value: Any) -> None:
    assert from_json({**OBJECT, path: value}) is None


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ("confidence", 7, "confidence"),
        ("chosenProbability", "x", "probability"),
        ("usage", {"inputTokens": 1}, "usage"),
        ("usage", 3, "usage"),
    ],
)
def test_an_optional_field_that_is_wrong_drops_itself(path: str, value: Any, name: str) -> None:
    assert from_json({**OBJECT, path: value}) == Stored("jev-auto", replace(RECORD, **{name: None}))


def test_an_older_row_has_an_unknown_backend() -> None:
    older = {name: value for name, value in OBJECT.items() if name != "backend"}
    read = from_json(older)
    assert read is not None
    assert read.decision.backend == "unknown"


@pytest.mark.parametrize(
    ("record", "combo"),
    [
        (replace(RECORD, provider=None, model=None, effort=None), "x"),
        (RECORD, "x" * 129),
        (replace(RECORD, gate="odd"), "x"),
        (replace(RECORD, latency_ms=-1), "x"),
    ],
)
def test_what_could_not_be_read_is_not_written(record: DecisionRecord, combo: str) -> None:
    assert to_json(record, combo) is None


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: st.dictionaries(st.sampled_from(list(OBJECT)), inner),
        max_leaves=8,
    )
)
def test_anything_can_be_read(value: Any) -> None:
    assert from_json(value) is None
