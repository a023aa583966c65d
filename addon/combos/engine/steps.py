"""What one exchange with a target can turn out to be, before anything of it reaches the client. Plain values."""

from combos.core.errors import ProxyError
from combos.core.facts import Headers
from combos.core.failure_facts import FailureFacts
from combos.core.values import dataclass
from combos.engine.commands import Limit


@dataclass(frozen=True, slots=True)
class Whole:
    """An upstream answer that was read to its end."""

    status: int
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Live:
    """An upstream answer that is still arriving: to give it, send the head and what is held, then go on relaying.
    `once` is what remains to be given if the exchange is closed first."""

    status: int
    headers: Headers
    held: bytes
    once: "Whole | Lost"


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing of the upstream's answer can be given; `error` stands in. `retry_after` is the upstream's own header."""

    error: ProxyError
    retry_after: str | None = None


type Given = Whole | Live | Lost


@dataclass(frozen=True, slots=True)
class Ready:
    """The stream may be committed with the held bytes; `complete` when they are all there is."""

    status: int
    headers: Headers
    held: bytes
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A complete good answer; `result` says how it ended, `completed` that it was not cut short."""

    whole: Whole
    result: str
    completed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The attempt failed before anything reached the client."""

    facts: FailureFacts
    given: Given
    result: str


type Step = Ready | Answered | Refused | Limit | None
