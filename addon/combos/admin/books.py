"""What a finished request is entered into: the ledger, the metrics, the running account of budgets, traces.

Called inside the event loop once per request, after its last byte; nothing here waits. Each book is asked in turn, and
what one of them cannot do is its own warning and nobody's failed request.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from combos.admin.ledger import LEDGER_NAME, Entry, Ledger
from combos.admin.live_config import Change, LiveConfig
from combos.admin.metrics import LiveCollector, LiveSources, Metrics, cooling
from combos.admin.spans import Spans, TracingError, tracing_api
from combos.admin.usage_query import Filters, WindowSums, reading
from combos.admin.usage_record import attempt_cost, attempt_tokens, counts_in_ledger
from combos.admin.usage_sums import NANO, USES
from combos.core.budgets import COMBOS, PROVIDERS, Purse, Spent
from combos.core.facts import Now
from combos.core.registry import Registry
from combos.core.usage_windows import Window
from combos.engine.record import TurnRecord
from combos.engine.state import EngineState

logger = logging.getLogger(__name__)

type _Book = Callable[[TurnRecord, Registry, Now], None]


class Books(LiveSources):
    """The books of one process. `now` is its clock; the ledger lies beside the configuration. The host puts into
    `shares` whether the server of the shared state is reached."""

    def __init__(self, live: LiveConfig, state: EngineState, now: Callable[[], Now]) -> None:
        self._live = live
        self._state = state
        self._now = now
        self.ledger = Ledger(live.path.parent / LEDGER_NAME, lambda: live.registry.config.usage_ledger_max_bytes)
        self.metrics = Metrics()
        self.metrics.watch(LiveCollector(self))
        self.shares: Callable[[], bool | None] = lambda: None
        self._entering: tuple[_Book, ...] = ()
        self.trace(wanted=False)
        self._note_loaded()
        live.observe(self._configuration)

    # -- entering

    def turn(self, record: TurnRecord, registry: Registry, now: Now) -> None:
        """Enter a request that finished now. `registry` is the one it was served with."""
        if not counts_in_ledger(record):
            return
        for enter in self._entering:
            try:
                enter(record, registry, now)
            except Exception:  # a request that was served does not fail for its books
                logger.warning("combos: a finished request could not be entered into the books", exc_info=True)

    def _into_ledger(self, record: TurnRecord, registry: Registry, now: Now) -> None:
        self.ledger.add(Entry(record, registry, now.epoch_ms))

    def _into_metrics(self, record: TurnRecord, registry: Registry, _now: Now) -> None:
        self.metrics.turn(record, registry)

    def _into_account(self, record: TurnRecord, registry: Registry, now: Now) -> None:
        budgets = registry.config.budgets
        if budgets.providers or budgets.combos:
            for attempt in record.attempts:
                cost, tokens = attempt_cost(attempt, registry), attempt_tokens(attempt).spent
                self._state.spending.add(attempt.provider, record.combo, cost, tokens, now.epoch_ms)

    def trace(self, wanted: bool) -> None:
        """Switch traces on or off. A missing package is one warning."""
        self._entering = (self._into_ledger, self._into_metrics, self._into_account)
        try:
            if wanted:
                self._entering += (Spans(tracing_api()).turn,)
        except TracingError as error:
            logger.warning(f"combos: no traces: {error}")

    async def open(self) -> None:
        """Take over what the ledger knows of the current day and month. What is spent meanwhile is kept."""
        self._note_loaded()
        spending = self._state.spending
        day, month = spending.look(self._now().epoch_ms)
        try:
            sums = await asyncio.to_thread(lambda: tuple(_spent(self.ledger.path, since) for since in (day, month)))
        except sqlite3.Error as error:
            logger.warning(f"combos: {self.ledger.path} cannot be read, budgets count from now on: {error}")
            return
        spending.open(*sums)

    async def close(self) -> None:
        """Write what is left."""
        await asyncio.to_thread(self.ledger.close)

    # -- what a scrape reads

    def cooldowns(self) -> dict[tuple[str, str], int]:
        """Epoch ms of expiry by provider and model."""
        return cooling(self._state, self._live.registry, self._now())

    def budgets(self) -> Sequence[tuple[str, str, bool]]:
        """Kind, name and whether it is spent, of every budget."""
        rows = self._state.spending.state(self._live.registry.config.budgets, self._now().epoch_ms)
        return [(str(row["kind"]), str(row["name"]), bool(row["exhausted"])) for row in rows]

    def lost(self) -> int:
        """Records that were not written."""
        return self.ledger.lost

    def shared_state(self) -> bool | None:
        """Whether the server of the shared state is reached; None when nothing is shared."""
        return self.shares()

    def _note_loaded(self) -> None:
        """The first configuration came into force before anybody could observe it."""
        if self._live.registry.generation and self._live.is_writable:
            self._configuration(Change.LOADED)

    def _configuration(self, change: Change) -> None:
        self.metrics.configuration(change, self._now())


def _spent(path: Path, since: int) -> dict[Purse, Spent]:
    """What each provider and each combo has used since an instant."""
    found: dict[Purse, Spent] = {}
    with reading(path) as connection:
        rows = WindowSums(connection, Window(since)).by(USES, ("combo", "provider"), Filters())
    for row in rows:
        for purse in (Purse(PROVIDERS, row["provider"]), Purse(COMBOS, row["combo"])):
            spent = found.get(purse, Spent())
            found[purse] = spent.plus(row["cost_nano"] / NANO, int(row["total"]))
    return found
