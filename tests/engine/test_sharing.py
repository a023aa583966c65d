"""A group that shares state: what one learns all know, in whatever order they hear it and whatever is lost between."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.cooldowns import CooldownKey
from combos.core.recall import LANES_MAX
from combos.core.registers import Cooling, Register, Stamp
from combos.core.sharing import Told
from combos.engine.sharing import GRACE_MS, LIFE_MAX_MS, Sharing
from playbook import World, config
from sharinggroup import Member, Server, group, settle

COMBO = "main"


def test_a_cooldown_is_known_everywhere_and_ends_at_the_same_moment() -> None:
    server, (a, b) = group()
    server.now_ms += 1_000
    a.cool(0, 30_000)
    settle([a, b])
    assert a.cooling() == b.cooling() == {"alpha/m1": server.now_ms + 30_000}
    server.now_ms += 30_000
    assert a.cooling() == b.cooling() == {}


def test_a_late_joiner_learns_what_is_running() -> None:
    server, (a,) = group(1)
    a.cool(0, 30_000)
    a.remember("lane", 1)
    a.pick()
    settle([a])
    server.now_ms += 10_000
    b = Member("f" * 16, server, 42)
    b.join()
    assert b.cooling() == a.cooling() == {"alpha/m1": server.now_ms + 20_000}
    assert (b.weights(), b.counts(), b.recalled()) == (a.weights(), a.counts(), a.recalled())


@pytest.mark.parametrize(
    ("combo", "target", "left"),
    [(None, None, []), ("main", None, []), (None, "alpha/m1", ["beta/m2"]), ("other", None, ["alpha/m1", "beta/m2"])],
)
def test_a_clear_is_a_clear_everywhere(combo: str | None, target: str | None, left: list[str]) -> None:
    _, (a, b) = group()
    a.cool(0)
    b.cool(1)
    settle([a, b])
    b.state.clear_cooldowns(combo, target)
    settle([a, b])
    assert sorted(a.cooling()) == sorted(b.cooling()) == left


def test_a_clear_also_ends_what_was_cooled_before_it_and_heard_of_later() -> None:
    server, (a, b) = group()
    a.leave()
    a.cool(0)
    server.now_ms += 5
    b.state.clear_cooldowns()
    settle([a, b])
    assert (a.cooling(), b.cooling()) == ({}, {})
    a.cool(0)
    settle([a, b])
    assert a.cooling() == b.cooling() != {}


@pytest.mark.parametrize("back_ms", [61_000, 300_000, 23 * 3_600_000])
def test_clears_are_shared_after_the_clock_of_the_server_was_set_back(back_ms: int) -> None:
    """By a fail-over: what was cleared while nobody was connected, and what is cleared afterwards."""
    server, (a, b) = group()
    a.cool(0)
    b.cool(1)
    settle([a, b])
    for member in (a, b):
        member.leave()
    a.state.clear_cooldowns("main", "alpha/m1")
    for member in (a, b):
        member.began_ms += back_ms
    server.now_ms -= back_ms
    server.flush()
    settle([a, b])
    assert list(a.cooling()) == list(b.cooling()) == ["beta/m2"]
    a.state.clear_cooldowns("main", "beta/m2")
    settle([a, b])
    assert (a.cooling(), b.cooling()) == ({}, {})


def test_clears_are_shared_when_the_stamps_of_one_member_are_a_day_ahead() -> None:
    server, (a, b, c) = group(3)
    ahead = Register(Stamp(server.now_ms + LIFE_MAX_MS - 60_000, "f" * 16), server.now_ms + 60_000, VALUE)
    for member in (a, b, c):
        member.sharing.received(Told(member.epoch, 1, "f" * 16, 1, (), {}, ((CooldownKey(COMBO, "alpha/m1"), ahead),)))
    server.version = 1
    assert list(a.cooling()) == list(b.cooling()) == list(c.cooling()) == ["alpha/m1"]
    a.state.clear_cooldowns()
    settle([a, b, c])
    assert (a.cooling(), b.cooling(), c.cooling()) == ({}, {}, {})


def test_a_clear_of_all_lets_pool_members_serve_again_everywhere() -> None:
    _, (a, b) = group()
    b.state.pools.pool("alpha", {}).member("key").cooled_until = b.now_ms + 60_000
    a.state.clear_cooldowns(target="alpha/m1")
    settle([a, b])
    assert b.state.pools.running(b.now)
    a.state.clear_cooldowns()
    settle([a, b])
    assert not b.state.pools.running(b.now)


def test_round_robin_goes_on_where_the_other_left_off() -> None:
    _, (a, b) = group()
    picked = []
    for turn in range(12):
        picked.append((a, b)[turn % 2].pick())
        settle([a, b])
    alone = Member("c" * 16, Server(), 0)
    assert picked == [alone.pick() for _ in range(12)]


def test_shares_are_exact_also_when_nobody_hears_of_the_others_for_a_while() -> None:
    _, (a, b) = group()
    picked = [member.pick() for _ in range(40) for member in (a, b)]
    settle([a, b])
    picked += [member.pick() for _ in range(4) for member in (a, a, b) if not settle([a, b])]
    assert sum(a.weights().values()) == 0
    assert picked.count("alpha/m1") / len(picked) == pytest.approx(0.5, abs=0.03)


def test_successes_of_a_process_that_is_killed_stay_counted_so_that_nothing_runs_to_one_target() -> None:
    _, (a, b) = group()
    for _ in range(50):
        a.succeed(0)
        b.succeed(1)
    settle([a, b])
    b.server.listeners.remove(a)
    assert b.counts() == {"alpha/m1": 50, "beta/m2": 50}


@pytest.mark.parametrize("late", [True, False])
def test_what_was_on_its_way_when_the_connection_broke_counts_once(late: bool) -> None:
    _, (a, b) = group()
    for _ in range(3):
        a.succeed(0)
    a.push(is_late=late, is_lost=not late)
    a.succeed(0)
    settle([a, b])
    assert a.counts() == b.counts() == {"alpha/m1": 4}


def test_a_push_of_an_earlier_session_is_refused() -> None:
    server, (a, b) = group()
    a.succeed(0)
    push = a.sharing.outgoing()
    assert push is not None
    session = a.session
    a.leave()
    a.join()
    later, a.session = a.session, session
    assert not server.push(a, a.epoch, push)
    a.session = later
    settle([a, b])
    assert b.counts() == {"alpha/m1": 1}


def test_a_missed_message_is_noticed() -> None:
    _, (a, b) = group()
    a.succeed(0)
    a.push()
    b.inbox.clear()
    a.succeed(0)
    settle([a, b])
    assert b.counts() == {"alpha/m1": 2}


def test_a_server_that_lost_everything_gets_it_back() -> None:
    server, (a, b) = group()
    a.cool(0)
    a.remember("lane", 1)
    for _ in range(5):
        a.pick()
    settle([a, b])
    before = (a.cooling(), a.weights(), a.counts(), a.recalled())
    server.flush()
    b.succeed(0)
    settle([a, b])
    assert a.counts().pop("alpha/m1") == before[2]["alpha/m1"] + 1
    assert (a.cooling(), a.weights(), a.recalled()) == (before[0], before[1], before[3])
    newcomer = Member("d" * 16, server, 9)
    settle([a, b, newcomer])
    assert (newcomer.cooling(), newcomer.counts()) == (a.cooling(), a.counts())


def test_what_was_learnt_before_the_first_contact_is_told_then() -> None:
    server = Server()
    a, b = Member("a" * 16, server, 5_000), Member("b" * 16, server, 90_000)
    a.cool(0)
    a.remember("lane", 0)
    a.pick()
    server.now_ms += 10
    b.remember("lane", 1)
    settle([a, b])
    assert a.cooling() == b.cooling() == {"alpha/m1": server.now_ms + 59_990}
    assert list(a.recalled().values()) == list(b.recalled().values()) == ["named-1"]
    assert a.counts() == b.counts() == {"alpha/m1": 1}


def test_a_state_that_was_in_use_is_taken_along() -> None:
    server = Server()
    world = World(config())
    member = Member("a" * 16, server, 5_000)
    member.state.journal = None
    member.cool(0)
    member.remember("lane", 0)
    member.pick()
    member.sharing = member.state.journal = Sharing(member.state, member.name, lambda: member.now_ms)
    other = Member("b" * 16, server, 7)
    settle([member, other])
    assert other.cooling() == member.cooling() != {}
    assert other.recalled() == member.recalled() != {}
    assert other.weights() == member.weights() != {}
    assert world.state.journal is None


def test_a_combo_that_begins_anew_does_so_everywhere() -> None:
    _, (a, b) = group()
    for member in (a, b):
        member.pick()
        member.cool(1)
    settle([a, b])
    a.pick()
    a.push()
    b.state.forget_combo(COMBO)
    settle([a, b])
    assert (a.cooling(), a.weights(), a.counts()) == ({}, {}, {}) == (b.cooling(), b.weights(), b.counts())
    a.succeed(2)
    settle([a, b])
    assert b.counts() == {"gamma/m3": 1}


def test_what_is_told_of_combos_that_are_not_configured_waits_for_them() -> None:
    _, (a, b) = group()
    b.world.reload({"providers": config()["providers"], "combos": {}})
    a.cool(0)
    a.pick()
    settle([a, b])
    assert (b.cooling(), b.counts()) == ({}, {})
    b.world.reload(a.world.document)
    assert (b.cooling(), b.weights(), b.counts()) == (a.cooling(), a.weights(), a.counts())
    b.pick()
    settle([a, b])
    assert sum(a.counts().values()) == 2


def test_a_target_that_leaves_one_configuration_takes_nothing_from_the_others() -> None:
    _, (a, b) = group()
    for _ in range(8):
        a.pick()
    settle([a, b])
    before = a.counts()
    b.world.reload(config("beta/m2", "gamma/m3", strategy="round-robin"))
    b.pick()
    settle([a, b])
    assert a.counts()["alpha/m1"] == before["alpha/m1"]
    assert sum(a.counts().values()) == 9


def test_no_more_conversations_than_have_room() -> None:
    server, (a, b) = group()
    for number in range(LANES_MAX + 40):
        server.now_ms += 1
        (a, b)[number % 2].remember(f"lane {number}", 0)
        if number % 7 == 0:
            settle([a, b])
    settle([a, b])
    assert len(a.recalled()) == LANES_MAX
    assert a.recalled() == b.recalled()
    for member in (a, b):
        member.cool(0)  # anything, so that what was let go of is said
    settle([a, b])
    assert sum(1 for register in server.registers.values() if not isinstance(register.value, Cooling)) <= LANES_MAX + 40


def test_what_is_over_leaves_the_server_too() -> None:
    server, (a, b) = group()
    a.cool(0, 1_000)
    settle([a, b])
    server.now_ms += 1_000 + GRACE_MS - 1
    a.sharing.sweep()
    settle([a, b])
    assert len(server.registers) == 1
    server.now_ms += 1
    a.sharing.sweep()
    settle([a, b])
    assert not server.registers


def test_a_short_cooldown_that_is_over_still_ends_the_longer_one_it_replaced() -> None:
    server, (a, b) = group()
    a.cool(0, 60_000)
    server.now_ms += 1
    b.cool(0, 5)
    server.now_ms += 5
    settle([a, b])
    assert a.cooling() == b.cooling() == {}


def test_a_heartbeat_is_a_push_of_nothing() -> None:
    _, (a, _) = group()
    assert a.sharing.outgoing() is None
    beat = a.sharing.outgoing(even_nothing=True)
    assert beat is not None
    assert (beat.additions, beat.registers) == ({}, ())


KEY = CooldownKey(COMBO, "alpha/m1")
VALUE = Cooling("rule", "source", 503)


@pytest.mark.parametrize(
    ("ahead_ms", "lasts_ms"),
    [(0, 0), (0, -1), (0, LIFE_MAX_MS + 1), (LIFE_MAX_MS + 1, 60_000)],
)
def test_what_cannot_be_is_not_believed(ahead_ms: int, lasts_ms: int) -> None:
    server, (a,) = group(1)
    register = Register(Stamp(server.now_ms + ahead_ms, "f" * 16), server.now_ms + lasts_ms, VALUE)
    assert a.sharing.received(Told(a.epoch, 1, "f" * 16, 1, (), {}, ((KEY, register),)))
    assert a.cooling() == {}


def test_a_key_and_a_value_that_do_not_belong_together_change_nothing() -> None:
    server, (a,) = group(1)
    register = Register(Stamp(server.now_ms, "f" * 16), server.now_ms + 1_000, None)
    assert a.sharing.received(Told(a.epoch, 1, "f" * 16, 1, (), {}, ((KEY, register),)))
    assert a.cooling() == {}


def test_cooldowns_and_clears_are_urgent_and_the_rest_is_not() -> None:
    _, (a,) = group(1)
    woken: list[bool] = []
    a.sharing = a.state.journal = Sharing(a.state, a.name, lambda: a.now_ms, woken.append)
    a.cool(0)
    a.state.clear_cooldowns()
    assert woken == [True, True]
    woken.clear()
    a.pick()
    a.remember("lane", 0)
    assert woken
    assert not any(woken)


# -- any interleaving

STEPS = st.one_of(
    st.tuples(st.just("cool"), st.integers(0, 2), st.sampled_from([5, 60_000, 86_400_000])),
    st.tuples(st.just("clear"), st.sampled_from([None, "main"]), st.sampled_from([None, "alpha/m1", "beta/m2"])),
    st.tuples(st.just("pick")),
    st.tuples(st.just("succeed"), st.integers(0, 2)),
    st.tuples(st.just("remember"), st.sampled_from(["x", "y", "z"]), st.integers(0, 2)),
    st.tuples(st.just("push"), st.sampled_from(["sound", "lost", "late"])),
    st.tuples(st.just("hear")),
    st.tuples(st.just("leave")),
    st.tuples(st.just("join")),
    st.tuples(st.just("wait"), st.integers(0, 20)),
)


def act(member: Member, step: tuple[Any, ...]) -> int:
    """Take one step; how many successes it counted."""
    match step:
        case ("pick",):
            member.pick()
            return 1
        case ("succeed", target):
            member.succeed(target)
            return 1
        case ("cool", target, ms):
            member.cool(target, ms)
        case ("clear", combo, target):
            member.state.clear_cooldowns(combo, target)
        case ("remember", lane, target):
            member.remember(lane, target)
        case _:
            travel(member, step)
    return 0


def travel(member: Member, step: tuple[Any, ...]) -> None:
    match step:
        case ("push", how) if member.is_connected:
            member.push(is_lost=how == "lost", is_late=how == "late")
        case ("hear",) if member.is_connected:
            member.hear()
        case ("leave",):
            member.leave()
        case ("join",) if not member.is_connected:
            member.join()
        case ("wait", ms):
            member.server.now_ms += ms


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 2), STEPS), max_size=60))
def test_any_interleaving_ends_in_the_same_state_and_counts_everything_once(
    steps: list[tuple[int, tuple[Any, ...]]],
) -> None:
    _, members = group(3)
    successes = sum(act(members[who], step) for who, step in steps)
    settle(members)
    first, *others = members
    for other in others:
        assert other.cooling() == first.cooling()
        assert (other.weights(), other.counts()) == (first.weights(), first.counts())
        assert other.recalled() == first.recalled()
    assert sum(first.counts().values()) == successes
    assert sum(first.weights().values()) == 0


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.one_of(STEPS, st.just(("flush",)))), max_size=60))
def test_any_interleaving_with_losses_of_the_server_ends_in_the_same_state(
    steps: list[tuple[int, tuple[Any, ...]]],
) -> None:
    server, members = group(3)
    for who, step in steps:
        if step == ("flush",):
            server.flush()
        else:
            act(members[who], step)
    for member in members:
        member.sharing.cleared("nobody", None)  # a push of everybody shows them the server as it is
    settle(members)
    first, *others = members
    for other in others:
        assert other.cooling() == first.cooling()
        assert (other.weights(), other.counts()) == (first.weights(), first.counts())
        assert other.recalled() == first.recalled()
