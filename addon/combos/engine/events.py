"""What happens to a turn. Every upstream event names its attempt by ordinal, because a hedge has two in flight."""

from combos.core.facts import Headers, TransportFault
from combos.core.pools import PoolNote
from combos.core.values import dataclass
from combos.engine.record import DecisionRecord


@dataclass(frozen=True, slots=True)
class Started:
    """The request has been admitted."""


@dataclass(frozen=True, slots=True)
class WaitOver:
    """The time of a `Wait` is up."""

    wait: int


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision has ended, in time or not, with a choice or without."""

    record: DecisionRecord


@dataclass(frozen=True, slots=True)
class HeadReceived:
    """Status and headers of a target's answer; `pool` names the member of a credential pool that it belongs to."""

    attempt: int
    status: int
    headers: Headers
    pool: PoolNote | None = None


@dataclass(frozen=True, slots=True)
class ChunkReceived:
    """Body bytes as they arrived, content coding not undone."""

    attempt: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer's body is complete by its framing."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The exchange broke; nothing more comes from this attempt."""

    attempt: int
    fault: TransportFault


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The client closed or reset its stream. Nothing may be sent after it."""


type Event = Started | WaitOver | Decided | HeadReceived | ChunkReceived | Ended | Failed | ClientGone

OF_ATTEMPT = (ChunkReceived, HeadReceived, Ended, Failed)
"""The classes of events of an attempt."""
