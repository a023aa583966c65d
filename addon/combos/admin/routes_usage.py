"""Usage over HTTP: sums, decision statistics, records, quotas, budgets, metrics. Reads the ledger off the loop."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from combos.admin.answers import error, reply
from combos.admin.books import Books
from combos.admin.jev_stats import decision_statistics
from combos.admin.metrics import CONTENT_TYPE
from combos.admin.parts import Parts
from combos.admin.quota_view import quota_answer
from combos.admin.refusal import invalid, not_found
from combos.admin.usage_query import Filters, count, reading, records
from combos.admin.usage_view import Wanted, usage
from combos.core.config_types import near_miss
from combos.core.usage_windows import Range, Window, parse_instant, parse_range, window_of

LOGS_MAX = 500
_LOGS_DEFAULT = 100

type Read = Callable[[sqlite3.Connection | None], dict[str, Any]]


class UsageRoutes:
    """Handlers; see the table in `app`. Without books there is nothing to tell, and all answers are empty."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def usage(self, request: web.Request) -> web.Response:
        """Sums of a window, or the statistics of decisions with `jev=1`."""
        wanted, window = self._window(request)
        now_ms = self._parts.now().epoch_ms
        query = request.query
        if query.get("jev") == "1":
            combo = query.get("comboId") or None
            return await self._read(lambda ledger: decision_statistics(ledger, combo, wanted, window, now_ms))
        filters = Filters(
            combo=query.get("combo") or None,
            surface=query.get("surface") or None,
            provider=query.get("provider") or None,
            model=query.get("model") or None,
        )
        return await self._read(lambda ledger: usage(ledger, Wanted(wanted, window, filters, now_ms)))

    async def stats(self, request: web.Request) -> web.Response:
        """The usage of one combo, or of all."""
        combo = request.query.get("id") or None
        known = self._parts.registry.combos
        if combo is not None and combo not in known:
            raise not_found(f"unknown combo: {combo}{near_miss(combo, list(known))}")
        wanted, window = self._window(request)
        asked = Wanted(wanted, window, Filters(combo=combo), self._parts.now().epoch_ms)
        return await self._read(lambda ledger: {"id": combo, **usage(ledger, asked)})

    async def logs(self, request: web.Request) -> web.Response:
        """Request records, newest first."""
        limit = _number(request, "limit", _LOGS_DEFAULT)
        before = _number(request, "before", 0) or None
        combo = request.query.get("combo") or None
        now_ms = self._parts.now().epoch_ms

        def read(ledger: sqlite3.Connection | None) -> dict[str, Any]:
            rows = records(ledger, min(max(limit, 1), LOGS_MAX), before, combo)
            return {
                "timeZone": datetime.now().astimezone().tzname() or "UTC",
                "generatedAt": now_ms,
                "total": count(ledger),
                "logs": [{"number": number, **row} for number, row in rows],
                "cursor": rows[-1][0] if len(rows) == limit else None,
            }

        return await self._read(read)

    async def quotas(self, request: web.Request) -> web.Response:
        """The quota reports; with `refresh=1` all of them are asked for anew first."""
        probes, parts = self._parts.probes, self._parts
        if probes is not None:
            is_forced = request.query.get("refresh") == "1"
            probes.refresh(parts.registry, force=is_forced)
            if is_forced:
                await probes.settle()
        return reply(quota_answer(parts.state.quota, parts.state.pools, parts.registry, parts.now()))

    async def budgets(self, _request: web.Request) -> web.Response:
        """Every budget with what is spent of it."""
        now_ms = self._parts.now().epoch_ms
        rows = self._parts.state.spending.state(self._parts.registry.config.budgets, now_ms)
        return reply({"generatedAt": now_ms, "budgets": rows})

    async def metrics(self, _request: web.Request) -> web.Response:
        """The metrics, for Prometheus."""
        books = self._parts.books
        return web.Response(
            body=b"" if books is None else books.metrics.scrape(), headers={"Content-Type": CONTENT_TYPE}
        )

    def _window(self, request: web.Request) -> tuple[Range, Window]:
        """The window of the query. Raises `RefusalError`."""
        query = request.query
        wanted = parse_range(query.get("range"))
        since, until = query.get("since"), query.get("until")
        if since is None and until is None:
            return wanted, window_of(wanted, self._parts.now().epoch_ms)
        start, end = parse_instant(since or ""), parse_instant(until or "")
        if start is None or end is None or start > end:
            message = "since and until go together: epoch milliseconds or ISO dates with a zone, since before until"
            raise invalid(message, "window_invalid", at="since")
        return wanted, Window(start, end)

    async def _read(self, read: Read) -> web.Response:
        books = self._parts.books
        try:
            return reply(await asyncio.to_thread(_ledger_read, books, read))
        except sqlite3.Error as failure:
            return error(500, f"the usage ledger cannot be read: {failure}", "ledger_unreadable")


def _ledger_read(books: Books | None, read: Read) -> dict[str, Any]:
    if books is None:
        return read(None)
    # What has been answered is to be in the sums; a disk that hangs is not waited for.
    books.ledger.flush(1.0)
    return read_ledger(books.ledger.path, read)


def read_ledger(path: Path, read: Read) -> dict[str, Any]:
    """What `read` makes of the ledger in a file. Raises `sqlite3.Error`."""
    with reading(path) as ledger:
        return read(ledger)


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise invalid(f"{name} must be a whole number", f"{name}_invalid", at=name)
    return int(text)
