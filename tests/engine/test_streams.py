"""Streamed answers: what is held back, what commits, how failures before and after commitment are given."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.facts import TransportFault
from combos.engine.commands import Break, Commit, Discard, End, Limit, Relay
from combos.engine.events import ChunkReceived, ClientGone, Ended, Failed, HeadReceived, Started
from combos.engine.record import Outcome
from combos.engine.request import TurnOptions
from playbook import (
    JSON,
    SSE,
    Play,
    World,
    breaks,
    commits,
    completed,
    config,
    created,
    delta,
    discards,
    ends,
    event,
    failed,
    finishes,
    header,
    ok,
    relays,
    replies,
    sends,
)

PROGRESS = event({"type": "response.in_progress"})


@pytest.fixture
def world() -> World:
    return World(config())


def started(world: World, *chunks: bytes, headers: tuple[tuple[bytes, bytes], ...] = SSE, **kwargs: object) -> Play:
    play = world.turn(**kwargs) >> Started() << sends("alpha/m1")  # type: ignore[arg-type]
    return play.stream(0, *chunks, headers=headers)


def committed(world: World, *chunks: bytes) -> Play:
    play = started(world, created(), delta("Half"))
    play << commits(0) << relays(created() + delta("Half"))
    for chunk in chunks:
        play >> ChunkReceived(0, chunk) << relays(chunk)
    return play


def test_nothing_is_given_before_output_and_everything_after(world: World) -> None:
    play = started(world, b": hi\n\n", created(), PROGRESS)
    assert play.pending == []
    play >> ChunkReceived(0, delta("a")) << commits(0) << relays(b": hi\n\n" + created() + PROGRESS + delta("a"))
    play >> ChunkReceived(0, completed(model="real", usage={"input_tokens": 3, "output_tokens": 2}))
    play << relays(completed(model="real", usage={"input_tokens": 3, "output_tokens": 2}))
    world.mono_ms += 5
    play >> Ended(0) << ends() << finishes(Outcome.SUCCESS)
    record = play.done()
    attempt = record.attempts[0]
    assert (attempt.result, attempt.response_model, attempt.usage) == (
        "completed",
        "real",
        {"input_tokens": 3, "output_tokens": 2},
    )
    assert (record.committed_ms, attempt.first_output_ms, record.ended_ms) == (1_000_000, 1_000_000, 1_000_005)


@pytest.mark.parametrize("code", ["server_is_overloaded", "server_error", "rate_limit_exceeded"])
def test_a_failure_before_output_hops(world: World, code: str) -> None:
    play = started(world, created(), failed(code)) << discards(0) << sends("beta/m2")
    play.stream(1, *ok()) << commits(1) << relays(created() + delta("ok")) << relays(completed())
    play >> Ended(1) << ends() << finishes(Outcome.SUCCESS)
    record = play.done()
    assert (play.client_bytes, record.attempts[0].error_code) == (b"".join(ok()), code)
    assert world.cooling() == {"alpha/m1": 60_000}


def test_a_stop_in_the_prefix_is_relayed_unchanged(world: World) -> None:
    bad = failed("cyber_policy")
    play = started(world, created(), bad) << commits(0) << relays(created() + bad)
    play >> ChunkReceived(0, b"data: [DONE]\n\n") << relays(b"data: [DONE]\n\n") >> Ended(0) << ends()
    play << finishes(Outcome.TERMINAL)
    assert (play.done().status, world.cooling()) == (200, {})


def test_the_last_failure_of_an_exhausted_combo_is_relayed_unchanged() -> None:
    world = World(config("alpha/m1"))
    bad = failed("server_is_overloaded")
    play = started(world, created() + bad) << commits(0) << relays(created() + bad)
    play >> Failed(0, TransportFault.CLOSED) << ends() << finishes(Outcome.EXHAUSTED)
    play.done()
    assert world.cooling() == {"alpha/m1": 60_000}


def limits_of(play: Play) -> list[int]:
    """The idle limits that were set, in order."""
    return [command.idle_ms for command in play.log if isinstance(command, Limit)]


@pytest.mark.parametrize("last", [completed(), failed("server_is_overloaded")], ids=["success", "failure"])
def test_an_answer_that_has_said_how_it_ended_is_not_waited_for_as_for_output(world: World, last: bytes) -> None:
    """A target may keep its connection open after that: the client is not to hang with it for minutes."""
    play = committed(world, last)
    assert limits_of(play) == [10_000]
    play >> Failed(0, TransportFault.IDLE_TIMEOUT) << ends()
    play << finishes(Outcome.SUCCESS if last == completed() else Outcome.CUT)
    assert play.done().attempts[0].result == ("completed" if last == completed() else "failed after output")


def test_what_follows_the_end_within_the_limit_is_given(world: World) -> None:
    play = committed(world, completed()) >> ChunkReceived(0, b": bye\n\n") << relays(b": bye\n\n")
    play >> Ended(0) << ends() << finishes(Outcome.SUCCESS)
    play.done()
    assert limits_of(play) == [10_000]


def test_an_answer_that_ends_in_its_first_bytes_is_not_waited_for_either(world: World) -> None:
    play = started(world, b"".join(ok())) << commits(0) << relays(b"".join(ok()))
    assert limits_of(play) == [10_000]
    play >> Failed(0, TransportFault.IDLE_TIMEOUT) << ends() << finishes(Outcome.SUCCESS)
    play.done()


def test_a_failure_that_is_given_live_is_not_waited_for_either(world: World) -> None:
    bad = failed("cyber_policy")
    play = started(world, created(), bad) << commits(0) << relays(created() + bad)
    assert limits_of(play)[-1] == 10_000
    play >> Failed(0, TransportFault.IDLE_TIMEOUT) << ends() << finishes(Outcome.TERMINAL)
    play.done()


def test_a_shorter_limit_of_the_user_stays() -> None:
    world = World(config(), options=TurnOptions(idle_ms=2_000))
    assert limits_of(committed(world, completed())) == [2_000]


@pytest.mark.parametrize(
    ("chunks", "fault", "result"),
    [
        ((), None, "stream ended early"),
        ((created(), PROGRESS), None, "stream ended early"),
        ((b": ping\n\n",), None, "stream ended early"),
        ((created(),), TransportFault.RESET, "connection_reset"),
        ((created(),), TransportFault.IDLE_TIMEOUT, "idle_timeout"),
    ],
)
def test_an_end_without_output_hops_and_finally_is_a_gateway_error(
    world: World, chunks: tuple[bytes, ...], fault: TransportFault | None, result: str
) -> None:
    play = started(world, *chunks) >> (Failed(0, fault) if fault else Ended(0)) << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == result
    assert world.cooling() == {"alpha/m1": 60_000}
    play.stream(1, *chunks) >> (Failed(1, fault) if fault else Ended(1))
    play << replies(504 if fault is TransportFault.IDLE_TIMEOUT else 502) << discards(1) << finishes(Outcome.EXHAUSTED)
    play.done()


def test_the_last_frame_counts_without_its_blank_line(world: World) -> None:
    cut = completed().rstrip(b"\n")
    play = started(world, created(), cut) >> Ended(0) << commits(0) << relays(created() + cut) << ends()
    play << finishes(Outcome.SUCCESS)
    play.done()
    bad = failed("server_error").rstrip(b"\n")
    play = started(world, bad) >> Ended(0) << discards(0) << sends("beta/m2")


def test_completed_without_output_is_a_success(world: World) -> None:
    empty = event({"type": "response.completed", "response": {"status": "completed", "output": []}})
    play = started(world, created(), empty) << commits(0) << relays(created() + empty) >> Ended(0) << ends()
    assert (play << finishes(Outcome.SUCCESS)).done().attempts[0].result == "empty"


def test_a_failure_event_after_output_is_relayed_as_it_is_and_cools(world: World) -> None:
    bad = failed("server_is_overloaded")
    play = committed(world, bad)
    assert world.cooling() == {"alpha/m1": 60_000}, "cooled before the client can repeat its request"
    play >> Ended(0) << ends() << finishes(Outcome.CUT)
    record = play.done()
    assert play.client_bytes == created() + delta("Half") + bad
    assert (record.attempts[0].result, play.calls) == ("failed after output", ["alpha/m1"])
    assert world.state.peek_rotation("main").counts == {}


def test_a_caller_class_failure_after_output_cools_nothing(world: World) -> None:
    play = committed(world, failed("context_length_exceeded")) >> Ended(0) << ends() << finishes(Outcome.CUT)
    play.done()
    assert world.cooling() == {}


def test_a_stream_that_ends_after_output_without_a_terminal_is_broken(world: World) -> None:
    play = committed(world) >> Ended(0) << breaks(b"response.failed") << finishes(Outcome.CUT)
    play.done()
    assert world.cooling() == {"alpha/m1": 60_000}


@pytest.mark.parametrize("fault", [TransportFault.RESET, TransportFault.IDLE_TIMEOUT, TransportFault.TRUNCATED])
def test_a_fault_after_output_is_broken_and_cools(world: World, fault: TransportFault) -> None:
    play = committed(world) >> Failed(0, fault) << breaks(fault.value.encode()) << finishes(Outcome.CUT)
    assert play.done().attempts[0].result == f"{fault} after output"
    assert world.cooling() == {"alpha/m1": 60_000}


def test_a_fault_after_the_terminal_is_no_failure(world: World) -> None:
    play = committed(world, completed()) >> Failed(0, TransportFault.RESET) << ends() << finishes(Outcome.SUCCESS)
    play.done()
    assert (world.cooling(), world.state.peek_rotation("main").counts) == ({}, {"alpha/m1": 1})


def test_success_counts_at_the_terminal_not_at_the_end(world: World) -> None:
    committed(world, completed())
    assert world.state.peek_rotation("main").counts == {"alpha/m1": 1}


def test_a_client_that_leaves_after_the_terminal_was_served(world: World) -> None:
    play = committed(world, completed()) >> ClientGone() << discards(0) << finishes(Outcome.SUCCESS)
    assert play.done().status == 200


def test_a_client_that_leaves_after_commitment_is_neither(world: World) -> None:
    play = committed(world) >> ClientGone() << discards(0) << finishes(Outcome.CANCELLED)
    play.done()
    assert (world.cooling(), world.state.peek_rotation("main").counts) == ({}, {})


@pytest.mark.parametrize("by", ["bytes", "chunks"])
def test_a_full_prefix_commits(by: str) -> None:
    world = World(config())
    world.options = TurnOptions(prefix_bytes=100) if by == "bytes" else TurnOptions(prefix_chunks=3)
    chunk = b": " + b"x" * 30 + b"\n\n"
    play = started(world, chunk, chunk)
    play >> ChunkReceived(0, chunk if by == "chunks" else chunk + b": yyyyyyyyyyyy\n\n")
    if by == "chunks":
        play >> ChunkReceived(0, chunk)
    held = play.pending[1]
    assert isinstance(held, Relay)
    play << commits(0) << relays(held.data)
    bad = failed("server_error")
    play >> ChunkReceived(0, bad) << relays(bad) >> Ended(0) << ends() << finishes(Outcome.CUT)
    assert play.done().attempts[0].first_output_ms is None
    assert play.calls == ["alpha/m1"]


def test_bounds_of_the_prefix() -> None:
    options = TurnOptions()
    assert (options.prefix_bytes, options.prefix_chunks) == (4_194_304, 4_096)


def test_a_missing_content_type_is_a_stream_only_if_one_was_asked_for(world: World) -> None:
    play = started(world, *ok(), headers=()) << commits(0)
    play = world.turn(stream=False) >> Started() << sends("alpha/m1")
    play.answer(0, 200, b'{"output":[1]}', ()) << replies(200) << discards(0) << finishes(Outcome.SUCCESS)


def test_the_answer_decides_its_form_not_the_request(world: World) -> None:
    play = started(world, *ok(), headers=((b"Content-Type", b"Text/Event-Stream; charset=utf-8"),), stream=False)
    play << commits(0)
    play = world.turn(stream=True) >> Started() << sends("alpha/m1")
    play.answer(0, 200, b'{"status":"completed","output":[1]}', JSON) << replies(200) << discards(0)


def test_only_the_owners_headers_reach_the_client(world: World) -> None:
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 529, b"", ((b"request-id", b"alpha"), (b"x-ratelimit", b"0"))) << discards(0) << sends("beta/m2")
    play.stream(1, *ok(), headers=(*SSE, (b"request-id", b"beta"), (b"openai-model", b"m2"), (b"content-length", b"9")))
    commit = next(c for c in play.log if isinstance(c, Commit))
    assert [header(commit, name) for name in (b"request-id", b"x-ratelimit", b"openai-model", b"content-length")] == [
        b"beta",
        None,
        b"combo/main",
        None,
    ]


# -- content codings


def test_a_compressed_stream_is_read_decoded_and_given_as_it_came(world: World) -> None:
    encoder = zlib.compressobj(wbits=31)
    parts = [encoder.compress(chunk) + encoder.flush(zlib.Z_SYNC_FLUSH) for chunk in ok()] + [encoder.flush()]
    headers = (*SSE, (b"content-encoding", b"gzip"))
    play = started(world, parts[0], headers=headers)
    assert play.pending == []
    play >> ChunkReceived(0, parts[1]) << commits(0) << relays(parts[0] + parts[1])
    play >> ChunkReceived(0, parts[2]) << relays(parts[2]) >> ChunkReceived(0, parts[3]) << relays(parts[3])
    play >> Ended(0) << ends() << finishes(Outcome.SUCCESS)
    play.done()


def test_no_tail_is_added_to_a_compressed_stream(world: World) -> None:
    encoder = zlib.compressobj(wbits=31)
    data = encoder.compress(delta("a")) + encoder.flush(zlib.Z_SYNC_FLUSH)
    play = started(world, data, headers=(*SSE, (b"content-encoding", b"gzip"))) << commits(0) << relays(data)
    play >> Ended(0)
    broken = play.pending[0]
    assert isinstance(broken, Break)
    assert broken.tail == b""


@pytest.mark.parametrize("coding", [b"gzip", b"made-up"])
def test_a_stream_that_cannot_be_decoded_hops(world: World, coding: bytes) -> None:
    play = world.turn() >> Started() << sends("alpha/m1")
    play >> HeadReceived(0, 200, (*SSE, (b"content-encoding", coding)))
    if coding == b"gzip":
        play >> ChunkReceived(0, b"not gzip at all")
    play << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == "malformed_response"


def test_a_stream_that_cannot_be_decoded_after_output_is_broken(world: World) -> None:
    encoder = zlib.compressobj(wbits=31)
    data = encoder.compress(delta("a")) + encoder.flush(zlib.Z_SYNC_FLUSH)
    play = started(world, data, headers=(*SSE, (b"content-encoding", b"gzip"))) << commits(0) << relays(data)
    play >> ChunkReceived(0, b"\xff" * 40) << relays(b"\xff" * 40) >> ChunkReceived(0, b"x") << relays(b"x")
    play >> Ended(0) << breaks() << finishes(Outcome.CUT)


def test_gzip_with_identity_is_no_coding(world: World) -> None:
    play = started(world, created(), delta("x"), headers=(*SSE, (b"content-encoding", b"identity"))) << commits(0)
    play << relays(created() + delta("x")) >> Ended(0) << breaks(b"response.failed")


# -- silence


def test_comments_do_not_count_as_life(world: World) -> None:
    play = started(world, created())
    for _ in range(2):
        world.mono_ms += 200_000
        if play.record.attempts[0].result:
            break
        play >> ChunkReceived(0, b": ping\n\n")
    play << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == "idle_timeout"
    play.stream(1, created(), delta("a")) << commits(1) << relays(created() + delta("a"))
    world.mono_ms += 300_001
    play >> ChunkReceived(1, b":\n\n") << relays(b":\n\n") << breaks() << discards(1) << finishes(Outcome.CUT)
    play.done()


def test_events_count_as_life(world: World) -> None:
    play = committed(world)
    for chunk in (delta("b"), b": ping\n\n" + event({"type": "keepalive"}), b"\n", delta("c")):
        world.mono_ms += 200_000
        play >> ChunkReceived(0, chunk) << relays(chunk)


# -- splits

STREAMS = {
    "served": (ok("ok ✓ 東京"), "served"),
    "hop": ([created(), failed("server_is_overloaded")], "hop"),
    "stop": ([created(), failed("cyber_policy")], "stop"),
    "cut": ([created(), delta("x"), failed("server_error")], "cut"),
    "crlf": ([b"".join(ok("東")).replace(b"\n", b"\r\n")], "served"),
    "bare": ([b"".join(ok()).replace(b"data: ", b"data:")], "served"),
}


@pytest.mark.parametrize("name", STREAMS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_splits_change_nothing(name: str, data: st.DataObject) -> None:
    chunks, _ = STREAMS[name]
    whole = b"".join(chunks)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=12)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert outcome(pieces) == outcome([whole])


def test_one_byte_at_a_time() -> None:
    for chunks, _ in STREAMS.values():
        whole = b"".join(chunks)
        assert outcome([whole[i : i + 1] for i in range(len(whole))]) == outcome([whole])


def outcome(pieces: list[bytes]) -> tuple[object, ...]:
    """What a stream comes to: calls, cooldowns, client bytes, kinds of commands besides relays, the verdict."""
    world = World(config())
    play = world.turn() >> Started()
    for event_ in [HeadReceived(0, 200, SSE), *(ChunkReceived(0, piece) for piece in pieces), Ended(0)]:
        play.feed(event_)
    kinds = [type(c).__name__ for c in play.log if not isinstance(c, Relay)]
    assert not any(isinstance(c, Discard) for c in play.log) or play.calls == ["alpha/m1", "beta/m2"]
    assert not any(isinstance(c, End) for c in play.log) or play.client_bytes == b"".join(pieces)
    attempt = play.record.attempts[0]
    return (play.calls, world.cooling(), play.client_bytes, kinds, attempt.result, attempt.verdict, attempt.usage)


def test_output_in_the_unfinished_last_frame_commits(world: World) -> None:
    cut = delta("x").rstrip(b"\n")
    play = started(world, created(), cut) >> Ended(0) << commits(0) << relays(created() + cut)
    play << breaks(b"response.failed") << finishes(Outcome.CUT)
    play.done()
