"""How a stream or a whole answer ended. Plain records: what a failure means is decided by the failure rules."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from combos.core.facts import Dialect
from combos.core.values import dataclass

type SuccessKind = Literal["completed", "incomplete"]
type FailureKind = Literal["failed", "error", "incomplete", "eof", "malformed"]


@dataclass(frozen=True, slots=True)
class SuccessTerminal:
    """The target finished its answer.

    `kind` is "incomplete" when the model was cut short (length, content filter): an answer, but no completed turn.
    `reason` is the dialect's own word (`finish_reason`, `stop_reason`, …), "" when there is none. `empty` says that
    the answer holds no output at all.
    """

    kind: SuccessKind
    reason: str = ""
    empty: bool = False


@dataclass(frozen=True, slots=True)
class FailureTerminal:
    """The target said that it failed, or its answer ended without saying anything.

    `kind`: "failed" (a response whose status is failed), "error" (an error event, chunk or object), "incomplete" (an
    incomplete response whose reason is a fault of the transport), "eof" (no terminal before the end), "malformed"
    (bytes that are not the dialect). `event` is the parsed payload, {} when there is none; a Chat choice's own `error`
    is lifted to the top level of `event`. `event_name` is the SSE event name, "" when there is none.
    """

    dialect: Dialect
    kind: FailureKind
    event: Mapping[str, object] = field(default_factory=dict[str, object])
    event_name: str = ""


type Terminal = SuccessTerminal | FailureTerminal
