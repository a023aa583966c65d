"""A bounded map whose entries expire: for what may be forgotten when room is short (affinity, issued tokens).

It knows no clock: every call gets the monotonic instant. When full it drops the entry that was written longest ago,
so nothing whose loss changes an outcome belongs here; cooldowns have a store of their own.
"""

from collections import OrderedDict
from collections.abc import Callable


class ExpiringMap[K, V]:
    """At most `limit` entries, each gone `ttl_ms` after it was written. Reading does not refresh."""

    def __init__(self, limit: int, ttl_ms: int) -> None:
        self._limit = limit
        self._ttl_ms = ttl_ms
        self._entries: OrderedDict[K, tuple[int, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K, now_ms: int) -> V | None:
        """The value, or None when absent or expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= now_ms:
            del self._entries[key]
            return None
        return entry[1]

    def put(self, key: K, value: V, now_ms: int) -> None:
        """Write or replace; the entry becomes the youngest."""
        self._entries.pop(key, None)
        self._entries[key] = (now_ms + self._ttl_ms, value)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def sweep(self, now_ms: int) -> int:
        """Drop expired entries; returns how many."""
        return self._drop([key for key, (expires, _) in self._entries.items() if expires <= now_ms])

    def drop_where(self, gone: Callable[[V], bool]) -> int:
        """Drop the entries whose value `gone` accepts; returns how many."""
        return self._drop([key for key, (_, value) in self._entries.items() if gone(value)])

    def _drop(self, keys: list[K]) -> int:
        for key in keys:
            del self._entries[key]
        return len(keys)
