"""Cooldown waits, last-resort deferral and the single-target retry, with their exact limits."""

import pytest

from combos.core.facts import Now, TransportFault
from combos.engine.events import ClientGone, Failed, Started, WaitOver
from combos.engine.record import Outcome
from playbook import After, Play, World, config, discards, finishes, header, replies, sends, target, waits

POLICY = "before-last-resort"


def cool(world: World, **left_ms: int) -> None:
    """Cool targets by provider name through real failures."""
    for key in [t.key for t in world.registry.combos["main"].targets if t.provider_name in left_ms]:
        name = key.partition("/")[0]
        set_cooldown(world, key, left_ms[name])


def set_cooldown(world: World, key: str, ms: int) -> None:
    from combos.core.cooldowns import CooldownEntry, CooldownKey

    entry = CooldownEntry(world.mono_ms + ms, "test", "test", 503)
    world.state.cooldowns.replace(CooldownKey("main", key), entry)


def start(world: World) -> Play:
    return world.turn() >> Started()


@pytest.mark.parametrize(("budget", "waits_for"), [(1000, True), (999, False), (1001, True), (0, False)])
def test_the_comparison_is_inclusive(budget: int, waits_for: bool) -> None:
    world = World(config(waitForCooldownMs=budget))
    cool(world, alpha=1000, beta=8000)
    play = start(world)
    if waits_for:
        play << waits(1000) >> After(1000) >> WaitOver(1) << sends("alpha/m1")
        assert play.record.waits_ms == [1000]
    else:
        play << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
        assert header(play.log[0], b"retry-after") == b"1"


@pytest.mark.parametrize(("ms", "seconds"), [(300, b"1"), (1000, b"1"), (25_200, b"26"), (25_001, b"26"), (1, b"1")])
def test_retry_after_is_the_earliest_rounded_up(ms: int, seconds: bytes) -> None:
    world = World(config())
    cool(world, alpha=40_000, beta=ms)
    play = start(world) << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
    assert header(play.log[0], b"retry-after") == seconds


def test_ties_keep_configuration_order() -> None:
    world = World(config(waitForCooldownMs=5000))
    cool(world, alpha=3000, beta=3000)
    start(world) << waits(3000) >> After(3000) >> WaitOver(1) << sends("alpha/m1")


def test_only_targets_that_could_be_asked_are_waited_for() -> None:
    world = World(config(waitForCooldownMs=9000))
    cool(world, alpha=1000, beta=5000)
    world.unusable = {"alpha": "no_credentials"}
    start(world) << waits(5000)
    world.spent = {"beta/m2"}
    start(world) << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)


def test_one_fresh_pick_after_the_sleep() -> None:
    world = World(config(waitForCooldownMs=5000))
    cool(world, alpha=3000, beta=8000)
    play = start(world) << waits(3000) >> After(3000)
    cool(world, alpha=1000)
    play >> WaitOver(1) << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)


def test_each_hop_has_a_budget_of_its_own() -> None:
    world = World(config("alpha/m1", "beta/m2", "gamma/m3", waitForCooldownMs=5000))
    cool(world, beta=4000, gamma=8000)
    play = start(world) << sends("alpha/m1") >> Failed(0, TransportFault.RESET) << discards(0) << waits(4000)
    play >> After(4000) >> WaitOver(1) << sends("beta/m2") >> Failed(1, TransportFault.RESET) << discards(1)
    play << waits(4000) >> After(4000) >> WaitOver(2) << sends("gamma/m3")
    assert play.record.waits_ms == [4000, 4000]


def test_a_tried_target_stays_out_though_its_cooldown_is_over() -> None:
    world = World(config(waitForCooldownMs=600_000, cooldownMs=1))
    play = start(world) << sends("alpha/m1") >> Failed(0, TransportFault.RESET) << discards(0) << sends("beta/m2")
    play >> After(50) >> Failed(1, TransportFault.RESET) << replies(502) << discards(1) << finishes(Outcome.EXHAUSTED)
    assert play.done().waits_ms == []


def test_a_gone_client_cancels_the_wait() -> None:
    world = World(config(waitForCooldownMs=5000))
    cool(world, alpha=3000, beta=3000)
    play = start(world) << waits(3000) >> ClientGone() << finishes(Outcome.CANCELLED)
    assert play.feed(WaitOver(1)) == []


