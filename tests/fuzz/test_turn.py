"""Laws of a whole turn: whatever a client asks and targets answer, in any order of events, the invariants hold.

`Play` checks them on the way: no send after something was given, one end, every attempt built from the original.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from combos.core.errors import ProxyError
from combos.core.facts import TransportFault
from combos.engine.commands import Command, Commit, Decide, Finish, Send, Wait
from combos.engine.events import ChunkReceived, ClientGone, Ended, Event, Failed, HeadReceived, Started, WaitOver
from fuzzing import damaged, header_values, headers, json_values, law, lines
from playbook import PATHS, SSE, Play, World, config, provider

WIRES = ("R", "C", "M", "G")
STRATEGIES = ("failover", "round-robin", "random")
members = st.sampled_from(
    ("input", "messages", "contents", "tools", "metadata", "reasoning", "user", "thinking", "system", "stream", "model")
)
statuses = st.sampled_from([200, 200, 200, 201, 204, 301, 400, 401, 404, 429, 500, 503, 529])
answers = st.one_of(lines(damaged()), damaged(), st.binary(max_size=60))
kinds = st.one_of(
    st.just(SSE),
    st.just(((b"content-type", b"application/json"),)),
    header_values.map(lambda value: ((b"content-encoding", value), *SSE)),
    headers,
)


def world(draw: st.DrawFn) -> World:
    wires = draw(st.tuples(st.sampled_from(WIRES), st.sampled_from(WIRES), st.sampled_from(WIRES)))
    names = ("alpha", "beta", "gamma")
    rows = {name: provider(name, wire) for name, wire in zip(names, wires, strict=True)}
    options: dict[str, Any] = {"waitForCooldownMs": draw(st.sampled_from([0, 5_000]))}
    if draw(st.booleans()):
        options["firstOutputTimeoutMs"] = 1_000
    if draw(st.booleans()):
        options["hedgeAfterMs"] = 500
    document = config(
        "alpha/m1", "beta/m2", "gamma/m3", providers=rows, strategy=draw(st.sampled_from(STRATEGIES)), **options
    )
    return World(document, wire=draw(st.sampled_from(WIRES)), draws=[0.3] * 50)


def request(draw: st.DrawFn, on: World) -> bytes:
    """A request of the client's wire with members of any shape in it; the model is the combo's."""
    document = json.loads(on.body())
    document |= draw(st.dictionaries(members, json_values, max_size=3))
    return json.dumps({**document, **({} if on.wire == "G" else {"model": "combo/main"})}).encode()


def event(draw: st.DrawFn, attempt: int, *, begun: bool) -> Event:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return Failed(attempt, draw(st.sampled_from(list(TransportFault))))
    if not begun:
        return HeadReceived(attempt, draw(statuses), draw(kinds))
    return Ended(attempt) if kind < 3 else ChunkReceived(attempt, draw(answers) or b"x")


class Course:
    """The events that may come next, and what has been heard of each attempt."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.open: dict[int, bool] = {}
        self.waits: list[int] = []

    def take(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send(attempt=attempt):
                    self.open[attempt] = False
                case Wait(wait=wait):
                    self.waits.append(wait)
                case Commit(attempt=attempt):
                    self.open = {attempt: self.open.get(attempt, True)}
                case _:
                    pass

    def step(self, draw: st.DrawFn) -> None:
        if self.waits and (not self.open or draw(st.booleans())):
            self.play.world.mono_ms += 5_000
            self.take(self.play.feed(WaitOver(self.waits.pop(0))))
            return
        attempt = draw(st.sampled_from(sorted(self.open)))
        made = event(draw, attempt, begun=self.open[attempt])
        self.open[attempt] = True
        if isinstance(made, Ended | Failed):
            del self.open[attempt]
        self.take(self.play.feed(made))


@st.composite
def courses(draw: st.DrawFn) -> Play | None:
    on = world(draw)
    path = PATHS[on.wire]
    try:
        play = on.turn(path=path, body=request(draw, on))
    except ProxyError:
        return None
    play.rewrites = True  # members of any shape may have to be changed
    course = Course(play)
    course.take(play.feed(Started()))
    for _ in range(draw(st.integers(0, 14))):
        if any(isinstance(command, Finish) for command in play.log) or not (course.open or course.waits):
            break
        course.step(draw)
    return play


@law
@given(courses())
def test_a_turn_keeps_its_invariants(play: Play | None) -> None:
    if play is None:
        return
    finished = [command for command in play.log if isinstance(command, Finish)]
    if not finished:
        play.feed(ClientGone())
        finished = [command for command in play.log if isinstance(command, Finish)]
    assert len(finished) == 1
    assert not any(isinstance(command, Decide) for command in play.log)
    assert isinstance(play.client_bytes, bytes)
    for command in play.log:
        if isinstance(command, Send):
            assert isinstance(json.loads(command.request.body), dict)
            assert command.request.url.isascii()
            assert " " not in command.request.url
