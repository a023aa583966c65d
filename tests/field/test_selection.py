"""Field cases about choosing a target, played against the engine. The case id is in each test's name."""

import json
from collections.abc import Callable

import pytest

from combos.core.cooldowns import CooldownEntry, CooldownKey
from combos.core.facts import TransportFault
from combos.engine.commands import Discard, Send
from combos.engine.events import ChunkReceived, ClientGone, Ended, Failed, HeadReceived, Started, WaitOver
from combos.engine.record import Outcome
from playbook import (
    After,
    Play,
    World,
    completed,
    config,
    created,
    delta,
    discards,
    ends,
    error,
    finishes,
    header,
    ok,
    provider,
    replies,
    sends,
    target,
    waits,
)

STRATEGIES = ["failover", "round-robin", "random", "least-used", "reset-window", "jev"]


def set_cooldown(world: World, key: str, ms: int) -> None:
    entry = CooldownEntry(world.mono_ms + ms, "test", "test", 429)
    world.state.cooldowns.replace(CooldownKey("main", key), entry)


def serve(play: Play) -> str:
    """Let the attempt in flight succeed; gives the target that served."""
    attempt = len(play.calls) - 1
    play.skip().stream(attempt, *ok()).skip() >> Ended(attempt)
    play.skip().done()
    return play.calls[-1]


def test_fc_32_everybody_is_cooling() -> None:
    for ms, seconds in ((25_200, b"26"), (300, b"1")):
        world = World(config())
        set_cooldown(world, "alpha/m1", 40_000)
        set_cooldown(world, "beta/m2", ms)
        play = world.turn() >> Started() << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
        assert header(play.log[0], b"retry-after") == seconds
        assert play.calls == []


def test_fc_35_one_models_limit_another_model_of_the_same_provider() -> None:
    world = World(config("alpha/m1", "alpha/m2"))
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 429, error("tokens per minute", code="rate_limit_exceeded")) << discards(0) << sends("alpha/m2")
    assert serve(play) == "alpha/m2"
    assert world.cooling() == {"alpha/m1": 60_000}


@pytest.mark.parametrize("code", ["1302", "1305", 1302])
@pytest.mark.parametrize(
    ("combo", "headers", "ms"),
    [({}, (), 5_000), ({"cooldownMs": 30_000}, (), 30_000), ({}, ((b"retry-after", b"9"),), 9_000)],
)
def test_fc_36_request_rate_codes(
    code: object, combo: dict[str, object], headers: tuple[tuple[bytes, bytes], ...], ms: int
) -> None:
    world = World(config(**combo))
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 429, error("too many", code=code), headers) << discards(0) << sends("beta/m2")
    assert world.cooling() == {"alpha/m1": ms}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fc_37_waiting_instead_of_failing(strategy: str) -> None:
    for budget, outcome in ((5000, "waits"), (2000, "fails")):
        world = World(config(strategy=strategy, waitForCooldownMs=budget))
        world.draws = [0.5]
        set_cooldown(world, "alpha/m1", 3000)
        set_cooldown(world, "beta/m2", 8000)
        play = world.turn() >> Started()
        if outcome == "waits":
            play << waits(3000) >> After(3000) >> WaitOver(1) << sends("alpha/m1")
        else:
            play << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)


def test_fc_38_only_one_target() -> None:
    world = World(config("alpha/m1", waitForCooldownMs=10_000))
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 429, b"slow", ((b"retry-after", b"2"),)) << discards(0) << waits(2000) >> After(2000) >> WaitOver(1)
    assert serve(play) == "alpha/m1"
    world.state.clear_cooldowns()
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 429, b"1", ((b"retry-after", b"2"),)) << discards(0) << waits(2000) >> After(2000) >> WaitOver(1)
    play << sends("alpha/m1")
    play.answer(1, 429, b"2", ((b"retry-after", b"2"),)) << replies(429, b"2") << discards(1)
    play << finishes(Outcome.EXHAUSTED)
    world = World(config("alpha/m1"))
    play = world.turn() >> Started() << sends("alpha/m1")
    play.answer(0, 429, b"1", ((b"retry-after", b"2"),)) << replies(429, b"1") << discards(0)
    play << finishes(Outcome.EXHAUSTED)


