"""The `combos.…` commands of mitmproxy: what is configured, what is cooling, what a flow's outcome meant."""

from collections.abc import Sequence
from typing import Protocol

from mitmproxy import command, flow
from mitmproxy.exceptions import CommandError
from mitmproxy.http import HTTPFlow

from combos.admin.live_config import Change
from combos.core.registry import Combo
from combos.mitm.service import Service


class Host(Protocol):
    """The addon, as the commands see it."""

    service: Service | None

    def reload(self) -> Change:
        """Read the configuration file now."""


class Commands:
    """Holds no state of its own. Every command returns lines of text."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def _service(self) -> Service:
        if self._host.service is None:
            raise CommandError("combos: not started yet")
        return self._host.service

    def _combo(self, name: str) -> Combo:
        registry = self._service().config.registry
        combo = registry.combos.get(name.removeprefix("combo/")) or registry.aliases.get(name)
        if combo is None:
            raise CommandError(f"unknown combo: {name}; there are: {', '.join(registry.combos) or 'none'}")
        return combo

    @command.command("combos.list")
    def list(self) -> Sequence[str]:
        """The combos, their strategy and targets."""
        return [
            f"{combo.id}  {combo.config.strategy}  {', '.join(target.key for target in combo.targets)}"
            for combo in self._service().config.registry.combos.values()
        ]
