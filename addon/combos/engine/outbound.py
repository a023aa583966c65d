"""The request that a target gets: its address, its header fields, its time limits, around a body made by `speech`.

Credentials are added by the host when it sends. Which target is asked, and whether it can be, is decided before.
"""

from urllib.parse import quote

from combos.core.config_provider import Adapter
from combos.core.facts import Dialect, Headers, Now, Surface
from combos.core.registry import Provider, Target
from combos.engine.commands import OutboundRequest, Timeouts
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.speech import Words
from combos.engine.state import EngineState
from combos.wire import headers as wire_headers
from combos.wire.request import RequestFacts

_LIMITS = frozenset({"connect_timeout_ms", "head_timeout_ms", "idle_timeout_ms"})


def timeouts_for(provider: Provider, options: TurnOptions) -> Timeouts:
    """The provider's time limits, where it sets none those of the options."""
    config, stated = provider.config, provider.stated
    if stated.isdisjoint(_LIMITS):
        return options.timeouts
    return Timeouts(
        config.connect_timeout_ms if "connect_timeout_ms" in stated else options.connect_ms,
        config.head_timeout_ms if "head_timeout_ms" in stated else options.head_ms,
        config.idle_timeout_ms if "idle_timeout_ms" in stated else options.idle_ms,
    )


def outbound_request(
    request: TurnRequest, target: Target, words: Words, state: EngineState, now: Now
) -> OutboundRequest:
    """The request with these words for a target whose provider exists."""
    provider = target.provider
    if provider is None or target.dialect is None:
        raise ValueError(f"{target.key} has no provider")
    return OutboundRequest(
        method="POST",
        url=target_url(provider.base, target, request.facts, words),
        headers=_headers(request, target, provider, words, state, now),
        body=words.body,
        # The adapter of this model also says in which header its key travels.
        provider=provider.with_adapter(target.adapter),
    )


def target_url(base_url: str, target: Target, facts: RequestFacts, words: Words) -> str:
    """The endpoint of a target for these words; in the client's own format with the client's query. `base_url` has no
    slash at its end."""
    base = _base(base_url, target.adapter)
    query = f"?{facts.query}" if facts.query and words.context is None else ""
    match target.dialect:
        case Dialect.RESPONSES:
            compacts = facts.surface is Surface.COMPACT and words.context is None
            path = "/responses/compact" if compacts else "/responses"
        case Dialect.MESSAGES:
            path = "/messages/count_tokens" if facts.surface is Surface.COUNT_TOKENS else "/messages"
            path = path if base.endswith("/v1") else f"/v1{path}"
        case Dialect.GEMINI:
            # The client's query may hold its key, or a mask of fields that leaves out what must be read here.
            method, query = ("streamGenerateContent", "?alt=sse") if words.stream else ("generateContent", "")
            path = f"/models/{quote(target.model.removeprefix('models/'))}:{method}"
            path = path if base.endswith(("/v1beta", "/v1")) else f"/v1beta{path}"
        case _:
            path = "/chat/completions"
    return f"{base}{path}{query}"


def _base(base: str, adapter: Adapter | None) -> str:
    """The base that the paths of an adapter's format are added to. Ollama's own API and its OpenAI surface lie beside
    each other; Azure's resource address is written with or without the version."""
    match adapter:
        case Adapter.OLLAMA_NATIVE:
            return base if base.endswith("/v1") else f"{base.removesuffix('/api')}/v1"
        case Adapter.AZURE_OPENAI:
            return base if base.endswith("/v1") else f"{base}/v1"
        case _:
            return base


def _headers(
    request: TurnRequest, target: Target, provider: Provider, words: Words, state: EngineState, now: Now
) -> Headers:
    client = request.fields.raw
    if words.context is not None:
        accept = b"text/event-stream" if words.stream else b"application/json"
        client = (*(pair for pair in client if pair[0].lower() != b"accept"), (b"accept", accept))
    config = provider.config
    return wire_headers.request_headers(
        client,
        dialect=target.dialect or request.facts.dialect,
        client_dialect=request.facts.dialect,
        model=target.model,
        configured=config.headers,
        keep_turn_state=wire_headers.TURN_STATE in request.fields.first and _is_issuer(request, target, state, now),
        # Only targets in private networks can lead back here by way of another proxy; vendors need not know of it.
        mark=request.mark.encode() if config.allow_private_network else b"",
    )


def _is_issuer(request: TurnRequest, target: Target, state: EngineState, now: Now) -> bool:
    """Whether the target issued the turn state that the client sends."""
    turn_state = request.fields.get(wire_headers.TURN_STATE)
    return turn_state is not None and state.issued_by(turn_state, target, now)
