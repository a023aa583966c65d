"""What outlives a request: cooldowns, rotation, use counts, affinity, recall, who issued which provider-bound state.

One way to record a success, a hop and a cooldown, for turns, and one to clear and reconcile, for commands and reloads.
It decides which writes are stale; what is written is decided by the engine.
"""

import copy
import hashlib
from typing import NamedTuple

from combos.core import recall
from combos.core.budgets import Spending
from combos.core.cooldowns import CooldownEntry, CooldownKey, Cooldowns
from combos.core.expiring import ExpiringMap
from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.core.recall import Completion, LaneKey, RecallStore, Written
from combos.core.registry import Combo, Registry, Target
from combos.core.replay import ReplayStore
from combos.core.strategies import RotationState
from combos.engine.journal import Journal
from combos.engine.pools import PoolBook
from combos.engine.quota import QuotaBook

AFFINITY_LIMIT = 4_096
AFFINITY_TTL_MS = 30 * 60_000
MAKERS_LIMIT = 4_096
MAKERS_TTL_MS = 24 * 3_600_000
RESPONSES_LIMIT = 16_384
RESPONSES_TTL_MS = 24 * 3_600_000
ISSUERS_LIMIT = 4_096
ISSUERS_TTL_MS = 60 * 60_000


class PickedFrom(NamedTuple):
    """The combo a target was picked from, and the generation of its registry."""

    combo: Combo
    generation: int


