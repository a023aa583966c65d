"""What happened to one request: every attempt, hop and wait, and how it ended. No prompts, no credentials."""

from dataclasses import dataclass, field
from enum import StrEnum

from combos.core.facts import Cooldown, Verdict


class Outcome(StrEnum):
    """How a turn ended, as logs and metrics name it."""

    SUCCESS = "success"
    TERMINAL = "terminal"
    EXHAUSTED = "exhausted"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    CUT = "cut"


@dataclass(slots=True)
class AttemptRecord:
    """One dispatch to one target. Times are monotonic milliseconds; unknown values are None, never zero."""

    ordinal: int
    provider: str
    model: str
    started_ms: int
    status: int | None = None
    ended_ms: int | None = None
    first_output_ms: int | None = None
    result: str = ""
    verdict: Verdict | None = None
    cooldown: Cooldown | None = None
    error_code: str = ""
    error_message: str = ""
    usage: dict[str, int] | None = None
    response_model: str | None = None


@dataclass(slots=True)
class TurnRecord:
    """One logical request of a client."""

    requested_model: str
    combo: str | None
    started_ms: int
    outcome: Outcome | None = None
    status: int | None = None
    ended_ms: int | None = None
    committed_ms: int | None = None
    attempts: list[AttemptRecord] = field(default_factory=list)
    waits_ms: list[int] = field(default_factory=list)
    reason: str = ""
