"""What a client asks for: surface, dialect, model, and the shapes of a body that rules ask about. Decides nothing."""

import hashlib
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, quote, unquote

import orjson

from combos.core.errors import bad_request
from combos.core.facts import Dialect, Surface
from combos.core.values import dataclass
from combos.wire import encrypted_task
from combos.wire.fields import Fields
from combos.wire.json_text import loads
from combos.wire.spelling import with_usual_config
from combos.wire.splice import sole_member

_SURFACES: dict[str, tuple[Dialect, Surface]] = {
    "responses": (Dialect.RESPONSES, Surface.RESPONSES),
    "responses/compact": (Dialect.RESPONSES, Surface.COMPACT),
    "chat/completions": (Dialect.CHAT, Surface.CHAT),
    "messages": (Dialect.MESSAGES, Surface.MESSAGES),
    "messages/count_tokens": (Dialect.MESSAGES, Surface.COUNT_TOKENS),
    "models": (Dialect.RESPONSES, Surface.MODELS),
}
# Looked up first, for speed. Paths are not remembered as they come: they and their queries may hold secrets.
_USUAL = {f"{root}/{name}": place for root in ("", "/v1") for name, place in _SURFACES.items()}
# Where a member of the body asks for a stream.
_STREAMING = (Surface.RESPONSES, Surface.CHAT, Surface.MESSAGES)
# The model may hold slashes, as it stands or escaped: `/v1beta/models/combo/main:streamGenerateContent`.
_GENERATE = re.compile(r"/models/(?P<model>[^?]+):(?P<method>generateContent|streamGenerateContent)/*\Z")
_QUERY = "!$%&'()*+,/:;=?@[]^`{|}\"<>\\"
# Query fields that hold a credential, with `-` as `_`: Google's, Azure's, and those of gateways.
_LOGINS = frozenset(
    {
        "key", "api_key", "apikey", "x_api_key", "x_goog_api_key", "subscription_key", "ocp_apim_subscription_key",
        "access_token", "auth_token", "token", "authorization", "auth", "secret", "client_secret", "password",
        "sig", "signature", "x_goog_signature", "x_amz_signature", "x_amz_security_token",
    }
)  # fmt: skip
_LANE = frozenset({b"x-codex-parent-thread-id", b"thread-id", b"session_id", b"session-id"})
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
    model_at: tuple[int, int] | None = None
    """Where the model stands in `body`, if that is known."""


def surface_of(path: str) -> tuple[Dialect, Surface] | None:
    """The surface that a path ends in, whatever stands before it; None for any other path.

    A query and trailing slashes are ignored. Paths of unrelated services can end in the same words, so this alone does
    not say that a request is for a model. The list of models belongs to no dialect and is given as Responses.
    """
    bare = path.partition("?")[0] if "?" in path else path
    if (usual := _USUAL.get(bare)) is not None:
        return usual
    segments = bare.rstrip("/").rsplit("/", 2)
    found = _SURFACES.get("/".join(segments[-2:])) or _SURFACES.get(segments[-1])
    if found is None and "enerateContent" in bare and _GENERATE.search(bare) is not None:
        return (Dialect.GEMINI, Surface.GENERATE)
    return found


def path_model(path: str) -> str | None:
    """The model that the path of a Gemini request names; None for every other path."""
    found = _GENERATE.search(path.partition("?")[0])
    return None if found is None else unquote(found["model"])


@dataclass(frozen=True, slots=True)
class Peeked:
    """The model of a body, and where it stands in it if that could be told at a glance. `document` is the body, where
    it had to be parsed."""

    model: str | None
    at: tuple[int, int] | None = None
    document: object = None


_NOTHING = Peeked(None)


def peek_model(body: bytes) -> Peeked:
    """The top-level `model` of a JSON object; None when there is none or the body is no such object. Never raises.

    Costs a search instead of a parse for the usual bodies.
    """
    span = sole_member(body, "model")
    if span is None:
        return _parsed(body, None)
    try:
        model = loads(body[span[0] : span[1]])
    except orjson.JSONDecodeError:
        return _NOTHING
    return Peeked(model if isinstance(model, str) else None, span)


def read_model(body: bytes) -> Peeked:
    """As `peek_model`, for a body that is going to be read whole in any case: it is parsed here, and not again."""
    return _parsed(body, sole_member(body, "model"))


def _parsed(body: bytes, at: tuple[int, int] | None) -> Peeked:
    try:
        document = loads(body)
    except orjson.JSONDecodeError:
        return _NOTHING
    model = document.get("model") if isinstance(document, dict) else None
    return Peeked(model if isinstance(model, str) else None, at, document)


