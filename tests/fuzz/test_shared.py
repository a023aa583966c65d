"""Laws of shared state: whoever writes to the server or the channel breaks nothing here, and little is believed."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from combos.core.sharing import Told
from combos.engine.sharing import LIFE_MAX_MS
from combos.wire.sharing import registers_of, told_of, totals_of
from fuzzing import damaged, json_values, law
from sharinggroup import group

names = st.sampled_from(["main", "alpha/m1", "beta/m2", "", "a/b/c", "\ud800", "x" * 5000, "\0", "0" * 32, "f" * 16])
keys = st.builds(
    lambda kind, parts: kind + json.dumps(parts),
    st.sampled_from(["c", "r", "x", "p", "s", "", "?"]),
    st.one_of(
        st.just(["main", "alpha/m1"]),
        st.just(["0" * 32, "f" * 32]),
        st.just([None, None]),
        st.lists(st.one_of(names, json_values), max_size=3),
    ),
)
stamps = st.sampled_from(["0000000000000000", "000001a0d0000000", "ffffffffffffffff", "0", "-1"]).map(
    "{}.0123456789abcdef".format
)
numbers = st.sampled_from(["0", "5", "-1", "9" * 30, "9" * 16, "1e5", "99999999999999", "0x1", " 7", ""])
values = st.builds(
    lambda stamp, life, value: f"{stamp} {life} {json.dumps(value)}",
    stamps,
    numbers,
    st.one_of(
        st.tuples(st.just("transport"), st.just("default"), st.one_of(st.none(), st.integers(90, 700))).map(list),
        st.tuples(st.just("main"), st.just("alpha"), st.just("m1"), names).map(list),
        st.lists(st.one_of(names, st.integers(-9, 999), st.none()), max_size=4),
    ),
)
fields = st.dictionaries(keys, st.one_of(values, numbers, st.text(max_size=12)), max_size=5)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """What looks like a message: counts that may be wrong, sections that may be cut."""
    head = [draw(st.sampled_from(["0123456789abcdef", "x", ""])), draw(numbers), "f" * 16, draw(numbers)]
    parts: list[Any] = list(head)
    for width in (1, 2, 2):
        rows = draw(st.lists(st.tuples(*[st.one_of(keys, values, numbers)] * width), max_size=3))
        parts += [draw(st.one_of(st.just(str(len(rows))), numbers)), *(part for row in rows for part in row)]
    return json.dumps(parts).encode()


@law
@given(st.one_of(st.binary(max_size=80), damaged(), messages()))
def test_a_message_is_read_or_none(data: bytes) -> None:
    with suppress(ValueError):
        told = told_of(data)
        server, (member, _) = group()
        for epoch in (told.epoch, member.epoch):
            member.sharing.received(replace(told, epoch=epoch, version=member.sharing._version + 1))
        latest = server.now_ms + LIFE_MAX_MS
        assert all(at <= latest for at in member.cooling().values())
        assert isinstance(told, Told)


@law
@given(fields)
def test_what_the_server_keeps_is_read_as_far_as_it_can_be(kept: dict[str, str]) -> None:
    assert len(registers_of(kept)) <= len(kept)
    assert len(totals_of(kept)) <= len(kept)
