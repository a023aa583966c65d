"""How many physical sends one logical request may cost, over all its targets and retries.

One counter per client request: a first send, a hop, a same-target retry and a credential replay each charge it once,
when reserved. Which send is wanted, and what follows a denial, is decided by the caller.
"""

from enum import StrEnum

_PER_TARGET = 3
_FINAL_RECOVERY = 1


class SendKind(StrEnum):
    """Why a send is wanted."""

    FIRST = "first"
    HOP = "hop"
    RETRY = "retry"
    REPLAY = "replay"


class Denial(StrEnum):
    """Why a send was refused."""

    TOTAL = "total-exhausted"
    BASE = "base-allowance-exhausted"
    RECOVERY = "final-recovery-spent"
    ALTERNATE = "alternate-target-exhausted"
    TRANSITION = "target-transition-exhausted"
    SPEND = "spend-exhausted"
    NOT_REPLAY_SAFE = "not-replay-safe"


class SendBudget:
    """The budget of a request with `targets` declared targets: with h = targets - 1, in all 3 + h + 1 sends, of which
    the last is a reserve that only a hop or a replay of changed credentials may take; max(1, h) target changes."""

    used = 0
    changed = 0
    recovered = 0
    _visited = 0

    def __init__(self, targets: int) -> None:
        hops = targets - 1
        self._targets = targets
        self.base = base = _PER_TARGET + hops
        self.total = base + _FINAL_RECOVERY
        self.changes = hops if hops > 1 else 1
        self._used_before = -_PER_TARGET  # nothing can be repeated that was not sent

    def reserve(self, kind: SendKind, *, replay_safe: bool = True) -> Denial | None:
        """Charge one send, or say why not (nothing is charged then)."""
        denial = self._denial(kind, replay_safe)
        if denial is None:
            self._charge(kind)
        return denial

    def charge(self) -> Denial | None:
        """Charge a credential replay inside the attempt that is under way."""
        return self.reserve(SendKind.REPLAY)

    def _denial(self, kind: SendKind, replay_safe: bool) -> Denial | None:
        if not replay_safe and kind is not SendKind.FIRST:
            return Denial.NOT_REPLAY_SAFE
        if self.used >= self.total:
            return Denial.TOTAL
        if kind is SendKind.HOP and self.changed >= self.changes:
            return Denial.TRANSITION if self._visited >= self._targets else Denial.ALTERNATE
        if (kind is SendKind.RETRY or kind is SendKind.REPLAY) and self.used >= self._cap():
            return Denial.SPEND
        if self.used >= self.base:
            return self._reserve_denial(kind)
        return None

    def _reserve_denial(self, kind: SendKind) -> Denial | None:
        if kind in (SendKind.FIRST, SendKind.RETRY):
            return Denial.BASE
        return Denial.RECOVERY if self.recovered >= _FINAL_RECOVERY else None

    def _charge(self, kind: SendKind) -> None:
        if self.used >= self.base:
            self.recovered += 1
        if kind is SendKind.FIRST or kind is SendKind.HOP:
            self._visited += 1
            self._used_before = self.used
        if kind is SendKind.HOP:
            self.changed += 1
        self.used += 1

    def _cap(self) -> int:
        """How many sends may be used up at the target in turn: three of its own, but one is left for each target that
        is declared after it."""
        later = max(0, self._targets - self._visited)
        return min(self._used_before + _PER_TARGET, self.total - later)
