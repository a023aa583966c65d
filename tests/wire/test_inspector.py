"""What inspectors share: hostile bytes, cheap passage of output, frames that are too large."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.dialect import SuccessTerminal, inspector
from combos.wire.inspector import leading_type
from combos.wire.responses import ResponsesInspector
from combos.wire.sse import parse_frame
from streams import C, G, M, R, event, read, result, typed

CREATED = typed("response.created", response={"id": "r1", "model": "m1", "output": []})


PIECES = st.sampled_from(
    [
        b"event: error\n", b"event: message_start\n", b"event: message_delta\n", b"event: content_block_delta\n",
        b'data: {"type":"error","error":[]}\n\n', b'data: {"type":["x"],"response":7,"choices":{"a":1}}\n\n',
        b'data: {"type":"response.created","response":{"output":{},"model":4,"id":[]}}\n\n', b"data: null\n\n",
        b'data: {"choices":[{"delta":[1],"finish_reason":{}}],"usage":[1],"message":"x","delta":"y"}\n\n',
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":"5","output_tokens":-1}}}\n\n',
        b'data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":{}}}}\n\n',
        b'data: {"candidates":[{"content":{"parts":[1,{"text":[]}]},"finishReason":3}],"usageMetadata":7}\n\n',
        b'data: {"type":"content_block_start","content_block":[]}\n\n', b"\xff\xfe\x00",
        b"data: " + b"[" * 3000 + b"\n\n",
    ]
)  # fmt: skip


@given(st.sampled_from(list(Dialect)), st.lists(PIECES | st.binary(max_size=30), max_size=8))
@settings(max_examples=200)
def test_hostile_input_never_raises(dialect: Dialect, pieces: list[bytes]) -> None:
    seen = inspector(dialect)
    for piece in pieces:
        seen.feed(piece)
    seen.close()
    assert seen.terminal is not None
    assert seen.usage is None or all(type(count) is int and count >= 0 for count in seen.usage.values())


class CountingInspector(ResponsesInspector):
    """Counts the frames that are parsed."""

    parsed = 0

    def _parse(self, data: bytes) -> dict[str, object] | None:
        self.parsed += 1
        parsed = super()._parse(data)
        return None if parsed is None else dict(parsed)


def test_after_output_only_candidates_for_a_terminal_are_parsed() -> None:
    seen = CountingInspector()
    seen.feed(CREATED + typed("response.output_text.delta", delta="x"))
    assert seen.parsed == 2
    for _ in range(100):
        seen.feed(typed("response.output_text.delta", delta="quite ordinary text"))
    assert seen.parsed == 2
    seen.feed(typed("response.output_text.delta", delta='"error" and response.failed are words'))
    assert seen.terminal is None
    seen.feed(typed("response.completed", response={}))
    assert seen.terminal == SuccessTerminal("completed")
    parsed = seen.parsed
    seen.feed(typed("response.failed"))
    assert seen.parsed == parsed


OUTPUT = {
    R: typed("response.output_text.delta", delta="x"),
    C: event({"choices": [{"delta": {"content": "x"}}]}),
    M: typed("content_block_delta", delta={"type": "text_delta", "text": "x"}),
    G: event({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}),
}
LAST = {
    R: typed("response.completed", response={"id": "r1"}),
    C: event({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    M: typed("message_stop"),
    G: event({"candidates": [{"finishReason": "STOP"}]}),
}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_last_frame_counts_without_its_blank_line_if_it_is_whole_and_only_then(dialect: Dialect) -> None:
    """A stream that is cut within its last event has not ended well, whatever the part says that came."""
    last = LAST[dialect].rstrip(b"\n")
    for size in range(len(last) + 1):
        is_whole = size == len(last)
        seen = read(dialect, OUTPUT[dialect] + last[:size])
        assert result(seen.terminal) == ((True, "completed") if is_whole else (False, "eof")), last[:size]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_first_frame_that_is_cut_is_no_output(dialect: Dialect) -> None:
    first = OUTPUT[dialect].rstrip(b"\n")
    for size in range(len(first)):
        assert not read(dialect, first[:size]).output, first[:size]


LONG = "z" * 5000


@pytest.mark.parametrize(
    ("kind", "frame", "output", "terminal"),
    [
        (R, typed("response.completed", response={"x": LONG}), False, (True, "completed")),
        (R, typed("response.failed", response={"x": LONG}), False, (False, "failed")),
        (R, typed("response.created", response={"x": LONG}), False, (False, "eof")),
        (R, typed("response.output_item.done", item={"x": LONG}), True, (False, "eof")),
        (R, event({"x": LONG}, "response.completed"), False, (True, "completed")),
        (M, typed("message_start", message={"x": LONG}), False, (False, "eof")),
        (M, typed("content_block_start", content_block={"x": LONG}), True, (False, "eof")),
        (C, event({"choices": [{"delta": {"content": LONG}}]}), True, (False, "eof")),
        (G, event({"candidates": [{"content": {"parts": [{"text": LONG}]}}]}), True, (False, "eof")),
    ],
)
def test_a_frame_over_the_limit_counts_by_its_type(
    kind: Dialect, frame: bytes, output: bool, terminal: tuple[bool, str]
) -> None:
    seen = type(inspector(kind))(1000)
    for start in range(0, len(frame), 300):
        seen.feed(frame[start : start + 300])
    seen.close()
    assert seen.output is output
    assert result(seen.terminal) == terminal


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (b'event: a\ndata: {"type":"b","x":1', "b"),
        (b'event: a\ndata: { "type" : "b"', "b"),
        (b'event: a\ndata: {"x":"y","type":"b"', "a"),
        (b"event: a\ndata: x", "a"),
        (b"data: x", ""),
    ],
)
def test_leading_type(frame: bytes, kind: str) -> None:
    assert leading_type(parse_frame(frame)) == kind
