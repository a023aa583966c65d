"""The management API as a web application, and the listener it runs on. Loopback only; who may use it says `auth`."""

import contextlib
import errno
import logging
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from combos.admin.admin_token import TokenError, admin_token, refuse_shared
from combos.admin.answers import as_errors, reply
from combos.admin.auth import Gate
from combos.admin.connection import admit
from combos.admin.entrance import Entrance, Models
from combos.admin.live_config import Change
from combos.admin.openapi import Route, describe
from combos.admin.parts import Parts
from combos.admin.runtime_file import RuntimeFile
from combos.admin.table import table
from combos.core.limits import INBOUND_HEAD_MAX
from combos.core.secrets import Secret, resolve_secret

logger = logging.getLogger(__name__)

BODY_MAX = 2 * 1024 * 1024
_SHUTDOWN_S = 1.0
_WAITING_ROOM = 1_024  # connections that come while the loop is busy: those beyond are held up for seconds, or reset


class PortInUseError(Exception):
    """Something else listens where the management API should."""


class _Hushed(logging.LoggerAdapter[logging.Logger]):
    """What the HTTP server says about broken requests: anybody on this machine can send them, so it is no news."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """As DEBUG."""
        super().log(min(level, logging.DEBUG), msg, *args, **kwargs)


class AdminServer:
    """The management API of one process. `pages` are further routes, served without a token; `models` answers the
    requests for models that reach the listener."""

    def __init__(self, parts: Parts, pages: Sequence[web.RouteDef] = (), models: Models | None = None) -> None:
        self.parts = parts
        self._models = models
        self.address: tuple[str, int] | None = None
        self._runtime = RuntimeFile(parts.store.path.parent)
        self._runner: web.AppRunner | None = None
        self._token: str | TokenError = TokenError("not started", "start the listener")
        self._app = self._build(pages)
        parts.live.observe(self._observe)

    @property
    def app(self) -> web.Application:
        """The application, for tests and for hosts with a listener of their own; needs `open_token` first."""
        return self._app

    @property
    def token_problem(self) -> TokenError | None:
        """Why the management API answers nobody, if that is so."""
        return self._token if isinstance(self._token, TokenError) else None

    def open_token(self) -> None:
        """Read the admin token, or make it. A token that cannot be trusted is answered with 503, not raised."""
        try:
            self._token = admin_token(self.parts.store.path.parent, self.parts.environ)
        except TokenError as exc:
            self._token = exc

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> tuple[str, int]:
        """Listen; returns the address. Raises `PortInUseError`, and `OSError` for an address that is not ours.

        `reuse_port`: other processes that say so too may listen there as well, and the system spreads connections.
        """
        self.open_token()
        runner = web.AppRunner(
            self._app,
            access_log=None,
            logger=_Hushed(logger),
            handle_signals=False,
            shutdown_timeout=_SHUTDOWN_S,
            handler_cancellation=self._models is not None,  # a client that leaves ends what is done for it
            auto_decompress=False,  # what a body may decompress to is bounded where it is read
            max_line_size=INBOUND_HEAD_MAX,
            max_field_size=INBOUND_HEAD_MAX,
        )
        await runner.setup()
        self._admit_models(runner)
        try:
            await web.TCPSite(runner, host, port, backlog=_WAITING_ROOM, reuse_port=reuse_port or None).start()
        except OSError as exc:
            await runner.cleanup()
            if exc.errno == errno.EADDRINUSE:
                raise PortInUseError(f"{host}:{port} is in use by another process") from exc
            raise
        self._runner = runner
        self.address = (host, runner.addresses[0][1])
        self._write_runtime_file(*self.address)
        return self.address

    def _admit_models(self, runner: web.AppRunner) -> None:
        """Put the entrance before the application, and say of what cannot be read no more than that."""
        server = runner.server
        if server is None:
            return
        entrance = None if self._models is None else Entrance(self._models, server.request_handler, self._gate)
        if entrance is not None:
            server.request_handler = entrance.handle
        admit(server, entrance)

    def renew(self) -> None:
        """Stay where the command line finds a process, also after another one on the same configuration has ended."""
        with contextlib.suppress(OSError):  # a disk that is full for now: this is called again
            self._runtime.renew()

    async def close(self) -> None:
        """Stop listening and end every stream."""
        self.parts.activity.bus.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            self._remove_runtime_file()
            await runner.cleanup()
        self.address = None

    def is_token(self, shown: str) -> bool:
        """Whether a text that a client shows is the token of the management: it goes nowhere from here."""
        return self._gate.is_token(shown)

    def stand_in(self, shown: str) -> str:
        """What may be recorded of a text that a client shows as token; see `Gate.stand_in`."""
        return self._gate.stand_in(shown)

    def routes(self) -> tuple[Route, ...]:
        """The table of what is served."""
        return self._routes

    def _build(self, pages: Sequence[web.RouteDef]) -> web.Application:
        self._routes = table(self.parts, lambda: self.address[1] if self.address else 0)
        public = {(route.method, route.path) for route in self._routes if route.public}
        public |= {(page.method, page.path) for page in pages}
        self._gate = gate = Gate(self._current_token, self._origins, lambda request: _place(request) in public)
        app = web.Application(client_max_size=BODY_MAX, middlewares=[gate.check, as_errors])
        app.on_response_prepare.append(gate.seal)
        for route in self._routes:
            app.router.add_route(route.method, route.path, route.handler)
        app.router.add_routes(pages)
        app.router.add_get("/api/openapi.json", self._openapi)
        return app

    async def _openapi(self, _request: web.Request) -> web.Response:
        return reply(describe(self._routes))

    def _current_token(self) -> str:
        if isinstance(self._token, TokenError):
            raise TokenError(self._token.reason, self._token.hint)
        entries = self.parts.registry.config.api_keys
        keys = (resolve_secret(entry.key, self.parts.environ) for entry in entries)
        refuse_shared(self._token, (key.reveal() for key in keys if isinstance(key, Secret)))
        return self._token

    def _origins(self) -> Sequence[str]:
        return self.parts.registry.config.cors_allow_origins

    def _observe(self, change: Change) -> None:
        live = self.parts.live
        self.parts.activity.configuration(change, live.registry, len(live.problems), self.parts.now())

    def _write_runtime_file(self, host: str, port: int) -> None:
        """Where the command line finds this process. Without the file it has to be told, by `COMBOS_ADMIN_URL`."""
        try:
            self._runtime.write(host, port)
        except OSError as exc:
            logger.info(f"combos: {self._runtime.path} cannot be written: {exc.strerror}")

    def _remove_runtime_file(self) -> None:
        try:
            self._runtime.remove()
        except OSError as exc:  # the folder became read-only: the listener is closed all the same
            logger.info(f"combos: {self._runtime.path} cannot be removed: {exc.strerror}")


def _place(request: web.Request) -> tuple[str, str]:
    """Method and path as the table has them; HEAD is answered as GET."""
    route = request.match_info.route
    path = route.resource.canonical if route.resource is not None else request.path
    return ("GET" if request.method == "HEAD" else request.method), path
