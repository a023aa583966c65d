"""Conversations that go on by a response id: the next target gets the history, in its own format, and no id."""

import json
from typing import Any

import pytest

from combos.core.facts import Headers, Now, TransportFault
from combos.core.replay import TTL_MS
from combos.engine.commands import Reply
from combos.engine.events import Ended, Failed, Started
from combos.engine.record import Outcome
from combos.engine.replay import replayed
from combos.engine.state import EngineState
from mixed import mixed
from playbook import (
    SSE,
    Play,
    World,
    completed,
    config,
    created,
    delta,
    discards,
    event,
    finishes,
    provider,
    replies,
    sends,
)
from wires import C, M

DOWN = Failed(0, TransportFault.RESET)
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
FIRST = {"type": "message", "role": "user", "content": "hi"}
NOT_FOUND = "previous_response_not_found"


def answered(world: World, rid: str = "resp_a", output: Any = (SAID,), **fields: Any) -> Play:
    """A turn that alpha answered with a stream."""
    play = world.turn(**fields) >> Started() << sends("alpha/m1")
    play.stream(0, created(rid), delta("Hello."), completed(rid, output=list(output)))
    return play.skip() >> Ended(0)


def body(play: Play, attempt: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(play.sends[attempt].request.body)
    return made


def test_turn_two_on_another_target_gets_the_full_history_and_no_id() -> None:
    world = mixed("R", "R", "R")
    answered(world)
    play = world.turn(previous_response_id="resp_a", input="and now?") >> Started() << sends("alpha/m1")
    play >> DOWN << discards(0) << sends("beta/m2")
    for attempt in (0, 1):
        assert "previous_response_id" not in body(play, attempt)
        assert body(play, attempt)["input"][0] == FIRST
        assert body(play, attempt)["input"][-1] == {**FIRST, "content": "and now?"}
    assert body(play, 0)["input"][1] == SAID


@pytest.mark.parametrize(
    ("first", "second"),
    [("half \ud83d", "and now?"), ("hi", "half \ud83d"), ("half \ude00", [FIRST | {"content": "\ud83d"}])],
)
def test_half_a_surrogate_pair_in_a_conversation_does_not_end_it(first: str, second: Any) -> None:
    world = mixed("R", "R")
    answered(world, input=first)
    play = world.turn(previous_response_id="resp_a", input=second) >> Started() << sends("alpha/m1")
    new = second if isinstance(second, list) else [FIRST | {"content": second}]
    assert body(play)["input"] == [FIRST | {"content": first}, SAID, *new]


@pytest.mark.parametrize(("wire", "field"), [("C", "messages"), ("M", "messages"), ("G", "contents")])
def test_over_another_dialect_it_is_a_conversation_of_that_dialect(wire: str, field: str) -> None:
    world = mixed("R", "R", wire)
    answered(world)
    play = world.turn(previous_response_id="resp_a", input="and now?") >> Started() << sends("alpha/m1")
    play >> DOWN << discards(0) << sends("beta/m2")
    told = json.dumps(body(play, 1)[field])
    assert told.index("hi") < told.index("Hello.") < told.index("and now?")
    assert "previous_response_id" not in body(play, 1)


@pytest.mark.parametrize(("wire", "events"), [("C", C.ok("Hello.")), ("M", M.ok("Hello."))])
def test_an_answer_that_was_translated_can_be_gone_on_from(wire: str, events: list[bytes]) -> None:
    world = mixed("R", wire, "R")
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, *events)
    rid = response_id(play.skip())
    assert len(world.state.replay) == 1, "before the exchange has ended: the client may already ask"
    play >> Ended(0)
    follow = world.turn(previous_response_id=rid, input="and now?") >> Started() << sends("alpha/m1")
    follow >> DOWN << discards(0) << sends("beta/m2")
    history = body(follow, 1)["input"]
    assert [item["role"] for item in history] == ["user", "assistant", "user"]
    assert history[1]["content"][0]["text"] == "Hello."


def test_an_answer_whose_end_comes_with_the_end_of_the_exchange() -> None:
    world = mixed("R", "C")
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, *C.ok("Hello.")[:-1]).skip() >> Ended(0)
    assert world.state.replay.get(response_id(play), world.mono_ms) is not None


