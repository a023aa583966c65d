"""`GET …/models/<id>`: asked of the target that selection would pick now. No hop, no cooldown, no invention."""

from urllib.parse import quote, unquote

from mitmproxy.http import HTTPFlow

from combos.core import errors
from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Headers, TransportFault
from combos.core.names import leaves_its_path
from combos.core.registry import ComboRoute, DirectRoute, Registry, Route, Target, UnknownCombo
from combos.core.transport import transport_message
from combos.engine.commands import OutboundRequest, Timeouts
from combos.mitm import access
from combos.mitm.client import Client
from combos.mitm.refusals import refuse_with
from combos.mitm.service import Service
from combos.mitm.writer import Responder, ResponseWriter
from combos.upstream.discovery import models_url
from combos.upstream.echoes import unechoed
from combos.upstream.faults import UpstreamFault
from combos.upstream.pool import Reading
from combos.wire.catalog_anthropic import decode_claude_id
from combos.wire.headers import request_headers, response_headers

_BODY_MAX = 4 * 1024 * 1024


def asked_model(flow: HTTPFlow) -> str | None:
    """The model whose details a request asks for; None for any other request."""
    if flow.request.method != "GET":
        return None
    _, _, model = flow.request.path.partition("?")[0].partition("/models/")
    return unquote(model) if model else None


def dialect_of(flow: HTTPFlow) -> Dialect:
    """Whose form an error takes: the path is the same for all vendors, a version header tells Anthropic's clients."""
    return Dialect.MESSAGES if "anthropic-version" in flow.request.headers else Dialect.RESPONSES


def responder_for(service: Service, flow: HTTPFlow, model: str, *, base_url: bool) -> Responder | None:
    """What answers the request; None when it is none of ours.

    Many services have a path that ends in `/models/<owner>/<name>`: on their hosts only combos are ours.
    """
    registry = service.config.registry
    route = _route(registry, model, base_url=base_url)
    dialect = dialect_of(flow)
    if route is None:
        return refuse_with(errors.unknown_model(model), dialect) if base_url else None
    if not service.admits(flow):
        return refuse_with(errors.forbidden(access.REFUSAL), dialect)
    client = Client(service, flow, registry, None if base_url else flow.request.host)
    try:
        target = _target(service, client, registry, route)
    except ProxyError as error:
        return refuse_with(error, dialect)
    return _relay(service, client, target, dialect)


def _route(registry: Registry, model: str, *, base_url: bool) -> Route | None:
    name = decode_claude_id(model) or model
    if leaves_its_path(name):
        return None
    found = registry.resolve(name)
    if base_url:
        return found or registry.resolve_bare(model)
    return None if isinstance(found, DirectRoute) else found


def _target(
    service: Service, client: Client, registry: Registry, route: ComboRoute | DirectRoute | UnknownCombo
) -> Target:
    """The target to ask. Raises `ProxyError` when there is none."""
    match route:
        case UnknownCombo(id=combo_id):
            raise errors.unknown_combo(combo_id)
        case DirectRoute(target=target):
            return target
        case ComboRoute(combo=combo):
            explained = service.explain(combo, registry, client.unusable)
            ready = {row.key for row in explained.targets if row.reason is None}
            for target in combo.targets:
                if target.key == explained.next or (explained.next is None and target.key in ready):
                    return target
            rest_ms = explained.retry_after_ms
            raise errors.combo_unavailable(combo.id, None if rest_ms is None else max(1, -(-rest_ms // 1000)))


def _relay(service: Service, client: Client, target: Target, dialect: Dialect) -> Responder:
    async def respond(flow: HTTPFlow, writer: ResponseWriter) -> None:
        if target.provider is None:
            await refuse_with(errors.target_unavailable(target.key, "provider_missing"), dialect)(flow, writer)
            return
        request = _request(flow, target, dialect)
        settings = service.settings
        timeouts = Timeouts(settings.connect_timeout_ms, settings.head_timeout_ms, settings.idle_timeout_ms)
        try:
            secrets = client.credentials(target.provider)
            answer = unechoed(await service.upstream.send(request, timeouts, secrets), secrets, target.provider.config)
            body = await _whole(answer)
        except UpstreamFault as fault:
            failure = errors.transport_failure(fault.fault, transport_message(fault.fault))
            await refuse_with(failure, dialect)(flow, writer)
            return
        kept = response_headers(answer.headers, requested_model=target.model, keep_length=False)
        await writer.respond(answer.status, kept, body)

    return respond


def _request(flow: HTTPFlow, target: Target, dialect: Dialect) -> OutboundRequest:
    provider = target.provider
    if provider is None:
        raise ValueError(f"{target.key} has no provider")
    base = models_url(provider.config).partition("?")[0]
    headers: Headers = request_headers(
        flow.request.headers.fields,
        dialect=target.dialect or dialect,
        client_dialect=dialect,
        model=target.model,
        configured=provider.config.headers,
    )
    return OutboundRequest("GET", f"{base}/{quote(target.model, safe='/:@')}", headers, b"", provider)


async def _whole(answer: Reading) -> bytes:
    """The body, bounded. Raises `UpstreamFault`."""
    parts = bytearray()
    try:
        while data := await answer.read_some():
            parts += data
            if len(parts) > _BODY_MAX:
                raise UpstreamFault(TransportFault.TOO_LARGE, f"more than {_BODY_MAX} bytes about one model")
    finally:
        answer.close()
    return bytes(parts)
