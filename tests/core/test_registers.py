"""Registers: the latest write counts, a clear ends what is older, and no order of hearing makes a difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.cooldowns import CooldownKey
from combos.core.recall import LaneKey, Selection
from combos.core.registers import CLEARS_MAX, COOLDOWNS_MAX, Cleared, Cooling, Register, RegisterKey, Registers, Stamp

ALPHA, BETA = CooldownKey("main", "alpha/m1"), CooldownKey("main", "beta/m2")
LANE = LaneKey("caller", "lane")


def cooling(at_ms: int, replica: str = "a", rule: str = "rule") -> Register:
    return Register(Stamp(at_ms, replica), at_ms + 60_000, Cooling(rule, "default", 503))


def selected(at_ms: int, name: str = "m") -> Register:
    return Register(Stamp(at_ms, "a"), at_ms + 1_000, Selection("main", "alpha", "m1", name, at_ms, len(name)))


def cleared(at_ms: int, replica: str = "a") -> Register:
    return Register(Stamp(at_ms, replica), at_ms + 1_000, None)


def put(registers: Registers, key: RegisterKey, register: Register) -> None:
    match key:
        case CooldownKey():
            registers.cool(key, register)
        case LaneKey():
            registers.recall(key, register)
        case Cleared():
            registers.clear(key, register)


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [
        (cooling(1), cooling(2), 2),
        (cooling(2), cooling(1), 2),
        (cooling(1, "a"), cooling(1, "b"), "b"),
        (cooling(1, "b"), cooling(1, "a"), "b"),
    ],
)
def test_the_latest_write_counts(first: Register, second: Register, stays: object) -> None:
    registers = Registers()
    registers.cool(ALPHA, first)
    registers.cool(ALPHA, second)
    ((_, kept),) = registers.cooling()
    assert stays in kept.stamp


@pytest.mark.parametrize(
    ("key", "ended"),
    [
        (Cleared(None, None), {ALPHA, BETA}),
        (Cleared("main", None), {ALPHA, BETA}),
        (Cleared(None, "beta/m2"), {BETA}),
        (Cleared("main", "alpha/m1"), {ALPHA}),
        (Cleared("other", None), set()),
        (Cleared("other", "alpha/m1"), set()),
    ],
)
def test_what_a_clear_speaks_of(key: Cleared, ended: set[CooldownKey]) -> None:
    registers = Registers()
    registers.cool(ALPHA, cooling(1))
    registers.cool(BETA, cooling(2))
    assert set(registers.clear(key, cleared(3)) or ()) == ended
    assert {key for key, _ in registers.cooling()} == {ALPHA, BETA} - ended
    assert registers.clear(key, cleared(3)) is None  # heard again
    for one in ended:
        assert not registers.cool(one, cooling(2))  # from before it
        assert registers.cool(one, cooling(4))


def test_a_clear_and_a_cooldown_of_the_same_names_are_two_things() -> None:
    assert Cleared("main", "alpha/m1") != ALPHA


def test_clears_and_cooldowns_are_bounded() -> None:
    registers = Registers()
    for number in range(CLEARS_MAX + 5):
        registers.clear(Cleared("main", f"alpha/{number}"), cleared(number))
    assert len(registers) == CLEARS_MAX
    registers = Registers()
    for number in range(COOLDOWNS_MAX):
        registers.cool(CooldownKey("main", f"alpha/{number}"), cooling(1))
    assert not registers.cool(ALPHA, cooling(1))
    assert registers.cool(CooldownKey("main", "alpha/0"), cooling(2))


def test_sweeping_and_moving() -> None:
    registers = Registers()
    registers.cool(ALPHA, cooling(1))
    registers.recall(LANE, selected(2))
    registers.clear(Cleared("other", None), cleared(3))
    registers.shift(10)
    assert {register.stamp.at_ms for _, register in registers.items()} == {11, 12, 13}
    assert {key for key, _ in registers.sweep(1_012)} == {LANE}
    assert {key for key, _ in registers.sweep(60_011)} == {ALPHA, Cleared("other", None)}
    assert len(registers) == 0


def test_combos_and_conversations_can_be_forgotten() -> None:
    registers = Registers()
    registers.cool(ALPHA, cooling(1))
    registers.recall(LANE, selected(2))
    registers.keep_combos(["other"])
    assert registers.cooling() == ()
    assert (registers.lane_count, [key for key, _ in registers.lanes()]) == (1, [LANE])
    assert registers.forget(LANE) == selected(2)
    assert registers.forget(LANE) is None


WRITES = st.one_of(
    st.tuples(
        st.sampled_from([ALPHA, BETA]),
        st.builds(cooling, st.integers(0, 9), st.sampled_from("abc"), st.just("same")),
    ),
    st.tuples(
        st.builds(Cleared, st.sampled_from([None, "main", "other"]), st.sampled_from([None, "alpha/m1"])),
        st.builds(cleared, st.integers(0, 9), st.sampled_from("abc")),
    ),
    st.tuples(st.just(LANE), st.builds(selected, st.integers(0, 9), st.just("m"))),
)


@given(st.lists(WRITES, max_size=12).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows + rows))))
def test_order_and_repetition_make_no_difference(
    given_rows: tuple[list[tuple[RegisterKey, Register]], list[tuple[RegisterKey, Register]]],
) -> None:
    one, other = Registers(), Registers()
    for registers, rows in zip((one, other), given_rows, strict=True):
        for key, register in rows:
            put(registers, key, register)
    assert dict(one.items()) == dict(other.items())
