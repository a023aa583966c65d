"""What a combo would do according to its file and this process's environment, without a running proxy."""

import time
from collections.abc import Mapping
from typing import Any

from combos.admin.activity import Activity
from combos.admin.refusal import not_found
from combos.admin.state_view import dry_run
from combos.core.config import Config
from combos.core.config_types import near_miss
from combos.core.facts import Now
from combos.core.registry import Provider, build_registry
from combos.engine.state import EngineState
from combos.upstream import credentials


def explain_offline(config: Config, name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The dry run of a combo, by id, `combo/<id>` or alias: nothing is cooling yet. Raises `RefusalError`."""
    registry = build_registry(config, 1)
    combo = registry.combos.get(name.removeprefix("combo/")) or registry.aliases.get(name)
    if combo is None:
        raise not_found(f"unknown combo: {name}{near_miss(name, [*registry.combos, *registry.aliases])}")

    def unusable(provider: Provider) -> str | None:
        return credentials.usable(provider, environ, forwardable=True)

    now = Now(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)
    return dry_run(combo, registry, EngineState(), now, unusable=unusable, activity=Activity())
