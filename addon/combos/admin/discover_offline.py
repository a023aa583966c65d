"""The decision services of a configuration file, without a running proxy."""

from typing import Any

from combos.core.config import Config
from combos.core.registry import build_registry
from combos.decision.discovery import discover


def discover_offline(config: Config, query: str) -> dict[str, Any]:
    """`{configured, discovered}`, ready for JSON."""
    return discover(build_registry(config, 1), query)
