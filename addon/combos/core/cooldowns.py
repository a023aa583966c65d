"""The store of running cooldowns: which target of which combo rests until when, and why.

Keys are `(combo id, target key)`, times are monotonic milliseconds given by the caller. Nothing is evicted for room: an
entry leaves when it expires, is cleared, or its combo leaves the configuration, so the store is bounded by the
number of configured targets plus those removed within the longest cooldown. How long a cooldown lasts is decided
elsewhere.
"""

from collections.abc import Iterator
from typing import NamedTuple

from combos.core.values import dataclass


class CooldownKey(NamedTuple):
    """One target of one combo; other combos with the same target have their own."""

    combo: str
    target: str


@dataclass(frozen=True, slots=True)
class CooldownEntry:
    """A running cooldown: expiry (monotonic ms), the rule that hopped, the signal that set the length, the status."""

    expires_ms: int
    rule: str
    source: str
    status: int | None


class Cooldowns:
    """Cooldown entries by key. Expired ones are invisible and dropped when met."""

    def __init__(self) -> None:
        self._entries: dict[CooldownKey, CooldownEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def replace(self, key: CooldownKey, entry: CooldownEntry) -> bool:
        """Replace what is stored, longer or shorter. True: it is stored."""
        self._entries[key] = entry
        return True

    def extend(self, key: CooldownKey, entry: CooldownEntry) -> bool:
        """Store unless the stored entry lasts longer: for targets cooled because of a sibling's failure."""
        stored = self._entries.get(key)
        if stored is not None and stored.expires_ms >= entry.expires_ms:
            return False
        self._entries[key] = entry
        return True

    def get(self, key: CooldownKey, now_ms: int) -> CooldownEntry | None:
        """The running entry, or None."""
        entry = self._entries.get(key)
        if entry is not None and entry.expires_ms <= now_ms:
            del self._entries[key]
            return None
        return entry

    def remaining(self, key: CooldownKey, now_ms: int) -> int:
        """Milliseconds left; 0 when the target is not cooling."""
        entry = self.get(key, now_ms)
        return 0 if entry is None else entry.expires_ms - now_ms

    def earliest(self, combo: str, now_ms: int) -> int | None:
        """Smallest positive remainder over all entries of the combo, or None when nothing of it is cooling."""
        left = [
            entry.expires_ms - now_ms
            for key, entry in self._entries.items()
            if key.combo == combo and entry.expires_ms > now_ms
        ]
        return min(left, default=None)

    def clear(self, combo: str | None = None, target: str | None = None) -> int:
        """Forget the entries that match (None matches all); returns how many."""
        return self._drop(
            [
                key
                for key in self._entries
                if (combo is None or key.combo == combo) and (target is None or key.target == target)
            ]
        )

    def sweep(self, now_ms: int) -> int:
        """Drop expired entries; returns how many."""
        return self._drop([key for key, entry in self._entries.items() if entry.expires_ms <= now_ms])

    def keep_combos(self, combos: set[str]) -> int:
        """Forget the combos that no longer exist; returns how many entries went."""
        return self._drop([key for key in self._entries if key.combo not in combos])

    def running(self, now_ms: int) -> Iterator[tuple[CooldownKey, CooldownEntry]]:
        """The running entries, for display."""
        return ((key, entry) for key, entry in list(self._entries.items()) if entry.expires_ms > now_ms)

    def _drop(self, keys: list[CooldownKey]) -> int:
        for key in keys:
            del self._entries[key]
        return len(keys)
