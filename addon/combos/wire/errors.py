"""How a local refusal looks on the wire in each dialect. Which refusal it is was decided before."""

import orjson

from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Headers

_MESSAGES_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_GEMINI_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}


def render(error: ProxyError, dialect: Dialect) -> tuple[Headers, bytes]:
    """Header fields and body of an answer with `error.status`."""
    headers: list[tuple[bytes, bytes]] = [(b"content-type", b"application/json")]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(error.retry_after_s).encode()))
    return tuple(headers), orjson.dumps(error_body(error, dialect))


def error_body(error: ProxyError, dialect: Dialect) -> dict[str, object]:
    """The error object of a dialect, ready to be serialised."""
    match dialect:
        case Dialect.RESPONSES:
            param = {} if error.param is None else {"param": error.param}
            return {"error": {"message": error.message, "type": error.type, "code": error.code, **param}}
        case Dialect.CHAT:
            return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}
        case Dialect.MESSAGES:
            return {"type": "error", "error": {"type": _messages_type(error), "message": _message_with_code(error)}}
        case Dialect.GEMINI:
            status = _GEMINI_STATUSES.get(error.status, "INTERNAL" if error.status >= 500 else "FAILED_PRECONDITION")
            return {"error": {"code": error.status, "message": _message_with_code(error), "status": status}}


def stream_tail(error: ProxyError, dialect: Dialect, *, response_id: str | None = None) -> bytes:
    """The event that ends a stream which broke after it had been committed.

    Begins with a blank line: the stream may have broken in the middle of a frame. Codex ignores a bare `error` event,
    so a Responses stream ends with `response.failed`; `response_id` is the id that the stream had announced.
    """
    match dialect:
        case Dialect.RESPONSES:
            return b"\n\nevent: response.failed\ndata: " + orjson.dumps(_failed_event(error, response_id)) + b"\n\n"
        case Dialect.MESSAGES:
            return b"\n\nevent: error\ndata: " + orjson.dumps(error_body(error, dialect)) + b"\n\n"
        case Dialect.CHAT | Dialect.GEMINI:
            return b"\n\ndata: " + orjson.dumps(error_body(error, dialect)) + b"\n\n"


def _failed_event(error: ProxyError, response_id: str | None) -> dict[str, object]:
    response: dict[str, object] = {"id": response_id} if response_id else {}
    response |= {
        "object": "response",
        "status": "failed",
        "error": {"code": error.code, "message": error.message},
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }
    return {"type": "response.failed", "response": response}


def _messages_type(error: ProxyError) -> str:
    return _MESSAGES_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")


def _message_with_code(error: ProxyError) -> str:
    """These dialects have no place for a code: one that says more than the type goes into the message."""
    return error.message if error.code in {error.type, "model_not_found"} else f"{error.message} ({error.code})"
