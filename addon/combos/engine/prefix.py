"""Bytes of a streamed answer that are held back until it is known whether this target owns the answer.

Bounded in bytes and in chunks, so that a target that only ever sends keep-alives cannot grow memory: when the next
chunk would cross a bound the answer is committed as it is. What the bytes mean is decided elsewhere.
"""

MAX_BYTES = 4_194_304
MAX_CHUNKS = 4_096


class Prefix:
    """Held chunks in order of arrival."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_chunks: int = MAX_CHUNKS) -> None:
        self._max_bytes = max_bytes
        self._max_chunks = max_chunks
        self._chunks: list[bytes] = []
        self.size = 0

    def bound(self, max_bytes: int, max_chunks: int) -> None:
        """Other bounds than those it began with."""
        self._max_bytes, self._max_chunks = max_bytes, max_chunks

    def has_room(self, data: bytes) -> bool:
        """Whether `data` may be held as well."""
        return self.size + len(data) <= self._max_bytes and len(self._chunks) < self._max_chunks

    def hold(self, data: bytes) -> None:
        """Keep `data`."""
        if data:
            self._chunks.append(data)
            self.size += len(data)

    def take(self, data: bytes) -> bool:
        """Keep `data` if there is room for it."""
        has_room = self.has_room(data)
        if has_room:
            self.hold(data)
        return has_room

    def release(self) -> list[bytes]:
        """The held chunks, which are no longer held."""
        chunks, self._chunks, self.size = self._chunks, [], 0
        return chunks

    def joined(self) -> bytes:
        """The held bytes, still held."""
        return b"".join(self._chunks)
