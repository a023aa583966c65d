"""Laws of content codings: no input grows beyond its limit, and cuts change nothing."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress

import brotli  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from combos.wire.bodies import BodyError, BodyErrorKind, Decoder, decode
from combos.wire.zstd import compress
from fuzzing import cuts, law, pieces

CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": compress,
}
names = st.lists(st.sampled_from([*CODERS, "identity"]), max_size=3)
contents = st.one_of(st.binary(max_size=200), st.integers(0, 60_000).map(bytes))


def coded(chain: list[str], data: bytes) -> bytes:
    for name in chain:
        data = CODERS.get(name, bytes)(data)
    return data


@law
@given(names, contents, cuts)
def test_what_was_coded_comes_back(chain: list[str], data: bytes, at: list[int]) -> None:
    raw, header = coded(chain, data), ", ".join(chain)
    assert decode(header, raw, 1 << 20) == data
    decoder = Decoder(header)
    assert b"".join(decoder.feed(piece) for piece in pieces(raw, at)) + decoder.flush() == data


@law
@given(names, contents, st.integers(0, 1000), st.binary(max_size=12), st.sampled_from(["cut", "change", "append"]))
def test_damaged_input_is_malformed_or_within_the_limit(
    chain: list[str], data: bytes, at: int, junk: bytes, how: str
) -> None:
    raw = bytearray(coded(chain, data))
    place = at % (len(raw) + 1)
    if how == "cut":
        del raw[place:]
    else:
        raw[place : place + (len(junk) if how == "change" else 0)] = junk
    try:
        assert len(decode(", ".join(chain), bytes(raw), 5000)) <= 5000
    except BodyError as error:
        assert error.kind in (BodyErrorKind.MALFORMED, BodyErrorKind.TOO_LARGE)


@law
@given(st.text(max_size=30), st.binary(max_size=60))
def test_any_header_and_any_bytes(header: str, data: bytes) -> None:
    with suppress(BodyError):
        assert len(decode(header, data, 1000)) <= 1000
