"""Header fields, asked by name."""

from hypothesis import given
from hypothesis import strategies as st

from combos.wire.fields import Fields
from combos.wire.headers import get

RAW = st.lists(st.tuples(st.sampled_from([b"A", b"a", b"b", b"B-c"]), st.binary(max_size=4))).map(tuple)


@given(RAW, st.sampled_from([b"a", b"b", b"b-c", b"d"]))
def test_an_index_answers_as_a_search_does(raw: tuple[tuple[bytes, bytes], ...], name: bytes) -> None:
    fields = Fields(raw)
    assert fields.raw is raw
    assert fields.get(name) == get(raw, name.decode())
    assert fields.every(name) == [value for key, value in raw if key.lower() == name]
    assert (name in fields.first) is bool(fields.every(name))


def test_fields_by_name_hold_the_first_value_whatever_the_case() -> None:
    fields = Fields(((b"Thread-Id", b"one"), (b"accept", b"x"), (b"thread-id", b"two")))
    assert fields.first == {b"thread-id": b"one", b"accept": b"x"}
    assert fields.every(b"thread-id") == [b"one", b"two"]
