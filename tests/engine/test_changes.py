"""Changes of a parsed body, and what is found in it that some targets must not see."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.engine.changes import changed, holds_native_state, holds_ours
from combos.wire.request import RequestFacts, request_facts
from combos.wire.splice import replace_members

NAMES = st.sampled_from(["a", "b", "c"])
BODIES = st.dictionaries(NAMES, st.none() | st.integers() | st.dictionaries(NAMES, st.integers()))
PATHS = st.tuples(NAMES) | st.tuples(NAMES, NAMES)
CHANGES = st.dictionaries(PATHS, st.none() | st.integers(), max_size=3)


def apart(changes: dict[tuple[str, ...], object]) -> bool:
    return not any(a != b and b[: len(a)] == a for a in changes for b in changes)


@settings(max_examples=200)
@given(BODIES, CHANGES.filter(apart))
def test_changes_mean_the_same_as_in_bytes(body: dict[str, Any], changes: dict[tuple[str, ...], object]) -> None:
    raw = {path: None if value is None else json.dumps(value).encode() for path, value in changes.items()}
    before = json.dumps(body)
    assert changed(body, changes) == json.loads(replace_members(before.encode(), raw))
    assert json.dumps(body) == before


def facts(wire: str, inside: Any) -> RequestFacts:
    path, document = {
        "R": ("/v1/responses", {"model": "m", "input": [inside]}),
        "M": ("/v1/messages", {"model": "m", "messages": [{"role": "assistant", "content": [inside]}]}),
        "G": ("/v1/models/m:generateContent", {"contents": [{"role": "model", "parts": [inside]}]}),
        "C": ("/v1/chat/completions", {"model": "m", "messages": [inside]}),
    }[wire]
    return request_facts(path, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("wire", "inside", "ours", "native"),
    [
        ("R", {"type": "reasoning", "encrypted_content": "gAAA"}, False, True),
        ("R", {"type": "reasoning", "encrypted_content": "cmb1.x"}, True, True),
        ("R", {"type": "compaction", "encrypted_content": "combos-summary:x"}, True, True),
        ("R", {"type": "agent_message", "content": []}, True, False),
        ("R", {"type": "message", "content": "cmb1.x"}, False, False),
        ("R", "cmb1.x", False, False),
        ("M", {"type": "thinking", "signature": "Eq"}, False, True),
        ("M", {"type": "thinking", "signature": "cmb1.x"}, True, True),
        ("M", {"type": "redacted_thinking", "data": "cmb1.x"}, True, True),
        ("M", {"type": "text", "text": "cmb1.x"}, False, False),
        ("G", {"text": "a", "thoughtSignature": "Y21iMS5l"}, True, True),
        ("G", {"text": "a", "thoughtSignature": "AAAA"}, False, True),
        ("G", 7, False, False),
        ("C", {"role": "user", "content": "cmb1.x"}, False, False),
    ],
)
def test_state_is_found_where_the_dialect_keeps_it(wire: str, inside: Any, ours: bool, native: bool) -> None:
    assert holds_ours(facts(wire, inside)) is ours
    assert holds_native_state(facts(wire, inside)) is native
