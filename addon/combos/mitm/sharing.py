"""Whether the state of this process is shared, and with whom: opens and closes the link as options and configuration
say. What is shared, and how, is decided elsewhere.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from combos.core.registry import Registry
from combos.core.sharing import group_of
from combos.engine.sharing import Sharing
from combos.engine.state import EngineState
from combos.mitm.internals import create_task
from combos.upstream.state_url import StateAddress

if TYPE_CHECKING:
    from combos.upstream.state_link import StateLink


class SharedState:
    """The part of one service. Makes no connection before `start`, which needs the running loop."""

    def __init__(self, state: EngineState, now_ms: Callable[[], int]) -> None:
        self._state = state
        self._now_ms = now_ms
        self._address: StateAddress | None = None
        self._group = ""
        self._is_started = False
        self._sharing: Sharing | None = None
        self._link: StateLink | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def configure(self, address: StateAddress | None) -> None:
        """Share through this server from now on; None: with nobody. What is known so far is taken along."""
        if address != self._address:
            self._address = address
            self._restart()

    def follow(self, registry: Registry) -> None:
        """Another configuration is in force, and with it perhaps another group."""
        group = group_of(registry)
        if group != self._group:
            self._group = group
            if self._address is not None and not self._address.prefix:
                self._restart()

    def start(self) -> None:
        """The event loop runs."""
        self._is_started = True
        self._restart()

    @property
    def is_connected(self) -> bool | None:
        """Whether the server is reached; None when nothing is shared."""
        return None if self._link is None else self._link.is_connected

    def sweep(self) -> None:
        """Drop what is over."""
        if self._sharing is not None:
            self._sharing.sweep()

    async def close(self) -> None:
        """Let go of the server. Everybody keeps what they know."""
        self._is_started = False
        self._leave()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _restart(self) -> None:
        if not self._is_started:
            return
        self._leave()
        if self._address is None:
            self._state.journal = self._sharing = self._link = None
            return
        # Only who shares needs the package.
        from combos.upstream.state_link import StateLink

        if self._sharing is None:
            self._sharing = Sharing(self._state, secrets.token_hex(8), self._now_ms, self._wake)
            self._state.journal = self._sharing
        self._link = StateLink(self._address, self._group, self._sharing)
        task = create_task(self._link.run(), name="combos shared state", keep_ref=True)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _leave(self) -> None:
        """Links that are left still have to close their connections."""
        for task in self._tasks:
            task.cancel()

    def _wake(self, is_urgent: bool) -> None:
        if self._link is not None:
            self._link.wake(is_urgent)
