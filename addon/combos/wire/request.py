"""What a client asks for: surface, dialect, model, and the shapes of a body that rules ask about. Decides nothing."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from combos.core.errors import bad_request
from combos.core.facts import Dialect, Headers, Surface
from combos.wire import encrypted_task
from combos.wire import headers as fields
from combos.wire.splice import sole_member

_SURFACES: dict[str, tuple[Dialect, Surface]] = {
    "responses": (Dialect.RESPONSES, Surface.RESPONSES),
    "responses/compact": (Dialect.RESPONSES, Surface.COMPACT),
    "chat/completions": (Dialect.CHAT, Surface.CHAT),
    "messages": (Dialect.MESSAGES, Surface.MESSAGES),
    "messages/count_tokens": (Dialect.MESSAGES, Surface.COUNT_TOKENS),
    "models": (Dialect.RESPONSES, Surface.MODELS),
}
_LANE_VALUE_MAX = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """One request for a model. `body` has no content coding; `document` is that body parsed once, to be read only.

    Integers beyond 64 bits are floats in `document`: whoever must keep them works on `body`.
    """

    dialect: Dialect
    surface: Surface
    path: str
    query: str
    model: str
    stream: bool
    body: bytes
    document: Mapping[str, object]


def surface_of(path: str) -> tuple[Dialect, Surface] | None:
    """The surface that a path ends in, whatever stands before it; None for any other path.

    A query and trailing slashes are ignored. Paths of unrelated services can end in the same words, so this alone does
    not say that a request is for a model. The list of models belongs to no dialect and is given as Responses.
    """
    segments = path.partition("?")[0].rstrip("/").rsplit("/", 2)
    return _SURFACES.get("/".join(segments[-2:])) or _SURFACES.get(segments[-1])


def peek_model(body: bytes) -> str | None:
    """The top-level `model` of a JSON object; None when there is none or the body is no such object. Never raises.

    Costs a search instead of a parse for the usual bodies.
    """
    span = sole_member(body, "model")
    try:
        value = orjson.loads(body[span[0] : span[1]] if span is not None else body)
    except orjson.JSONDecodeError:
        return None
    model = value if span is not None else value.get("model") if isinstance(value, dict) else None
    return model if isinstance(model, str) else None


def request_facts(path: str, body: bytes) -> RequestFacts:
    """Read a request with a decoded body. Raises `ProxyError` 400 when it is not a JSON object that names a model."""
    place = surface_of(path)
    if place is None:
        raise bad_request("This path takes no requests for a model")
    document = _object(body)
    model = document.get("model")
    if "model" not in document:
        raise bad_request("Missing required parameter: 'model'")
    if not isinstance(model, str) or not model:
        raise bad_request("Invalid type for 'model': expected a non-empty string")
    bare_path, _, query = path.partition("?")
    streams = place[1] in {Surface.RESPONSES, Surface.CHAT, Surface.MESSAGES}
    stream = streams and document.get("stream") is True
    return RequestFacts(*place, bare_path, query, model, stream, body, document)


def _object(body: bytes) -> dict[str, object]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_request("Request body is not valid JSON") from None
    if not isinstance(document, dict):
        raise bad_request("Request body is not a JSON object")
    return document


def bears_image(facts: RequestFacts) -> bool:
    """Whether the request holds an image anywhere in its conversation, history and tool results included."""
    match facts.dialect:
        case Dialect.RESPONSES:
            return _reaches(facts.document.get("input"), ("content", "output"), _is_input_image)
        case Dialect.CHAT:
            return _reaches(facts.document.get("messages"), ("content",), _is_chat_image)
        case Dialect.MESSAGES:
            return _reaches(facts.document.get("messages"), ("content",), _is_image_block)
        case Dialect.GEMINI:
            return False


def _reaches(root: object, through: tuple[str, ...], wanted: Callable[[Mapping[str, object]], bool]) -> bool:
    """Whether an object is wanted that can be reached from `root` through arrays and the named fields."""
    todo = [root] if isinstance(root, list) else []
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, Mapping):
            if wanted(node):
                return True
            todo += [node[field] for field in through if field in node]
    return False


def _is_input_image(node: Mapping[str, object]) -> bool:
    return node.get("type") == "input_image"


def _is_chat_image(node: Mapping[str, object]) -> bool:
    kind = node.get("type")
    return kind == "image_url" or (kind == "image" and bool(node.get("data") or node.get("source")))


def _is_image_block(node: Mapping[str, object]) -> bool:
    return node.get("type") == "image"


def has_unreadable_task(facts: RequestFacts) -> bool:
    """Whether the request is a sub-agent task that only the vendor's own backend can read. Responses only."""
    return facts.dialect is Dialect.RESPONSES and encrypted_task.is_unreadable(facts.document.get("input"))


def compaction_trigger(facts: RequestFacts) -> bool:
    """Whether the client marked the request as a compaction, by its endpoint or by an input item."""
    if facts.surface is Surface.COMPACT:
        return True
    items = facts.document.get("input")
    if facts.surface is not Surface.RESPONSES or not isinstance(items, list):
        return False
    return any(isinstance(item, Mapping) and item.get("type") == "compaction_trigger" for item in items)


def lane(headers: Headers) -> str | None:
    """The conversation a request belongs to, from its headers alone; None when they name none."""
    parent = _digest(headers, "x-codex-parent-thread-id")
    thread = _digest(headers, "thread-id")
    specific = thread or _digest(headers, "session_id") or _digest(headers, "session-id")
    return "\0".join(part for part in (parent, specific) if part) or None


def _digest(headers: Headers, name: str) -> str | None:
    value = fields.get(headers, name)
    if not value or len(value) > _LANE_VALUE_MAX or _CONTROL.search(value):
        return None
    return hashlib.sha256(value.encode()).hexdigest()[:32]