# -- the configuration is read again after a sleep


def test_a_deleted_combo_ends_the_wait_without_a_pick() -> None:
    world = World(config(waitForCooldownMs=5000))
    cool(world, alpha=3000, beta=8000)
    play = start(world) << waits(3000) >> After(3000)
    world.reload({"providers": config()["providers"], "combos": {}})
    play >> WaitOver(1) << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)


def test_the_targets_of_the_moment_are_picked_from() -> None:
    world = World(config(waitForCooldownMs=5000))
    cool(world, alpha=3000, beta=8000)
    play = start(world) << waits(3000) >> After(3000)
    world.reload(config("gamma/m3", "alpha/m1"))
    play >> WaitOver(1) << sends("gamma/m3")


@pytest.mark.parametrize(("policy", "picked"), [(POLICY, "beta/m2"), (None, "alpha/m1")])
def test_the_policy_of_the_moment_says_who_stands_back(policy: str | None, picked: str) -> None:
    rows = (target("alpha/m1", lastResort=True), "beta/m2")
    world = World(config(*rows, cooldownWaitPolicy=POLICY, waitForCooldownMs=5000))
    cool(world, beta=3000)
    play = start(world) << waits(3000) >> After(3000)
    world.reload(config(*rows, **({"cooldownWaitPolicy": policy} if policy else {})))
    play >> WaitOver(1) << sends(picked)


def test_without_a_sleep_the_snapshot_of_the_start_is_used() -> None:
    world = World(config())
    play = start(world) << sends("alpha/m1")
    world.reload(config("gamma/m3"))
    play >> Failed(0, TransportFault.RESET) << discards(0) << sends("beta/m2")


# -- last resort


def last_resort(**combo: object) -> World:
    return World(config("alpha/m1", "beta/m2", target("gamma/m3", lastResort=True), **combo))


def test_the_mark_is_inert_without_the_policy() -> None:
    world = last_resort(waitForCooldownMs=10_000)
    cool(world, alpha=1000, beta=1000)
    start(world) << sends("gamma/m3")


def test_a_short_cooldown_is_waited_for_before_the_last_resort() -> None:
    world = last_resort(cooldownWaitPolicy=POLICY, waitForCooldownMs=10_000)
    cool(world, alpha=9000, beta=4000)
    start(world) << waits(4000) >> After(4000) >> WaitOver(1) << sends("beta/m2")


@pytest.mark.parametrize("budget", [0, 3999])
def test_beyond_the_budget_the_last_resort_is_used_at_once(budget: int) -> None:
    world = last_resort(cooldownWaitPolicy=POLICY, waitForCooldownMs=budget)
    cool(world, alpha=9000, beta=4000)
    start(world) << sends("gamma/m3")


def test_the_deferral_and_the_ordinary_wait_share_one_budget() -> None:
    world = last_resort(cooldownWaitPolicy=POLICY, waitForCooldownMs=5000)
    cool(world, alpha=3000, beta=90_000, gamma=6000)
    play = start(world) << waits(3000) >> After(3000)
    cool(world, alpha=9000)
    # 2000 of the budget are left and gamma cools for 3000 more.
    play >> WaitOver(1) << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
    cool(world, alpha=3000, gamma=5000)
    play = start(world) << waits(3000) >> After(3000)
    cool(world, alpha=9000)
    play >> WaitOver(1) << waits(2000) >> After(2000) >> WaitOver(2) << sends("gamma/m3")


def test_after_a_failure_the_same_rule_holds() -> None:
    world = last_resort(cooldownWaitPolicy=POLICY)
    play = start(world) << sends("alpha/m1") >> Failed(0, TransportFault.RESET) << discards(0) << sends("beta/m2")
    play >> Failed(1, TransportFault.RESET) << discards(1) << sends("gamma/m3")


