"""The opt-in timers: first output, hedge, affinity."""

from combos.core.facts import TransportFault
from combos.engine.events import ChunkReceived, ClientGone, Ended, Failed, HeadReceived, Started, WaitOver
from combos.engine.record import Outcome
from playbook import (
    After,
    Play,
    World,
    commits,
    completed,
    config,
    created,
    delta,
    discards,
    ends,
    finishes,
    ok,
    relays,
    replies,
    sends,
    waits,
)


def start(world: World, **kwargs: object) -> Play:
    return world.turn(**kwargs) >> Started() << sends("alpha/m1")  # type: ignore[arg-type]


# -- firstOutputTimeoutMs


def test_no_output_in_time_hops_and_cools() -> None:
    world = World(config(firstOutputTimeoutMs=3000))
    play = start(world) << waits(3000)
    play.stream(0, created()) >> After(3000) >> WaitOver(1) << discards(0) << sends("beta/m2") << waits(3000)
    assert play.record.attempts[0].result == "no output in time"
    assert world.cooling() == {"alpha/m1": 60_000}


def test_the_last_target_may_take_its_time() -> None:
    world = World(config("alpha/m1", firstOutputTimeoutMs=3000))
    play = start(world) << waits(3000) >> After(3000) >> WaitOver(1)
    play.stream(0, *ok()) << commits(0)
    assert world.cooling() == {}


def test_output_in_time_makes_the_timer_idle() -> None:
    play = start(World(config(firstOutputTimeoutMs=3000))) << waits(3000)
    play.stream(0, created(), delta("a")) << commits(0) << relays(created() + delta("a")) >> After(3000) >> WaitOver(1)
    assert play.pending == []


def test_a_whole_answer_has_no_first_output() -> None:
    play = start(World(config(firstOutputTimeoutMs=3000)), stream=False)
    assert play.pending == []


# -- hedgeAfterMs


def hedged() -> tuple[World, Play]:
    world = World(config("alpha/m1", "beta/m2", "gamma/m3", hedgeAfterMs=500))
    play = start(world) << waits(500) >> After(500) >> WaitOver(1) << sends("beta/m2")
    return world, play


def test_the_second_may_win() -> None:
    world, play = hedged()
    play.stream(1, created("b"), delta("b")) << discards(0) << commits(1) << relays(created("b") + delta("b"))
    assert play.feed(ChunkReceived(0, delta("late"))) == []
    play >> ChunkReceived(1, completed()) << relays(completed()) >> Ended(1) << ends() << finishes(Outcome.SUCCESS)
    record = play.done()
    assert [attempt.result for attempt in record.attempts] == ["overtaken", "completed"]
    assert (world.cooling(), record.attempts[0].verdict) == ({}, None)


def test_the_first_may_win() -> None:
    world, play = hedged()
    play.stream(0, created(), delta("a")) << discards(1) << commits(0) << relays(created() + delta("a"))
    assert world.cooling() == {}


def test_a_whole_answer_wins_too() -> None:
    _, play = hedged()
    play.answer(1, 200, b'{"status":"completed","output":[1]}') << discards(0) << replies(200) << discards(1)
    play << finishes(Outcome.SUCCESS)
    play.done()


def test_when_one_fails_the_other_goes_on_and_only_then_a_third_is_asked() -> None:
    world, play = hedged()
    play.answer(0, 503, b"") << discards(0)
    assert world.cooling() == {"alpha/m1": 60_000}
    play >> Failed(1, TransportFault.RESET) << discards(1) << sends("gamma/m3")


def test_a_stop_of_either_ends_the_request() -> None:
    _, play = hedged()
    play.answer(1, 400, b"no") << discards(0) << replies(400, b"no") << discards(1) << finishes(Outcome.TERMINAL)
    play.done()


def test_no_hedge_without_another_target_or_after_output() -> None:
    play = start(World(config("alpha/m1", hedgeAfterMs=500))) << waits(500) >> WaitOver(1)
    assert play.calls == ["alpha/m1"]
    play = start(World(config(hedgeAfterMs=500))) << waits(500)
    play.stream(0, created(), delta("a")) << commits(0) << relays(created() + delta("a")) >> WaitOver(1)
    assert play.calls == ["alpha/m1"]


def test_no_hedge_after_a_hop() -> None:
    play = start(World(config("alpha/m1", "beta/m2", "gamma/m3", hedgeAfterMs=500))) << waits(500)
    play >> Failed(0, TransportFault.RESET) << discards(0) << sends("beta/m2") >> WaitOver(1)
    assert play.calls == ["alpha/m1", "beta/m2"]


def test_a_gone_client_closes_both() -> None:
    world, play = hedged()
    play >> ClientGone() << discards(0) << discards(1) << finishes(Outcome.CANCELLED)
    play.done()
    assert world.cooling() == {}


# -- affinity


def test_a_conversation_stays_where_it_was_answered() -> None:
    world = World(config(affinity="conversation", strategy="round-robin"))

    def serve(lane: str | None) -> str:
        play = (world.turn(lane=lane) >> Started()).skip()
        play.stream(0, *ok())
        return play.calls[0]

    assert [serve("x"), serve("y"), serve("x"), serve("x"), serve(None)][:4] == [
        "alpha/m1",
        "beta/m2",
        "alpha/m1",
        "alpha/m1",
    ]
    world.mono_ms += 30 * 60_000
    assert {serve("x"), serve("y")} == {"alpha/m1", "beta/m2"}


def test_a_cooling_target_loses_its_conversation() -> None:
    world = World(config(affinity="conversation"))
    play = world.turn(lane="x") >> Started() << sends("alpha/m1")
    play.stream(0, *ok())
    failing = world.turn(lane="z") >> Started() << sends("alpha/m1") >> Failed(0, TransportFault.RESET)
    assert failing.calls == ["alpha/m1", "beta/m2"]
    world.turn(lane="x") >> Started() << sends("beta/m2")


def test_without_the_option_a_lane_changes_nothing() -> None:
    world = World(config(strategy="round-robin"))
    for expected in ("alpha/m1", "beta/m2"):
        play = world.turn(lane="x") >> Started() << sends(expected)
        play.stream(0, *ok())


def test_an_error_body_under_way_is_read_to_its_end() -> None:
    play = start(World(config(firstOutputTimeoutMs=3000))) << waits(3000)
    play >> HeadReceived(0, 429, ()) >> After(3000) >> WaitOver(1) >> Ended(0) << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == "http 429"
