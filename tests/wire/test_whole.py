"""Whole answers: what counts as an answer, as a failure, as nothing of the kind."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.dialect import FailureTerminal, SuccessTerminal, Terminal, whole_answer

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI
ERROR = {"message": "busy", "code": "server_is_overloaded"}


@pytest.mark.parametrize(
    ("dialect", "document", "terminal"),
    [
        (R, {"status": "completed", "output": [{}]}, SuccessTerminal("completed")),
        (R, {"status": "completed", "output": []}, SuccessTerminal("completed", empty=True)),
        (R, {"output": [{}]}, SuccessTerminal("completed")),
        (
            R,
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{}]},
            SuccessTerminal("incomplete", "max_output_tokens"),
        ),
        (R, {"status": "failed", "output": [{}], "error": ERROR}, SuccessTerminal("incomplete", "failed")),
        (
            C,
            {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]},
            SuccessTerminal("completed", "stop"),
        ),
        (C, {"choices": [{"message": {"content": "x"}}], "error": ERROR}, SuccessTerminal("completed")),
        (
            C,
            {"choices": [{"message": {"tool_calls": [{}]}, "finish_reason": "length"}]},
            SuccessTerminal("incomplete", "length"),
        ),
        (C, {"choices": []}, SuccessTerminal("completed", empty=True)),
        (M, {"content": [{}], "stop_reason": "end_turn"}, SuccessTerminal("completed", "end_turn")),
        (M, {"content": [], "stop_reason": "refusal"}, SuccessTerminal("incomplete", "refusal", empty=True)),
        (M, {"input_tokens": 7}, SuccessTerminal("completed", empty=True)),
        (
            G,
            {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]},
            SuccessTerminal("completed", "STOP"),
        ),
        (G, {"promptFeedback": {"blockReason": "SAFETY"}}, SuccessTerminal("incomplete", "SAFETY", empty=True)),
    ],
)
def test_answers(dialect: Dialect, document: object, terminal: Terminal) -> None:
    answer = whole_answer(dialect, json.dumps(document).encode())
    assert answer.terminal == terminal
    assert (answer.ok, answer.malformed, answer.failure) == (True, False, None)
    assert answer.completed is (terminal.kind == "completed")


@pytest.mark.parametrize(
    ("dialect", "document", "kind"),
    [
        (R, {"error": ERROR}, "error"),
        (R, {"status": "failed", "output": [], "error": ERROR}, "failed"),
        (R, {"status": "failed"}, "failed"),
        (C, {"error": ERROR}, "error"),
        (C, {"error": ERROR, "choices": []}, "error"),
        (C, {"choices": [{"message": {"content": ""}, "finish_reason": "error"}]}, "error"),
        (M, {"type": "error", "error": ERROR}, "error"),
        (M, {"error": ERROR}, "error"),
        (G, {"error": ERROR}, "error"),
    ],
)
def test_failures(dialect: Dialect, document: object, kind: str) -> None:
    answer = whole_answer(dialect, json.dumps(document).encode())
    assert isinstance(answer.terminal, FailureTerminal)
    assert (answer.terminal.kind, answer.terminal.event, answer.terminal.dialect) == (kind, document, dialect)
    assert (answer.ok, answer.malformed, answer.completed) == (False, False, False)


def test_the_error_of_a_choice_is_lifted() -> None:
    answer = whole_answer(C, b'{"choices":[{"error":{"code":429},"finish_reason":"error"}]}')
    assert answer.failure is not None
    assert answer.failure.event["error"] == {"code": 429}


def test_gemini_error_in_a_list() -> None:
    answer = whole_answer(G, b'[{"error":{"code":429}}]')
    assert answer.failure == FailureTerminal(G, "error", {"error": {"code": 429}})


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("body", [b"", b"<html></html>", b"[]", b"7", b"null", b'"x"', b'{"a":', b"\xff", b"[{},{}]"])
def test_malformed(dialect: Dialect, body: bytes) -> None:
    answer = whole_answer(dialect, body)
    assert answer.malformed
    assert answer.failure == FailureTerminal(dialect, "malformed")


@pytest.mark.parametrize(
    ("dialect", "reported", "usage"),
    [
        (R, {"input_tokens": 1, "output_tokens": 0}, {"input_tokens": 1, "output_tokens": 0}),
        (C, {"prompt_tokens": 1, "prompt_cache_hit_tokens": 4}, {"input_tokens": 1, "cached_input_tokens": 4}),
        (M, {"cache_creation_input_tokens": 2}, {"cache_creation_input_tokens": 2}),
        (M, {"output_tokens_details": {"thinking_tokens": 3}}, {"reasoning_output_tokens": 3}),
        (G, {"promptTokenCount": 1}, {"input_tokens": 1}),
        (R, {"input_tokens": "1", "output_tokens": True, "total_tokens": -1}, None),
        (R, None, None),
    ],
)
def test_usage_and_identity(dialect: Dialect, reported: object, usage: dict[str, int] | None) -> None:
    names = ("responseId", "modelVersion", "usageMetadata") if dialect is G else ("id", "model", "usage")
    document = dict(zip(names, ("r", "m", reported), strict=True))
    answer = whole_answer(dialect, json.dumps(document).encode())
    assert (answer.usage, answer.model, answer.response_id) == (usage, "m", "r")


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
KEYS = st.sampled_from(
    ["error", "status", "output", "choices", "content", "candidates", "usage", "model", "id", "type"]
)


@given(
    st.sampled_from(list(Dialect)), st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=2), max_size=5)
)
@settings(max_examples=200)
def test_hostile_documents_never_raise(dialect: Dialect, document: object) -> None:
    answer = whole_answer(dialect, json.dumps(document).encode())
    assert answer.ok is (answer.failure is None)
    assert not answer.malformed
