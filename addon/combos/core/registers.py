"""What several proxies remember together, one writer at a time: cooldowns, recalled conversations, and what was cleared.

Every register keeps its latest write, and a clear ends every older cooldown it speaks of, also one that is heard of
later. So replicas that have heard the same writes hold the same, in whatever order and however often they heard them.
Instants are milliseconds of the group's clock, which is the server's; who tells whom is decided elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from combos.core.cooldowns import CooldownKey
from combos.core.recall import LaneKey, Selection

CLEAR_LIFE_MS = 24 * 3_600_000
"""The longest cooldown: beyond it there is nothing left that a clear could end."""
CLEARS_MAX = 256
COOLDOWNS_MAX = 16_384
"""Far more targets than anybody configures; a server that names more is not believed."""


class Stamp(NamedTuple):
    """When something was written, and by whom: the order of all writes. No replica uses an instant twice."""

    at_ms: int
    replica: str


class Cleared(NamedTuple):
    """The cooldowns that a clear speaks of; None stands for all."""

    combo: str | None
    target: str | None

    def covers(self, key: CooldownKey) -> bool:
        """Whether it ends this target's cooldown."""
        return self.combo in (None, key.combo) and self.target in (None, key.target)


@dataclass(frozen=True, slots=True)
class Cooling:
    """Why a target rests: the rule, the signal that set the length, the status."""

    rule: str
    source: str
    status: int | None


@dataclass(frozen=True, slots=True)
class Register[V]:
    """A value, when it was written, and when it is over."""

    stamp: Stamp
    expires_ms: int
    value: V


type CoolingRegister = Register[Cooling]
type RecallRegister = Register[Selection]
type ClearRegister = Register[None]
type RegisterKey = CooldownKey | LaneKey | Cleared
type AnyRegister = CoolingRegister | RecallRegister | ClearRegister


class Registers:
    """One replica's copy."""

    def __init__(self) -> None:
        self._cooling: dict[CooldownKey, CoolingRegister] = {}
        self._recalled: dict[LaneKey, RecallRegister] = {}
        self._clears: dict[Cleared, ClearRegister] = {}

    def __len__(self) -> int:
        return len(self._cooling) + len(self._recalled) + len(self._clears)

    def cool(self, key: CooldownKey, register: CoolingRegister) -> bool:
        """Take a cooldown; False when something later is known."""
        if not _is_later(register, self._cooling.get(key)) or self._is_cleared(key, register.stamp):
            return False
        if key not in self._cooling and len(self._cooling) >= COOLDOWNS_MAX:
            return False
        self._cooling[key] = register
        return True

    def recall(self, key: LaneKey, register: RecallRegister) -> bool:
        """Take the selection of a conversation; False when a later one is known."""
        if not _is_later(register, self._recalled.get(key)):
            return False
        self._recalled[key] = register
        return True

    def clear(self, cleared: Cleared, register: ClearRegister) -> list[CooldownKey] | None:
        """Take a clear; the cooldowns that it ended, None when the same clear is known from later."""
        if not _is_later(register, self._clears.get(cleared)):
            return None
        self._clears[cleared] = register
        while len(self._clears) > CLEARS_MAX:
            del self._clears[min(self._clears, key=lambda one: self._clears[one].stamp)]
        ended = [key for key, other in self._cooling.items() if cleared.covers(key) and other.stamp < register.stamp]
        for key in ended:
            del self._cooling[key]
        return ended

    def forget(self, key: LaneKey) -> RecallRegister | None:
        """Drop a conversation that no longer has room; what was known of it."""
        return self._recalled.pop(key, None)

    def lanes(self) -> tuple[tuple[LaneKey, RecallRegister], ...]:
        """The conversations, the one written longest ago first."""
        return tuple(sorted(self._recalled.items(), key=lambda item: item[1].stamp))

    def items(self) -> Iterator[tuple[RegisterKey, AnyRegister]]:
        """Everything."""
        yield from self._cooling.items()
        yield from self._recalled.items()
        yield from self._clears.items()

    def latest(self) -> int:
        """The latest instant of any write."""
        return max((register.stamp.at_ms for _, register in self.items()), default=0)

    def sweep(self, now_ms: int) -> list[tuple[RegisterKey, AnyRegister]]:
        """Drop what is over; returns it."""
        over = [(key, register) for key, register in self.items() if register.expires_ms <= now_ms]
        for key, _ in over:
            match key:
                case CooldownKey():
                    del self._cooling[key]
                case LaneKey():
                    del self._recalled[key]
                case Cleared():
                    del self._clears[key]
        return over

    def shift(self, by_ms: int) -> None:
        """Move every instant: the group's clock has become known."""
        self._cooling = {key: _shifted(one, by_ms) for key, one in self._cooling.items()}
        self._recalled = {key: _shifted(one, by_ms) for key, one in self._recalled.items()}
        self._clears = {key: _shifted(one, by_ms) for key, one in self._clears.items()}

    def _is_cleared(self, key: CooldownKey, stamp: Stamp) -> bool:
        return any(cleared.covers(key) and stamp < other.stamp for cleared, other in self._clears.items())


def _is_later[V](register: Register[V], known: Register[V] | None) -> bool:
    return known is None or known.stamp < register.stamp


def _shifted[V](register: Register[V], by_ms: int) -> Register[V]:
    stamp = Stamp(register.stamp.at_ms + by_ms, register.stamp.replica)
    return Register(stamp, register.expires_ms + by_ms, register.value)
