"""What the proxy's own address answers when a request there is not for a model: a short page, or a clear 404."""

import orjson
from mitmproxy.http import HTTPFlow, Response

from combos.core.errors import ProxyError
from combos.core.facts import Dialect
from combos.mitm.access import REFUSAL
from combos.wire.errors import error_body

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Combos</title></head>
<body><h1>Combos</h1><p>This is a proxy for model traffic. Use it as a base URL
(<code>/v1/responses</code>, <code>/v1/chat/completions</code>, <code>/v1/messages</code>)
or as a forward proxy.</p></body></html>"""

_JSON = {"content-type": "application/json"}


def _error(status: int, message: str, code: str) -> Response:
    body = error_body(ProxyError(status, "invalid_request_error", code, message), Dialect.CHAT)
    return Response.make(status, orjson.dumps(body), _JSON)


def answer(flow: HTTPFlow) -> Response:
    """The answer for a request to the proxy itself that no surface claims."""
    path = flow.request.path.partition("?")[0]
    if path == "/" and flow.request.method in {"GET", "HEAD"}:
        body = b"" if flow.request.method == "HEAD" else _PAGE.encode()
        return Response.make(200, body, {"content-type": "text/html; charset=utf-8"})
    return _error(404, f"Nothing is served at {flow.request.method} {path}", "not_found")


def upgrade_required() -> Response:
    """426 for a Responses WebSocket: Codex falls back to HTTP at once and stays there for the thread."""
    response = _error(426, "Model requests are served over HTTP, not over WebSocket", "upgrade_required")
    response.headers["upgrade"] = "HTTP/1.1"
    return response


def refused(error: ProxyError, dialect: Dialect) -> Response:
    """The answer for a request that is relayed nowhere."""
    return Response.make(error.status, orjson.dumps(error_body(error, dialect)), _JSON)


def forbidden() -> Response:
    """403 for a client that is not on this machine and presented no configured key."""
    return _error(403, REFUSAL, "forbidden")
