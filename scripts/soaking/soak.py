"""Many requests of many kinds of clients through a real mitmdump, whose providers fail in every way; and whether every
client got exactly one coherent answer or one coherent error, and nothing is left behind at the end.

`--only N` sends one request of a seed alone.
"""

import argparse
import asyncio
import contextlib
import itertools
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proxy as process
from asks import ENTRANCES
from crowd import Crowd, Wishes
from provider import Book, Servers
from report import Snapshot, leftovers, summary
from scene import document, private, shared
from unrest import Unrest

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from certificates import self_signed

_QUIET_S = 40
_FEW = 50
_SHARES = (0.1, 0.45, 0.45)
"""Warm-up, first half, second half."""
_REFUSED = 0.002
_OLD = 10
"""Time limits of a provider after which an answer in the making is worth a look."""


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop early when they are over")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=40, help="clients at once (default 40)")
    parser.add_argument("--patience", type=float, default=6.0, help="time limit of providers, seconds (default 6)")
    parser.add_argument("--leave", type=float, default=0.2, help="share of clients that leave early (default 0.2)")
    parser.add_argument("--entrance", action="append", choices=sorted(set(ENTRANCES)), help="only this way in")
    parser.add_argument("--brisk", action="store_true", help="no provider that falls silent: nobody waits for long")
    parser.add_argument("--calm", action="store_true", help="no changes of configuration and options meanwhile")
    parser.add_argument("--tracemalloc", action="store_true", help="also show which lines hold more at the end; slow")
    parser.add_argument("--only", type=int, help="send this request of the seed and show what came of it")
    parser.add_argument("--keep", type=Path, help="a folder for the proxy's state and log, kept afterwards")
    return parser.parse_args()


