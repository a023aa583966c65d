"""What is shared, as text: it comes back as it was, and nothing else is believed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.cooldowns import CooldownKey
from combos.core.recall import LaneKey, Selection
from combos.core.registers import Cleared, Cooling, Register, RegisterKey, Stamp
from combos.core.sharing import Push
from combos.core.tallies import Cell, Sum
from combos.wire.sharing import (
    MESSAGE_BYTES_MAX,
    STAMP_LENGTH,
    cell_of,
    cell_text,
    cell_texts,
    key_text,
    push_texts,
    register_of,
    register_text,
    registers_of,
    stamp_text,
    sum_of,
    told_of,
    totals_of,
)

REPLICA = "0123456789abcdef"
STAMP = Stamp(1_790_000_000_000, REPLICA)
LANE = LaneKey("a" * 32, "b" * 32)
ROWS: list[tuple[RegisterKey, Register]] = [
    (CooldownKey("main", "alpha/m1"), Register(STAMP, 1_790_000_060_000, Cooling("status-retryable", "default", 503))),
    (CooldownKey("main", "alpha/a/b c"), Register(STAMP, 1_790_000_060_000, Cooling("rule_x", "hold", None))),
    (LANE, Register(STAMP, 1_790_001_800_000, Selection("main", "alpha", "m1", "näme", STAMP.at_ms, 5))),
    (Cleared(None, None), Register(STAMP, 1_790_086_400_000, None)),
    (Cleared("main", "alpha/m1"), Register(STAMP, 1_790_086_400_000, None)),
]
CELL = Cell(Sum.WEIGHT, "main", 'alpha/m"1')


@pytest.mark.parametrize(("key", "register"), ROWS)
def test_registers_come_back(key: RegisterKey, register: Register) -> None:
    assert register_of(key_text(key), register_text(register)) == (key, register)


def test_sums_come_back() -> None:
    assert cell_of(cell_text(CELL)) == CELL
    assert cell_texts({CELL: -3}) == [cell_text(CELL), "-3"]
    assert totals_of({"epoch": REPLICA, "version": "7", cell_text(CELL): "-3", cell_text(CELL) + " ": "x"}) == {
        CELL: -3
    }


@given(st.tuples(st.integers(0, 2**53), st.sampled_from("ab")), st.tuples(st.integers(0, 2**53), st.sampled_from("ab")))
def test_texts_of_stamps_compare_as_stamps_do(one: tuple[int, str], other: tuple[int, str]) -> None:
    first, second = (Stamp(at_ms, letter * 16) for at_ms, letter in (one, other))
    assert (stamp_text(first) < stamp_text(second)) == (first < second)
    assert len(stamp_text(first)) == STAMP_LENGTH


def frame(*sections: str, head: tuple[str, ...] = (REPLICA, "1", REPLICA, "1")) -> bytes:
    return json.dumps([*head, *sections]).encode()


def test_a_message_is_what_was_pushed_with_the_sums_that_came_out() -> None:
    push = Push(5, ("main",), {CELL: 2}, tuple(ROWS), ((LANE, STAMP),))
    texts = push_texts(push)
    drops = 3
    data = json.dumps([REPLICA, "12", REPLICA, "5", *texts[:-drops]]).encode()
    told = told_of(data)
    assert (told.epoch, told.version, told.replica, told.number) == (REPLICA, 12, REPLICA, 5)
    assert (told.forgets, told.totals, told.registers) == (("main",), {CELL: 2}, tuple(ROWS))
    assert texts[-drops:] == ["1", key_text(LANE), stamp_text(STAMP)]


def test_what_has_no_text_is_left_out_of_a_push() -> None:
    broken: tuple[RegisterKey, Register] = (Cleared(None, "alpha/\ud800"), Register(STAMP, STAMP.at_ms + 1, None))
    assert push_texts(Push(1, (), {}, (broken, ROWS[0]), ()))[:4] == ["0", "0", "1", key_text(ROWS[0][0])]


HEAD = register_text(ROWS[0][1]).rpartition(" ")[0]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("", ""),
        (key_text(ROWS[0][0]), ""),
        (key_text(ROWS[0][0]), "{}"),
        ("z" + key_text(ROWS[0][0])[1:], register_text(ROWS[0][1])),
        ('c["../x","alpha/m1"]', register_text(ROWS[0][1])),
        ('c["main","alpha"]', register_text(ROWS[0][1])),
        ('c["main","alpha/m\\u001b[31m"]', register_text(ROWS[0][1])),
        ('c["main","alpha/' + "m" * 600 + '"]', register_text(ROWS[0][1])),
        ('c["main"]', register_text(ROWS[0][1])),
        ('r["me","b"]', register_text(ROWS[2][1])),
        ("x[1,2]", register_text(ROWS[3][1])),
        ("x[]", register_text(ROWS[3][1])),
        (key_text(ROWS[0][0]), register_text(ROWS[2][1])),
        (key_text(LANE), register_text(ROWS[0][1])),
        (key_text(ROWS[3][0]), register_text(ROWS[0][1])),
        (key_text(ROWS[0][0]), f'{HEAD} ["rule\\n","default",503]'),
        (key_text(ROWS[0][0]), f'{HEAD} ["rule","default",true]'),
        (key_text(ROWS[0][0]), f'{HEAD} ["rule","default",99]'),
        (key_text(ROWS[0][0]), f'{HEAD} ["rule","default",5.5]'),
        (key_text(ROWS[0][0]), f'{HEAD} ["{"r" * 65}","default",503]'),
        (key_text(ROWS[0][0]), f"{HEAD} {'[' * 5000}"),
        (key_text(LANE), f'{HEAD} ["main","alpha","m1",""]'),
        (key_text(LANE), f'{HEAD} ["main","alpha","m1","{"n" * 1025}"]'),
        (key_text(LANE), f'{HEAD} ["main","al pha","m1","n"]'),
        (key_text(ROWS[3][0]), f"{HEAD} null"),
    ],
)
def test_what_was_not_written_here_is_not_believed(field: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        register_of(field, text)
    assert registers_of({field: text, key_text(ROWS[0][0]) + " ": register_text(ROWS[0][1])})[-1:] == (ROWS[0],)


@pytest.mark.parametrize("text", ["", "1.5", "1e9", "x", "٣", str(2**53 + 1), "9" * 30, " 1"])
def test_sums_are_whole_numbers_that_everybody_can_hold(text: str) -> None:
    with pytest.raises(ValueError, match="no number"):
        sum_of(text)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"{}",
        b"[1,2,3,4,5,6,7]",
        b"[]",
        frame("0", "0"),
        frame("0", "0", "5"),
        frame("-1", "0", "0"),
        frame("9999999", "0", "0"),
        frame("0", "x", "0"),
        frame("0", "0", "0", head=("epoch", "1", REPLICA, "1")),
        frame("0", "0", "0", head=(REPLICA, "1", "me", "1")),
        frame("0", "0", "0", head=(REPLICA, "one", REPLICA, "1")),
        b" " * (MESSAGE_BYTES_MAX + 1),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        told_of(data)


def test_parts_that_cannot_be_read_are_left_out() -> None:
    data = frame("2", "main", "../x", "1", "w[]", "5", "1", "c[]", "x")
    told = told_of(data)
    assert (told.forgets, dict(told.totals), told.registers) == (("main",), {}, ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        told_of(data)
    except ValueError:
        return
    raise AssertionError(f"believed {data!r}")


@given(st.lists(st.text(max_size=12) | st.sampled_from(["0", "1", "2", "main", cell_text(CELL)]), max_size=12))
def test_any_sections_are_read_or_refused(sections: list[str]) -> None:
    try:
        told = told_of(frame(*sections))
    except ValueError:
        return
    assert set(told.totals) <= {CELL}


@given(field=st.text(max_size=30) | st.sampled_from([key_text(key) for key, _ in ROWS]), value=JSON | st.text())
def test_any_register_is_one_that_could_have_been_written_here_or_refused(field: str, value: Any) -> None:
    text = f"{HEAD} {json.dumps(value)}"
    try:
        key, register = register_of(field, text)
    except ValueError:
        return
    assert register_of(key_text(key), register_text(register)) == (key, register)
