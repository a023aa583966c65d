"""The dashboard as files: a page, its styles and its modules, each served under its own name and nothing else.

The page holds no secret and asks for the token itself, so it is served without one. Its policy allows what comes from
this listener and nothing else: no inline script, no other host, no frame.
"""

import hashlib
from importlib.resources import files

from aiohttp import web

ASSETS = "/assets/"

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def page_routes() -> list[web.RouteDef]:
    """The routes of the dashboard, its files read once."""
    page, *assets = _load()
    routes = [web.get("/", page.answer), web.get("/favicon.ico", _no_icon)]
    return routes + [web.get(ASSETS + asset.name, asset.answer) for asset in assets]


class _Page:
    """One file as it is answered: unchanged ones are only named again."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self._content = content
        self._kind = _KINDS[name[name.rindex(".") :]]
        self._tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'

    async def answer(self, request: web.Request) -> web.Response:
        """The file, or 304 to a browser that has it."""
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache", "ETag": self._tag}
        if request.headers.get("If-None-Match") == self._tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=self._content, content_type=self._kind, charset="utf-8", headers=headers)


def _load() -> list[_Page]:
    """`index.html` first."""
    folder = files("combos.admin").joinpath("pages")
    found = (entry for entry in folder.iterdir() if entry.name.endswith(tuple(_KINDS)))
    pages = [_Page(entry.name, entry.read_bytes()) for entry in found]
    return sorted(pages, key=lambda page: (page.name != "index.html", page.name))


async def _no_icon(_request: web.Request) -> web.Response:
    return web.Response(status=204)
