"""Who may use the management API: the token, the Host and the Origin of a request, and the headers of every answer.

A page that a browser shows can reach any loopback port: the Host check stops names rebound to this machine, the Origin
check pages of other sites, and without the token, which no page knows, nothing but health is answered.
"""

import hmac
import secrets
from collections import deque
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from aiohttp import web

from combos.admin.admin_token import TokenError
from combos.admin.answers import Handler, error
from combos.admin.asked import Request
from combos.core.destinations import classify_host
from combos.core.facts import Headers

OWN_HOST = "ocx.local"
TOKEN_HEADERS = ("X-Combos-API-Key", "X-OpenCodex-API-Key")

_STAND_INS_MAX = 256  # requests on their way at one time
_METHODS = "GET, PUT, POST, PATCH, DELETE"
_SECURITY = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Vary": "Origin",
}


class Gate:
    """Decides about one request. `token` gives the token in force or raises `TokenError`; `origins` may call too."""

    def __init__(
        self, token: Callable[[], str], origins: Callable[[], Collection[str]], public: Callable[[web.Request], bool]
    ) -> None:
        self._token = token
        self._origins = origins
        self._public = public
        self._stand_ins: deque[str] = deque(maxlen=_STAND_INS_MAX)

    def stand_in(self, shown: str) -> str:
        """For the token, a text that opens once in its place: what is recorded on the way lets nobody in later.

        Any other text stays as it is.
        """
        if not self.is_token(shown):
            return shown
        made = f"once_{secrets.token_urlsafe(32)}"
        self._stand_ins.append(made)
        return made

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Middleware: refuse, or answer and let the allowed origin read it."""
        refused = None if self.is_preflight(request) or self._public(request) else self._token_refusal(request)
        refused = refused or self._place_refusal(request)
        if refused is not None:
            return refused
        if self.is_preflight(request):
            return web.Response(status=204)
        return await handler(request)

    async def seal(self, request: web.Request, response: web.StreamResponse) -> None:
        """Signal before the head of any answer is sent."""
        for name, value in _SECURITY.items():
            response.headers.setdefault(name, value)
        response.headers["Server"] = "combos"
        origin = request.headers.get("Origin")
        if origin is not None and self.is_allowed_origin(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Allow-Methods"] = _METHODS
            response.headers["Access-Control-Allow-Headers"] = ", ".join(
                ("Authorization", "Content-Type", "Last-Event-ID", *TOKEN_HEADERS)
            )

    def _token_refusal(self, request: web.Request) -> web.Response | None:
        try:
            token = self._token()
        except TokenError as exc:
            extra = {"reason": exc.reason, "hint": exc.hint}
            return error(503, "the management API has no token it could trust", "token_unusable", extra=extra)
        if any(_is_same(shown, token) or self._redeem(shown) for shown in _presented(request)):
            return None
        return error(401, "admin token required", "unauthorized")

    def is_token(self, shown: str) -> bool:
        """Whether a text is the token in force."""
        try:
            return _is_same(shown, self._token())
        except TokenError:
            return False

    def _redeem(self, shown: str) -> bool:
        found = next((made for made in self._stand_ins if _is_same(shown, made)), None)
        if found is not None:
            self._stand_ins.remove(found)
        return found is not None

    def _place_refusal(self, request: web.Request) -> web.Response | None:
        origin = request.headers.get("Origin")
        if is_own_host(request.headers.get("Host", "")) and (origin is None or self.is_allowed_origin(origin)):
            return None
        return error(403, "cross-origin request blocked", "forbidden")

    def grants(self, origin: str) -> Headers:
        """Header fields that let a page of the origin read an answer; none for an origin that may not."""
        if not self.is_allowed_origin(origin):
            return ()
        shown = origin.encode("latin-1", "replace")
        return (
            (b"access-control-allow-origin", shown),
            (b"access-control-allow-methods", _METHODS.encode()),
            (b"vary", b"Origin"),
        )

    def is_allowed_origin(self, origin: str) -> bool:
        """Whether pages of the origin may ask: those of this machine and the configured ones."""
        return origin in self._origins() or _is_own_origin(origin)

    @staticmethod
    def is_preflight(request: Request) -> bool:
        """Whether a browser asks what a page may ask."""
        return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def _presented(request: web.Request) -> list[str]:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    shown = [token.strip()] if scheme.lower() == "bearer" else []
    return shown + [request.headers[name] for name in TOKEN_HEADERS if name in request.headers]


def _is_same(shown: str, token: str) -> bool:
    return hmac.compare_digest(_bytes(shown), _bytes(token))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def is_own_host(value: str) -> bool:
    """A Host header that means this machine."""
    try:
        host = urlsplit(f"//{value}").hostname
    except ValueError:
        return False
    return host is not None and "@" not in value and (host == OWN_HOST or classify_host(host)[0] == "loopback")


def _is_own_origin(origin: str) -> bool:
    scheme, separator, host = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and "/" not in host and is_own_host(host)
