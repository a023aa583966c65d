"""Reports of quotas: which may steer routing, what replaces what, and what selection makes of them."""

from dataclasses import replace

import pytest

from combos.core.facts import Now
from combos.core.pools import PoolKind, PoolNote
from combos.core.quota import BadgeState, Snapshot, Window
from combos.engine.budget import Denial
from combos.engine.events import Ended, HeadReceived, Started
from combos.engine.explain import explain
from combos.engine.quota import QuotaBook, Report
from playbook import World, config, sends

NOW = Now(1_000_000, 1_790_856_000_000)
FULL = Snapshot(NOW.epoch_ms, Window("five-hour", 100, NOW.epoch_ms + 60_000))
HALF = Snapshot(NOW.epoch_ms, Window("five-hour", 50, NOW.epoch_ms + 60_000))
WEEK = Snapshot(NOW.epoch_ms, weekly=Window("weekly", 1, NOW.epoch_ms + 30_000))


def report(provider: str, snapshot: Snapshot, binding: bytes | None = b"mine", member: str | None = None) -> Report:
    return Report(provider, "Label", "source", snapshot, binding, member)


@pytest.fixture
def world() -> World:
    made = World(config("alpha/m1", "beta/m2", strategy="reset-window"))
    made.state.quota.bind = lambda _: b"mine"
    return made


def test_an_exhausted_provider_is_out_until_its_window_resets(world: World) -> None:
    book, target = world.state.quota, world.registry.combos["main"].targets[0]
    book.put(report("alpha", FULL))
    assert book.spent(target, NOW)
    assert not book.spent(target, Now(0, NOW.epoch_ms + 60_000))
    assert book.badge(target.provider, NOW).state is BadgeState.EXHAUSTED
    row = explain(world.registry.combos["main"], world.registry, world.state, NOW)
    assert [one.reason for one in row.targets] == ["quota", None]
    assert row.next == "beta/m2"


def test_a_turn_passes_an_exhausted_provider_over(world: World) -> None:
    world.state.quota.put(report("alpha", replace(FULL, updated_at=world.now.epoch_ms - 1)))
    world.turn("combo/main") >> Started() << sends("beta/m2")


def test_the_soonest_reset_ranks_first_and_ties_keep_order(world: World) -> None:
    combo = world.registry.combos["main"]
    assert explain(combo, world.registry, world.state, NOW).next == "alpha/m1"
    world.state.quota.put(report("beta", HALF))
    assert explain(combo, world.registry, world.state, NOW).next == "beta/m2"
    world.state.quota.put(report("alpha", WEEK))
    assert explain(combo, world.registry, world.state, NOW).next == "alpha/m1"
    world.state.quota.put(report("beta", WEEK))
    assert explain(combo, world.registry, world.state, NOW).next == "alpha/m1"


@pytest.mark.parametrize(
    "given",
    [
        report("alpha", FULL, binding=None),
        report("alpha", FULL, binding=b"another key"),
        report("alpha", FULL, member="a"),
        report("alpha", replace(FULL, updated_at=NOW.epoch_ms - 30 * 60_000)),
        report("alpha", replace(FULL, updated_at=NOW.epoch_ms + 1)),
        report("beta", FULL),
    ],
)
def test_what_is_not_bound_or_not_fresh_steers_nothing(world: World, given: Report) -> None:
    book, target = world.state.quota, world.registry.combos["main"].targets[0]
    book.put(given)
    assert not book.spent(target, NOW)
    assert book.reset_at(target, NOW) is None
    assert book.badge(target.provider, NOW).state is BadgeState.UNKNOWN


def test_headers_complete_what_is_known_and_never_replace_evidence() -> None:
    book = QuotaBook(lambda _: b"mine")
    book.note("alpha", None, "L", "headers", HALF)
    book.note("alpha", None, "L", "headers", WEEK)
    (known,) = book.reports()
    assert known.snapshot == replace(HALF, weekly=WEEK.weekly)
    assert known.binding is None
    book.put(report("alpha", FULL))
    book.note("alpha", None, "L", "headers", HALF)
    (known,) = book.reports()
    assert known.snapshot == FULL


