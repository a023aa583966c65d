"""What is known about one failed attempt, as plain values that the failure rules and the cooldown rules read.

Decides nothing. Refuses to know where a value stood on the wire: the envelope reader has already chosen the error
object, folded the codes and dropped text that may not count as prose.
"""

from dataclasses import field
from enum import StrEnum

from combos.core.facts import TransportFault
from combos.core.values import dataclass

SUMMARY_CHARACTERS = 300
"""How much of an upstream's message records and logs keep: enough for a sentence, too little for a prompt."""


class AccountRefusal(StrEnum):
    """How the refusal of a model by a ChatGPT account was found: whole and alone, or beside a rival carrier."""

    EXACT = "exact"
    COMPETING = "competing"


@dataclass(frozen=True, slots=True)
class Signals:
    """Response headers that state a delay, as text and unchecked; a repeated header is joined with `, `."""

    retry_after: str | None = None
    codex_resets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """One failed attempt.

    `code` is the folded code that speaks for the failure (a known `type` stands in for an absent code), `codes` the
    folded codes of every accepted carrier: hard stops are searched in all of them. `message` is the leaf message,
    empty when the body holds no prose; `text` is the raw body, bounded to 64 KiB, for the few token scans that look at
    everything. `garbled` says that a 5xx body was not valid UTF-8 and is no evidence of a quota.
    """

    status: int
    code: str = ""
    codes: frozenset[str] = frozenset()
    error_type: str = ""
    param: str | None = None
    message: str = field(default="", repr=False)
    text: str = field(default="", repr=False)
    request_local: str | None = None
    account_refusal: AccountRefusal | None = None
    signals: Signals = Signals()
    non_replayable: bool = False
    garbled: bool = False
    fault: TransportFault | None = None
    from_stream: bool = False
    prose: str = field(init=False, repr=False, compare=False)
    """`message` in lower case with single spaces and straight apostrophes: what phrases are searched in."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "prose", fold_prose(self.message))

    @property
    def summary(self) -> str:
        """The message on one line without control characters, cut for records; empty when there is none."""
        line = " ".join(self.message[: 4 * SUMMARY_CHARACTERS].split())
        return "".join(char for char in line if char.isprintable())[:SUMMARY_CHARACTERS]


def fold_prose(message: str) -> str:
    """Lower case, one space between words, straight apostrophes."""
    return " ".join(message.lower().replace("\u2019", "'").split())


def fold_code(code: str) -> str:
    """Trim, lower case, hyphen to underscore: how codes and types are compared."""
    return code.strip().lower().replace("-", "_")
