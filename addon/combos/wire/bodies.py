"""Content codings: undoes them with bounded output, whole bodies and streams alike. Knows no dialect and no header."""

import zlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Protocol

import brotli  # type: ignore[import-untyped]

from combos.wire.zstd import ZstdDecompressor, ZstdError

# Nobody stacks more codings than this; every stage costs a window of memory.
MAX_CODINGS = 3
# What one chunk of a stream may decompress to.
MAX_STEP_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
# Input is worked on in slices: a decoder hands back what it did not use as a copy, and one of all the rest for every
# little member would make the work quadratic.
_SLICE_BYTES = 64 * 1024
# Members (gzip) or frames (zstd) in one piece of input; tools that write several write them by the block.
MAX_MEMBERS = 10_000


class BodyErrorKind(StrEnum):
    """Why a body cannot be read."""

    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"


class BodyError(Exception):
    """A body that cannot be read. The text names the coding, never the content."""

    def __init__(self, kind: BodyErrorKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class _Stage(Protocol):
    """Undoes one coding. `decode` gives the output of `data` in pieces; `finished` is true at a clean end."""

    def decode(self, data: bytes, room: int) -> bytes: ...

    @property
    def finished(self) -> bool: ...


def _malformed(coding: str) -> BodyError:
    return BodyError(BodyErrorKind.MALFORMED, f"body is not valid {coding}")


def _too_large() -> BodyError:
    return BodyError(BodyErrorKind.TOO_LARGE, "decoded body is over the limit")


def _add(pieces: list[bytes], piece: bytes, room: int) -> int:
    """Append a piece; gives the room left, raises when it is used up."""
    if len(piece) > room:
        raise _too_large()
    pieces.append(piece)
    return room - len(piece)


def _slices(data: bytes) -> Iterator[bytes]:
    """The input in bounded slices; at least one, for what is still pending inside a decoder."""
    return (data[start : start + _SLICE_BYTES] for start in range(0, max(len(data), 1), _SLICE_BYTES))


def _count_member(members: int) -> int:
    if members >= MAX_MEMBERS:
        raise BodyError(BodyErrorKind.MALFORMED, "body has too many parts")
    return members + 1


class _Zlib:
    """gzip (one or more members) and deflate; `wbits` None finds out whether deflate has its zlib frame."""

    def __init__(self, coding: str, wbits: int | None) -> None:
        self._coding = coding
        self._wbits = wbits
        self._head = b""
        self._engine = zlib.decompressobj(wbits) if wbits is not None else None
        self.finished = False

    def decode(self, data: bytes, room: int) -> bytes:
        pieces: list[bytes] = []
        members = 0
        for rest in _slices(data):
            while rest and (engine := self._engine or self._choose(rest)) is not None:
                rest, self._head = self._head + rest, b""
                try:
                    room = self._drain(engine, rest, pieces, room)
                except zlib.error as error:
                    raise _malformed(self._coding) from error
                rest, members = self._after_member(engine), _count_member(members) if engine.eof else members
        return b"".join(pieces)

    def _choose(self, data: bytes) -> "zlib._Decompress | None":
        """RFC 9110 means the zlib frame by `deflate`, many servers send raw deflate: the first two bytes tell."""
        head = self._head + data[:2]
        if self.finished:
            raise _malformed(self._coding)
        if len(head) < 2:
            self._head += data
            return None
        framed = head[0] & 0x0F == 8 and int.from_bytes(head[:2]) % 31 == 0
        self._engine = zlib.decompressobj(zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)
        return self._engine

    def _drain(self, engine: "zlib._Decompress", data: bytes, pieces: list[bytes], room: int) -> int:
        full = False
        # A full piece means that more may be pending inside, even when all input is used up.
        while (data or full) and not engine.eof:
            size = min(room + 1, _PIECE_BYTES)
            piece = engine.decompress(data, size)
            room = _add(pieces, piece, room)
            data, full = engine.unconsumed_tail, len(piece) == size
        self.finished = engine.eof
        return room

    def _after_member(self, engine: "zlib._Decompress") -> bytes:
        """What follows the end of a member: only gzip may go on with another one."""
        rest = engine.unused_data
        if engine.eof:
            self._engine = zlib.decompressobj(self._wbits) if self._wbits is not None else None
        return rest


class _Brotli:
    """br."""

    def __init__(self) -> None:
        self._engine = brotli.Decompressor()

    @property
    def finished(self) -> bool:
        return bool(self._engine.is_finished())

    def decode(self, data: bytes, room: int) -> bytes:
        pieces: list[bytes] = []
        try:
            while True:
                size = min(room + 1, _PIECE_BYTES)
                piece = self._engine.process(data, output_buffer_limit=size)
                room = _add(pieces, piece, room)
                data = b""
                drained = len(piece) < size and self._engine.can_accept_more_data()
                if drained or self._engine.is_finished():
                    return b"".join(pieces)
        except brotli.error as error:
            raise _malformed("br") from error


class _Zstd:
    """zstd, one or more frames."""

    def __init__(self) -> None:
        self._engine = ZstdDecompressor()
        self.finished = False

    def decode(self, data: bytes, room: int) -> bytes:
        pieces: list[bytes] = []
        members = 0
        try:
            for rest in _slices(data):
                while rest or not (self._engine.needs_input or self._engine.eof):
                    if self._engine.eof:
                        self._engine, members = ZstdDecompressor(), _count_member(members)
                    room = _add(pieces, self._engine.decompress(rest, max_length=min(room + 1, _PIECE_BYTES)), room)
                    rest = self._engine.unused_data if self._engine.eof else b""
        except ZstdError as error:
            raise _malformed("zstd") from error
        self.finished = self._engine.eof
        return b"".join(pieces)


_STAGES: dict[str, Callable[[], _Stage]] = {
    "gzip": lambda: _Zlib("gzip", zlib.MAX_WBITS | 16),
    "x-gzip": lambda: _Zlib("gzip", zlib.MAX_WBITS | 16),
    "deflate": lambda: _Zlib("deflate", None),
    "br": _Brotli,
    "zstd": _Zstd,
}


def codings(header: str | None) -> tuple[str, ...]:
    """The codings of a Content-Encoding value in the order in which they were applied, without `identity`."""
    names = (name.strip().lower() for name in (header or "").split(","))
    return tuple(name for name in names if name not in {"", "identity"})


def _stages(header: str | None) -> list[_Stage]:
    names = codings(header)
    if len(names) > MAX_CODINGS or not all(name in _STAGES for name in names):
        raise BodyError(BodyErrorKind.UNSUPPORTED, "content coding is not supported")
    return [_STAGES[name]() for name in reversed(names)]


class Decoder:
    """Undoes the codings of a body that arrives in chunks.

    One chunk may become at most `step_limit` bytes and the whole body at most `total_limit` (None: any size), counted
    after each coding of a chain. Raises `BodyError`; after that the decoder must not be used.
    """

    def __init__(self, coding: str | None, *, step_limit: int = MAX_STEP_BYTES, total_limit: int | None = None) -> None:
        self._stages = _stages(coding)
        self._step_limit = step_limit
        self._room = total_limit
        self._fed = False

    def feed(self, data: bytes) -> bytes:
        """The decoded bytes that `data` completes; may be empty."""
        self._fed = self._fed or bool(data)
        room = self._step_limit if self._room is None else min(self._step_limit, self._room)
        for stage in self._stages:
            data = stage.decode(data, room)
        if self._room is not None:
            self._room -= len(data)
            if self._room < 0:
                raise _too_large()
        return data

    def flush(self) -> bytes:
        """End of input. Raises when a coded body was cut; an empty body is fine, whatever its coding."""
        if self._fed and not all(stage.finished for stage in self._stages):
            raise BodyError(BodyErrorKind.MALFORMED, "body ends in the middle of its coding")
        return b""


def decode(coding: str | None, data: bytes, limit: int) -> bytes:
    """Undo the codings of a whole body of at most `limit` decoded bytes. Raises `BodyError`."""
    if not codings(coding):
        if len(data) > limit:
            raise _too_large()
        return data
    decoder = Decoder(coding, step_limit=limit, total_limit=limit)
    return decoder.feed(data) + decoder.flush()
