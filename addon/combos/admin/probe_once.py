"""The connection test from outside a running proxy, with a client session of its own."""

from collections.abc import Mapping
from typing import Any

from combos.admin.probe import probe
from combos.core.config import Adapter, Config
from combos.core.facts import Headers
from combos.core.registry import Provider, build_registry
from combos.decision.service import Secrets
from combos.upstream import credentials
from combos.upstream.decision import Decider, probe_provider
from combos.upstream.session import Upstream


async def probe_once(config: Config, name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Test a configured provider; the result ready for JSON."""
    registry = build_registry(config, 1)

    def secrets(provider: Provider) -> Headers:
        return credentials.auth_headers(provider, environ, None)

    upstream = Upstream()
    row = config.providers[name]
    try:
        if row.adapter is Adapter.JEV_DECISION and not row.disabled:
            return await probe_provider(Decider(upstream, lambda: Secrets(environ)), registry, name)
        return (await probe(registry.providers[name], registry, upstream, secrets)).row()
    finally:
        await upstream.close()
