"""What a turn is started with: the request, the snapshot it was resolved against, and what only the host can tell."""

from collections.abc import Callable
from dataclasses import field

from combos.core.errors import ProxyError
from combos.core.facts import Headers
from combos.core.limits import CONNECT_TIMEOUT_MS, HEAD_TIMEOUT_MS, IDLE_TIMEOUT_MS
from combos.core.recall import LaneKey, lane_key
from combos.core.registry import ComboRoute, DirectRoute, Provider, Registry, Target, UnknownCombo
from combos.core.values import dataclass
from combos.engine.commands import Timeouts
from combos.engine.prefix import MAX_BYTES, MAX_CHUNKS
from combos.wire.fields import Fields
from combos.wire.request import RequestFacts, conversation


def never_spent(_target: Target) -> bool:
    """Nothing is known beside what the state holds."""
    return False


def _no_evidence(_target: Target) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One client request.

    `fields` are the client's own. `current` gives the registry in force, read again after a wait. `unusable` names
    why a provider cannot be called for this client (`no_credentials`, `self_loop`), None when it can. `draw` gives a
    float in [0, 1). `origin` is the host the client addressed, None when it used the proxy as its base URL. `caller`
    is the holder of the client's credential (`core.recall.caller_digest`), `lane_key` the conversation that it names,
    `conversation` the one whose reasoning state is looked after: see `conversations`. `spent` and `reset_at` (epoch ms)
    are quota evidence beside what the state holds. `decides` marks the internal turn of a decision, which may not lead
    to another one. `seed` is any text unique to the request: its id in records, and what identifiers in translated
    answers are derived from. `mark` names this proxy in requests to private networks, so that one which comes back is
    known. `refusal` is why the request cannot be served whatever the targets are; `makers` are the providers whose own
    state is in a history that the client did not send.
    """

    facts: RequestFacts
    fields: Fields
    route: ComboRoute | DirectRoute | UnknownCombo
    registry: Registry
    current: Callable[[], Registry]
    unusable: Callable[[Provider], str | None]
    draw: Callable[[], float]
    origin: str | None = None
    caller: str = ""
    lane_key: LaneKey | None = None
    conversation: LaneKey | None = None
    spent: Callable[[Target], bool] = never_spent
    reset_at: Callable[[Target], int | None] = _no_evidence
    decides: bool = False
    seed: str = ""
    mark: str = ""
    refusal: ProxyError | None = None
    makers: frozenset[str] = frozenset()

    @property
    def headers(self) -> Headers:
        """The client's header fields as they came."""
        return self.fields.raw


def conversations(caller: str, lane: str | None, fields: Fields) -> tuple[LaneKey | None, LaneKey | None]:
    """The conversation of this caller, and the one for the sake of its reasoning state: the lane, else a session that
    the client names. None for what the request does not name."""
    if lane is not None:
        key = lane_key(caller, lane)
        return key, key
    session = conversation(fields)
    return None, None if session is None else lane_key(caller, session)


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Bounds of every turn; times in milliseconds, sizes in bytes."""

    connect_ms: int = CONNECT_TIMEOUT_MS
    head_ms: int = HEAD_TIMEOUT_MS
    idle_ms: int = IDLE_TIMEOUT_MS
    error_idle_ms: int = 5_000
    error_total_ms: int = 5_000
    error_bytes: int = 65_536
    answer_bytes: int = 64 * 1024 * 1024
    prefix_bytes: int = MAX_BYTES
    prefix_chunks: int = MAX_CHUNKS
    timeouts: Timeouts = field(init=False, repr=False, compare=False)
    """The limits of an exchange with a provider that sets none of its own."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "timeouts", Timeouts(self.connect_ms, self.head_ms, self.idle_ms))
