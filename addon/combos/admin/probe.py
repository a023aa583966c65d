"""The connection test of a provider: its model list, once, within eight seconds. Sends no model request."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from combos.core.config_provider import Adapter, AuthMode
from combos.core.facts import Headers
from combos.core.registry import Provider, Registry
from combos.core.values import dataclass
from combos.upstream.discovery import Discovery, Sender, has_live_list


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of a test. `reason` is given when there is nothing to test."""

    ok: bool
    latency_ms: int
    models: int = 0
    error: str = ""
    reason: str = ""

    def row(self) -> dict[str, Any]:
        """The result, ready for JSON."""
        if self.reason:
            return {"applicable": False, "reason": self.reason, "latencyMs": self.latency_ms}
        if not self.ok:
            return {"ok": False, "error": self.error, "latencyMs": self.latency_ms}
        message = f"{self.models} model{'' if self.models == 1 else 's'} listed"
        return {"ok": True, "latencyMs": self.latency_ms, "models": self.models, "message": message}


async def probe(
    provider: Provider, registry: Registry, sender: Sender, secrets: Callable[[Provider], Headers]
) -> ProbeResult:
    """Read the provider's model list now."""
    if provider.config.disabled:
        return ProbeResult(ok=False, latency_ms=0, error="the provider is disabled")
    if not has_live_list(provider):
        return ProbeResult(ok=False, latency_ms=0, reason=_why_not(provider))
    begun = time.monotonic()
    discovery = Discovery(sender, secrets)
    try:
        discovery.refresh(replace(registry, providers={provider.name: provider}))
        await discovery.settle()
        took = int((time.monotonic() - begun) * 1000)
        problem = discovery.problems.get(provider.name)
        rows = discovery.rows.get(provider.name, ())
    finally:
        await discovery.close()
    if problem is not None:
        return ProbeResult(ok=False, latency_ms=took, error=problem)
    return ProbeResult(ok=True, latency_ms=took, models=len(rows))


def _why_not(provider: Provider) -> str:
    if provider.config.adapter is Adapter.JEV_DECISION:
        return "decision_service"
    return "caller_login" if provider.config.auth_mode is AuthMode.FORWARD else "static_catalog"
