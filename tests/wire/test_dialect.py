"""Inspectors of all dialects over recorded streams: what ends them, and independence of how bytes are cut."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.dialect import FailureTerminal, SuccessTerminal, inspector
from streams import DATA, RECORDED, C, G, M, R, event, facts, read, result, typed

DIALECTS = {"openai-responses": R, "openai-chat": C, "anthropic": M}


@pytest.mark.parametrize(
    ("name", "output", "terminal"),
    [
        ("chat.error.sse", True, (False, "error")),
        ("chat.full.sse", True, (True, "completed")),
        ("chat.interleaved.sse", True, (True, "completed")),
        ("chat.refusal.sse", True, (True, "completed")),
        ("gemini.full.sse", True, (True, "completed")),
        ("messages.crlf.sse", True, (True, "completed")),
        ("messages.cut-off.sse", True, (False, "eof")),
        ("messages.full.sse", True, (True, "completed")),
        ("messages.overloaded.sse", True, (False, "error")),
        ("messages.proxy-turn-response-1.sse", True, (True, "completed")),
        ("messages.proxy-turn-response-2.sse", True, (True, "completed")),
        ("messages.redacted.sse", True, (True, "completed")),
        ("messages.refusal.sse", True, (True, "incomplete")),
        ("messages.web-search.sse", True, (True, "completed")),
        ("responses.apikey-turn-response-1.sse", True, (True, "completed")),
        ("responses.apikey-turn-response-2.sse", True, (True, "completed")),
        ("responses.compaction-remote-v2-response-1.sse", True, (True, "completed")),
        ("responses.error-event.sse", False, (False, "error")),
        ("responses.failed.sse", False, (False, "failed")),
        ("responses.freeform.sse", True, (True, "completed")),
        ("responses.full.sse", True, (True, "completed")),
        ("responses.loose.sse", True, (True, "completed")),
        ("responses.refusal.sse", True, (True, "completed")),
        ("responses.web-search.sse", True, (True, "completed")),
    ],
)
def test_recorded_streams(name: str, output: bool, terminal: tuple[bool, str]) -> None:
    seen = read(Dialect(name.partition(".")[0]), RECORDED[name])
    assert seen.output is output
    assert result(seen.terminal) == terminal


def test_every_recorded_stream_is_tested() -> None:
    rows = test_recorded_streams.pytestmark[0].args[1]
    assert {row[0] for row in rows} == set(RECORDED)


@given(st.sampled_from(sorted(RECORDED)), st.data())
@settings(max_examples=120, deadline=None)
def test_any_split_gives_the_same_result(name: str, draw: st.DataObject) -> None:
    dialect, stream = Dialect(name.partition(".")[0]), RECORDED[name]
    cuts = draw.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    assert facts(read(dialect, stream, cuts)) == facts(read(dialect, stream))


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_byte_by_byte_and_with_crlf(name: str) -> None:
    dialect, stream = Dialect(name.partition(".")[0]), RECORDED[name]
    whole = facts(read(dialect, stream))
    assert facts(read(dialect, stream, list(range(len(stream))))) == whole
    crlf = stream.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert facts(read(dialect, crlf)) == whole
    assert facts(read(dialect, stream.replace(b"data: ", b"data:"))) == whole


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_stream_cut_before_its_terminal_has_failed(name: str) -> None:
    dialect, stream = Dialect(name.partition(".")[0]), RECORDED[name].replace(b"\r\n", b"\n")
    frames = stream.split(b"\n\n")
    for count in range(len(frames)):
        seen = inspector(dialect)
        seen.feed(b"\n\n".join(frames[:count]) + b"\n\n")
        known = seen.terminal
        seen.close()
        assert seen.terminal == (known or FailureTerminal(dialect, "eof"))


# Without the cases of an adapter's own check of declared tools: no reading of bytes decides those.
CASES = [
    case
    for case in json.loads((DATA / "classification-cases.json").read_text())
    if "sse" in case and "run_turn" not in case
]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_classification_cases(case: dict[str, object]) -> None:
    """A case that commits has output or a success; one that hops or stops has neither, but a failure."""
    stream = case["sse"] or ""
    assert isinstance(stream, str)
    seen = read(DIALECTS[str(case["dialect"])], stream.encode())
    expected = case["expected"]
    assert isinstance(expected, dict)
    commits = seen.output or isinstance(seen.terminal, SuccessTerminal)
    assert commits is (expected["verdict"] == "commit")


@pytest.mark.parametrize(
    ("dialect", "first", "second"),
    [
        (R, typed("response.completed", response={}), typed("error", message="late")),
        (R, typed("error", message="first"), typed("response.completed", response={})),
        (C, event({"choices": [{"finish_reason": "stop"}]}), event({"error": {"message": "late"}})),
        (C, event({"error": {"message": "first"}}), b"data: [DONE]\n\n"),
        (M, typed("message_delta", delta={"stop_reason": "end_turn"}), typed("error", error={})),
        (M, typed("error", error={"type": "api_error"}), typed("message_stop")),
        (G, event({"candidates": [{"finishReason": "STOP"}]}), event({"error": {"code": 500}})),
    ],
)
def test_the_first_terminal_decides(dialect: Dialect, first: bytes, second: bytes) -> None:
    alone = read(dialect, first)
    assert read(dialect, first + second).terminal == alone.terminal
    assert not read(dialect, first + second).output


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_stream_without_a_byte_has_ended_early(dialect: Dialect) -> None:
    seen = read(dialect, b"")
    assert facts(seen) == (False, FailureTerminal(dialect, "eof"), None, None, None)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_closing_twice_and_feeding_after_the_end_change_nothing(dialect: Dialect) -> None:
    seen = read(dialect, b"")
    seen.feed(RECORDED[f"{dialect}.full.sse"])
    seen.close()
    assert seen.terminal == FailureTerminal(dialect, "eof")
