"""Picks up edits of the configuration file within a second, and says what came of it. Validity is not judged here."""

import logging

from mitmproxy.log import ALERT

from combos.admin.live_config import Change, LiveConfig
from combos.core.config import config_warnings

logger = logging.getLogger(__name__)


class ConfigWatch:
    """Watches the file of one `LiveConfig`. Somebody calls `look` every `INTERVAL_S`."""

    # The contract is "within 1 s": two looks a second, each a stat.
    INTERVAL_S = 0.5

    def __init__(self, config: LiveConfig) -> None:
        self._config = config

    def look(self) -> None:
        """Reload if the file has moved since it was last read."""
        if self._config.has_moved():
            self.reload()

    def reload(self) -> Change:
        """Read the file now and report the outcome in the log."""
        change = self._config.reload()
        path, count = self._config.path, len(self._config.registry.combos)
        match change:
            case Change.LOADED:
                logger.log(ALERT, f"combos: {path} loaded, {count} combo{'' if count == 1 else 's'} in force")
                self.warn()
            case Change.MISSING:
                logger.warning(f"combos: {path} is gone; the last good configuration stays in force")
            case Change.INVALID:
                lines = "".join(f"\n  {problem}" for problem in self._config.problems)
                logger.warning(f"combos: {path} cannot be used; the last good configuration stays in force:{lines}")
        return change

    def warn(self) -> None:
        """Say what is odd about the configuration in force: unknown fields, targets without a provider."""
        for problem in config_warnings(self._config.registry.config):
            logger.warning(f"combos: {self._config.path}: {problem}")