def test_accounts_are_ranked_by_their_fullest_window() -> None:
    book = QuotaBook()
    book.note("alpha", "a", "L", "headers", HALF)
    assert (book.used_percent("alpha", "a"), book.used_percent("alpha", "b")) == (50.0, 0.0)


def test_reports_go_with_their_provider_with_time_and_when_they_are_void(world: World) -> None:
    book = world.state.quota
    book.put(report("alpha", FULL))
    book.put(report("gone", FULL))
    book.reconcile(world.registry)
    assert [one.provider for one in book.reports()] == ["alpha"]
    assert book.sweep(NOW) == 0
    assert book.sweep(Now(0, NOW.epoch_ms + 30 * 60_000)) == 1
    book.put(report("alpha", FULL))
    book.drop("alpha", "a")
    book.drop("alpha")
    assert list(book.reports()) == []


def test_the_badges_of_a_combo_are_those_of_its_usable_targets(world: World) -> None:
    world.state.quota.put(report("alpha", FULL))
    states = [one.state for one in world.state.quota.badges(world.registry.combos["main"], NOW)]
    assert states == [BadgeState.EXHAUSTED, BadgeState.UNKNOWN]


def test_a_spent_budget_keeps_a_combos_targets_out() -> None:
    document = {**config("alpha/m1", "beta/m2"), "budgets": {"providers": {"alpha": {"tokensPerDay": 10}}}}
    world = World(document)
    world.turn("combo/main") >> Started() << sends("alpha/m1")
    world.state.spending.add("alpha", "main", None, 10, world.now.epoch_ms)
    world.turn("combo/main") >> Started() << sends("beta/m2")
    row = explain(world.registry.combos["main"], world.registry, world.state, world.now)
    assert [one.reason for one in row.targets] == ["budget", None]


def test_a_direct_route_is_refused_by_its_providers_budget() -> None:
    world = World({**config(), "budgets": {"providers": {"alpha": {"tokensPerDay": 0}}}})
    refused = world.turn("alpha/m1") >> Started()
    assert (refused.record.reason, refused.calls) == ("budget", [])
    assert (world.turn("beta/m1") >> Started()).calls == ["beta/m1"]


@pytest.mark.parametrize("model", ["combo/main", "alpha/m1"])
def test_a_further_send_is_charged_and_recorded(model: str) -> None:
    play = (World(config("alpha/m1", "beta/m2")).turn(model) >> Started()).skip()
    granted = [play.turn.charge(0) for _ in range(3)]
    assert granted == [None, None, Denial.SPEND]
    play >> HeadReceived(0, 429, (), PoolNote(PoolKind.API_KEYS, "k2", cooled=True))
    assert (play.record.attempts[0].sends, play.record.attempts[0].account) == (3, "k2")


@pytest.mark.parametrize(("cooled", "left"), [(True, {}), (False, {"alpha/m1": 60_000})])
def test_a_429_of_one_account_that_rests_hops_and_leaves_the_target_selectable(
    cooled: bool, left: dict[str, int]
) -> None:
    world = World(config("alpha/m1", "beta/m2"))
    play = (world.turn("combo/main") >> Started()).skip()
    play >> [HeadReceived(0, 429, (), PoolNote(PoolKind.CODEX, "a", cooled)), Ended(0)]
    assert play.calls == ["alpha/m1", "beta/m2"]
    running = world.state.cooldowns.running(world.mono_ms)
    assert {key.target: entry.expires_ms - world.mono_ms for key, entry in running} == left


def test_a_failover_combo_says_when_a_later_target_has_the_same_provider() -> None:
    def spares(*targets: str, **combo: object) -> bool:
        play = World(config(*targets, **combo)).turn("combo/main") >> Started()  # type: ignore[arg-type]
        return play.sends[0].spares

    assert spares("alpha/m1", "alpha/m2")
    assert not spares("alpha/m1", "beta/m2")
    assert not spares("alpha/m1", "alpha/m2", strategy="round-robin")
