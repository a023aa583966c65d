"""What was held at quiet moments, whether that is too much, and the table at the end."""

import argparse
import collections
from dataclasses import dataclass
from typing import Any

from crowd import Tally

_BOUNDS = {
    "state._affinity": 4_096,
    "state._issuers": 4_096,
    "state._responses": 16_384,
    "state._makers": 4_096,
}
_IDLE_SOCKETS = 40
_GROWTH_KIB = 24_000
_GROWTH_SHARE = 0.12
_LINE_KIB = 1_024
_TRACED_KIB = 2_048
"""A configuration more that is about to go, and what the metrics count for the first time."""
_POOLED_KIB = 300
"""A pooled connection: asyncio gives each with TLS a buffer of 256 KiB."""
_REGISTRIES = 3
"""The configuration in force, and those of requests that have just ended."""
_ENOUGH = 2_000
"""Below this many requests, memory says nothing."""


@dataclass(frozen=True)
class Snapshot:
    """What the proxy held after so many requests, with nothing under way. `traced`: how much more than at the snapshot
    before, in KiB: `total`, and `lines` of place, KiB and number of blocks."""

    after: int
    held: dict[str, Any]
    traced: dict[str, Any] | None = None


def leftovers(looks: list[Snapshot], total: int) -> list[str]:
    """What should have gone."""
    first, last = looks[0].held, looks[-1].held
    wrong = []
    if count := last["tasks"].get("combos responder"):
        wrong.append(f"{count} answers are still in the making")
    if last["clients"]:
        wrong.append(f"{last['clients']} connections of clients are open")
    if busy := last["state"].get("upstream.busy"):
        wrong.append(f"{busy} connections to providers are in use")
    more = {name: count for name, count in last["tasks"].items() if count > first["tasks"].get(name, 0) + 1}
    wrong += [f"{count} tasks {name!r}, {first['tasks'].get(name, 0)} at the start" for name, count in more.items()]
    idle = last["state"].get("upstream.idle", 0)
    if last["sockets"] > first["sockets"] + idle + 2:
        wrong.append(f"{last['sockets']} sockets, {first['sockets']} at the start, {idle} of them pooled")
    if last["registries"] > _REGISTRIES:
        wrong.append(f"{last['registries']} configurations are in memory")
    if last["bodies"]:
        wrong.append(f"{last['bodies']} flows are in memory")
    wrong += [
        f"{name} holds {last['state'][name]}" for name, limit in _BOUNDS.items() if last["state"].get(name, 0) > limit
    ]
    return wrong + (_grown(looks, total) if looks[-1].traced is None else _traced(looks, total))


def _traced(looks: list[Snapshot], total: int) -> list[str]:
    """What Python holds more at the end than in the middle, once everything that may expire has."""
    traced = looks[-1].traced
    if traced is None:
        return []
    wrong = [f"{name} keeps {count} entries for ever" for name, count in traced["kept"].items()]
    if total < _ENOUGH:
        return wrong
    middle, end = (look.held["state"].get("upstream.idle", 0) for look in looks[-2:])
    more = max(0, end - middle) * _POOLED_KIB
    if traced["total"] > _TRACED_KIB + more:
        wrong.append(f"all lines together hold {traced['total']:.0f} KiB more than in the middle")
    lines = ((place, kib, blocks) for place, kib, blocks in traced["lines"] if kib > _LINE_KIB + more)
    return wrong + [f"{place} holds {kib:.0f} KiB more, in {blocks:+} blocks" for place, kib, blocks in lines]


def _grown(looks: list[Snapshot], total: int) -> list[str]:
    """Memory between the middle and the end."""
    if total < _ENOUGH:
        return []
    middle, end = looks[-2].held["rss_kib"], looks[-1].held["rss_kib"]
    if end - middle > max(_GROWTH_KIB, middle * _GROWTH_SHARE):
        return [f"memory grew from {middle // 1024} to {end // 1024} MiB in the second half"]
    return []


def summary(
    chosen: argparse.Namespace,
    tally: Tally,
    unrest: collections.Counter[str],
    looks: list[Snapshot],
    seconds: float,
    wrong: list[str],
) -> str:
    """The table at the end."""
    rate = tally.done / max(seconds, 0.001)
    lines = [
        f"seed {chosen.seed}: {tally.done} requests by {chosen.concurrency} clients in {seconds:.0f} s ({rate:.0f}/s), "
        f"{tally.sends} sends, longest exchange {tally.longest_s:.1f} s",
        "  clients: " + _counts(tally.endings) + f", reconnects {tally.reconnects}, not let in {tally.refused}",
        "  providers: " + _counts(tally.plans),
        "  meanwhile: " + (_counts(unrest) or "nothing"),
        "  held after  " + "".join(f"{look.after:>10}" for look in looks),
    ]
    for name, read in _ROWS.items():
        lines.append(f"  {name:12}" + "".join(f"{read(look.held):>10}" for look in looks))
    if (traced := looks[-1].traced) is not None:
        lines.append(f"  more than in the middle, by lines: {traced['total']:.0f} KiB in all")
        lines += [f"    {kib:8.1f} KiB {blocks:+7} blocks  {place}" for place, kib, blocks in traced["lines"]]
    lines += [f"  WRONG: {text}" for text in wrong]
    for number, fault in tally.faults[:40]:
        lines.append(
            f"  WRONG: request {number}: {fault}\n    again: scripts/soak --seed {chosen.seed} --only {number}"
        )
    count = len(tally.faults) + len(wrong)
    return "\n".join([*lines, f"  {'nothing wrong' if not count else f'{count} faults'}"])


_ROWS = {
    "tasks": lambda held: sum(held["tasks"].values()),
    "answers": lambda held: held["tasks"].get("combos responder", 0),
    "clients": lambda held: held["clients"],
    "sockets": lambda held: held["sockets"],
    "pooled": lambda held: held["state"].get("upstream.idle", 0),
    "files": lambda held: held["files"],
    "flows": lambda held: held["bodies"],
    "configs": lambda held: held["registries"],
    "objects": lambda held: held["objects"],
    "memory MiB": lambda held: held["rss_kib"] // 1024,
    "state": lambda held: sum(size for name, size in held["state"].items() if name.startswith("state.")),
}


def _counts(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())
