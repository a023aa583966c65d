"""What several proxies remember together: cooldowns, recalled conversations, and what was cleared.

Every register keeps its latest write, and a clear ends every older cooldown it speaks of, also one that is heard of
later. So replicas that have heard the same writes hold the same, in whatever order and however often they heard them.
Instants are milliseconds of the group's clock, which is the server's; who tells whom is decided elsewhere.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

from combos.core.cooldowns import CooldownKey
from combos.core.recall import LaneKey, Selection
from combos.core.values import dataclass

CLEAR_LIFE_MS = 24 * 3_600_000
"""The longest cooldown: beyond it there is nothing left that a clear could end."""
CLEARS_MAX = 256
COOLDOWNS_MAX = 16_384
"""Far more targets than anybody configures; a server that names more is not believed."""


class Stamp(NamedTuple):
    """When something was written, and by whom: the order of all writes. No replica uses an instant twice."""

    at_ms: int
    replica: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """The cooldowns that a clear speaks of; None stands for all. No tuple: it would equal the key of a cooldown."""

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


type RegisterKey = CooldownKey | LaneKey | Cleared


@dataclass(frozen=True, slots=True)
class Register:
    """A value, when it was written, and when it is over. Cooldowns hold a `Cooling`, conversations a `Selection`,
    clears nothing."""

    stamp: Stamp
    expires_ms: int
    value: Cooling | Selection | None


class Registers:
    """One replica's copy."""

    def __init__(self) -> None:
        self._cooling: dict[CooldownKey, Register] = {}
        self._recalled: dict[LaneKey, Register] = {}
        self._clears: dict[Cleared, Register] = {}

    def __len__(self) -> int:
        return len(self._cooling) + len(self._recalled) + len(self._clears)

    def cool(self, key: CooldownKey, register: Register) -> bool:
        """Take a cooldown; False when something later is known."""
        if not _is_later(register, self._cooling.get(key)) or self._is_cleared(key, register.stamp):
            return False
        if key not in self._cooling and len(self._cooling) >= COOLDOWNS_MAX:
            return False
        self._cooling[key] = register
        return True

    def recall(self, key: LaneKey, register: Register) -> bool:
        """Take the selection of a conversation; False when a later one is known."""
        if not _is_later(register, self._recalled.get(key)):
            return False
        self._recalled[key] = register
        return True

    def clear(self, cleared: Cleared, register: Register) -> list[CooldownKey] | None:
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

    def forget(self, key: LaneKey) -> Register | None:
        """Drop a conversation that no longer has room; what was known of it."""
        return self._recalled.pop(key, None)

    def keep_combos(self, combos: Container[str]) -> None:
        """Forget the cooldowns of combos that are no longer there."""
        self._cooling = {key: one for key, one in self._cooling.items() if key.combo in combos}

    def cooling(self) -> tuple[tuple[CooldownKey, Register], ...]:
        """The cooldowns."""
        return tuple(self._cooling.items())

    @property
    def lane_count(self) -> int:
        """How many conversations are known."""
        return len(self._recalled)

    def lanes(self) -> tuple[tuple[LaneKey, Register], ...]:
        """The conversations, the one written longest ago first."""
        return tuple(sorted(self._recalled.items(), key=lambda item: item[1].stamp))

    def items(self) -> Iterator[tuple[RegisterKey, Register]]:
        """Everything."""
        yield from self._cooling.items()
        yield from self._recalled.items()
        yield from self._clears.items()

    def sweep(self, now_ms: int) -> list[tuple[RegisterKey, Register]]:
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


def _is_later(register: Register, known: Register | None) -> bool:
    return known is None or known.stamp < register.stamp


def _shifted(register: Register, by_ms: int) -> Register:
    stamp = Stamp(register.stamp.at_ms + by_ms, register.stamp.replica)
    return Register(stamp, register.expires_ms + by_ms, register.value)
