"""Laws of streams: whatever bytes come, however cut, a reader sees the same and raises nothing."""

from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Dialect, Now
from combos.core.failures import classify
from combos.wire.dialect import FailureTerminal, inspector
from combos.wire.envelope import stream_failure_facts
from combos.wire.readable import answer_lines, read_answer
from combos.wire.sse import CutFrame, SseFramer, parse_frame
from fuzzing import cuts, damaged, header_values, law, lines, pieces

streams = st.one_of(st.binary(max_size=300), lines(damaged()))
dialects = st.sampled_from(list(Dialect))


@law
@given(streams, cuts, st.sampled_from([7, 64, 1 << 20]))
def test_frames_do_not_depend_on_the_cuts(data: bytes, at: list[int], limit: int) -> None:
    found = []
    for way in (pieces(data, at), [data], [data[i : i + 1] for i in range(len(data))]):
        framer = SseFramer(limit)
        frames = [frame for piece in way for frame in framer.feed(piece)] + framer.flush()
        assert all(len(frame) <= limit for frame in frames)
        found.append([(frame, isinstance(frame, CutFrame), parse_frame(frame)) for frame in frames])
    assert found[0] == found[1] == found[2]


@law
@given(streams, cuts, dialects, st.sampled_from([40, 1 << 20]))
def test_what_a_stream_shows_does_not_depend_on_the_cuts(
    data: bytes, at: list[int], dialect: Dialect, limit: int
) -> None:
    seen = []
    for way in (pieces(data, at), [data]):
        reader = type(inspector(dialect))(limit)
        for piece in way:
            reader.feed(piece)
        reader.close()
        assert reader.terminal is not None
        seen.append((reader.output, reader.terminal, reader.usage, reader.model, reader.response_id, reader.response))
    assert repr(seen[0]) == repr(seen[1])


@law
@given(streams, dialects, header_values, st.integers(0, 2**42))
def test_a_failed_stream_has_a_verdict(data: bytes, dialect: Dialect, delay: bytes, epoch_ms: int) -> None:
    reader = inspector(dialect)
    reader.feed(data)
    reader.close()
    if isinstance(reader.terminal, FailureTerminal):
        facts = stream_failure_facts(reader.terminal, ((b"retry-after", delay),))
        assert 400 <= facts.status <= 599
        assert facts.summary.isprintable()
        assert classify(facts).rule
        assert Now(0, epoch_ms)


@law
@given(streams, dialects)
def test_people_can_read_whatever_was_kept(data: bytes, dialect: Dialect) -> None:
    try:
        turn = read_answer(dialect, data)
    except ValueError:
        return
    "\n".join(answer_lines(turn)).encode()
