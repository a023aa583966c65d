"""How the failure of a target is given to a client that speaks another dialect, or that cannot get it as it came.

Makes answers; whether one is given, or another target is asked, is decided by the turn.
"""

from combos.core.errors import ProxyError, transport_failure
from combos.core.facts import Headers, TransportFault
from combos.core.failure_facts import FailureFacts
from combos.core.transport import ERROR_TYPE, transport_message
from combos.engine.steps import Lost, Refused, Whole
from combos.engine.voice import Voice
from combos.wire import headers as wire_headers
from combos.wire.bodies import BodyError, decode
from combos.wire.fields import Fields
from combos.wire.terminal import FailureTerminal

SILENT = ("eof", "malformed")
"""Failures by which the target said nothing."""

_ERROR_LIMIT = 8 * 1024 * 1024
"""Decoded bytes of an error body that is translated."""


def content_coding(fields: Fields) -> str | None:
    """The content coding of an answer, None when its bytes are plain."""
    coding = fields.get(b"content-encoding")
    return None if coding is None or coding.lower() in ("", "identity") else coding


def status_error(voice: Voice | None, status: int, headers: Headers, body: bytes) -> Whole:
    """An HTTP error whose body was read to its end."""
    if voice is None or not voice.crosses:
        return Whole(status, headers, body)
    try:
        plain = decode(content_coding(Fields(headers)), body, _ERROR_LIMIT)
    except BodyError:
        plain = b""
    return Whole(*voice.error(status, headers, plain))


def stream_error(voice: Voice | None, failure: FailureTerminal, status: int, headers: Headers) -> Whole | Lost:
    """A failure that the target told inside its answer, as the HTTP error that `status` makes of it."""
    if voice is None or failure.kind in SILENT:
        return Lost(transport_failure(TransportFault.TRUNCATED, transport_message(TransportFault.TRUNCATED)))
    return Whole(*voice.failed_stream(failure, status, headers))


def lost_body(status: int, headers: Headers) -> Lost:
    """An HTTP error whose body cannot be given."""
    error = ProxyError(status, "upstream_error", "upstream_error", f"Provider error {status}")
    return Lost(error, wire_headers.get(headers, "retry-after"))


def unsayable(error: ProxyError) -> Refused:
    """An answer that came and is none in the client's format; `error` says why."""
    names = frozenset({ERROR_TYPE})
    facts = FailureFacts(error.status, ERROR_TYPE, names, ERROR_TYPE, message=error.message)
    # It is kept and not raised again: the tracebacks on it would keep the whole turn.
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return Refused(facts, Lost(error), error.code)
