"""What proxies that share state tell a server, and what it tells them.

A push is applied by the server as a whole or not at all, once, and told to everybody in the order of versions. An epoch
is one life of the server's sums: when it has lost them, another begins.
"""

import hashlib
import json
from collections.abc import Mapping

from combos.core.registers import Register, RegisterKey, Stamp
from combos.core.registry import Registry
from combos.core.tallies import Additions, Cell
from combos.core.values import dataclass


@dataclass(frozen=True, slots=True)
class Push:
    """What one replica has to say. `number` counts its pushes; what is in `forgets` is forgotten before the rest;
    `drops` are registers that the server need not keep, unless they have been written since."""

    number: int
    forgets: tuple[str, ...]
    additions: Additions
    registers: tuple[tuple[RegisterKey, Register], ...]
    drops: tuple[tuple[RegisterKey, Stamp], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A push as everybody hears of it, with the sums that came out."""

    epoch: str
    version: int
    replica: str
    number: int
    forgets: tuple[str, ...]
    totals: Mapping[Cell, int]
    registers: tuple[tuple[RegisterKey, Register], ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Everything the server has. `applied` is the replica's last push in it; None when it knows of none."""

    server_ms: int
    epoch: str
    version: int
    applied: int | None
    totals: Mapping[Cell, int]
    registers: tuple[tuple[RegisterKey, Register], ...]


def group_of(registry: Registry) -> str:
    """A name for proxies that serve the same combos from the same places; others have others."""
    rows = [
        [
            combo.id,
            [[target.key, target.provider.config.base_url if target.provider else ""] for target in combo.targets],
        ]
        for combo in sorted(registry.combos.values(), key=lambda combo: combo.id)
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
