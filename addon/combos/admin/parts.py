"""What the management API works with: everything it needs from its host, as arguments."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field

from combos.admin.activity import Activity
from combos.admin.books import Books
from combos.admin.destination_check import Resolve, resolve
from combos.admin.live_config import Change, LiveConfig
from combos.admin.refusal import conflict
from combos.admin.store import ConfigStore, Document, Edit, Stored
from combos.core.catalog import Discovered
from combos.core.facts import Headers, Now
from combos.core.registry import Provider, Registry
from combos.core.values import dataclass
from combos.engine.state import EngineState
from combos.upstream.decision import Decider
from combos.upstream.discovery import Sender
from combos.upstream.quota import QuotaProbes


def _nothing_discovered() -> Discovered:
    return {}


def _no_problems() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Parts:
    """`unusable` names why a provider cannot be called (None: it can); `secrets` gives its credential headers for the
    connection test; `reload` reads the file now; `discovered` and `discovery_problems` are what is known of the
    providers' own model lists; without `decider` nothing here makes decisions,
    without `books` there is no usage, without `probes` no vendor is asked for quotas."""

    live: LiveConfig
    store: ConfigStore
    state: EngineState
    activity: Activity
    now: Callable[[], Now]
    unusable: Callable[[Provider], str | None]
    reload: Callable[[], Change]
    sender: Sender
    secrets: Callable[[Provider], Headers]
    environ: Mapping[str, str]
    discovered: Callable[[], Discovered] = _nothing_discovered
    discovery_problems: Callable[[], Mapping[str, str]] = _no_problems
    lookup: Resolve = field(default=resolve)
    decider: Decider | None = None
    books: Books | None = None
    probes: QuotaProbes | None = None

    @property
    def registry(self) -> Registry:
        """The configuration in force."""
        return self.live.registry

    async def edit[T](self, change: Callable[[Document], Edit[T]]) -> Stored[T]:
        """Change the file, off the event loop, and put it into force. Raises `RefusalError`.

        A file that is gone is not begun anew: it would hold this change and nothing of what is in force.
        """
        if self.live.is_gone:
            message = f"{self.store.path} is gone while its configuration is in force; put it back first"
            raise conflict(message, "config_invalid")
        stored = await asyncio.to_thread(self.store.edit, change)
        self.reload()
        return stored

    async def preview[T](self, change: Callable[[Document], Edit[T]]) -> Stored[T]:
        """What `edit` would do. Raises `RefusalError`."""
        return await asyncio.to_thread(self.store.preview, change)