async def soak(chosen: argparse.Namespace, home: Path) -> bool:
    """One run. True when nothing was wrong."""
    entrances = tuple(chosen.entrance or ENTRANCES)
    book = Book(chosen.seed, chosen.patience, stalls=not chosen.brisk)
    servers = Servers(book, str(self_signed(home)))
    await servers.start()
    # Copies enough that a client seldom has to make do with a shared combo.
    own = private(max(2, chosen.concurrency // 12))
    everyone = shared()
    made = document([*itertools.chain(*own), *everyone], servers.origins, round(chosen.patience * 1000))
    proxy = await process.start(home, made, traced=chosen.tracemalloc)
    wishes = Wishes(chosen.seed, chosen.concurrency, chosen.patience, entrances, chosen.leave, chosen.only is None)
    crowd = Crowd(wishes, book, own, everyone, proxy)
    unrest = Unrest(proxy, made, chosen.seed, 1.0)
    try:
        return await _phases(chosen, crowd, proxy, unrest, book)
    finally:
        code = await proxy.stop()
        await servers.close()
        if code:
            print(f"mitmdump ended with {code}")


async def _phases(chosen: argparse.Namespace, crowd: Crowd, proxy: process.Proxy, unrest: Unrest, book: Book) -> bool:
    """Warm-up, first half, second half, and between them a look at what is held."""
    first = 0 if chosen.only is None else chosen.only
    total = chosen.requests if chosen.only is None else 1
    numbers = iter(range(first, first + total))
    shares = (1.0,) if total < _FEW else _SHARES
    looks = [await _look(proxy, 0, traced=chosen.tracemalloc)]
    began = time.monotonic()
    watch = asyncio.create_task(_progress(crowd, proxy, total))
    for share in shares:
        work = None if chosen.calm or chosen.only is not None else asyncio.create_task(unrest.run())
        await crowd.run(_phase(numbers, round(total * share), time.monotonic() + chosen.minutes * 60 * share))
        if work is not None:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        looks.append(await _look(proxy, crowd.tally.done, traced=chosen.tracemalloc))
        if chosen.tracemalloc:
            crowd.forget()
    watch.cancel()
    seconds = time.monotonic() - began
    wrong = [
        *leftovers(looks, total),
        *_refused(crowd),
        *_ledger_faults(proxy.home, crowd),
        *_other_faults(proxy, book, looks),
    ]
    await _show_tasks(proxy, looks)
    print(summary(chosen, crowd.tally, unrest.counts, looks, seconds, wrong))
    return not wrong and not crowd.tally.faults


def _phase(numbers: Iterator[int], count: int, limit: float) -> Iterator[int]:
    """The next numbers: so many, or as many as are taken up before the time limit."""
    for number in itertools.islice(numbers, count):
        yield number
        if time.monotonic() > limit:
            return


async def _progress(crowd: Crowd, proxy: process.Proxy, total: int) -> None:
    tally, shown, before = crowd.tally, 0, 0
    old_s = crowd.wishes.patience_s * _OLD
    while True:
        await asyncio.sleep(5)
        for stack in await proxy.inside("tasks", name="combos responder", older=old_s, younger=old_s + 6):
            print(f"  not over for long: {stack}", file=sys.stderr, flush=True)
        rate, before = (tally.done - before) / 5, tally.done
        print(f"{tally.done}/{total} requests, {rate:.0f}/s, {len(tally.faults)} faults", file=sys.stderr, flush=True)
        for number, fault in tally.faults[shown : shown + 10]:
            print(f"  request {number}: {fault}", file=sys.stderr, flush=True)
        shown = len(tally.faults)


async def _look(proxy: process.Proxy, after: int, *, traced: bool) -> Snapshot:
    """What the proxy holds once everything is over, or cannot be waited for any longer."""
    limit = time.monotonic() + _QUIET_S
    was_quiet = False
    while True:
        held = await proxy.inside("held")
        answers, busy = held["tasks"].get("combos responder"), held["state"].get("upstream.busy")
        quiet = not (held["clients"] or held["bodies"] or answers or busy)
        if (quiet and was_quiet) or time.monotonic() > limit:
            return Snapshot(after, held, await proxy.inside("traced") if traced else None)
        was_quiet = quiet  # tasks that have just been cancelled end a moment later
        await asyncio.sleep(0.25)


async def _show_tasks(proxy: process.Proxy, looks: list[Snapshot]) -> None:
    """Where those wait that were not there at the start."""
    before = looks[0].held["tasks"]
    for name, count in looks[-1].held["tasks"].items():
        if count > before.get(name, 0):
            for stack in await proxy.inside("tasks", name=name):
                print(f"  still running: {name}: {stack}")


def _refused(crowd: Crowd) -> list[str]:
    """A few of a thousand clients at once are not let in; more would be the proxy's doing."""
    refused = crowd.tally.refused
    return (
        [f"{refused} connections were reset before anything was sent"] if refused > crowd.tally.done * _REFUSED else []
    )


def _ledger_faults(home: Path, crowd: Crowd) -> list[str]:
    """As many rows as requests: those that got an answer at least, those that were sent at most."""
    rows = 0
    for _ in range(50):
        rows = _rows(home)
        if rows >= crowd.tally.answered:
            break
        time.sleep(0.2)
    crowd.tally.endings["ledger rows"] = rows
    if crowd.tally.answered <= rows <= crowd.tally.sent:
        return []
    return [f"{rows} rows in the ledger for {crowd.tally.answered} answers and {crowd.tally.sent} requests"]


def _rows(home: Path) -> int:
    """Rows of the ledger; none before the first is written."""
    address = f"file:{home / 'usage.sqlite'}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            found: int = connection.execute("SELECT count(*) FROM requests").fetchone()[0]
            return found
    except sqlite3.OperationalError:
        return 0


def _other_faults(proxy: process.Proxy, book: Book, looks: list[Snapshot]) -> list[str]:
    wrong = [*dict.fromkeys(book.faults)][:20]
    wrong += [f"log: {line}" for line in proxy.complaints[:60]]
    if proxy.leaks:
        wrong.append(f"{proxy.leaks} lines of the log hold a credential")
    leaks: dict[str, Any] = looks[-1].held["leaks"]
    wrong += [f"a flow holds {name} ({count} times)" for name, count in leaks.items()]
    return wrong + [f"{name} holds a credential" for name in _files_with_credentials(proxy.home)]


def _files_with_credentials(home: Path) -> list[str]:
    """mitmproxy's own log quotes the head of a request that a client gave up: that line is not the addon's."""
    found = []
    for path in home.rglob("*"):
        if path.is_file() and not path.name.startswith("config."):
            lines = path.read_bytes().split(b"\n")
            if any(b"canary-" in line and b"before completing request" not in line for line in lines):
                found.append(path.name)
    return found


def main() -> int:
    """Exit code 0 when nothing was wrong."""
    chosen = options()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 20_000)), hard))
    with contextlib.ExitStack() as stack:
        home = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(parents=True, exist_ok=True)
        return 0 if asyncio.run(soak(chosen, home)) else 1


if __name__ == "__main__":
    sys.exit(main())
