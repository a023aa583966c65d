"""What is left of a turn that is over: nothing that waits for the garbage collector. An answer can be large."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from combos.core.facts import TransportFault
from combos.engine.attempt import Attempt
from combos.engine.events import ChunkReceived, ClientGone, Ended, Event, Failed, HeadReceived, Started
from combos.engine.request import TurnOptions
from combos.engine.turn import Turn
from playbook import JSON, SSE, World, config

ANSWER = b'{"id":"r1","status":"completed","model":"m","output":[{"type":"message"}]}'


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


DELTA = b'data: {"type":"response.output_text.delta","delta":"x"}\n\n'
CHUNK = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
RESET = TransportFault.RESET
ENDS: dict[str, list[Event]] = {
    "whole answer": [HeadReceived(0, 200, JSON), ChunkReceived(0, ANSWER), Ended(0)],
    "too large": [HeadReceived(0, 200, JSON), ChunkReceived(0, b"x" * 2_000), Failed(1, RESET)],
    "error body": [HeadReceived(0, 500, JSON), ChunkReceived(0, b"x"), Ended(0), Failed(1, RESET)],
    "exhausted": [Failed(0, RESET), Failed(1, RESET)],
    "stream": [HeadReceived(0, 200, SSE), ChunkReceived(0, DELTA), Ended(0)],
    "translated stream": [HeadReceived(0, 200, SSE), ChunkReceived(0, CHUNK), Ended(0)],
    "client gone": [HeadReceived(0, 200, SSE), ChunkReceived(0, b"x"), ClientGone()],
    "client gone early": [ClientGone()],
}


@pytest.mark.parametrize("wire", ["R", "C"])
@pytest.mark.parametrize("events", ENDS.values(), ids=ENDS.keys())
@pytest.mark.usefixtures("no_collector")
def test_nothing_of_a_finished_turn_waits_for_the_collector(events: list[Event], wire: str) -> None:
    waiting = {"hedgeAfterMs": 100, "firstOutputTimeoutMs": 100, "waitForCooldownMs": 1, "cooldownMs": 1_000}
    world = World(config(wire=wire, **waiting), options=TurnOptions(answer_bytes=1_000))
    turn = Turn(world.request(), world.state, world.options)
    for event in [Started(), *events, ClientGone()]:
        turn.handle(event, world.now)
    assert turn.record.outcome is not None
    left = weakref.ref(turn)
    del turn
    assert left() is None
    assert not [each for each in gc.get_objects() if isinstance(each, Attempt)]
