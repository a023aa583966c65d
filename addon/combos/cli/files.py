"""Which configuration file a command works on."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from combos.admin.paths import ConfigPath, NoHomeError, config_path
from combos.admin.refusal import RefusalError
from combos.admin.store import ConfigStore
from combos.cli.output import Failed

type Decorated = Callable[..., Any]


def config_option(command: Decorated) -> Decorated:
    """`--config PATH`."""
    option = click.option("--config", "config", metavar="PATH", help="Configuration file. Default: as for the proxy.")
    return option(command)


def json_option(command: Decorated) -> Decorated:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")(command)


def yes_option(command: Decorated) -> Decorated:
    """`--yes`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def dry_run_option(command: Decorated) -> Decorated:
    """`--dry-run`."""
    return click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")(command)


def located(config: str | None) -> ConfigPath:
    """The file, and who named it. Raises `Failed`."""
    try:
        return config_path(config, os.environ)
    except NoHomeError as error:
        raise Failed(str(error)) from None


def store_of(config: str | None) -> ConfigStore:
    """The file to change, which may be one to make."""
    return ConfigStore(located(config).path)


def existing(config: str | None) -> ConfigStore:
    """The file to read. Raises `Failed` for one that was named and is not there; without any name, no file is empty."""
    found = located(config)
    if found.chosen and _is_missing(found.path):
        raise Failed(f"{found.path} (from {'--config' if config else found.origin}) does not exist")
    return ConfigStore(found.path)


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:  # whoever reads it says what is wrong
        return False
    return False


def complete_combos(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Combo ids for the shell's completion; none when the file cannot be read."""
    return _complete(ctx, "combos", incomplete)


def complete_providers(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Provider names for the shell's completion."""
    return _complete(ctx, "providers", incomplete)


def _complete(ctx: click.Context, group: str, incomplete: str) -> list[str]:
    try:
        names = store_of(ctx.params.get("config")).read().get(group, {})
    except (RefusalError, Failed):
        return []
    return [name for name in names if name.startswith(incomplete)]
