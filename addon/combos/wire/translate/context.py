"""What an answer needs to know of its request: names, catalog, flags, identifiers and time. One per attempt."""

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.translate.compaction import Compaction
from combos.wire.translate.shape import Json
from combos.wire.translate.toolset import Catalog


@dataclass(frozen=True, slots=True)
class Context:
    """Made by `translate_request`.

    `model` is what answers name, `target_key` what sealed state remembers, `seed` any text unique to the attempt from
    which all identifiers are derived, `created_s` the time in answers, in seconds since the epoch. `recent` holds the
    user messages that `/responses/compact` keeps. `declared_only`: an answer that begins with a call of a tool that the
    request never declared has failed.
    """

    client: Dialect
    target: Dialect
    model: str
    target_key: str
    seed: str
    created_s: int
    catalog: Catalog = field(default_factory=Catalog)
    include_usage: bool = False
    echo: Mapping[str, Any] = field(default_factory=dict)
    codex: bool = False
    compaction: Compaction | None = None
    declared_only: bool = False
    recent: tuple[Json, ...] = ()


class Mint:
    """Identifiers in a fixed order: the same seed gives the same ones."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def __call__(self, prefix: str, digits: int = 24) -> str:
        self._count += 1
        text = f"{self._seed}:{self._count}"
        return prefix + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
