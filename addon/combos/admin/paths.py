"""Where the configuration file and the state files beside it lie. Decides precedence, reads nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONFIG_NAME = "config.json"


@dataclass(frozen=True, slots=True)
class ConfigPath:
    """The configuration file, and who named it: an option, an environment variable, or nobody (`chosen` False)."""

    path: Path
    origin: str
    chosen: bool


def config_path(option: str | None, environ: Mapping[str, str]) -> ConfigPath:
    """First of: the option `combos_config`, `$COMBOS_CONFIG`, `$COMBOS_HOME/config.json`, `~/.combos/config.json`."""
    if option:
        return ConfigPath(Path(option).expanduser(), "combos_config", chosen=True)
    if named := environ.get("COMBOS_CONFIG"):
        return ConfigPath(Path(named).expanduser(), "COMBOS_CONFIG", chosen=True)
    if home := environ.get("COMBOS_HOME"):
        return ConfigPath(Path(home).expanduser() / CONFIG_NAME, "COMBOS_HOME", chosen=False)
    return ConfigPath(Path.home() / ".combos" / CONFIG_NAME, "default", chosen=False)