def waiting(world: World) -> Play:
    for key in ("alpha/m1", "beta/m2"):
        set_cooldown(world, key, 3000)
    return world.turn() >> Started() << waits(3000)


def connecting(world: World) -> Play:
    return world.turn() >> Started() << sends("alpha/m1")


def in_prefix(world: World) -> Play:
    return connecting(world).stream(0, created())


@pytest.mark.parametrize("at", [waiting, connecting, in_prefix])
def test_fc_39_the_caller_is_gone(at: Callable[[World], Play]) -> None:
    world = World(config(waitForCooldownMs=5000))
    play = at(world)
    before = world.cooling()
    play >> ClientGone()
    assert [type(c) for c in play.pending].count(Discard) == len(play.calls)
    record = play.skip().done()
    assert (record.outcome, record.status, world.cooling()) == (Outcome.CANCELLED, 499, before)
    for late in (HeadReceived(0, 503, ()), Ended(0), WaitOver(1)):
        assert play.feed(late) == []


@pytest.mark.parametrize(
    ("weights", "order"),
    [((2, 1), "ABAABA"), ((5, 1, 1), "AABACAA"), ((3, 2), "ABABAABABA"), ((200, 100), "ABAABA")],
)
def test_fc_40_smooth_weights(weights: tuple[int, ...], order: str) -> None:
    names = dict(zip("ABC", ("alpha", "beta", "gamma"), strict=True))
    rows = [target(f"{names[x]}/m", weight=w) for x, w in zip("ABC", weights, strict=False)]
    world = World(config(*rows, strategy="round-robin"))
    assert [serve(world.turn() >> Started()) for _ in order] == [f"{names[x]}/m" for x in order]


def test_batches_of_the_functional_spec() -> None:
    world = World(config("alpha/a:2", "beta/b:1", strategy="round-robin", stickyLimit=2))
    served = [serve(world.turn() >> Started()) for _ in range(12)]
    assert "".join(key[-1].upper() for key in served) == "AABBAAAABBAA"


def test_a_hop_ends_the_batch_and_serves_the_same_request() -> None:
    world = World(config("alpha/a:2", "beta/b:1", strategy="round-robin", stickyLimit=3))
    assert serve(world.turn() >> Started()) == "alpha/a"
    play = world.turn() >> Started() << sends("alpha/a") >> Failed(0, TransportFault.RESET)
    play << discards(0) << sends("beta/b")
    assert serve(play) == "beta/b"
    assert world.cooling() == {"alpha/a": 60_000}
    world.state.clear_cooldowns()
    # The batch of beta goes on: one of its three successes is counted.
    assert [serve(world.turn() >> Started()) for _ in range(2)] == ["beta/b", "beta/b"]
    assert world.state.peek_rotation("main").active is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fc_41_never_the_same_one_twice_never_a_disabled_one(strategy: str) -> None:
    off = provider("beta", disabled=True)
    document = config("alpha/m1:1", "beta/m2:9000", "gamma/m3:3", strategy=strategy, providers={"beta": off})
    world = World(document)
    world.draws = [0.0] * 4
    play = (world.turn() >> Started()).skip()
    play.answer(0, 500, b"first").skip()
    play.answer(1, 500, b"second")
    assert sorted(play.calls) == ["alpha/m1", "gamma/m3"]
    play << replies(500, b"second") << discards(1) << finishes(Outcome.EXHAUSTED)


