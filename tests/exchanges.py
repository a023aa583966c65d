"""Builders of outbound requests for tests that send something to a scripted upstream."""

from combos.core.config_provider import ProviderConfig
from combos.core.facts import Headers
from combos.core.registry import Provider
from combos.engine.commands import OutboundRequest, Timeouts

PATIENT = Timeouts(connect_ms=5_000, head_ms=5_000, idle_ms=5_000)


def provider(base_url: str, **fields: object) -> Provider:
    """A provider that may lie on this machine, unless `allow_private_network` says otherwise."""
    document = {"adapter": "openai-chat", "base_url": base_url, "allow_private_network": True, **fields}
    return Provider(str(fields.pop("name", "acme")), ProviderConfig.model_validate(document))


def outbound(
    base_url: str,
    *,
    path: str = "/chat/completions",
    method: str = "POST",
    headers: Headers = ((b"Content-Type", b"application/json"),),
    body: bytes = b"{}",
    **fields: object,
) -> OutboundRequest:
    """A request to `base_url + path`; `fields` go to the provider."""
    return OutboundRequest(method, base_url + path, headers, body, provider(base_url, **fields))
