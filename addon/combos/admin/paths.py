"""Where the configuration file and the state files beside it lie. Decides precedence, reads nothing."""

from collections.abc import Mapping
from pathlib import Path

from combos.core.values import dataclass

CONFIG_NAME = "config.json"


@dataclass(frozen=True, slots=True)
class ConfigPath:
    """The configuration file, and who named it: an option, an environment variable, or nobody (`chosen` False)."""

    path: Path
    origin: str
    chosen: bool


class NoHomeError(Exception):
    """Nobody named a file, and there is no home directory to look in. The text says what to set."""

    def __init__(self) -> None:
        super().__init__("there is no home directory to look for .combos/config.json in: set HOME or COMBOS_HOME")


def config_path(option: str | None, environ: Mapping[str, str]) -> ConfigPath:
    """First of: the option `combos_config`, `$COMBOS_CONFIG`, `$COMBOS_HOME/config.json`, `~/.combos/config.json`.

    Raises `NoHomeError`.
    """
    if option:
        return ConfigPath(_expanded(option), "combos_config", chosen=True)
    if named := environ.get("COMBOS_CONFIG"):
        return ConfigPath(_expanded(named), "COMBOS_CONFIG", chosen=True)
    if home := environ.get("COMBOS_HOME"):
        return ConfigPath(_expanded(home) / CONFIG_NAME, "COMBOS_HOME", chosen=False)
    try:
        return ConfigPath(Path.home() / ".combos" / CONFIG_NAME, "default", chosen=False)
    except RuntimeError:  # no HOME, and no entry for the user: a container that was given a number as its user
        raise NoHomeError from None


def _expanded(text: str) -> Path:
    """The home directory for `~`; the name of an account that does not exist is the name of a folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)
