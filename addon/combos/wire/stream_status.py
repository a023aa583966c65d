"""The HTTP status that a failure inside a 2xx answer would have had: stated by the event, else read from its error.

The rows are ordered, the first that applies decides. What the status means is for the failure rules.
"""

import re
from collections.abc import Callable, Mapping

from combos.core import prose
from combos.core.failure_codes import CALLER_ERROR_TYPES, CodeClass, code_class
from combos.core.failure_facts import fold_code, fold_prose
from combos.core.values import dataclass
from combos.wire.envelope_shapes import ErrorObject
from combos.wire.terminal import FailureTerminal

UNSTATED_STATUS = 502
_STATUS_KEYS = ("status", "status_code", "http_status")
_QUOTA_CLASSES = (CodeClass.WINDOW, CodeClass.REQUEST_RATE, CodeClass.QUOTA)
_SERVER_CLASSES = (CodeClass.SERVER, CodeClass.OVERLOAD)
_SERVER_NAMES = frozenset({"upstream_error", "internal", "internal_error"})

_SILENT_ENDS: tuple[tuple[str, str], ...] = (
    ("incomplete", "The stream was cut off by a fault of the upstream."),
    ("eof", "The answer ended before it said how it ended."),
    ("malformed", "The answer is not in the format that was asked for."),
)
"""Failures that bring no error object: kind and a sentence for records."""

NAMED_STATUSES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (429, ("rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests")),
    (401, ("invalid_api_key", "authentication_error", "unauthenticated")),
    (403, ("permission_denied", "permission_error", "subscription_required")),
    (429, ("insufficient_quota",)),
    (503, ("server_is_overloaded", "slow_down", "unavailable")),
    (529, ("overloaded_error",)),
    (500, ("api_error", "internal")),
    (402, ("billing_error",)),
    (504, ("timeout_error",)),
    (404, ("not_found_error",)),
    (413, ("request_too_large",)),
)
"""Statuses by folded code, or by folded type when there is no code."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    """`name` is the folded code, or the folded type when there is no code."""

    code: str
    error_type: str
    prose: str

    @property
    def name(self) -> str:
        return self.code or self.error_type

    @property
    def is_server_class(self) -> bool:
        names = (self.code, self.error_type)
        return any(name in _SERVER_NAMES or code_class(name) in _SERVER_CLASSES for name in names)


type _Row = tuple[str, Callable[[_Evidence], bool], int]


def _says(pattern: str) -> Callable[[_Evidence], bool]:
    compiled = re.compile(pattern)
    return lambda evidence: compiled.search(evidence.prose) is not None


def _is_policy(evidence: _Evidence) -> bool:
    return code_class(evidence.name) is CodeClass.POLICY or prose.is_cyber(evidence.prose)


def _is_caller_error(evidence: _Evidence) -> bool:
    return evidence.error_type in CALLER_ERROR_TYPES or (
        evidence.code in CALLER_ERROR_TYPES and not evidence.error_type
    )


def _named(names: tuple[str, ...]) -> Callable[[_Evidence], bool]:
    return lambda evidence: evidence.name in names


_says_request = _says(r"\b(?:invalid|not found|unsupported|malformed)\b")

STATUS_ROWS: tuple[_Row, ...] = (
    ("cancelled", lambda evidence: code_class(evidence.name) is CodeClass.CANCELLED, 499),
    ("policy", _is_policy, 400),
    ("quota", lambda evidence: code_class(evidence.name) in _QUOTA_CLASSES, 429),
    *((f"named-{status}", _named(names), status) for status, names in NAMED_STATUSES),
    ("caller", _is_caller_error, 400),
    ("says-window", lambda evidence: prose.is_spent_window(evidence.prose), 429),
    ("says-rate", _says(r"\brate[ _-]?limit|too many requests|exhausted|throttl"), 429),
    ("says-credentials", _says(r"unauthorized|authentication|\bapi key\b"), 401),
    ("says-permission", _says(r"\bpermission|\bforbidden\b"), 403),
    ("says-malformed-upstream", _says(r"malformed upstream"), 502),
    ("says-unavailable", _says(r"unavailable|overloaded|temporarily|\bbusy\b"), 503),
    ("says-server", lambda evidence: evidence.is_server_class and _says_request(evidence), 502),
    ("says-request", _says_request, 400),
    ("says-timeout", _says(r"\btime-?out|\btimed out\b|\bdeadline\b"), 504),
)
"""Name, test, status; applied in this order when the event states no status."""


def stream_error(terminal: FailureTerminal) -> dict[str, object]:
    """The error object of a failure; an upstream server error when it brings none."""
    silent = dict(_SILENT_ENDS).get(terminal.kind)
    if silent is not None:
        return _unstated(silent)
    for place in _error_places(terminal):
        if isinstance(place, Mapping) and place:
            return dict(place)
        if isinstance(place, str) and place:
            return {"message": place}
    flat = {key: terminal.event[key] for key in ("code", "message", "param") if key in terminal.event}
    told = isinstance(flat.get("message"), str) or isinstance(flat.get("code"), str | int)
    return flat if told else _unstated("")


def explicit_status(terminal: FailureTerminal) -> int | None:
    """The status that the event itself states (400 to 599), the event before its error object."""
    error = stream_error(terminal)
    if terminal.kind == "error":
        for level in (terminal.event, error):
            for key in _STATUS_KEYS:
                if (status := _status_value(level.get(key))) is not None:
                    return status
    code = error.get("code")
    return _status_value(code) if isinstance(code, int) else None


def stated_status(error: ErrorObject) -> int:
    """The status that an error object speaks of; 502 when it speaks of none."""
    evidence = _Evidence(fold_code(error.code), error.error_type, fold_prose(error.message))
    return next((status for _, applies, status in STATUS_ROWS if applies(evidence)), UNSTATED_STATUS)


def _error_places(terminal: FailureTerminal) -> tuple[object, ...]:
    """Where the error object may stand. A bare error event speaks for itself before it speaks of a response."""
    response = terminal.event.get("response")
    inner = (response.get("error"), response.get("last_error")) if isinstance(response, Mapping) else ()
    own = (terminal.event.get("error"),)
    return (*own, *inner) if terminal.kind == "error" else (*inner, *own)


def _unstated(message: str) -> dict[str, object]:
    return {"type": "upstream_error", "code": "upstream_server_error", "message": message}


def _status_value(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{3}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 400 <= value <= 599:
        return None
    return int(value) if value == int(value) else None
