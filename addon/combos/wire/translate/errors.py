"""Kinds of errors and what each dialect calls them: one table for bodies, for in-stream failures and for reading.

It never decides whether an error is retried; it only says in another dialect what was said.
"""

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.translate.ir import Failure
from combos.wire.translate.shape import Json, as_dict, as_list, as_str, cut, dump, load

_R, _C, _M, _G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI


@dataclass(frozen=True, slots=True)
class Kind:
    """A row: name, then status, type and code of the OpenAI dialects, type and status of Messages, status of Gemini.

    `stream_code` is the code inside a Responses stream, where clients know other words.
    """

    name: str
    status: int
    type: str
    code: str | None
    anthropic: str
    gemini: str
    anthropic_status: int = 0
    stream_code: str = ""


KINDS: tuple[Kind, ...] = (
    Kind(
        "invalid", 400, "invalid_request_error", None, "invalid_request_error", "INVALID_ARGUMENT", 0, "invalid_prompt"
    ),
    Kind(
        "overflow",
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "invalid_request_error",
        "INVALID_ARGUMENT",
    ),
    Kind("auth", 401, "authentication_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"),
    Kind("billing", 402, "insufficient_quota", "insufficient_quota", "billing_error", "FAILED_PRECONDITION"),
    Kind("permission", 403, "permission_error", None, "permission_error", "PERMISSION_DENIED"),
    Kind("not_found", 404, "invalid_request_error", "model_not_found", "not_found_error", "NOT_FOUND"),
    Kind("too_large", 413, "invalid_request_error", "request_too_large", "request_too_large", "INVALID_ARGUMENT"),
    Kind("rate_limit", 429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    Kind("quota", 429, "insufficient_quota", "insufficient_quota", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    Kind("server", 500, "server_error", "server_error", "api_error", "INTERNAL"),
    Kind("overloaded", 503, "server_error", "server_is_overloaded", "overloaded_error", "UNAVAILABLE", 529),
    Kind("timeout", 504, "server_error", "timeout", "timeout_error", "DEADLINE_EXCEEDED"),
)
_BY_NAME = {kind.name: kind for kind in KINDS}

_CODES = {
    "context_length_exceeded": "overflow",
    "string_above_max_length": "overflow",
    "invalid_api_key": "auth",
    "insufficient_quota": "quota",
    "rate_limit_exceeded": "rate_limit",
    "server_is_overloaded": "overloaded",
    "model_not_found": "not_found",
    "request_too_large": "too_large",
    "invalid_prompt": "invalid",
    "server_error": "server",
    "timeout": "timeout",
}
_TYPES = {
    "invalid_request_error": "invalid",
    "authentication_error": "auth",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "insufficient_quota": "quota",
    "billing_error": "billing",
    "overloaded_error": "overloaded",
    "api_error": "server",
    "server_error": "server",
    "upstream_error": "server",
    "timeout_error": "timeout",
    "INVALID_ARGUMENT": "invalid",
    "FAILED_PRECONDITION": "invalid",
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "overloaded",
    "INTERNAL": "server",
    "DEADLINE_EXCEEDED": "timeout",
}
_STATUSES = {
    400: "invalid", 401: "auth", 402: "billing", 403: "permission", 404: "not_found", 408: "timeout", 413: "too_large",
    422: "invalid", 429: "rate_limit", 503: "overloaded", 504: "timeout", 529: "overloaded",
}  # fmt: skip
_CATCH_ALL = (None, "invalid", "server")
_OVERFLOW_PHRASES = ("prompt is too long", "maximum context length", "exceeds the maximum number of tokens")


def kind_of(code: str, type_: str, status: int | None, message: str) -> Kind:
    """The row of an error: its code, the words of a context overflow, its type, then its HTTP status.

    A type that vendors give to every error of the client or of the server says less than the status.
    """
    if code in _CODES:
        return _BY_NAME[_CODES[code]]
    name = told = _TYPES.get(type_)
    if name in _CATCH_ALL and status is not None:
        name = _STATUSES.get(status, name or ("server" if status >= 500 else "invalid"))
    is_invalid = name in (None, "invalid") or told == "invalid"
    if is_invalid and any(phrase in message.lower() for phrase in _OVERFLOW_PHRASES):
        return _BY_NAME["overflow"]
    return _BY_NAME[name or "server"]


def kind_of_failure(failure: Failure) -> Kind:
    """The row of a failure inside an answer."""
    return kind_of(failure.code, failure.type, failure.status, failure.message)


def read_error(status: int, body: bytes) -> tuple[Failure, str | None, str | None]:
    """The error in a body of any dialect, with its parameter and request id. Text that is not JSON is the message."""
    try:
        document = load(body)
    except ValueError:
        text = body[: 4 * 4096].decode("utf-8", "replace").strip()
        return Failure("", "", cut(text) or f"HTTP {status}", status), None, None
    document = as_dict(as_list(document)[0] if as_list(document) else document)
    value = document.get("error", document)
    error = {"message": value} if isinstance(value, str) else as_dict(value)
    message = cut(as_str(error.get("message")) or as_str(document.get("message")) or as_str(document.get("detail")))
    type_ = as_str(error.get("type")) or as_str(error.get("status"))
    failure = Failure(as_str(error.get("code")), type_, message or f"HTTP {status}", status)
    return failure, as_str(error.get("param")) or None, as_str(document.get("request_id")) or None


def body(failure: Failure, client: Dialect, param: str | None = None, request_id: str | None = None) -> Json:
    """An error body of the client's dialect."""
    kind = kind_of_failure(failure)
    message = cut(failure.message)
    if client is _M:
        document: Json = {"type": "error", "error": {"type": kind.anthropic, "message": message}}
        return document | ({"request_id": request_id} if request_id else {})
    if client is _G:
        return {"error": {"code": status_for(failure, client), "message": message, "status": kind.gemini}}
    return {"error": {"message": message, "type": kind.type, "param": param, "code": failure.code or kind.code}}


def status_for(failure: Failure, client: Dialect) -> int:
    """The HTTP status towards a client: the target's own where the dialect has it."""
    kind = kind_of_failure(failure)
    if client is _M and kind.anthropic_status:
        return kind.anthropic_status
    if failure.status is None or failure.status < 400 or failure.status == 529:
        return kind.status
    return failure.status


def translate_error(status: int, body_: bytes, client: Dialect, target: Dialect) -> tuple[int, bytes]:
    """An HTTP error of a target in the client's dialect. Bytes pass unchanged when both speak the same."""
    if client is target:
        return status, body_
    failure, param, request_id = read_error(status, body_)
    return status_for(failure, client), dump(body(failure, client, param, request_id))


def retry_after_s(body_: bytes, target: Dialect) -> int | None:
    """Seconds to wait that an error body itself names (Gemini's RetryInfo), rounded up; None when it names none."""
    if target is not _G:
        return None
    try:
        document = load(body_)
    except ValueError:
        return None
    document = as_dict(as_list(document)[0] if as_list(document) else document)
    for detail in as_list(as_dict(document.get("error")).get("details")):
        seconds = _seconds(as_str(as_dict(detail).get("retryDelay")))
        if seconds is not None:
            return seconds
    return None


def _seconds(text: str) -> int | None:
    whole, _, fraction = text.removesuffix("s").partition(".")
    if not text.endswith("s") or not whole.isascii() or not whole.isdigit() or len(whole) > 9:
        return None
    return int(whole) + (1 if fraction.strip("0") else 0)
