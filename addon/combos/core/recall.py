"""Compaction recall: which combo last completed on a conversation, so that a bare model name finds it again.

Decides what is remembered, for how long, and when a remembered combo may serve. Recognising a compaction request and
the lane in headers belongs to the wire layer. Callers are kept apart by a digest; no credential is kept.
"""

import hashlib
from collections import OrderedDict
from enum import StrEnum
from typing import NamedTuple

from combos.core.registry import Combo, ComboRoute, DirectRoute, Registry, Target
from combos.core.values import dataclass

# Functional spec, "Compaction after switching combos".
LANES_MAX = 256
TTL_MS = 30 * 60_000
NAME_BYTES_MAX = 1_024
NAMES_BYTES_MAX = 64 * 1_024
SWEEP_INTERVAL_MS = 60_000  # how often the host calls `sweep`

_DIGEST_LENGTH = 32


class LaneKey(NamedTuple):
    """A conversation of one caller, both by digest: see `caller_digest` and `lane_key`."""

    caller: str
    lane: str


@dataclass(frozen=True, slots=True)
class Selection:
    """A combo turn that completed on a lane. `at_ms` is monotonic, `size` the UTF-8 bytes of `response_model`."""

    combo: str
    provider: str
    model: str
    response_model: str
    at_ms: int
    size: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A committed combo turn that ended as completed: the pick, the registry generation it was made from, and the
    model name of the final answer as the client saw it."""

    combo: Combo
    target: Target
    generation: int
    response_model: object


class Written(StrEnum):
    """What became of a completion; all but `WRITTEN` leave the lane's previous entry as it was."""

    WRITTEN = "written"
    NO_LANE = "no_lane"
    STALE = "stale"
    GONE = "gone"
    NO_NAME = "no_name"
    TOO_LARGE = "too_large"


class RecallStore:
    """Lane to last selection, in order of writing. Bounded by lanes and by the bytes of the names it holds."""

    __slots__ = ("_entries", "_names_bytes")

    def __init__(self) -> None:
        self._entries: OrderedDict[LaneKey, Selection] = OrderedDict()
        self._names_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names_bytes(self) -> int:
        """Sum of the stored names in UTF-8 bytes."""
        return self._names_bytes

    def peek(self, key: LaneKey) -> Selection | None:
        """The stored entry, expired or not; reading changes nothing."""
        return self._entries.get(key)

    def put(self, key: LaneKey, selection: Selection) -> None:
        """Write, then evict those written longest ago until both bounds hold."""
        self.drop(key)
        is_youngest = not self._entries or next(reversed(self._entries.values())).at_ms <= selection.at_ms
        self._entries[key] = selection
        if not is_youngest:  # heard of late, from another proxy
            self._entries = OrderedDict(sorted(self._entries.items(), key=lambda item: item[1].at_ms))
        self._names_bytes += selection.size
        while len(self._entries) > LANES_MAX or self._names_bytes > NAMES_BYTES_MAX:
            self.drop(next(iter(self._entries)))

    def drop(self, key: LaneKey) -> None:
        """Forget a lane, if it is known."""
        gone = self._entries.pop(key, None)
        if gone is not None:
            self._names_bytes -= gone.size

    def items(self) -> tuple[tuple[LaneKey, Selection], ...]:
        """Every entry, the one written longest ago first."""
        return tuple(self._entries.items())


def caller_digest(credential: bytes) -> str:
    """A name for the holder of a credential that does not reveal it; callers without one (empty) share a name."""
    return hashlib.sha256(credential).hexdigest()[:_DIGEST_LENGTH]


def lane_key(caller: str, lane: str) -> LaneKey:
    """The key of a conversation. The client's own name of it is as long as it likes, and is kept nowhere."""
    return LaneKey(caller, hashlib.sha256(lane.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH])


def remember(
    store: RecallStore, registry: Registry, key: LaneKey | None, completion: Completion, now_ms: int
) -> Written:
    """Record a completed combo turn. `registry` is the one in force at completion; `now_ms` is monotonic.

    Incomplete, failed, cancelled and direct turns must not be handed in: they neither write nor clear.
    """
    if key is None:
        return Written.NO_LANE
    if registry.generation != completion.generation:
        return Written.STALE
    if _usable_target(registry, completion.combo.id, completion.target.provider_name, completion.target.model) is None:
        return Written.GONE
    name = completion.response_model
    if not isinstance(name, str) or not name.strip():
        return Written.NO_NAME
    size = _name_size(name)
    if size is None:
        return Written.TOO_LARGE
    target = completion.target
    store.put(key, Selection(completion.combo.id, target.provider_name, target.model, name, now_ms, size))
    return Written.WRITTEN


def recall(store: RecallStore, registry: Registry, key: LaneKey | None, model: str, now_ms: int) -> ComboRoute | None:
    """The combo a compaction request for a bare `model` belongs to; None: ordinary routing applies.

    Explicit selectors, aliases and suffix variants are never recalled. Expired and invalid entries are deleted; one
    whose answer had another model name is kept. The remembered target is only checked, never pinned.
    """
    if key is None or not is_recallable(registry, model):
        return None
    selection = store.peek(key)
    if selection is None:
        return None
    target = _usable_target(registry, selection.combo, selection.provider, selection.model)
    if _is_expired(selection, now_ms) or target is None:
        store.drop(key)
        return None
    return ComboRoute(registry.combos[selection.combo]) if selection.response_model == model else None


def is_recallable(registry: Registry, model: str) -> bool:
    """A bare name that is neither an alias of a combo nor a suffix variant of anything."""
    if not model or "/" in model or registry.resolve(model) is not None:
        return False
    return not _is_variant(registry.resolve_bare(model))


def sweep(store: RecallStore, now_ms: int) -> int:
    """Delete expired entries; returns how many."""
    return _drop_all(store, [key for key, selection in store.items() if _is_expired(selection, now_ms)])


def reconcile(store: RecallStore, registry: Registry) -> int:
    """Delete entries whose combo, target or provider the new configuration no longer has; returns how many."""
    return _drop_all(
        store,
        [
            key
            for key, selection in store.items()
            if _target(registry, selection.combo, selection.provider, selection.model) is None
        ],
    )


def _drop_all(store: RecallStore, keys: list[LaneKey]) -> int:
    for key in keys:
        store.drop(key)
    return len(keys)


def _is_expired(selection: Selection, now_ms: int) -> bool:
    return now_ms - selection.at_ms >= TTL_MS


def _name_size(name: str) -> int | None:
    """UTF-8 bytes of a name; None when too large to retain. Characters are counted first: encoding costs memory."""
    if len(name) > NAME_BYTES_MAX:
        return None
    size = len(name.encode("utf-8", "surrogatepass"))
    return size if size <= NAME_BYTES_MAX else None


def _target(registry: Registry, combo_id: str, provider: str, model: str) -> Target | None:
    combo = registry.combos.get(combo_id)
    if combo is None:
        return None
    return next(
        (t for t in combo.targets if t.provider is not None and (t.provider_name, t.model) == (provider, model)), None
    )


def _usable_target(registry: Registry, combo_id: str, provider: str, model: str) -> Target | None:
    target = _target(registry, combo_id, provider, model)
    return target if target and target.provider and not target.provider.config.disabled else None


def _is_variant(route: DirectRoute | None) -> bool:
    return route is not None and (route.service_tier is not None or route.effort is not None)
