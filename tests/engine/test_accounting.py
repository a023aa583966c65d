"""What the end of an attempt leaves behind: recall, counts, records."""

import json

import pytest

from combos.core.facts import Headers
from combos.core.recall import lane_key, recall
from combos.engine.events import ChunkReceived, ClientGone, Ended, HeadReceived, Started
from combos.engine.record import MODEL_MAX
from playbook import World, completed, config, created, delta, event, failed, sends

KEY = lane_key("caller", "lane")


def remembered(world: World, model: str = "real") -> str | None:
    route = recall(world.state.recall, world.registry, KEY, model, world.mono_ms)
    return None if route is None else route.combo.id


def turn(world: World, *chunks: bytes) -> None:
    play = world.turn(lane="lane", caller="caller") >> Started() << sends("alpha/m1")
    play.stream(0, created(), delta("x"), *chunks)


def test_a_completed_turn_is_remembered_at_its_terminal() -> None:
    world = World(config())
    turn(world, completed(model="real"))
    assert remembered(world) == "main"


@pytest.mark.parametrize(
    "last",
    [
        (),
        (failed("server_error"),),
        (event({"type": "response.incomplete", "response": {"model": "real", "status": "incomplete"}}),),
    ],
)
def test_anything_else_is_not(last: tuple[bytes, ...]) -> None:
    world = World(config())
    turn(world, *last)
    assert remembered(world) is None


def test_a_whole_answer_is_remembered_too() -> None:
    world = World(config())
    play = world.turn(lane="lane", caller="caller", stream=False) >> Started() << sends("alpha/m1")
    play.answer(0, 200, b'{"status":"completed","model":"real","output":[1]}')
    assert remembered(world) == "main"


def test_a_direct_turn_is_not() -> None:
    world = World(config())
    play = world.turn("alpha/m1", lane="lane", caller="caller") >> Started() << sends("alpha/m1")
    play.stream(0, created(), delta("x"), completed(model="real"))
    assert remembered(world) is None


def test_a_stale_generation_is_not() -> None:
    world = World(config())
    play = world.turn(lane="lane", caller="caller") >> Started() << sends("alpha/m1")
    play.stream(0, created(), delta("x")).skip()
    world.reload(config())
    play >> ChunkReceived(0, completed(model="real"))
    assert remembered(world) is None


def test_incomplete_answers_count_as_successes() -> None:
    world = World(config())
    turn(
        world,
        event({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}),
    )
    assert world.state.peek_rotation("main").counts == {"alpha/m1": 1}


@pytest.mark.parametrize("status", [400, 404, 429, 503])
def test_records_hold_rule_cooldown_and_error(status: int) -> None:
    world = World(config())
    headers: Headers = ((b"retry-after", b"3"),)
    play = world.turn() >> Started() << sends("alpha/m1")
    play >> [HeadReceived(0, status, headers), ChunkReceived(0, b'{"error":{"message":"m\\n1","code":"c"}}'), Ended(0)]
    attempt = play.record.attempts[0]
    assert attempt.verdict is not None
    assert (attempt.status, attempt.error_code, attempt.error_message) == (status, "c", "m 1")
    assert (attempt.cooldown is not None and attempt.cooldown.ms) == (3000 if status != 400 else False)
    assert attempt.ended_ms == world.mono_ms


@pytest.mark.parametrize("length", [MODEL_MAX, MODEL_MAX + 1, 1_000_000])
@pytest.mark.parametrize("stream", [True, False])
def test_records_hold_no_more_than_the_beginning_of_a_name(length: int, stream: bool) -> None:
    world, long = World(config()), "x" * length
    play = world.turn(lane="lane", caller="caller", stream=stream) >> Started() << sends("alpha/m1")
    if stream:
        play.stream(0, created(), delta("x"), completed(model=long))
    else:
        play.answer(0, 200, json.dumps({"status": "completed", "model": long, "output": [1]}).encode())
    assert play.record.attempts[0].response_model == long[:MODEL_MAX]
    assert remembered(world, long) is remembered(world, long[:MODEL_MAX]) is None


def test_round_robin_batches_end_on_any_hop() -> None:
    world = World(config(strategy="round-robin", stickyLimit=5))
    local = b'{"error":{"type":"invalid_request_error","param":"user","message":"Unsupported parameter: user"}}'
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 400, local).skip() >> ClientGone()
    assert (world.cooling(), world.state.peek_rotation("main").active) == ({}, "beta/m2")


def test_a_hop_with_nobody_left_ends_the_batch_too() -> None:
    world = World(config("alpha/m1", strategy="round-robin", stickyLimit=5))
    play = world.turn() >> Started() << sends("alpha/m1")
    assert world.state.peek_rotation("main").active == "alpha/m1"
    play.answer(0, 503, b"")
    assert (world.state.peek_rotation("main").active, world.state.peek_rotation("main").served) == (None, 0)


def test_a_stop_leaves_the_batch_alone() -> None:
    world = World(config("alpha/m1", strategy="round-robin", stickyLimit=5))
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 400, b"")
    assert world.state.peek_rotation("main").active == "alpha/m1"