def response_id(play: Play) -> str:
    """The id that the client was told."""
    text = b"".join(getattr(command, "data", b"") for command in play.log)
    return str(json.loads(text.split(b"data: ")[1].split(b"\n")[0])["response"]["id"])


@pytest.mark.parametrize("wire", ["R", "C", "M"])
def test_whole_answers_are_kept_too(wire: str) -> None:
    world = mixed("R", wire)
    play = world.turn(stream=False) >> Started() << sends("alpha/m1")
    whole = {"C": C.whole("Hello."), "M": M.whole("Hello."), "R": {"id": "resp_a", "output": [SAID]}}
    play.answer(0, 200, whole[wire])
    given = json.loads(next(command.body for command in play.log if isinstance(command, Reply)))
    follow = world.turn(previous_response_id=given["id"], input="and now?") >> Started() << sends("alpha/m1")
    assert "Hello." in json.dumps(body(follow))


def test_a_chain_holds_everything_said_before() -> None:
    world = mixed("R", "R")
    answered(world, "resp_a")
    for number, (before, after) in enumerate([("resp_a", "resp_b"), ("resp_b", "resp_c")]):
        answered(world, after, [{**SAID, "id": f"msg_{number}"}], previous_response_id=before, input=f"q{number}")
    play = world.turn(previous_response_id="resp_c", input="last") >> Started() << sends("alpha/m1")
    found = [item.get("id", item["content"]) for item in body(play)["input"]]
    assert found == ["hi", "msg_1", "q0", "msg_0", "q1", "msg_1", "last"]


# -- whose it is


PARENT: Headers = ((b"X-Codex-Parent-Thread-Id", b"t1"),)


@pytest.mark.parametrize(
    ("first", "second", "known"),
    [
        ({}, {}, True),
        ({"headers": PARENT}, {"headers": PARENT}, True),
        ({"headers": PARENT}, {}, False),
        ({}, {"headers": PARENT}, False),
        ({"headers": PARENT}, {"headers": ((b"x-codex-parent-thread-id", b"t2"),)}, False),
        ({"caller": "a"}, {"caller": "a"}, True),
        ({"caller": "a"}, {"caller": "b"}, False),
    ],
)
@pytest.mark.parametrize("model", ["combo/main", "alpha/m1"])
def test_another_thread_and_another_caller_do_not_find_it(
    first: dict[str, Any], second: dict[str, Any], known: bool, model: str
) -> None:
    world = mixed("R", "R", "R")
    answered(world, **first)
    play = world.turn(model, previous_response_id="resp_a", **second) >> Started()
    if known:
        play << sends("alpha/m1")
    else:
        play << replies(400, code=NOT_FOUND) << finishes(Outcome.REFUSED)


def test_a_history_that_cannot_be_joined_is_not_found() -> None:
    world = mixed("R", "R")
    answered(world)
    exchange = world.state.replay.get("resp_a", world.mono_ms)
    assert exchange is not None
    world.state.replay.put("resp_a", type(exchange)("", None, b"[]", b"[]", frozenset()), world.mono_ms)
    play = world.turn(previous_response_id="resp_a") >> Started()
    play << replies(400, code=NOT_FOUND) << finishes(Outcome.REFUSED)


def test_after_a_day_only_the_target_that_keeps_it_may_know() -> None:
    world = mixed("R", "R", "R")
    answered(world)
    world.mono_ms += TTL_MS
    play = world.turn(previous_response_id="resp_a") >> Started()
    play << replies(400, code=NOT_FOUND) << finishes(Outcome.REFUSED)
    assert world.state.sweep(world.now) > 0
    assert len(world.state.replay) == 0


def test_an_unknown_id_and_a_combo_without_images() -> None:
    """Nobody can tell what is in a history that lies elsewhere."""
    world = World(config("alpha/m1", imageInput="disabled"))
    answered(world, output=())
    assert world.state.keeper_of("resp_a", world.now) == "alpha/m1"
    play = world.turn(previous_response_id="resp_a") >> Started()
    play << replies(400, code=NOT_FOUND) << finishes(Outcome.REFUSED)


