"""The vocabulary the layers share: dialects, surfaces, instants, transport faults, verdicts.

Plain values only. What they mean is decided elsewhere: `failures` for verdicts, `cooldown` for durations.
"""

from enum import StrEnum
from typing import NamedTuple

from combos.core.values import dataclass

type Headers = tuple[tuple[bytes, bytes], ...]
"""Raw header pairs in wire order; names keep the case they had."""


class Dialect(StrEnum):
    """A wire format that a client or a target speaks."""

    RESPONSES = "responses"
    CHAT = "chat"
    MESSAGES = "messages"
    GEMINI = "gemini"


class Surface(StrEnum):
    """An endpoint, named by the end of its path. Gemini's names model and method there; `GENERATE` is both methods."""

    RESPONSES = "responses"
    COMPACT = "responses/compact"
    CHAT = "chat/completions"
    MESSAGES = "messages"
    COUNT_TOKENS = "messages/count_tokens"
    GENERATE = "generateContent"
    MODELS = "models"


class Now(NamedTuple):
    """One instant on two clocks: the monotonic one for durations, the wall clock for dates in headers."""

    mono_ms: int
    epoch_ms: int


class TransportFault(StrEnum):
    """Why an exchange broke below HTTP; the value is the name that records, logs and metrics show."""

    REFUSED = "connection_refused"
    DNS = "name_resolution_failed"
    TLS = "tls_handshake_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_FAILED = "connect_failed"
    HEAD_TIMEOUT = "response_header_timeout"
    RESET = "connection_reset"
    CLOSED = "connection_closed"
    IDLE_TIMEOUT = "idle_timeout"
    TRUNCATED = "truncated_body"
    MALFORMED = "malformed_response"
    TOO_LARGE = "response_too_large"
    SELF_LOOP = "self_loop"


class Scope(StrEnum):
    """What a hop cools."""

    NONE = "none"
    TARGET = "target"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failed attempt means: the rule that matched, hop or stop, and what is cooled."""

    rule: str
    hop: bool
    scope: Scope = Scope.NONE


@dataclass(frozen=True, slots=True)
class Cooldown:
    """How long a failed target rests (milliseconds, at least 1) and which signal said so."""

    ms: int
    source: str
