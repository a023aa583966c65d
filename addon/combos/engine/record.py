"""What happened to one request: every attempt, hop and wait, and how it ended. No prompts, no credentials."""

from dataclasses import field
from enum import StrEnum

from combos.core.facts import Cooldown, Dialect, Surface, Verdict
from combos.core.names import target_key
from combos.core.values import dataclass

MODEL_MAX = 2_048
"""Characters of the model's name in an answer that are kept: more than any has. Records wait, many at a time, to be
entered into the books and to be looked at, and a target may send megabytes in place of a name."""


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
    """The name in the answer as the client saw it; the beginning of one longer than `MODEL_MAX`."""
    dropped: tuple[str, ...] = ()
    """What translation left out of the request, in the client's words."""
    dialect: Dialect | None = None
    """What the target speaks: its counts of tokens have the meaning they have there."""
    sends: int = 1
    """Physical sends: more than one when a credential pool passed the request on to another member."""
    account: str | None = None
    """The configured id of the pool member that the answer belongs to."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What a decision said, or what was used because it failed: `gate` is `apply` or the name of what went wrong.

    `provider`, `model` and `effort` are those of the first dispatch; `provider` is None when there was no candidate,
    `effort` when the target's cannot be chosen. `usage` is the decision's own, never the target's.
    """

    backend: str
    gate: str
    provider: str | None
    model: str | None
    effort: str | None
    latency_ms: int
    confidence: float | None = None
    probability: float | None = None
    usage: dict[str, int] | None = None

    @property
    def target(self) -> str | None:
        """Key of the selected target."""
        return None if self.provider is None or self.model is None else target_key(self.provider, self.model)


@dataclass(slots=True)
class TurnRecord:
    """One logical request of a client. `id` is unique to it; `dialect` and `surface` are how it was asked."""

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
    decision: DecisionRecord | None = None
    id: str = ""
    dialect: Dialect | None = None
    surface: Surface | None = None


def trail(record: TurnRecord) -> str:
    """One line for logs and flow comments: `main: alpha/m1 429 → beta/m2 200 (1 hop, 0.8 s)`."""
    attempts = record.attempts
    steps = _step(attempts[0]) if len(attempts) == 1 else " → ".join([_step(attempt) for attempt in attempts])
    name = record.requested_model if record.combo is None else record.combo
    notes = _notes(record)
    shown = f"{name}: {steps or record.status or 'no answer'}"
    return f"{shown} ({', '.join(notes)})" if notes else shown


def _step(attempt: AttemptRecord) -> str:
    status = attempt.status
    return f"{attempt.provider}/{attempt.model} {attempt.result or 'no answer' if status is None else status}"


def _notes(record: TurnRecord) -> list[str]:
    notes: list[str] = []
    if (decision := record.decision) is not None:
        notes.append(f"{decision.backend} {decision.gate} {_seconds(decision.latency_ms)}")
    if (hops := len(record.attempts) - 1) > 0:
        notes.append(f"{hops} hop{'s' if hops > 1 else ''}")
    if record.waits_ms:
        notes.append(f"waited {_seconds(sum(record.waits_ms))}")
    if record.outcome is not None and record.outcome is not Outcome.SUCCESS:
        notes.append(record.outcome.value)
    if record.reason:
        notes.append(record.reason)
    if record.ended_ms is not None:
        notes.append(_seconds(record.ended_ms - record.started_ms))
    return notes


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
