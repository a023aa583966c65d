"""Answered Responses requests by response id, so that a conversation continued by id survives a change of target.

Bounded in number, bytes and time; what is written longest ago goes first. Lives in this process alone and is lost on
restart. It keeps bytes and knows nothing of what they say; who may use an entry, and how, is decided by the engine.
"""

import hashlib
from collections import OrderedDict

from combos.core.values import dataclass

# Functional rules of the replay store: a day, a thousand answers, what they may take in memory, and each of them.
TTL_MS = 24 * 3_600_000
ENTRIES_MAX = 1_000
BYTES_MAX = 64 * 1024 * 1024
ENTRY_BYTES_MAX = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer.

    `caller` is the digest of who asked, `thread` that of the parent thread the client named, if it did. `body` is the
    request with its whole history, `output` the items of the answer as a JSON array. `makers` are the providers whose
    own state may be in either.
    """

    caller: str
    thread: str | None
    body: bytes
    output: bytes
    makers: frozenset[str]

    @property
    def size(self) -> int:
        """Bytes that the exchange takes."""
        return len(self.body) + len(self.output)


class ReplayStore:
    """Response id to exchange, in order of writing. Ids are kept as digests, since clients choose what they send."""

    __slots__ = ("_bytes", "_entries")

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, tuple[int, Exchange]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def resident_bytes(self) -> int:
        """Bytes of all exchanges."""
        return self._bytes

    def get(self, response_id: str, now_ms: int) -> Exchange | None:
        """The exchange that ended with this id; None when unknown or expired. Reading does not refresh."""
        entry = self._entries.get(_digest(response_id))
        return None if entry is None or entry[0] <= now_ms else entry[1]

    def put(self, response_id: str, exchange: Exchange, now_ms: int) -> bool:
        """Write as the youngest entry; False, and nothing is known of the id, when it is too large."""
        key = _digest(response_id)
        self._drop(key)
        if exchange.size > ENTRY_BYTES_MAX:
            return False
        self._entries[key] = (now_ms + TTL_MS, exchange)
        self._bytes += exchange.size
        while len(self._entries) > ENTRIES_MAX or self._bytes > BYTES_MAX:
            self._drop(next(iter(self._entries)))
        return True

    def sweep(self, now_ms: int) -> int:
        """Drop expired entries; returns how many."""
        expired = [key for key, (expires, _) in self._entries.items() if expires <= now_ms]
        for key in expired:
            self._drop(key)
        return len(expired)

    def _drop(self, key: bytes) -> None:
        gone = self._entries.pop(key, None)
        if gone is not None:
            self._bytes -= gone[1].size


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()
