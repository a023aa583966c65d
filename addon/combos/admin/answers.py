"""Answers of the management API: JSON, one shape for every error, and bodies read with their faults named."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from aiohttp import web
from pydantic import ValidationError

from combos.admin.refusal import Kind, RefusalError, invalid
from combos.admin.shapes import Body
from combos.core.config_problems import problems_of
from combos.core.config_text import object_of, repeated_keys
from combos.core.errors import ConfigProblem
from combos.wire.bodies import BodyError, BodyErrorKind, decode

logger = logging.getLogger(__name__)

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_STATUS = {Kind.INVALID: 400, Kind.NOT_FOUND: 404, Kind.CONFLICT: 409, Kind.UNAVAILABLE: 503}


def reply(data: object, status: int = 200) -> web.Response:
    """JSON."""
    return web.Response(text=json.dumps(data), status=status, content_type="application/json")


def error(
    status: int,
    message: str,
    code: str,
    problems: tuple[ConfigProblem, ...] = (),
    extra: Mapping[str, object] | None = None,
) -> web.Response:
    """The one shape of errors: a text, a code, and where it is wrong."""
    rows = [{"path": problem.path, "message": problem.message} for problem in problems]
    return reply({"error": message, "code": code, "problems": rows, **(extra or {})}, status)


@web.middleware
async def as_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Middleware: whatever goes wrong becomes an answer of the one shape."""
    try:
        return await handler(request)
    except RefusalError as refusal:
        return error(_STATUS[refusal.kind], refusal.message, refusal.code, refusal.problems, refusal.extra)
    except web.HTTPRequestEntityTooLarge:
        return error(413, "request body too large", "body_too_large")
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed):
        return error(404, f"nothing is served at {request.method} {request.path[:200]}", "not_found")
    except web.HTTPException as exc:
        return error(exc.status, exc.reason.lower(), "http_error")
    except (ConnectionError, aiohttp.ClientPayloadError, web.RequestPayloadError):
        return error(400, "the request broke off", "request_broken")  # nobody is there to read it
    except Exception:
        logger.warning("combos: the management API failed", exc_info=True)
        return error(500, "internal error; see the log", "internal_error")


async def document_of(request: web.Request) -> dict[str, Any]:
    """The JSON object in a body. Raises `RefusalError`."""
    data = await _decoded(request)
    try:
        body = json.loads(data.decode(), object_pairs_hook=object_of)
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise invalid("the body is not JSON", "invalid_json") from None
    if not isinstance(body, dict):
        raise invalid("the body must be a JSON object", "not_an_object")
    repeated = tuple(repeated_keys(body))
    if repeated:
        raise invalid(str(repeated[0]), "invalid_request", repeated)
    return body


async def _decoded(request: web.Request) -> bytes:
    data, limit = await request.read(), request.client_max_size
    try:
        return decode(request.headers.get("Content-Encoding"), data, limit)
    except BodyError as exc:
        if exc.kind is BodyErrorKind.TOO_LARGE:
            raise web.HTTPRequestEntityTooLarge(limit) from None
        raise invalid("the body cannot be decoded", "invalid_json") from None


async def body_of[B: Body](request: web.Request, shape: type[B]) -> B:
    """A body of a known shape. Raises `RefusalError` that names every fault."""
    body = await document_of(request)
    try:
        return shape.model_validate(body)
    except ValidationError as exc:
        problems = problems_of(exc)
        raise invalid(str(problems[0]), "invalid_request", problems) from None


def query_of(request: web.Request, name: str) -> str:
    """A parameter of the query that must be there. Raises `RefusalError`."""
    value = request.query.get(name, "")
    if not value:
        raise invalid(f"the query parameter {name} is required", f"{name}_missing", at=name)
    return value
