"""Chunks of a Gemini stream."""

import pytest

from combos.wire.dialect import FailureTerminal, SuccessTerminal, Terminal
from streams import RECORDED, G, event, read


@pytest.mark.parametrize(
    ("chunk", "output", "terminal"),
    [
        ({"candidates": [{"content": {"parts": [{"text": ""}]}}]}, False, FailureTerminal(G, "eof")),
        ({"candidates": [{"content": {"parts": [{"text": "x", "thought": True}]}}]}, True, FailureTerminal(G, "eof")),
        ({"candidates": [{"content": {"parts": [{"thoughtSignature": "s"}]}}]}, False, FailureTerminal(G, "eof")),
        ({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]}, True, FailureTerminal(G, "eof")),
        ({"candidates": [{"finishReason": "STOP"}]}, False, SuccessTerminal("completed", "STOP", empty=True)),
        ({"candidates": [{"finishReason": "SAFETY"}]}, False, SuccessTerminal("incomplete", "SAFETY", empty=True)),
        ({"candidates": [{"finishReason": "FINISH_REASON_UNSPECIFIED"}]}, False, FailureTerminal(G, "eof")),
        ({"promptFeedback": {"blockReason": "OTHER"}}, False, SuccessTerminal("incomplete", "OTHER", empty=True)),
        ({"error": {"code": 503}}, False, FailureTerminal(G, "error", {"error": {"code": 503}})),
    ],
)
def test_gemini(chunk: object, output: bool, terminal: Terminal) -> None:
    seen = read(G, event(chunk))
    assert (seen.output, seen.terminal) == (output, terminal)


def test_gemini_mangled_data() -> None:
    assert read(G, b"data: {oops\n\n").terminal == FailureTerminal(G, "malformed")
    assert read(G, b"data: [DONE]\n\n").terminal == FailureTerminal(G, "eof")


def test_gemini_usage_and_identity() -> None:
    seen = read(G, RECORDED["gemini.full.sse"])
    assert (seen.model, seen.response_id) == ("gemini-3-pro", "g-s1")
    assert seen.usage == {
        "input_tokens": 1200,
        "output_tokens": 116,
        "total_tokens": 1380,
        "cached_input_tokens": 900,
        "reasoning_output_tokens": 64,
    }
