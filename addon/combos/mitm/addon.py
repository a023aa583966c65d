"""The addon: hooks, options, lifecycle. Puts the parts together; every decision lies in one of them."""

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine
from typing import Any

from mitmproxy import ctx
from mitmproxy.addonmanager import Loader
from mitmproxy.exceptions import OptionsError

from combos.admin.app import AdminServer
from combos.admin.live_config import Change, LiveConfig
from combos.admin.paths import ConfigPath, NoHomeError, config_path
from combos.core.registry import Registry
from combos.mitm import announce, contentview, management, tls_options
from combos.mitm.collector import Collector
from combos.mitm.commands import Commands
from combos.mitm.config_watch import ConfigWatch
from combos.mitm.hooks import RememberedHooks
from combos.mitm.internals import create_task, lazy_unless_chosen, listen_addresses, take_out_unreadable
from combos.mitm.layer import StreamedResponses
from combos.mitm.options import OPTIONS, Settings, declare, parse
from combos.mitm.reception import Reception
from combos.mitm.relays import Relays
from combos.mitm.service import Service
from combos.mitm.unknown_options import unknown_options
from combos.upstream.demo import SimulatedProviders, demo_document
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.tls import TlsError

logger = logging.getLogger(__name__)

_SWEEP_INTERVAL_S = 60


