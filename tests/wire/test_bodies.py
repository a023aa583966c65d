"""Content codings: every coding, whole and in pieces, cut, mangled and exploding."""

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.wire import bodies
from combos.wire.bodies import BodyError, BodyErrorKind, Decoder, codings, decode
from combos.wire.zstd import compress as zstd

TEXT = b'{"model":"combo/main","input":"hi \xe2\x9c\x93"}' * 40


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "case": (" GZip ", gzip.compress),
    "gzip members": ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd),
    "zstd frames": ("zstd", lambda data: zstd(data[:9]) + zstd(data[9:])),
    "chain": ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    "chain with identity": ("identity, deflate,,zstd", lambda data: zstd(zlib.compress(data))),
}
ROWS = pytest.mark.parametrize(("coding", "encode"), CODINGS.values(), ids=list(CODINGS))


def in_pieces(coding: str, body: bytes, size: int) -> bytes:
    decoder = Decoder(coding)
    pieces = [decoder.feed(body[start : start + size]) for start in range(0, len(body), size)]
    return b"".join(pieces) + decoder.flush()


@ROWS
def test_whole_and_in_pieces(coding: str, encode: Callable[[bytes], bytes]) -> None:
    body = encode(TEXT)
    assert decode(coding, body, len(TEXT)) == TEXT
    for size in (1, 2, 5, 1000):
        assert in_pieces(coding, body, size) == TEXT


@ROWS
@pytest.mark.parametrize("mangle", ["cut", "garbage after", "garbage before", "two bytes"])
def test_mangled(coding: str, encode: Callable[[bytes], bytes], mangle: str) -> None:
    body = encode(TEXT)
    bad = {
        "cut": body[:-1],
        "garbage after": body + b"!",
        "garbage before": b"zz" + body,
        "two bytes": body[:2],
    }[mangle]
    for run in (lambda: decode(coding, bad, 1 << 20), lambda: in_pieces(coding, bad, 3)):
        with pytest.raises(BodyError) as caught:
            run()
        assert caught.value.kind is BodyErrorKind.MALFORMED


@ROWS
def test_limit_is_exact(coding: str, encode: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BodyError) as caught:
        decode(coding, encode(TEXT), len(TEXT) - 1)
    assert caught.value.kind is BodyErrorKind.TOO_LARGE


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress), ("zstd", zstd)],
)
def test_a_bomb_is_stopped_early(coding: str, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(bytes(30_000_000))
    for decoder in (Decoder(coding, step_limit=50_000), Decoder(coding, total_limit=50_000)):
        with pytest.raises(BodyError) as caught:
            decoder.feed(bomb)
        assert caught.value.kind is BodyErrorKind.TOO_LARGE


def test_the_total_limit_counts_over_chunks() -> None:
    decoder = Decoder(None, total_limit=10)
    assert decoder.feed(b"12345678") == b"12345678"
    with pytest.raises(BodyError):
        decoder.feed(b"901")


@pytest.mark.parametrize("coding", [None, "", "identity", " Identity , identity"])
def test_no_coding(coding: str | None) -> None:
    assert decode(coding, TEXT, len(TEXT)) == TEXT
    with pytest.raises(BodyError):
        decode(coding, TEXT, len(TEXT) - 1)


@pytest.mark.parametrize("coding", ["compress", "gzip, rot13", "br;q=1", ", ".join(["gzip"] * 4)])
def test_unsupported(coding: str) -> None:
    with pytest.raises(BodyError) as caught:
        decode(coding, b"x", 10)
    assert caught.value.kind is BodyErrorKind.UNSUPPORTED


def test_an_empty_body_is_no_error() -> None:
    for coding in ("gzip", "deflate", "br", "zstd"):
        assert decode(coding, b"", 10) == b""


def test_codings_in_order_of_application() -> None:
    assert codings("Deflate , identity,GZIP") == ("deflate", "gzip")


@given(st.sampled_from(["gzip", "deflate", "br", "zstd", "zstd, gzip"]), st.binary(max_size=200))
@settings(max_examples=150)
def test_hostile_bytes_raise_nothing_else(coding: str, data: bytes) -> None:
    results: list[bytes | BodyErrorKind] = []
    for run in (lambda: decode(coding, data, 1 << 16), lambda: in_pieces(coding, data, 1)):
        try:
            results.append(run())
        except BodyError as error:
            results.append(error.kind)
    assert results[0] == results[1]


@ROWS
def test_output_that_fills_a_piece_exactly(
    coding: str, encode: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a decompressor holds back inside when its output buffer is full must come out all the same."""
    monkeypatch.setattr(bodies, "_PIECE_BYTES", 64)
    for size in [*range(1, 420, 3), 64, 128, 65_536]:
        text = bytes(size)
        assert decode(coding, encode(text), size + 100) == text
        assert in_pieces(coding, encode(text), 3) == text


MEMBERS = [("gzip", gzip.compress(b"")), ("gzip", gzip.compress(b"a")), ("zstd", zstd(b"")), ("zstd", zstd(b"a"))]


@pytest.mark.parametrize(("coding", "member"), MEMBERS, ids=["gzip-0", "gzip-1", "zstd-0", "zstd-1"])
def test_members_without_end_are_refused_before_they_cost_time(coding: str, member: bytes) -> None:
    few = decode(coding, member * bodies.MAX_MEMBERS, 1 << 20)
    assert len(few) in (0, bodies.MAX_MEMBERS)
    with pytest.raises(BodyError) as caught:
        decode(coding, member * 1_000_000, 1 << 20)
    assert caught.value.kind is BodyErrorKind.MALFORMED


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_what_a_decoder_hands_back_is_bounded(
    coding: str, encode: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    slices = bodies._slices
    monkeypatch.setattr(bodies, "_slices", lambda data: [seen.append(len(s)) or s for s in slices(data)])
    body = b"".join(encode(bytes([i % 251]) * 70) for i in range(9000))
    assert len(decode(coding, body, 1 << 20)) == 9000 * 70
    assert len(seen) > 1
    assert max(seen) <= 64 * 1024