class EngineState:
    """State shared by the turns of one process. Lost on restart by design; `journal` is told of what others share."""

    def __init__(self) -> None:
        self.journal: Journal | None = None
        self.cooldowns = Cooldowns()
        self._rotations: dict[str, RotationState] = {}
        self._affinity: ExpiringMap[tuple[str, LaneKey], str] = ExpiringMap(AFFINITY_LIMIT, AFFINITY_TTL_MS)
        self._issuers: ExpiringMap[bytes, str] = ExpiringMap(ISSUERS_LIMIT, ISSUERS_TTL_MS)
        self._responses: ExpiringMap[bytes, str] = ExpiringMap(RESPONSES_LIMIT, RESPONSES_TTL_MS)
        self._makers: ExpiringMap[LaneKey, frozenset[str]] = ExpiringMap(MAKERS_LIMIT, MAKERS_TTL_MS)
        self.recall = RecallStore()
        self.replay = ReplayStore()
        self.pools = PoolBook()
        self.quota = QuotaBook()
        self.spending = Spending()
        self._generation = 0
        self._live: frozenset[tuple[str, str]] = frozenset()
        self._targets: dict[str, tuple[str, ...]] = {}

    # -- what selection reads

    @property
    def is_at_rest(self) -> bool:
        """Whether no target is cooling and no quota is known, so that neither can keep anybody out."""
        return len(self.cooldowns) == 0 and self.quota.is_empty

    def rotation(self, origin: PickedFrom) -> RotationState:
        """The combo's rotation; a throwaway for a combo that has left the configuration."""
        combo = origin.combo.id
        state = self._rotations.get(combo)
        if state is not None:
            return state
        state = RotationState()
        if origin.generation >= self._generation or any((combo, t.key) in self._live for t in origin.combo.targets):
            self._rotations[combo] = state
        return state

    def choice_rotation(self, origin: PickedFrom) -> RotationState:
        """The rotation that a choice moves on: a copy for an outdated configuration, whose targets may be gone."""
        rotation = self.rotation(origin)
        if origin.generation < self._generation:
            return copy.deepcopy(rotation)
        if self.journal is not None:
            self.journal.moved(origin.combo.id)
        return rotation

    def peek_rotation(self, combo_id: str) -> RotationState:
        """The rotation for display; an empty one when nothing is remembered."""
        return self._rotations.get(combo_id) or RotationState()

    def cooling_ms(self, combo: Combo, target: Target, now: Now) -> int:
        """Milliseconds until the target may be asked again; 0 when it may now."""
        return self.cooldowns.remaining(CooldownKey(combo.id, target.key), now.mono_ms)

    def bound_target(self, combo: Combo, lane: LaneKey | None, now: Now) -> str | None:
        """Key of the target that last answered this conversation, if remembered."""
        return None if lane is None else self._affinity.get((combo.id, lane), now.mono_ms)

    # -- what turns write

    def accepts(self, origin: PickedFrom, target: Target) -> bool:
        """False for a write whose configuration was replaced meanwhile by one without this target."""
        return origin.generation >= self._generation or (origin.combo.id, target.key) in self._live

    def succeeded(self, origin: PickedFrom, target: Target, lane: LaneKey | None, now: Now) -> None:
        """Count a turn that ended well."""
        if self.accepts(origin, target):
            self.rotation(origin).succeeded(target.key, origin.combo.config.sticky_limit)
            if self.journal is not None:
                self.journal.moved(origin.combo.id)
            if lane is not None:
                self._affinity.put((origin.combo.id, lane), target.key, now.mono_ms)

    def hopped(self, origin: PickedFrom, target: Target) -> None:
        """End the target's sticky batch; any hop does, also one that cools nothing."""
        if self.accepts(origin, target):
            self.rotation(origin).release(target.key)

    def cool(
        self, origin: PickedFrom, target: Target, verdict: Verdict, cooldown: Cooldown, status: int | None, now: Now
    ) -> bool:
        """Record a cooldown of the verdict's scope; False when the write was stale for `target` itself."""
        entry = CooldownEntry(now.mono_ms + max(1, cooldown.ms), verdict.rule, cooldown.source, status)
        if verdict.scope is Scope.PROVIDER:
            for sibling in origin.combo.targets:
                is_sibling = sibling.provider_name == target.provider_name and sibling.key != target.key
                if is_sibling and self.accepts(origin, sibling):
                    self._cool(CooldownKey(origin.combo.id, sibling.key), entry, extends=True)
        if not self.accepts(origin, target):
            return False
        self._cool(CooldownKey(origin.combo.id, target.key), entry, extends=False)
        return True

    def _cool(self, key: CooldownKey, entry: CooldownEntry, *, extends: bool) -> None:
        stored = self.cooldowns.extend(key, entry) if extends else self.cooldowns.replace(key, entry)
        if stored and self.journal is not None:
            self.journal.cooled(key, entry)

    def completed(self, registry: Registry, lane: LaneKey | None, completion: Completion, now: Now) -> None:
        """Remember a completed turn for a later compaction on the same lane. `registry` is the one in force."""
        written = recall.remember(self.recall, registry, lane, completion, now.mono_ms)
        selection = self.recall.peek(lane) if lane is not None and written is Written.WRITTEN else None
        if lane is not None and selection is not None and self.journal is not None:
            self.journal.remembered(lane, selection)

    def bind_turn_state(self, value: str, target: Target, now: Now) -> None:
        """Remember who issued an `x-codex-turn-state` value."""
        self._issuers.put(_digest(value), target.key, now.mono_ms)

    def issued_by(self, value: str, target: Target, now: Now) -> bool:
        """Whether `target` issued this `x-codex-turn-state` value."""
        return self._issuers.get(_digest(value), now.mono_ms) == target.key

    def note_response(self, response_id: str, target: Target, now: Now) -> None:
        """Remember which target keeps the state behind a response id."""
        self._responses.put(_digest(response_id), target.key, now.mono_ms)

    def keeper_of(self, response_id: str, now: Now) -> str | None:
        """Key of the target that keeps the state behind a response id, if remembered."""
        return self._responses.get(_digest(response_id), now.mono_ms)

    def note_maker(self, conversation: LaneKey, provider: str, now: Now) -> None:
        """Remember that a provider's own reasoning state may be in this conversation."""
        makers = self._makers.get(conversation, now.mono_ms) or frozenset()
        self._makers.put(conversation, makers | {provider}, now.mono_ms)

    def foreign_maker(self, conversation: LaneKey, provider: str, now: Now) -> str | None:
        """Another provider whose reasoning state may be in this conversation; None when there is none or unknown."""
        makers = self._makers.get(conversation, now.mono_ms) or frozenset()
        return min(makers - {provider}, default=None)

    # -- what commands, reloads and the periodic sweep do

    def clear_cooldowns(self, combo: str | None = None, target: str | None = None) -> int:
        """End matching cooldowns now (None matches all, members of credential pools too); returns how many."""
        members = self.pools.clear() if combo is None and target is None else 0
        cleared = members + self.cooldowns.clear(combo, target)
        if self.journal is not None:
            self.journal.cleared(combo, target)
        return cleared

    def forget_combo(self, combo: str) -> None:
        """A combo was redefined or renamed: its cooldowns, rotation and use counts start anew."""
        self.cooldowns.clear(combo)
        self._rotations.pop(combo, None)
        if self.journal is not None:
            self.journal.forgot(combo)

    def reconcile(self, registry: Registry) -> None:
        """Adopt a new configuration: forget deleted combos and the rotation of removed targets. Cooldowns of
        removed targets simply expire."""
        self._generation = registry.generation
        self._targets = {combo.id: tuple(t.key for t in combo.targets) for combo in registry.combos.values()}
        self._live = frozenset((combo, target) for combo, targets in self._targets.items() for target in targets)
        self.cooldowns.keep_combos(set(registry.combos))
        self._rotations = {combo: state for combo, state in self._rotations.items() if combo in registry.combos}
        for combo, state in self._rotations.items():
            state.keep(target.key for target in registry.combos[combo].targets)
        keys = {key for _, key in self._live}
        self._affinity.drop_where(lambda key: key not in keys)
        self.pools.reconcile(registry)
        self.quota.reconcile(registry)
        recall.reconcile(self.recall, registry)
        if self.journal is not None:
            self.journal.reconciled()

    # -- what is told by other proxies; the journal hears nothing of it

    def targets_of(self, combo: str) -> tuple[str, ...]:
        """Keys of a combo's targets in the configuration in force; empty for one that is not there."""
        return self._targets.get(combo, ())

    def combos(self) -> tuple[str, ...]:
        """Ids of the combos in the configuration in force."""
        return tuple(self._targets)

    def open_rotation(self, combo: str) -> RotationState:
        """The rotation of a combo in the configuration in force."""
        return self._rotations.setdefault(combo, RotationState())

    def sweep(self, now: Now) -> int:
        """Drop what has expired; returns how many entries went."""
        stores = (self.cooldowns, self._affinity, self._issuers, self._responses, self._makers)
        swept = sum(store.sweep(now.mono_ms) for store in stores)
        swept += self.quota.sweep(now) + self.replay.sweep(now.mono_ms)
        return swept + recall.sweep(self.recall, now.mono_ms)


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).digest()