def test_fc_42_the_whole_address_moves() -> None:
    beta = provider("beta", baseUrl="http://127.0.0.1:7102/other/prefix/v1")
    world = World(config(providers={"beta": beta}))
    fields = {"big": 2**63, "tools": [{"b": 1, "a": [3, 1, 2]}], "unknown": None}
    client = ((b"Authorization", b"Bearer client-token"), (b"Host", b"127.0.0.1:8080"), (b"Content-Length", b"9"))
    play = world.turn(headers=client, **fields) >> Started() << sends("alpha/m1")
    play.answer(0, 503, b"") << discards(0)
    send = play.sends[1]
    assert send.request.url == "http://127.0.0.1:7102/other/prefix/v1/responses"
    sent = json.loads(send.request.body)
    assert (sent["model"], {key: sent[key] for key in fields}) == ("m2", fields)
    everything = send.request.body + b"".join(name + value for name, value in send.request.headers)
    for word in (b"combo/main", b"m1", b"alpha-key", b"client-token", b"8080"):
        assert word not in everything
    assert not {name.lower() for name, _ in send.request.headers} & {b"host", b"content-length", b"authorization"}


def test_fc_43_effort_is_taken_from_the_caller_each_time() -> None:
    ladders = {
        "alpha": ["low", "medium", "high", "xhigh"],
        "beta": ["low", "medium"],
        "gamma": [],
        "delta": ["high", "xhigh"],
    }
    rows = {name: provider(name, reasoningEfforts=ladder) for name, ladder in ladders.items()}
    world = World(config("alpha/m1", "beta/m2", "gamma/m3", "delta/m4", providers=rows))
    play = world.turn(reasoning={"effort": "xhigh", "summary": "auto"}) >> Started()
    for attempt in range(3):
        play.skip() >> Failed(attempt, TransportFault.RESET)
    got = [json.loads(send.request.body)["reasoning"] for send in play.log if isinstance(send, Send)]
    auto = {"summary": "auto"}
    assert got == [{"effort": "xhigh", **auto}, {"effort": "medium", **auto}, auto, {"effort": "xhigh", **auto}]


def test_fc_44_an_alias_shares_cooldowns_and_rotation() -> None:
    world = World(config(alias="team/daily", strategy="round-robin"))
    assert serve(world.turn("team/daily") >> Started()) == "alpha/m1"
    assert serve(world.turn("combo/main") >> Started()) == "beta/m2"
    play = world.turn("team/daily") >> Started() << sends("alpha/m1") >> Failed(0, TransportFault.RESET)
    assert (world.cooling(), play.calls) == ({"alpha/m1": 60_000}, ["alpha/m1", "beta/m2"])
    assert serve(world.turn("combo/main") >> Started()) == "beta/m2"


def test_fc_46_a_tool_call_that_has_begun() -> None:
    world = World(config())
    from playbook import event, failed

    item = event({"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}})
    bad = failed("server_is_overloaded")
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, created(), item, bad).skip() >> Ended(0) << ends() << finishes(Outcome.CUT)
    assert (play.calls, play.client_bytes) == (["alpha/m1"], created() + item + bad)


def test_fc_50_usage_is_kept_per_attempt_and_unknown_is_not_zero() -> None:
    from playbook import event

    world = World(config("alpha/m1", "beta/m2", "gamma/m3"))
    error_ = {"code": "server_error", "message": "x"}
    bad = event(
        {"type": "response.failed", "response": {"status": "failed", "error": error_, "usage": {"input_tokens": 10}}}
    )
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, created(), bad).skip() >> Failed(1, TransportFault.RESET)
    play.skip().stream(2, delta("x"), completed(usage={"input_tokens": 12, "output_tokens": 3})).skip() >> Ended(2)
    assert [attempt.usage for attempt in play.record.attempts] == [
        {"input_tokens": 10},
        None,
        {"input_tokens": 12, "output_tokens": 3},
    ]


def test_fc_51_a_rename_while_streaming() -> None:
    world = World(config())
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, created(), delta("x")).skip()
    document = config()
    combos = document["combos"]
    assert isinstance(combos, dict)
    combos["renamed"] = combos.pop("main")
    set_cooldown(world, "beta/m2", 60_000)
    world.reload(document)
    play >> ChunkReceived(0, completed())
    play.skip() >> Ended(0) << ends() << finishes(Outcome.SUCCESS)
    assert world.cooling() == {}
    assert world.state.peek_rotation("main").counts == {}
