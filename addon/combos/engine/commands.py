"""What a turn asks of its host, in the order in which it is to be done."""

from dataclasses import field

from combos.core.facts import Headers
from combos.core.registry import Combo, Provider, Registry, Target
from combos.core.values import dataclass
from combos.engine.record import AttemptRecord, TurnRecord
from combos.wire.request import RequestFacts


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request to a target. `headers` hold no credentials: the host adds those of `provider` when it sends."""

    method: str
    url: str
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    provider: Provider


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of one exchange, in milliseconds."""

    connect_ms: int
    head_ms: int
    idle_ms: int


@dataclass(frozen=True, slots=True)
class Send:
    """Open an exchange; its events carry `attempt`. `spares`: a later target of the request has the same provider."""

    attempt: int
    target: Target
    request: OutboundRequest
    timeouts: Timeouts
    spares: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """From now on the attempt may be silent for `idle_ms` and may take `total_ms` in all (None: any time)."""

    attempt: int
    idle_ms: int
    total_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Discard:
    """The attempt is over for the turn: close it, or keep its connection if the body was read to its end."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Start a timer and feed `WaitOver(wait)` when it is up; everything else goes on meanwhile.

    Several may run at once; those left at `Finish` are dropped. `wait` numbers the timers of one turn.
    """

    wait: int
    ms: int


@dataclass(frozen=True, slots=True)
class Decide:
    """Ask the combo's decision service which of the `eligible` targets comes first; feed one `Decided`.

    At most one per turn. The deadline is the host's; so is the cancellation when the client leaves.
    """

    combo: Combo = field(repr=False)
    eligible: tuple[Target, ...] = field(repr=False)
    facts: RequestFacts = field(repr=False)
    registry: Registry = field(repr=False)


@dataclass(frozen=True, slots=True)
class Commit:
    """Send the head of a streamed answer to the client; `attempt` owns the answer from here on."""

    attempt: int
    status: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class Relay:
    """Send body bytes to the client."""

    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """End the streamed answer cleanly."""


@dataclass(frozen=True, slots=True)
class Break:
    """End the streamed answer so that no client can take it for complete: `tail` first, then a reset."""

    tail: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Send a whole answer. `attempt` is the one whose answer it is; None when the turn made it itself."""

    status: int
    headers: Headers
    body: bytes
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt's record is complete."""

    record: AttemptRecord


@dataclass(frozen=True, slots=True)
class Finish:
    """The turn is over; exactly one, and always the last command."""

    record: TurnRecord


type Command = Send | Limit | Discard | Wait | Decide | Commit | Relay | End | Break | Reply | AttemptEnded | Finish
