"""Exchanges that broke below HTTP: the status each fault maps to, and a sentence that is safe to show a client.

No addresses, exception texts or credentials: the sentences are fixed. Whether the client had already received output is
for the caller to know.
"""

from combos.core.facts import TransportFault
from combos.core.failure_facts import FailureFacts
from combos.core.values import dataclass

ERROR_TYPE = "upstream_error"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """Status for the client and the sentence it reads."""

    fault: TransportFault
    status: int
    sentence: str


# What can break an answer that has begun says so in words that clients go by when they decide whether to ask again.
FAULTS: tuple[FaultRow, ...] = (
    FaultRow(TransportFault.REFUSED, 502, "The upstream refused the connection."),
    FaultRow(TransportFault.DNS, 502, "The upstream's name could not be resolved."),
    FaultRow(TransportFault.TLS, 502, "No trusted TLS connection to the upstream could be made."),
    FaultRow(TransportFault.CONNECT_TIMEOUT, 502, "Connecting to the upstream took too long."),
    FaultRow(TransportFault.CONNECT_FAILED, 502, "The upstream could not be reached."),
    FaultRow(TransportFault.HEAD_TIMEOUT, 502, "The upstream did not begin to answer in time."),
    FaultRow(TransportFault.RESET, 502, "Connection lost: the upstream reset the connection."),
    FaultRow(TransportFault.CLOSED, 502, "The upstream closed the connection before it answered."),
    FaultRow(TransportFault.IDLE_TIMEOUT, 504, "Connection timed out: the upstream fell silent within its answer."),
    FaultRow(TransportFault.TRUNCATED, 502, "Connection lost: the upstream's answer ended before it was complete."),
    FaultRow(TransportFault.MALFORMED, 502, "The upstream's answer was malformed."),
    FaultRow(TransportFault.TOO_LARGE, 502, "The upstream's answer was larger than this proxy accepts."),
    FaultRow(TransportFault.SELF_LOOP, 502, "The target's address leads back to this proxy."),
)


def fault_row(fault: TransportFault) -> FaultRow:
    """The row of a fault; the table holds every one."""
    return next(row for row in FAULTS if row.fault is fault)


def transport_facts(fault: TransportFault) -> FailureFacts:
    """Failure facts of an exchange that broke: 502, or 504 when a body stalled."""
    row = fault_row(fault)
    return FailureFacts(
        status=row.status,
        code=ERROR_TYPE,
        codes=frozenset({ERROR_TYPE}),
        error_type=ERROR_TYPE,
        message=row.sentence,
        fault=fault,
    )


def transport_message(fault: TransportFault) -> str:
    """What a client may read about a fault."""
    return fault_row(fault).sentence
