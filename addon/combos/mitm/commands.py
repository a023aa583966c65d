"""The `combos.…` commands of mitmproxy: what is configured, what is cooling, what a flow's outcome meant."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from mitmproxy import command, flow
from mitmproxy.exceptions import CommandError
from mitmproxy.http import HTTPFlow

from combos.admin import explain_view
from combos.admin.live_config import Change
from combos.core.registry import Combo, Provider
from combos.engine.explain import Explanation, explain
from combos.mitm.attempt_flows import is_attempt_record
from combos.mitm.contentview import attempt_line
from combos.mitm.judge import judge
from combos.mitm.service import Service
from combos.upstream import credentials


class Host(Protocol):
    """The addon, as the commands see it."""

    service: Service | None

    def reload(self) -> Change:
        """Read the configuration file now."""


class Commands:
    """Holds no state of its own. Every command returns lines of text."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @command.command("combos.list")
    def list(self) -> Sequence[str]:
        """The combos: id, alias, strategy, and the target that the next request would go to."""
        return [self._row(combo) for combo in self._service().config.registry.combos.values()]

    @command.command("combos.show")
    def show(self, combo: str) -> Sequence[str]:
        """The targets of a combo, each ready or out and why; `combo` is an id or an alias."""
        return explain_view.lines(self._explain(self._combo(combo)))

    @command.command("combos.cooldowns")
    def cooldowns(self) -> Sequence[str]:
        """Every running cooldown: combo, target, what is left, the rule and the signal that set it."""
        service = self._service()
        now = service.now()
        return [
            f"{key.combo}  {key.target}  {(entry.expires_ms - now.mono_ms) / 1000:.1f} s  {entry.rule}  {entry.source}"
            for key, entry in service.state.cooldowns.running(now.mono_ms)
        ]

    @command.command("combos.cooldown.clear")
    def cooldown_clear(self, target: str = "") -> str:
        """Clear the cooldowns of one target (`provider/model`), or all of them."""
        known = self._service().config.registry.target_keys
        if target and target not in known:
            raise CommandError(f"unknown target: {target}; there are: {', '.join(known) or 'none'}")
        cleared = self._service().state.clear_cooldowns(target=target or None)
        return f"{cleared} cooldown{'' if cleared == 1 else 's'} cleared"

    @command.command("combos.reload")
    def reload(self) -> str:
        """Read the configuration file now: all of it comes into force, or none of it and the reasons are given."""
        change = self._host.reload()
        config = self._service().config
        if change is Change.INVALID:
            raise CommandError("\n".join([f"{config.path} cannot be used:", *map(str, config.problems)]))
        count = len(config.registry.combos)
        return f"{config.path}: {change.value}, {count} combo{'' if count == 1 else 's'} in force"

    @command.command("combos.explain")
    def explain(self, flows: Sequence[flow.Flow]) -> Sequence[str]:
        """For each flow: its attempts with rule, verdict and cooldown, and what its combo would do now."""
        return [line for each in flows for line in self._explain_flow(each)]

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

    def _explain(self, combo: Combo) -> Explanation:
        service = self._service()

        def unusable(provider: Provider) -> str | None:
            return credentials.usable(provider, service.environ, forwardable=True)

        return explain(combo, service.config.registry, service.state, service.now(), unusable=unusable)

    def _row(self, combo: Combo) -> str:
        alias = f" ({combo.config.alias})" if combo.config.alias else ""
        return f"{combo.id}{alias}  {combo.config.strategy.value}  next: {self._explain(combo).next or 'none or drawn'}"

    def _explain_flow(self, each: flow.Flow) -> Iterator[str]:
        seen = each.metadata.get("combos")
        if not isinstance(each, HTTPFlow) or seen is None:
            yield f"{each.id[:8]}: no combo request"
            return
        if is_attempt_record(seen):
            yield f"{each.id[:8]}: attempt {seen['attempt']}, {seen['target']}: {judge(each, self._service().now())}"
            return
        yield f"{each.id[:8]}: {seen['comment']}"
        yield from map(attempt_line, seen["attempts"])
        if seen["combo"] in self._service().config.registry.combos:
            yield from explain_view.lines(self._explain(self._combo(seen["combo"])))
