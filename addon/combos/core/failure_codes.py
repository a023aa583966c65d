"""Structured error codes and error types: which class each belongs to, whether the class hops and what it cools.

Data and look-ups only (functional spec, "What happens when a target fails"). Statuses and prose are decided elsewhere.
"""

from enum import StrEnum
from types import MappingProxyType

from combos.core.facts import Scope
from combos.core.values import dataclass


class CodeClass(StrEnum):
    """What a code says about the failure."""

    CREDENTIAL = "credential"
    BILLING = "billing"
    WINDOW = "spent-window"
    REQUEST_RATE = "request-rate"
    QUOTA = "quota"
    MONTHLY = "monthly-cap"
    RATE = "rate"
    OVERLOAD = "overload"
    SERVER = "server"
    PERMISSION = "permission"
    MODEL = "model"
    FREE_TIER = "free-tier"
    ADMISSION = "admission"
    OVERFLOW = "overflow"
    POLICY = "policy"
    ORIGIN = "origin"
    CANCELLED = "cancelled"
    NON_REPLAYABLE = "non-replayable"
    LIFECYCLE = "lifecycle"


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One class: its folded codes, and the scope of a hop when the status alone would stop (None: no hop)."""

    kind: CodeClass
    codes: tuple[str, ...]
    hop_scope: Scope | None


CODE_ROWS: tuple[CodeRow, ...] = (
    CodeRow(CodeClass.CREDENTIAL, ("invalid_api_key",), Scope.PROVIDER),
    CodeRow(
        CodeClass.BILLING,
        ("insufficient_quota", "payment_required", "subscription_required", "billing_error", "insufficient_balance"),
        Scope.PROVIDER,
    ),
    CodeRow(CodeClass.WINDOW, ("usage_limit_exceeded", "usage_limit_reached", "1308"), Scope.TARGET),
    CodeRow(CodeClass.REQUEST_RATE, ("1302", "1305"), Scope.TARGET),
    CodeRow(CodeClass.QUOTA, ("1310", "1316", "1317", "1318", "1319", "1320", "1321"), Scope.TARGET),
    CodeRow(CodeClass.MONTHLY, ("gousagelimiterror",), None),
    CodeRow(
        CodeClass.RATE,
        ("rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "slow_down", "too_many_requests"),
        Scope.TARGET,
    ),
    CodeRow(CodeClass.OVERLOAD, ("server_is_overloaded", "overloaded_error", "unavailable"), Scope.TARGET),
    CodeRow(
        CodeClass.SERVER,
        ("upstream_server_error", "server_error", "api_error", "internal_server_error", "timeout_error"),
        Scope.TARGET,
    ),
    CodeRow(CodeClass.PERMISSION, ("permission_denied", "permission_error"), Scope.TARGET),
    CodeRow(CodeClass.MODEL, ("model_not_found", "model_unavailable", "unsupported_model"), Scope.TARGET),
    CodeRow(CodeClass.FREE_TIER, ("free_rate_limited",), Scope.TARGET),
    CodeRow(CodeClass.ADMISSION, ("input_admission_refused",), Scope.NONE),
    CodeRow(CodeClass.OVERFLOW, ("context_length_exceeded",), None),
    CodeRow(
        CodeClass.POLICY,
        (
            "cyber_policy",
            "bio_policy",
            "invalid_prompt",
            "misalignment_policy_violation",
            "content_policy_violation",
            "content_filter",
        ),
        None,
    ),
    CodeRow(CodeClass.ORIGIN, ("origin_rejected",), None),
    CodeRow(CodeClass.CANCELLED, ("client_cancelled", "client_closed_request"), None),
    CodeRow(
        CodeClass.NON_REPLAYABLE,
        ("upstream_no_response", "upstream_closed_before_response", "upstream_reset_replay_refused"),
        None,
    ),
    CodeRow(
        CodeClass.LIFECYCLE,
        ("model_deprecated", "model_end_of_life", "model_eol", "model_retired"),
        None,
    ),
)

PROVIDER_WIDE = (CodeClass.CREDENTIAL, CodeClass.BILLING)
"""Classes that speak of the whole provider: provider scope on every hop status, and the ten-minute hold."""

QUOTA_EVIDENCE = (CodeClass.BILLING, CodeClass.WINDOW, CodeClass.QUOTA, CodeClass.REQUEST_RATE, CodeClass.MONTHLY)
"""Classes that confirm a quota failure in the body, so that reset headers count beside any status."""

GENERIC_CODES = frozenset({"", "invalid_request_error"})
"""Codes that say no more than the type does."""

REWRAPPING_CODES = GENERIC_CODES | {"upstream_error", "upstream_server_error", "server_error", "api_error"}
"""Codes a relay puts around somebody else's error: a code found inside is the better one."""

CALLER_ERROR_TYPES = frozenset({"invalid_request_error", "invalid_argument", "failed_precondition", "out_of_range"})
"""Types that say the request is at fault: prose cannot turn them into a hop."""

TYPE_AS_CODE: tuple[tuple[str, str], ...] = (
    ("authentication_error", "invalid_api_key"),
    ("unauthenticated", "invalid_api_key"),
    ("billing_error", "billing_error"),
    ("insufficient_quota", "insufficient_quota"),
    ("usage_limit_reached", "usage_limit_reached"),
    ("usage_limit_exceeded", "usage_limit_exceeded"),
    ("gousagelimiterror", "gousagelimiterror"),
    ("rate_limit_error", "rate_limit_exceeded"),
    ("resource_exhausted", "rate_limit_exceeded"),
    ("overloaded_error", "server_is_overloaded"),
    ("unavailable", "server_is_overloaded"),
    ("permission_error", "permission_denied"),
    ("permission_denied", "permission_denied"),
    ("api_error", "upstream_server_error"),
    ("internal", "upstream_server_error"),
    ("server_error", "upstream_server_error"),
    ("timeout_error", "upstream_server_error"),
    ("cyber_policy", "cyber_policy"),
)
"""Folded types that stand in for an absent code."""


# Every failure is looked up some twenty times. Of a code or type that is listed twice the first row counts.
_ROW_OF = {code: row for row in reversed(CODE_ROWS) for code in row.codes}
_CODE_OF_TYPE = MappingProxyType(dict(reversed(TYPE_AS_CODE)))


def code_row(code: str) -> CodeRow | None:
    """The row that lists a folded code."""
    return _ROW_OF.get(code)


def code_class(code: str) -> CodeClass | None:
    """The class of a folded code; None for an unknown one."""
    row = _ROW_OF.get(code)
    return row.kind if row is not None else None


def any_of(codes: frozenset[str], kind: CodeClass) -> bool:
    """Whether some carrier holds a code of this class."""
    return any(code_class(code) is kind for code in codes)


def type_code(error_type: str) -> str:
    """The code that a folded type stands for; empty when it stands for none."""
    return _CODE_OF_TYPE.get(error_type, "")