@pytest.mark.parametrize("strategy", ["failover", "round-robin", "random", "least-used", "reset-window", "jev"])
def test_a_last_resort_stands_back_in_every_strategy(strategy: str) -> None:
    first = target("gamma/m3", lastResort=True, weight=9)
    world = World(config(first, "alpha/m1", strategy=strategy, cooldownWaitPolicy=POLICY))
    world.draws = [0.0] * 9
    world.resets = {"gamma/m3": 1}
    for _ in range(3):
        start(world) << sends("alpha/m1")
    assert "gamma/m3" not in world.state.peek_rotation("main").weights


def test_targets_that_are_all_last_resort_are_normal() -> None:
    rows = [target(key, lastResort=True) for key in ("alpha/m1", "beta/m2")]
    world = World(config(*rows, cooldownWaitPolicy=POLICY, waitForCooldownMs=5000))
    cool(world, alpha=3000)
    start(world) << sends("beta/m2")


def test_an_unusable_normal_target_does_not_hold_back_the_last_resort() -> None:
    world = last_resort(cooldownWaitPolicy=POLICY, waitForCooldownMs=10_000)
    world.unusable = {"alpha": "no_credentials", "beta": "no_credentials"}
    cool(world, alpha=1000, beta=1000)
    start(world) << sends("gamma/m3")


# -- one target


def single(**combo: object) -> World:
    return World(config("alpha/m1", **{"waitForCooldownMs": 10_000, **combo}))


def fail(play: Play, attempt: int, retry_after: bytes | None, status: int = 429) -> None:
    play.answer(attempt, status, b"slow", ((b"retry-after", retry_after),) if retry_after else ())


def test_a_single_target_is_asked_once_more_after_its_cooldown() -> None:
    world = single()
    play = start(world) << sends("alpha/m1")
    fail(play, 0, b"2")
    play << discards(0) << waits(2000) >> After(2000) >> WaitOver(1) << sends("alpha/m1")
    fail(play, 1, b"3")
    play << replies(429, b"slow") << discards(1) << finishes(Outcome.EXHAUSTED)
    assert play.done().waits_ms == [2000]


@pytest.mark.parametrize(
    ("combo", "retry_after"), [({}, b"11"), ({"waitForCooldownMs": 0}, b"2"), ({"waitForCooldownMs": 1999}, b"2")]
)
def test_a_single_target_beyond_the_budget_is_not(combo: dict[str, object], retry_after: bytes) -> None:
    play = start(single(**combo)) << sends("alpha/m1")
    fail(play, 0, retry_after)
    play << replies(429, b"slow") << discards(0) << finishes(Outcome.EXHAUSTED)


def test_an_immediate_directive_retries_after_a_millisecond() -> None:
    play = start(single()) << sends("alpha/m1")
    fail(play, 0, b"0")
    play << discards(0) << waits(1) >> After(1) >> WaitOver(1) << sends("alpha/m1")


def test_a_request_local_refusal_of_a_single_target_is_returned() -> None:
    play = start(single()) << sends("alpha/m1")
    body = b'{"error":{"type":"invalid_request_error","param":"user","message":"Unsupported parameter: user"}}'
    play.answer(0, 400, body) << replies(400, body) << discards(0) << finishes(Outcome.EXHAUSTED)


def test_a_stale_write_does_not_arm_the_retry() -> None:
    world = single(cooldownMs=1000)
    play = start(world) << sends("alpha/m1")
    world.reload(config("beta/m2"))
    fail(play, 0, None)
    play << replies(429, b"slow") << discards(0) << finishes(Outcome.EXHAUSTED)
    assert world.cooling() == {}


def test_a_siblings_longer_cooldown_ends_the_retry() -> None:
    world = single()
    play = start(world) << sends("alpha/m1")
    fail(play, 0, b"2")
    play << discards(0) << waits(2000) >> After(2000)
    set_cooldown(world, "alpha/m1", 5000)
    play >> WaitOver(1) << replies(429, b"slow") << finishes(Outcome.EXHAUSTED)


def test_the_clock_of_the_wait_is_monotonic() -> None:
    world = single()
    play = start(world) << sends("alpha/m1")
    fail(play, 0, b"2")
    play << discards(0) << waits(2000)
    jumped = Now(world.mono_ms + 2000, 0)
    commands = play.turn.handle(WaitOver(1), jumped)
    assert [type(c).__name__ for c in commands] == ["Send"]
