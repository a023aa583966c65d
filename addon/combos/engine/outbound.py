"""The request that a target gets, always built from the client's original body.

Same dialect: the body is changed member by member and is otherwise the client's, byte for byte. Credentials are added
by the host when it sends. Which target is asked, and whether it can be, is decided before.
"""

import json
from collections.abc import Mapping

import orjson

from combos.core.effort import Changes, decided_changes, effort_changes, policy_for
from combos.core.facts import Dialect, Headers, Now, Surface
from combos.core.registry import Provider, Target, UnknownCombo, is_canonical_chatgpt
from combos.engine.billing_header import without_billing_header
from combos.engine.commands import OutboundRequest, Timeouts
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.select import Pick
from combos.engine.state import EngineState
from combos.wire import headers as wire_headers
from combos.wire.request import RequestFacts
from combos.wire.splice import Path, replace_members

TURN_STATE = "x-codex-turn-state"
PASSTHROUGH = "internal_chat_message_metadata_passthrough"
# Hosts that take the private member of Codex's input items; others reject members they do not know.
_PASSTHROUGH_BASES = ("https://api.openai.com/", "https://chatgpt.com/")


def can_serve(facts: RequestFacts, dialect: Dialect) -> bool:
    """Whether a target of `dialect` can be asked for this request."""
    return dialect is facts.dialect


def timeouts_for(provider: Provider, options: TurnOptions) -> Timeouts:
    """The provider's time limits, where it sets none those of the options."""
    config = provider.config
    stated = config.model_fields_set
    return Timeouts(
        config.connect_timeout_ms if "connect_timeout_ms" in stated else options.connect_ms,
        config.head_timeout_ms if "head_timeout_ms" in stated else options.head_ms,
        config.idle_timeout_ms if "idle_timeout_ms" in stated else options.idle_ms,
    )


def outbound_request(request: TurnRequest, pick: Pick, state: EngineState, now: Now) -> OutboundRequest:
    """The request for the picked target, whose provider exists and whose dialect can serve the client's."""
    target = pick.target
    provider = target.provider
    if provider is None or target.dialect is None:
        raise ValueError(f"{target.key} has no provider")
    return OutboundRequest(
        method="POST",
        url=target_url(provider.config.base_url, target, request.facts),
        headers=_headers(request, target, provider, state, now),
        body=_body(request, pick, provider),
        provider=provider,
    )


def target_url(base_url: str, target: Target, facts: RequestFacts) -> str:
    """The endpoint of a target for the client's surface, with the client's query when the dialect is the same."""
    base = base_url.rstrip("/")
    query = f"?{facts.query}" if facts.query and target.dialect is facts.dialect else ""
    match target.dialect:
        case Dialect.RESPONSES:
            path = "/responses/compact" if facts.surface is Surface.COMPACT else "/responses"
        case Dialect.MESSAGES:
            path = "/messages/count_tokens" if facts.surface is Surface.COUNT_TOKENS else "/messages"
            path = path if base.endswith("/v1") else f"/v1{path}"
        case Dialect.GEMINI:
            method = "streamGenerateContent?alt=sse" if facts.stream else "generateContent"
            path = f"/models/{target.model}:{method}"
            path = path if base.endswith("/v1beta") else f"/v1beta{path}"
        case _:
            path = "/chat/completions"
    return f"{base}{path}{query}"


def _headers(request: TurnRequest, target: Target, provider: Provider, state: EngineState, now: Now) -> Headers:
    turn_state = wire_headers.get(request.headers, TURN_STATE)
    return wire_headers.request_headers(
        request.headers,
        dialect=target.dialect or request.facts.dialect,
        client_dialect=request.facts.dialect,
        model=target.model,
        configured=provider.config.headers,
        keep_turn_state=turn_state is not None and state.issued_by(turn_state, target, now),
    )


def _body(request: TurnRequest, pick: Pick, provider: Provider) -> bytes:
    facts, target = request.facts, pick.target
    native = is_canonical_chatgpt(provider)
    document, variant = _with_variant(request)
    combo = pick.origin.combo.config if pick.origin else None
    policy = policy_for(target, combo, native=native)
    if pick.choice is not None:
        # The decision stands for what the caller, a suffix of the model id and the combo's defaults would ask for.
        variant = {("service_tier",): None} if "service_tier" in facts.document else {}
        effort = decided_changes(facts.dialect, facts.document, target.model, policy, pick.choice.effort)
    else:
        effort = effort_changes(facts.dialect, document, target.model, policy)
    changes: Changes = {("model",): target.model}
    changes |= {path: value for path, value in variant.items() if path[:1] not in effort} | effort
    if native and "user" in facts.document:
        changes[("user",)] = None
    if facts.dialect is Dialect.RESPONSES and not _takes_passthrough(provider):
        changes |= _without_passthrough(facts)
    changes |= without_billing_header(facts, provider)
    return replace_members(facts.body, {_path(path): _json(value) for path, value in changes.items()})


def _with_variant(request: TurnRequest) -> tuple[Mapping[str, object], Changes]:
    """The body as a suffix of the requested model id wants it, and the changes that make it so."""
    document = request.facts.document
    changes: Changes = {}
    if isinstance(request.route, UnknownCombo):
        return document, changes
    if request.route.service_tier is not None:
        changes[("service_tier",)] = request.route.service_tier
    effort = request.route.effort
    if effort is None:
        return document, changes
    match request.facts.dialect:
        case Dialect.RESPONSES:
            path: tuple[str, ...] = ("reasoning", "effort")
        case Dialect.MESSAGES:
            path = ("output_config", "effort")
        case _:
            path = ("reasoning_effort",)
    changes[path] = effort
    parent = document.get(path[0])
    value = {**parent, "effort": effort} if isinstance(parent, Mapping) else {"effort": effort}
    return {**document, path[0]: effort if len(path) == 1 else value}, changes


def _takes_passthrough(provider: Provider) -> bool:
    return f"{provider.config.base_url.rstrip('/')}/".startswith(_PASSTHROUGH_BASES)


def _without_passthrough(facts: RequestFacts) -> Changes:
    """Codex's private member taken out of every input item, where there is one."""
    if PASSTHROUGH.encode() not in facts.body or not isinstance(facts.document.get("input"), list):
        return {}
    items = json.loads(facts.body)["input"]  # the parsed document does not keep integers beyond 64 bits
    return {
        ("input",): [
            {key: value for key, value in item.items() if key != PASSTHROUGH} if isinstance(item, dict) else item
            for item in items
        ]
    }


def _path(path: tuple[str, ...]) -> Path:
    return path[0] if len(path) == 1 else path


def _json(value: object) -> bytes | None:
    if value is None:
        return None
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()  # integers beyond 64 bits, lone surrogates
