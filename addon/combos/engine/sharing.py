"""One proxy's part in a group that shares state: what it tells the others, and what it takes from them.

The engine's state stays the working copy, and nothing here waits: changes are noted for the next push, and what others
pushed is merged when it arrives. Cooldowns, clears and recalled conversations are registers, the rotation's weights and
the successes are sums. How pushes travel is decided elsewhere.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from combos.core.cooldowns import CooldownEntry, CooldownKey
from combos.core.recall import TTL_MS, LaneKey, Selection
from combos.core.registers import (
    CLEAR_LIFE_MS,
    Cleared,
    Cooling,
    Register,
    RegisterKey,
    Registers,
    Stamp,
)
from combos.core.sharing import Joined, Push, Told
from combos.core.tallies import Additions, Cell, Sum, Tally
from combos.engine.state import EngineState

LIFE_MAX_MS = 24 * 3_600_000 + 60_000
"""The longest cooldown, and what clocks may differ. Nothing is believed that would last longer, or is from later."""
GRACE_MS = 10 * 60_000
"""How long what is over is kept: an older write that lasts longer may still be on its way, and must not come back."""


class Sharing:
    """A `Journal` of the state. `replica` is a name of this process that no other has, `now_ms` its monotonic clock;
    `wake` is called when there is something to push, with True when that should not wait for more."""

    def __init__(
        self, state: EngineState, replica: str, now_ms: Callable[[], int], wake: Callable[[bool], None] = lambda _: None
    ) -> None:
        self.replica = replica
        self._state = state
        self._now_ms = now_ms
        self._wake = wake
        self._registers = Registers()
        self._tally = Tally()
        self._epoch: str | None = None
        self._version = 0
        self._number = 0
        self._offset_ms: int | None = None  # the group's clock is the monotonic one until the server's is known
        self._last_ms = 0
        self._shown: set[tuple[str, str]] = set()
        self._moved: set[str] = set()
        self._forgets: dict[str, None] = {}
        self._sent_forgets: dict[int, tuple[str, ...]] = {}
        self._dirty: dict[RegisterKey, Register] = {}
        self._gone: dict[RegisterKey, Stamp] = {}
        self._adopt()

    # -- the journal: what this process did

    def cooled(self, key: CooldownKey, entry: CooldownEntry) -> None:
        """A target begins to rest."""
        value = Cooling(entry.rule, entry.source, entry.status)
        register = Register(self._stamp(), entry.expires_ms + self._offset, value)
        if self._registers.cool(key, register):
            self._tell(key, register)

    def cleared(self, combo: str | None, target: str | None) -> None:
        """Cooldowns were ended; None stands for all."""
        key = Cleared(combo, target)
        # Not from the stamp: that runs ahead of a clock that was set back.
        register: Register = Register(self._stamp(), self._group_ms() + CLEAR_LIFE_MS, None)
        self._registers.clear(key, register)
        self._tell(key, register)

    def forgot(self, combo: str) -> None:
        """A combo begins anew: cooldowns, rotation and counts."""
        self.cleared(combo, None)
        self._tally.forget([combo])
        self._unshow([combo])
        self._forgets[combo] = None

    def moved(self, combo: str) -> None:
        """The combo's rotation or counts have moved, or are about to before anything else runs."""
        self._moved.add(combo)
        self._wake(False)

    def remembered(self, key: LaneKey, selection: Selection) -> None:
        """A turn has completed on a conversation."""
        register = Register(self._stamp(), selection.at_ms + TTL_MS + self._offset, selection)
        if self._registers.recall(key, register):
            self._tell(key, register)
        self._gone |= self._trim()

    def reconciled(self) -> None:
        """Another configuration is in force: what was told of its combos counts now."""
        combos = self._state.combos()
        known = {(combo, target) for combo in combos for target in self._state.targets_of(combo)}
        self._shown &= known
        self._registers.keep_combos(combos)
        for key, register in self._registers.cooling():
            if self._state.cooldowns.get(key, self._now_ms()) is None:
                self._show_cooldown(key, register)
        self._show(combos, self._unsent(combos))

    # -- to the others

    def seeds(self) -> Additions:
        """The sums as they should be, for a server that has none."""
        known = {cell: self._tally.expected(cell) for cell in self._tally.cells()}
        return {cell: total for cell, total in known.items() if total}

    def outgoing(self, *, even_nothing: bool = False) -> Push | None:
        """What is to be pushed now; None when that is nothing, unless a push is wanted for its own sake."""
        self._show(self._moved, self._unsent(self._moved))
        additions = self._unsent(self._moved)
        self._moved.clear()
        if not (additions or self._forgets or self._dirty or self._gone or even_nothing):
            return None
        self._number += 1
        push = Push(
            self._number, tuple(self._forgets), additions, tuple(self._dirty.items()), tuple(self._gone.items())
        )
        self._tally.send(push.number, additions)
        if push.forgets:
            self._sent_forgets[push.number] = push.forgets
        self._forgets, self._dirty, self._gone = {}, {}, {}
        return push

    # -- from the others

    def joined(self, joined: Joined) -> None:
        """Merge what the server has; what it lacks is to be pushed."""
        combos = self._state.combos()
        unsent = self._unsent(combos)
        self._set_clock(joined.server_ms - self._now_ms())
        applied = (joined.applied or 0) if joined.epoch == self._epoch else None
        lost = self._tally.restart(joined.totals, applied)
        for number, forgets in self._sent_forgets.items():
            if applied is not None and number > applied:
                self._forgets |= dict.fromkeys(forgets)
        self._sent_forgets = {}
        self._epoch, self._version = joined.epoch, joined.version
        self._show(combos, _sum(unsent, lost))
        self._moved.update(combos)
        self._merge(joined.registers)

    def received(self, told: Told) -> bool:
        """Merge one push. False: something before it was missed, and everything has to be asked for anew."""
        if told.epoch == self._epoch and told.version <= self._version:
            return True  # from before this replica joined
        if told.epoch != self._epoch or told.version != self._version + 1:
            return False
        self._version = told.version
        combos = {cell.combo for cell in told.totals}.union(told.forgets)
        unsent = self._unsent(combos)
        self._tally.forget(told.forgets)
        if told.replica == self.replica:
            self._tally.applied(told.number)
            self._sent_forgets.pop(told.number, None)
        self._tally.update(told.totals)
        self._show(combos, unsent)
        for key, register in told.registers:
            self._take(key, register)
        self._trim()
        return True

    def sweep(self) -> None:
        """Drop what is over, here and at the server."""
        over = self._registers.sweep(self._group_ms() - GRACE_MS)
        self._gone |= {key: register.stamp for key, register in over}
        if over:
            self._wake(False)

    # -- registers

    def _adopt(self) -> None:
        """What the state held before there was a group."""
        for lane, selection in self._state.recall.items():
            self._registers.recall(lane, Register(self._stamp(selection.at_ms), selection.at_ms + TTL_MS, selection))
        for key, entry in self._state.cooldowns.running(self._now_ms()):
            value = Cooling(entry.rule, entry.source, entry.status)
            self._registers.cool(key, Register(self._stamp(), entry.expires_ms, value))

    def _tell(self, key: RegisterKey, register: Register) -> None:
        self._gone.pop(key, None)
        self._dirty[key] = register
        self._wake(not isinstance(key, LaneKey))

    def _merge(self, theirs: Collection[tuple[RegisterKey, Register]]) -> None:
        for key, register in sorted(theirs, key=lambda item: item[1].stamp):
            self._take(key, register)
        self._trim()
        known = {key: register.stamp for key, register in theirs}
        self._gone = {}
        self._dirty = {
            key: register
            for key, register in self._registers.items()
            if key not in known or known[key] < register.stamp
        }

    def _take(self, key: RegisterKey, register: Register) -> None:
        now_ms = self._group_ms()
        if isinstance(key, Cleared):
            # Its end says only how long it is kept. One from before the clock was set back is a clear all the same.
            register = replace(register, expires_ms=min(register.expires_ms, now_ms + CLEAR_LIFE_MS))
        lasts_ms = register.expires_ms - now_ms
        if register.stamp.at_ms > now_ms + LIFE_MAX_MS or not -GRACE_MS < lasts_ms <= LIFE_MAX_MS:
            return
        self._last_ms = max(self._last_ms, register.stamp.at_ms)
        match key, register.value:
            case CooldownKey(), Cooling():
                if self._registers.cool(key, register):
                    self._show_cooldown(key, register)
            case LaneKey(), Selection() as selection:
                if self._registers.recall(key, register):
                    at_ms = register.expires_ms - TTL_MS - self._offset
                    self._state.recall.put(key, replace(selection, at_ms=at_ms))
            case Cleared(), None:
                self._clear(key, register)

    def _clear(self, key: Cleared, register: Register) -> None:
        ended = self._registers.clear(key, register)
        for combo, target in ended or ():
            self._state.cooldowns.clear(combo, target)
        if ended is not None and key == Cleared(None, None):
            self._state.pools.clear()

    def _show_cooldown(self, key: CooldownKey, register: Register) -> None:
        value, expires_ms = register.value, register.expires_ms - self._offset
        if isinstance(value, Cooling) and self._state.targets_of(key.combo):
            # One that is over already ends the one it replaces.
            self._state.cooldowns.replace(key, CooldownEntry(expires_ms, value.rule, value.source, value.status))

    def _trim(self) -> dict[RegisterKey, Stamp]:
        """Let go of conversations for which the store had no room; which."""
        lanes = self._registers.lanes() if self._registers.lane_count > len(self._state.recall) else ()
        gone: dict[RegisterKey, Stamp] = {}
        for lane, register in lanes:
            if self._state.recall.peek(lane) is None:
                self._registers.forget(lane)
                self._dirty.pop(lane, None)
                gone[lane] = register.stamp
        return gone

    # -- sums

    def _unsent(self, combos: Iterable[str]) -> Additions:
        """What the rotations show beyond the sums that are known or sent."""
        found: Additions = {}
        for combo in combos:
            rotation = self._state.peek_rotation(combo)
            for target in self._state.targets_of(combo):
                is_shown = (combo, target) in self._shown
                for kind, row in ((Sum.WEIGHT, rotation.weights), (Sum.SUCCESSES, rotation.counts)):
                    cell = Cell(kind, combo, target)
                    surplus = row.get(target, 0) - (self._tally.expected(cell) if is_shown else 0)
                    if surplus:
                        found[cell] = surplus
        return found

    def _show(self, combos: Iterable[str], unsent: Additions) -> None:
        """Put the sums, and what is not sent yet, where selection reads them."""
        for combo in combos:
            for target in self._state.targets_of(combo):
                self._shown.add((combo, target))
                for kind in Sum:
                    cell = Cell(kind, combo, target)
                    total = self._tally.expected(cell) + unsent.get(cell, 0)
                    rotation = self._state.open_rotation(combo) if total else self._state.peek_rotation(combo)
                    row = rotation.weights if kind is Sum.WEIGHT else rotation.counts
                    if total or target in row:
                        row[target] = total

    def _unshow(self, combos: Collection[str]) -> None:
        self._shown = {(combo, target) for combo, target in self._shown if combo not in combos}

    # -- the group's clock

    @property
    def _offset(self) -> int:
        return self._offset_ms or 0

    def _group_ms(self) -> int:
        return self._now_ms() + self._offset

    def _set_clock(self, offset_ms: int) -> None:
        if self._offset_ms is None:
            self._registers.shift(offset_ms)
            self._last_ms += offset_ms
        self._offset_ms = offset_ms

    def _stamp(self, at_ms: int | None = None) -> Stamp:
        """Later than everything this replica has written or heard of."""
        self._last_ms = max(self._last_ms + 1, self._group_ms() if at_ms is None else at_ms)
        return Stamp(self._last_ms, self.replica)


def _sum(one: Additions, other: Additions) -> Additions:
    return {cell: one.get(cell, 0) + other.get(cell, 0) for cell in {**one, **other}}