class Combos:
    """The addon object; mitmproxy calls its hooks."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self.commands = Commands(self)
        machine = socket.gethostname().partition(".")[0].lower()
        self.addons = [StreamedResponses(), Relays(self, machine), Reception(self, machine), self.commands]
        self._path: ConfigPath | None = None
        self._watch: ConfigWatch | None = None
        self._demo: SimulatedProviders | None = None
        self._admin: AdminServer | None = None
        self._hooks: RememberedHooks | None = None
        self._collector = Collector()
        self._is_running = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # Lifecycle

    def load(self, loader: Loader) -> None:
        """Hook: declare the options. A vendor that cannot be reached must not fail the client's CONNECT: be lazy."""
        declare(loader)
        for problem in take_out_unreadable(row.name for row in OPTIONS):
            logger.error(f"combos: {problem}")
        contentview.register()
        lazy_unless_chosen()

    def configure(self, updated: set[str]) -> None:
        """Hook: take changed options. Raises `OptionsError`, and mitmproxy then keeps the old values.

        At start-up an error record ends the process just as well, and without the traceback of a script error.
        """
        try:
            self._configure(updated)
        except OptionsError as error:
            if self._is_running:
                raise
            logger.error(f"combos: {error}")

    def _configure(self, updated: set[str]) -> None:
        if any(name.startswith("combos_") for name in updated):
            self._configure_settings(parse(ctx.options))
        if self.service is not None and (updated & tls_options.NAMES):
            self._configure_upstream(self.service)

    def running(self) -> None:
        """Hook: the event loop runs and the ports are known."""
        self._is_running = True
        self._hooks = RememberedHooks(ctx.master.addons)
        self._hooks.install()
        self._collector.install()
        for problem in unknown_options(ctx.options.deferred):
            logger.warning(f"combos: {problem}")
        self._start(self._begin(), "combos start")

    def done(self) -> None:
        """Hook: the addon goes. Everything it started ends with it."""
        self._collector.remove()
        if self._hooks is not None:
            self._hooks.remove()
        for task in self._tasks:
            task.cancel()
        if self.service is not None:
            self._start(self.service.close(), "combos close")
        for part in (self._demo, self._admin):
            if part is not None:
                self._start(part.close(), "combos close")

    # Parts

    def _configure_settings(self, settings: Settings) -> None:
        try:
            path = config_path(settings.config, os.environ)
        except NoHomeError as error:
            raise OptionsError(str(error)) from error
        before = self.service
        has_moved = before is not None and before.settings.served_at != settings.served_at
        if before is None or self._path != path:
            self._open_config(path, settings)
        elif self._is_running and _listener(before.settings) != _listener(settings):
            before.settings = settings
            self._start(self._start_admin(before), "combos management")
        if self.service is not None:
            self.service.settings = settings
            self.service.books.trace(settings.otel)
            self.service.shared.configure(settings.state)
            if has_moved:
                self._configure_upstream(self.service)

    def _open_config(self, path: ConfigPath, settings: Settings) -> None:
        config = LiveConfig(path.path)
        change = config.reload()
        if change is Change.INVALID:
            lines = "".join(f"\n  {problem}" for problem in config.problems)
            raise OptionsError(f"{path.path} (from {path.origin}) cannot be used:{lines}")
        if change is Change.MISSING and path.chosen:
            raise OptionsError(f"{path.path} (from {path.origin}): no such file")
        self._path = path
        self._watch = ConfigWatch(config)
        self._watch.warn()
        service = Service(config, settings)
        if self.service is not None:
            service.own = self.service.own
            self._start(self.service.close(), "combos close")
        self._configure_upstream(service)
        self.service = service
        if self._is_running:
            self._start(self._serve(service), "combos serve")

    def _configure_upstream(self, service: Service) -> None:
        listening = listen_addresses() + service.settings.served_at
        listener = () if self.admin_address is None else (self.admin_address,)
        service.own, service.listener = OwnAddresses(listening), OwnAddresses(listener)
        try:
            service.upstream.configure(tls_options.upstream_settings(ctx.options, listening + listener))
        except TlsError as error:
            raise OptionsError(str(error)) from error

    async def _begin(self) -> None:
        if self.service is not None:
            await self._serve(self.service)
        self._start(self._keep_watching(), "combos config watch")
        self._start(self._keep_sweeping(), "combos sweep")

    async def _serve(self, service: Service) -> None:
        """Everything that needs the running loop and belongs to one configuration file."""
        self._configure_upstream(service)
        is_demo = not service.config.path.exists()
        if is_demo:
            await self._start_demo(service)
        await service.open()
        service.shared.start()
        self._registry_changed(service.config.registry)
        service.config.subscribe(self._registry_changed)
        await self._start_admin(service)
        announce.started(service, is_demo=is_demo)  # last: who waits for this line finds everything listening

    def _registry_changed(self, registry: Registry) -> None:
        """Fetch ahead of the first request what the new configuration refers to."""
        service = self.service
        if service is not None:
            self._start(service.load_keychain(), "combos keychain")
            service.model_lists.discovery.refresh(registry)
            service.probes.refresh(registry)

    async def _start_admin(self, service: Service) -> None:
        if self._admin is not None:
            await self._admin.close()
            self._admin = None
        listen = service.settings.admin_listen
        if listen is not None:
            self._admin = management.server_for(service, self.reload)
            await management.start(self._admin, listen, reuse_port=service.settings.reuse_port)
        self._configure_upstream(service)

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Where the management API listens, None when it does not."""
        return None if self._admin is None else self._admin.address

    def admin_stand_in(self, shown: str) -> str:
        """What may be recorded of a text that a client shows as the token of the management API."""
        return shown if self._admin is None else self._admin.stand_in(shown)

    async def _start_demo(self, service: Service) -> None:
        self._demo = self._demo or SimulatedProviders()
        service.config.adopt(demo_document(await self._demo.start()))

    async def _keep_watching(self) -> None:
        while True:
            await asyncio.sleep(ConfigWatch.INTERVAL_S)
            if self._watch is not None:
                self._watch.look()
            if self._admin is not None:
                self._admin.renew()

    async def _keep_sweeping(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_INTERVAL_S)
            if self.service is not None:
                self.service.sweep()

    def reload(self) -> Change:
        """Read the configuration file now."""
        return Change.MISSING if self._watch is None else self._watch.reload()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run in the background, with a reference and a name. Outside a running loop there is nothing to run in."""
        try:
            task = create_task(work, name=name, keep_ref=True)
        except RuntimeError:
            work.close()
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _listener(settings: Settings) -> tuple[object, ...]:
    """What the listener has to be started anew for."""
    return settings.admin_listen, settings.reuse_port