def request_facts(path: str, body: bytes, peeked: Peeked = _NOTHING) -> RequestFacts:
    """Read a request with a decoded body. Raises `ProxyError` 400 when it is not a JSON object that names a model.

    `peeked` is what `peek_model` or `read_model` has found in this body.
    """
    place = surface_of(path)
    if place is None:
        raise bad_request("This path takes no requests for a model")
    return facts_at(place, path, body, peeked)


def facts_at(place: tuple[Dialect, Surface], path: str, body: bytes, peeked: Peeked) -> RequestFacts:
    """As `request_facts`, of a request whose dialect and surface are known by `surface_of`."""
    dialect, surface = place
    read = peeked.document
    document = read if isinstance(read, dict) else _object(body)
    bare_path, _, query = path.partition("?")
    query = _query(query) if query else ""
    if surface is Surface.GENERATE:
        spelled = with_usual_config(body, document)
        document = document if spelled is body else _object(spelled)
        model = path_model(path) or ""
        return RequestFacts(dialect, surface, bare_path, query, model, _streams(path), spelled, document)
    named = document.get("model")
    if not isinstance(named, str) or not named:
        if "model" not in document:
            raise bad_request("Missing required parameter: 'model'")
        raise bad_request("Invalid type for 'model': expected a non-empty string")
    stream = document.get("stream") is True and surface in _STREAMING
    return RequestFacts(dialect, surface, bare_path, query, named, stream, body, document, peeked.at)


def _query(query: str) -> str:
    """The query as it can stand in a request line: some clients leave bytes in it as they are."""
    return quote(without_logins(query), safe=_QUERY, errors="surrogateescape")


def without_logins(query: str) -> str:
    """The query without the fields that hold a credential of the caller: like such headers, they go to no target."""
    return "&".join(field for field in query.split("&") if not _is_login(field))


def _is_login(field: str) -> bool:
    """Whether one of the names in a field is that of a credential; some servers take `;` for `&`."""
    names = (part.partition("=")[0].strip().lower() for part in unquote(field).split(";"))
    return any(name.replace("-", "_") in _LOGINS for name in names)


def _streams(path: str) -> bool:
    """Whether a Gemini request asks for a stream. Raises `ProxyError` for one that wants it as a JSON array."""
    bare, _, query = path.partition("?")
    found = _GENERATE.search(bare)
    if found is None or found["method"] == "generateContent":
        return False
    if parse_qs(query).get("alt") != ["sse"]:
        raise bad_request("streamGenerateContent is served with the query alt=sse only")
    return True


def _object(body: bytes) -> dict[str, object]:
    try:
        document = loads(body)
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
            return _reaches(facts.document.get("contents"), ("parts",), _is_gemini_image)


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


def _is_gemini_image(node: Mapping[str, object]) -> bool:
    """A part that holds or names a picture; the API takes both spellings of its fields."""
    for name, kind in (("inlineData", "mimeType"), ("inline_data", "mime_type"), ("fileData", "mimeType")):
        media = node.get(name)
        if isinstance(media, Mapping) and str(media.get(kind) or media.get("mimeType")).startswith("image/"):
            return True
    return False


def has_unreadable_task(facts: RequestFacts) -> bool:
    """Whether the request is a sub-agent task that only the vendor's own backend can read. Responses only."""
    return facts.dialect is Dialect.RESPONSES and encrypted_task.is_unreadable(facts.document.get("input"))


def compaction_trigger(facts: RequestFacts) -> bool:
    """Whether the client marked the request as a compaction, by its endpoint or by an input item."""
    if facts.surface is not Surface.RESPONSES:
        return facts.surface is Surface.COMPACT
    items = facts.document.get("input")
    if not isinstance(items, list):
        return False
    return any(isinstance(item, dict) and item.get("type") == "compaction_trigger" for item in items)


def lane(fields: Fields) -> str | None:
    """The conversation a request belongs to, from its header fields alone; None when they name none."""
    if _LANE.isdisjoint(fields.first):
        return None
    parent = parent_thread(fields)
    specific = _digest(fields, b"thread-id") or _digest(fields, b"session_id") or _digest(fields, b"session-id")
    return "\0".join(part for part in (parent, specific) if part) or None


def parent_thread(fields: Fields) -> str | None:
    """The thread that a sub-agent's request belongs to; None when the header fields name none."""
    return _digest(fields, b"x-codex-parent-thread-id")


def conversation(fields: Fields) -> str | None:
    """The conversation that Claude Code's header fields name, for clients without a lane; None when they name none."""
    session = _digest(fields, b"x-claude-code-session-id")
    if session is None:
        return None
    agent = _digest(fields, b"x-claude-code-agent-id")
    return "\0".join(part for part in (session, agent) if part)


def _digest(fields: Fields, name: bytes) -> str | None:
    value = fields.get(name)
    if not value or len(value) > _LANE_VALUE_MAX or _CONTROL.search(value):
        return None
    return hashlib.sha256(value.encode()).hexdigest()[:32]
