"""Builders of outbound requests, and whole exchanges, for tests that send something to a scripted upstream."""

from combos.core.config_provider import ProviderConfig
from combos.core.facts import Headers
from combos.core.registry import Provider
from combos.engine.commands import OutboundRequest, Timeouts
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream

PATIENT = Timeouts(connect_ms=5_000, head_ms=5_000, idle_ms=5_000)


def provider(base_url: str, *, name: str = "acme", **fields: object) -> Provider:
    """A provider that may lie on this machine, unless `allow_private_network` says otherwise."""
    document = {"adapter": "openai-chat", "base_url": base_url, "allow_private_network": True, **fields}
    return Provider(name, ProviderConfig.model_validate(document))


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


async def body_of(answer: Answer) -> bytes:
    """The whole body, read to its clean end."""
    parts = []
    while data := await answer.read_some():
        parts.append(data)
    return b"".join(parts)


async def exchange(
    upstream: Upstream, request: OutboundRequest, secrets: Headers = (), timeouts: Timeouts = PATIENT
) -> tuple[int, bytes]:
    """One exchange to its clean end: status and body."""
    async with upstream.open(request, timeouts, secrets) as answer:
        return answer.status, await body_of(answer)


async def fault_of_exchange(
    upstream: Upstream, request: OutboundRequest, timeouts: Timeouts = PATIENT
) -> UpstreamFault | None:
    """The fault of one exchange whose body is read as far as it goes; None when it went well."""
    try:
        await exchange(upstream, request, timeouts=timeouts)
    except UpstreamFault as fault:
        return fault
    return None
