"""Framing: the same frames however the bytes are cut, and work that is linear in their number."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.wire.sse import EVENT_STREAM, CutFrame, SseEvent, SseFramer, parse_frame


def frames_of(data: bytes, cuts: list[int] | None = None, limit: int = 1 << 20) -> list[bytes]:
    framer = SseFramer(limit)
    edges = [0, *sorted(cuts or []), len(data)]
    frames = [frame for a, b in pairwise(edges) for frame in framer.feed(data[a:b])]
    return frames + framer.flush()


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"data: a\n\ndata: b\n\n", [b"data: a", b"data: b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"data: a", b"data: b"]),
        (b"data: a\r\rdata: b\r\r", [b"data: a", b"data: b"]),
        (b"data: a\n\r\ndata: b\r\n\ndata: c\r\n\rdata: d", [b"data: a", b"data: b", b"data: c", b"data: d"]),
        (b"data: a\n\n\n\n\ndata: b\n\n", [b"data: a", b"\ndata: b"]),
        (b"data: a", [b"data: a"]),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [b"data: a", b"\xef\xbb\xbfdata: b"]),
        (b"", []),
        (b"\n\n\n", [b"\n"]),
    ],
)
def test_frames(data: bytes, frames: list[bytes]) -> None:
    assert frames_of(data) == frames
    assert frames_of(data, list(range(len(data)))) == frames


@pytest.mark.parametrize(
    ("frame", "event"),
    [
        (b"data: a", SseEvent("", b"a")),
        (b"data:a", SseEvent("", b"a")),
        (b"data:  a ", SseEvent("", b" a ")),
        (b"event: x\ndata: a\ndata: b\nid: 1\nretry: 5", SseEvent("x", b"a\nb")),
        (b"data: a\nevent: x", SseEvent("x", b"a")),
        (b"event: x\nevent: y\ndata: a", SseEvent("y", b"a")),
        (b": comment\n:data: no", SseEvent("", None)),
        (b"event: x", SseEvent("x", None)),
        (b"data", SseEvent("", None)),
        (b"data\ndata: a", SseEvent("", b"\na")),
        (b"<html>data: a</html>", SseEvent("", None)),
        (b"event: \xff\ndata: \xff", SseEvent("\ufffd", b"\xff")),
    ],
)
def test_fields(frame: bytes, event: SseEvent) -> None:
    assert parse_frame(frame) == event


SOUP = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"data: a", b"event: x", b":c", b"\xef\xbb\xbf", b"x" * 9])
).map(b"".join)


@given(SOUP, st.data(), st.sampled_from([5, 12, 1 << 20]))
@settings(max_examples=200)
def test_frames_do_not_depend_on_the_cuts(data: bytes, draw: st.DataObject, limit: int) -> None:
    cuts = draw.draw(st.lists(st.integers(0, len(data)), max_size=12))
    whole = frames_of(data, limit=limit)
    for way in (cuts, list(range(len(data)))):
        frames = frames_of(data, way, limit)
        assert frames == whole
        assert [type(frame) for frame in frames] == [type(frame) for frame in whole]


@given(SOUP)
@settings(max_examples=200)
def test_frames_are_those_of_whole_text(data: bytes) -> None:
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    fields = [[line for line in block.split(b"\n") if line] for block in text.split(b"\n\n")]
    assert [[line for line in frame.split(b"\n") if line] for frame in frames_of(data)] == [
        lines for lines, block in zip(fields, text.split(b"\n\n"), strict=True) if block
    ]


def test_a_frame_at_the_limit_is_whole_and_one_above_is_cut() -> None:
    for cuts in ([], list(range(200))):
        assert frames_of(b"data: " + b"x" * 94 + b"\n\n", cuts, limit=100) == [b"data: " + b"x" * 94]
        above = frames_of(b"data: " + b"x" * 95 + b"\n\ndata: b\n\n", cuts, limit=100)
        assert above == [b"data: " + b"x" * 94, b"data: b"]
        assert [isinstance(frame, CutFrame) for frame in above] == [True, False]
        assert parse_frame(above[0]).cut


def test_an_endless_frame_keeps_no_more_than_the_limit() -> None:
    framer = SseFramer(1000)
    for _ in range(5000):
        assert framer.feed(b"y" * 999) == []
    assert len(framer._tail) <= 1000 + 999
    assert [len(frame) for frame in framer.feed(b"\n\n")] == [1000]


class CountingFramer(SseFramer):
    """Counts the bytes that are looked at again after they were once kept."""

    copied = 0

    def _checked(self, frames: list[bytes]) -> list[bytes]:
        self.copied += sum(map(len, frames)) + len(self._tail)
        return super()._checked(frames)


@pytest.mark.parametrize("chunk", [1, 7, 4096, 1 << 22])
def test_work_is_linear(chunk: int) -> None:
    framer = CountingFramer()
    data = b"data: " + b"z" * 300_000 + b"\n\n" + b"data: short\n\n" * 3000
    total = 0
    for start in range(0, len(data), chunk):
        total += len(framer.feed(data[start : start + chunk]))
    assert total == 3001
    assert framer.copied <= 3 * len(data)


@pytest.mark.parametrize(
    ("content_type", "is_one"),
    [
        (b"text/event-stream", True),
        (b"Text/Event-Stream; charset=utf-8", True),
        (b" text/event-stream ;x", True),
        (b"text/event-streams", False),
        (b"application/json; text/event-stream", False),
        (b"text/event-stream x", False),
        (b"", False),
    ],
)
def test_the_content_type_of_a_stream(content_type: bytes, is_one: bool) -> None:
    assert (EVENT_STREAM.match(content_type) is not None) is is_one