def test_an_image_in_the_history_counts() -> None:
    image = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}
    world = World(config("alpha/m1"))
    answered(world, input=[image])
    world.reload(config("alpha/m1", imageInput="disabled"))
    play = world.turn(previous_response_id="resp_a") >> Started()
    play << replies(400, code="does not accept image input") << finishes(Outcome.REFUSED)


@pytest.mark.parametrize("model", ["combo/main", "alpha/gpt-5.5"])
def test_the_chatgpt_backend_gets_no_id(model: str) -> None:
    row = provider("alpha", baseUrl="https://chatgpt.com/backend-api/codex", authMode="forward")
    del row["apiKey"]
    world = World(config("alpha/gpt-5.5", providers={"alpha": row}))
    play = world.turn(model, previous_response_id="resp_x") >> Started()
    play << replies(400, code=NOT_FOUND) << finishes(Outcome.REFUSED)


# -- what is kept


def test_what_was_cut_at_the_clients_own_limit_is_kept_and_other_ends_are_not() -> None:
    for number, (reason, known) in enumerate([("max_output_tokens", 1), ("content_filter", 0)]):
        world = mixed("R", "R")
        play = world.turn() >> Started() << sends("alpha/m1")
        response = {"id": f"r{number}", "status": "incomplete", "incomplete_details": {"reason": reason}}
        play.stream(0, delta("x"), event({"type": "response.incomplete", "response": {**response, "output": [SAID]}}))
        assert len(world.state.replay) == known


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"store": True}, 1),
        ({"store": False}, 1),
        ({"input": [{"type": "compaction_trigger"}], "model": "alpha/m1"}, 0),
        ({"previous_response_id": "resp_unknown", "model": "alpha/m1"}, 0),
    ],
)
def test_which_requests_are_kept(fields: dict[str, Any], kept: int) -> None:
    world = mixed("R", "R")
    play = world.turn(**fields)
    play.rewrites = True
    play >> Started() << sends("alpha/m1")
    play.stream(0, created("resp_a"), delta("x"), completed("resp_a", output=[SAID]))
    assert len(world.state.replay) == kept


def test_a_translated_answer_that_was_not_to_be_stored_is_not() -> None:
    world = mixed("R", "C")
    play = world.turn(store=False) >> Started() << sends("alpha/m1")
    play.stream(0, *C.ok("Hello.")).skip() >> Ended(0)
    assert len(world.state.replay) == 0


def test_a_stream_whose_last_event_leaves_out_what_was_said_is_not_kept() -> None:
    world = mixed("R", "R")
    answered(world, output=())
    assert len(world.state.replay) == 0


def test_failures_and_broken_streams_are_not_kept() -> None:
    world = mixed("R", "R")
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, created("resp_a"), delta("x"), headers=SSE).skip() >> Failed(0, TransportFault.RESET)
    assert len(world.state.replay) == 0


def test_other_clients_are_not_kept() -> None:
    for wire in ("C", "M"):
        world = mixed(wire, wire, "R")
        play = world.turn() >> Started() << sends("alpha/m1")
        play.stream(0, *{"C": C, "M": M}[wire].ok("Hello.")).skip() >> Ended(0)
        assert len(world.state.replay) == 0


# -- provider-bound state in a history


def test_another_provider_gets_no_state_of_the_one_that_answered() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    bare = {"type": "reasoning", "id": "rs_2", "summary": []}
    world = mixed("R", "R", "R")
    answered(world, output=[thought, bare, SAID], store=True)
    play = world.turn(previous_response_id="resp_a", input="and now?")
    play.rewrites = True
    play >> Started() << sends("alpha/m1")
    assert body(play)["input"][1:3] == [thought, bare]
    play >> DOWN << discards(0) << sends("beta/m2")
    kept = body(play, 1)["input"]
    assert [item["type"] for item in kept] == ["message", "message", "message"]
    assert "id" not in kept[1], "an id stands for what only its maker has"


def test_nothing_is_looked_up_for_requests_without_an_id() -> None:
    def never() -> Now:
        raise AssertionError("asked for the time")

    request = mixed("R", "R").request()
    assert replayed(request, EngineState(), never) is request
