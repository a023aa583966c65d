"""Which requests are the addon's business, and what they ask for. Everything else passes untouched.

Decides nothing about targets: it yields the request's facts and its route, or a refusal, or nothing.
"""

from collections.abc import Callable

from mitmproxy.http import HTTPFlow

from combos.core import errors
from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Surface
from combos.core.limits import INBOUND_HEAD_MAX
from combos.core.names import is_printed, leaves_its_path
from combos.core.registry import DirectRoute, Registry, Route
from combos.core.values import dataclass
from combos.upstream.selfloop import OwnAddresses
from combos.wire.bodies import BodyError, BodyErrorKind, decode
from combos.wire.catalog_anthropic import decode_claude_id
from combos.wire.fields import Fields
from combos.wire.request import Peeked, RequestFacts, facts_at, path_model, peek_model, read_model, surface_of

_LONGEST_MODEL = 2_048
"""Of the ids in use, the names of cloud resources are the longest: 2048 characters."""

type Recall = Callable[[str, Fields, bytes], Route | None]
"""Where a request with this path, these header fields and this body goes on, though its model name does not say."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A request for a turn."""

    facts: RequestFacts
    fields: Fields
    route: Route


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that is ours and cannot be served."""

    error: ProxyError
    dialect: Dialect


def path_of(flow: HTTPFlow) -> str:
    """The path without its query."""
    return flow.request.path.partition("?")[0]


def is_base_url(flow: HTTPFlow, own: OwnAddresses, machine: str) -> bool:
    """Whether the client used the proxy itself as its server: by address, by a loopback name or by `machine`'s name."""
    host, port = flow.request.host, flow.request.port
    if own.holds(host, port):
        return True
    name = host.rstrip(".").lower()
    is_machine = name == machine or name.partition(".")[0] == machine
    return is_machine and own.listens_on(port)


def is_responses_upgrade(flow: HTTPFlow) -> bool:
    """A WebSocket upgrade on the Responses surface."""
    upgrade = flow.request.headers.get("upgrade", "").lower()
    surface = surface_of(path_of(flow))
    return upgrade == "websocket" and surface is not None and surface[1] is Surface.RESPONSES


def turn_surface(flow: HTTPFlow) -> Dialect | None:
    """The dialect of a request that may be for a turn, judged by method and path alone."""
    place = _turn_place(flow, flow.request.path)
    return None if place is None else place[0]


def _turn_place(flow: HTTPFlow, path: str) -> tuple[Dialect, Surface] | None:
    """Dialect and surface of a request that may be for a turn; lists of models are served elsewhere."""
    # The raw value: `method` decodes and folds it anew whenever it is asked for.
    if flow.request.data.method.upper() != b"POST":
        return None
    place = surface_of(path)
    return None if place is None or place[1] is Surface.MODELS else place


def recognise(
    flow: HTTPFlow, fields: Fields, registry: Registry, recall: Recall, *, base_url: bool
) -> Recognised | Refusal | None:
    """What the request asks for. None: not ours, pass it on unchanged.

    `recall` knows where a compaction with a bare model name goes on. A body that cannot be read is refused on the
    proxy's own address only: towards another host it is that host's business to say what is wrong with it.
    """
    path = flow.request.path
    place = _turn_place(flow, path)
    if place is None:
        return None
    try:
        body = _decoded_body(flow, fields, registry.config.max_inbound_body_bytes)
        named = _named(place[1], path, body, base_url=base_url)
        model = named.model
        route = None if model is None else _route(registry, model) or recall(path, fields, body)
        if not base_url and (route is None or (isinstance(route, DirectRoute) and _names_its_own(flow, registry))):
            return None
        _check_head(fields)
        facts = facts_at(place, path, body, named)
        route = route or registry.resolve_bare(facts.model)
    except ProxyError as error:
        return Refusal(error, place[0]) if base_url else None
    if route is None:
        return Refusal(errors.unknown_model(facts.model), facts.dialect)
    return Recognised(facts, fields, route)


def _check_head(fields: Fields) -> None:
    """Refuse what the next server would refuse: a target must not be cooled for a client's flood of fields."""
    if sum([len(name) + len(value) for name, value in fields.raw]) > INBOUND_HEAD_MAX:
        raise errors.head_too_large(INBOUND_HEAD_MAX)


def _decoded_body(flow: HTTPFlow, fields: Fields, limit: int) -> bytes:
    raw = flow.request.raw_content or b""
    if len(raw) > limit:
        raise errors.body_too_large(limit)
    if b"content-encoding" not in fields.first:
        return raw
    try:
        return decode(flow.request.headers.get("content-encoding"), raw, limit)
    except BodyError as error:
        if error.kind is BodyErrorKind.TOO_LARGE:
            raise errors.body_too_large(limit) from error
        raise errors.bad_request(f"The request body cannot be decoded: {error}") from error


def _named(surface: Surface, path: str, body: bytes, *, base_url: bool) -> Peeked:
    """The model that path or body name. A body is parsed for it only where it is ours in any case."""
    if surface is Surface.GENERATE:
        return Peeked(path_model(path))
    return read_model(body) if base_url else peek_model(body)


def _route(registry: Registry, model: str) -> Route | None:
    """Where an explicit name leads; names that Claude Code was shown are undone first."""
    name = decode_claude_id(model) or model
    if (combo := registry.names.get(name)) is not None:
        return combo  # as it is configured, and so none of what is looked for below
    if not is_printed(model):
        # It is to go into header lines, paths and logs.
        raise errors.bad_request("The model id holds control characters")
    if leaves_its_path(name):
        # Some vendors are asked at an address that holds the id, with a provider's key.
        raise errors.bad_request("The model id holds . or .. as a part of a path")
    if len(model) > _LONGEST_MODEL:
        raise errors.bad_request(f"The model id is longer than {_LONGEST_MODEL} characters")
    return registry.resolve(name)


def _names_its_own(flow: HTTPFlow, registry: Registry) -> bool:
    """Whether `name/model` is a name of the host itself, as the configuration says of it."""
    exempt = {host.lower() for host in registry.config.selector_exempt_hosts}
    asked = {host.rstrip(".").lower() for host in (flow.request.host, flow.request.pretty_host)}
    return not exempt.isdisjoint(asked)
