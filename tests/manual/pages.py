"""The generated pages: where each lies and what makes it. `./scripts/docs` writes them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from combos.core.config_schema import json_schema
from manual import api, cli, configuration, failures

ROOT = Path(__file__).parents[2]

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/api.md": api.page,
    "docs/cli.md": cli.page,
    "docs/configuration.md": configuration.page,
    "docs/failures.md": failures.page,
    "config/combos.schema.json": lambda: json.dumps(json_schema(), indent=2) + "\n",
}


def write() -> list[str]:
    """Write what has changed; gives the names."""
    stale = [name for name, make in PAGES.items() if not _is_current(name, make())]
    for name in stale:
        (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
    return stale


def _is_current(name: str, text: str) -> bool:
    path = ROOT / name
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    for name in write():
        print(f"wrote {name}")
