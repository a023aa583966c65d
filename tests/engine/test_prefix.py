from combos.engine.prefix import Prefix


def test_bounds_are_inclusive() -> None:
    prefix = Prefix(max_bytes=4, max_chunks=2)
    assert prefix.has_room(b"1234")
    assert not prefix.has_room(b"12345")
    prefix.hold(b"12")
    prefix.hold(b"3")
    assert not prefix.has_room(b"4"), "two chunks are held"


def test_what_is_held_comes_out_once_in_order() -> None:
    prefix = Prefix()
    for data in (b"a", b"", b"b"):
        prefix.hold(data)
    assert (prefix.joined(), prefix.size) == (b"ab", 2)
    assert prefix.release() == [b"a", b"b"]
    assert (prefix.joined(), prefix.size, prefix.release()) == (b"", 0, [])


def test_what_has_no_room_is_not_taken() -> None:
    prefix = Prefix(max_bytes=4, max_chunks=2)
    assert prefix.take(b"abc")
    assert not prefix.take(b"de")
    assert prefix.take(b"")
    assert prefix.take(b"d")
    assert not prefix.take(b"")
    assert prefix.joined() == b"abcd"
    prefix.bound(5, 3)
    assert prefix.take(b"e")
    assert not prefix.take(b"")
