"""Cuts a byte stream into server-sent events. Knows lines, fields and frames; refuses to know what an event means."""

import re

from combos.core.values import dataclass

# The content type of such a stream, with or without parameters.
EVENT_STREAM = re.compile(rb"\s*text/event-stream\s*(?:;|\Z)", re.IGNORECASE)
# A frame of which more than this has come is cut: eight times what a long final event of a text turn takes.
MAX_FRAME_BYTES = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class CutFrame(bytes):
    """The beginning of a frame that was larger than the framer's limit; the rest was dropped."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event. `data` is None when the frame has no data, which clients do not dispatch; `cut` as for `CutFrame`."""

    name: str
    data: bytes | None
    cut: bool = False


class SseFramer:
    """Splits chunks into frames whose lines end in LF.

    Lines may end in LF, CRLF or CR, also mixed; a blank line ends a frame. The frames are the same however the bytes
    were cut into chunks, and the work is linear in the number of bytes. Blank frames are not reported.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._overflow = False
        self._after_cr = False
        self._first = True

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that `data` completes."""
        if self._after_cr or data.find(b"\r") >= 0:
            data = self._unix_lines(data)
        if self._tail or self._overflow:
            start = max(len(self._tail) - 1, 0)
            self._tail += data
            if self._tail.find(b"\n\n", start) < 0:
                self._bound_tail()
                return []
            data = bytes(self._tail)
        frames = data.split(b"\n\n")
        if (tail := frames.pop()) or self._tail:
            self._tail = bytearray(tail)
        if self._first or self._overflow or len(data) > self._limit:
            return self._checked(frames)
        return [frame for frame in frames if frame]

    def flush(self) -> list[bytes]:
        """The last frame at the end of the stream, which needs no blank line."""
        tail, self._tail = bytes(self._tail), bytearray()
        return self._checked([tail])

    def _checked(self, frames: list[bytes]) -> list[bytes]:
        if self._first and frames:
            frames[0] = frames[0].removeprefix(_BOM)
            self._first = False
        if self._overflow and frames:
            frames[0] = CutFrame(frames[0][: self._limit])
            self._overflow = False
        return [self._within_limit(frame) for frame in frames if frame]

    def _within_limit(self, frame: bytes) -> bytes:
        return frame if len(frame) <= self._limit else CutFrame(frame[: self._limit])

    def _bound_tail(self) -> None:
        if self._first and len(self._tail) > self._limit:
            self._tail = self._tail.removeprefix(_BOM)
            self._first = False
        # One byte of grace: a newline at the end may yet turn out to be the first half of the blank line.
        if len(self._tail) > self._limit + 1:
            self._tail[self._limit :] = b" \n" if self._tail.endswith(b"\n") else b"  "
            self._overflow = True

    def _unix_lines(self, data: bytes) -> bytes:
        """CRLF and CR become LF; a CRLF that two chunks share counts once."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if data.endswith(b"\r"):
            self._after_cr = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def parse_frame(frame: bytes) -> SseEvent:
    """The fields of a frame: the last `event`, all `data` joined with LF. Comments and other fields are ignored."""
    name = b""
    data: list[bytes] = []
    for line in frame.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    text = b"\n".join(data)
    return SseEvent(name.decode(errors="replace"), text or None, isinstance(frame, CutFrame))
