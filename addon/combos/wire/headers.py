"""Which header fields cross the proxy, both ways. Knows names; who may use whose login is decided elsewhere."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from combos.core.facts import Dialect, Headers

ANTHROPIC_VERSION = "2023-06-01"

# RFC 9110, 7.6.1, and what older clients and proxies add to it.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-authentication-info",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# They describe the client's own message, whose body and connection are not those of the outgoing one.
_MESSAGE = frozenset(
    {
        b"accept-encoding",
        b"content-digest",
        b"content-encoding",
        b"content-length",
        b"content-md5",
        b"digest",
        b"expect",
        b"host",
        b"repr-digest",
    }
)
_PROXY_TRAIL = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)
# The token of this proxy's own management: models are served on the same listener, whose clients may send it along.
_OURS = frozenset({b"x-combos-api-key", b"x-opencodex-api-key"})
# The caller's credentials: they go to no target, except to one that takes the caller's own login.
_CREDENTIALS = frozenset(
    {
        b"api-key",
        b"authorization",
        b"chatgpt-account-id",
        b"cookie",
        b"openai-organization",
        b"openai-project",
        b"x-api-key",
        b"x-goog-api-key",
    }
)
# Fields that mean something to one vendor only; dropped when a request leaves its dialect.
_CLIENT_ONLY = frozenset({b"originator", b"session-id", b"session_id", b"thread-id", b"version", b"x-app"})
_CLIENT_ONLY_PREFIXES = (
    b"anthropic-",
    b"openai-",
    b"x-openai-",
    b"x-codex-",
    b"x-claude-code-",
    b"x-goog-",
    b"x-stainless-",
)
_TURN_STATE = b"x-codex-turn-state"
_ROUTING_HINT = b"x-codex-routing-hint"
_MODEL = b"openai-model"
# Fields of an answer that bind the client to the target's host.
_HOST_BOUND = frozenset({b"set-cookie", b"set-cookie2", b"alt-svc", b"strict-transport-security", b"public-key-pins"})
# Fields that would send the client, and what it asked, to an address of the target's choice: SDKs follow redirects.
_LEADS_AWAY = frozenset({b"location", b"content-location", b"refresh"})

# What crosses in no case, and in most.
_NEVER_SENT = _HOP_BY_HOP | _MESSAGE | _PROXY_TRAIL | _OURS
_RARELY_SENT = _NEVER_SENT | _CREDENTIALS | {_TURN_STATE}
_NEVER_GIVEN = _HOP_BY_HOP | _HOST_BOUND | _LEADS_AWAY
_RARELY_GIVEN = _NEVER_GIVEN | {b"content-length"}

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_FORBIDDEN = re.compile(rb"[\r\n\0]")


class HeaderError(ValueError):
    """A header field that could end its line early. The text names the field, never the value."""


def get(headers: Headers, name: str) -> str | None:
    """The first value of a field, None when it is absent. Bytes above ASCII come out as Latin-1."""
    wanted = _encoded(name)
    for key, value in headers:
        if key.lower() == wanted:
            return value.decode("latin-1").strip()
    return None


@lru_cache(256)
def _encoded(name: str) -> bytes:
    return name.lower().encode("latin-1")


def pair(name: str, value: str) -> tuple[bytes, bytes]:
    """A header field from text. Raises `HeaderError` for a name that is no token and a value with CR, LF or NUL."""
    raw = (name.encode("latin-1", "replace"), value.encode("utf-8").strip())
    if not _is_sound(*raw):
        raise HeaderError(f"header field {name!r} is not valid")
    return raw


def request_headers(
    client: Headers,
    *,
    dialect: Dialect,
    client_dialect: Dialect,
    model: str,
    configured: Mapping[str, str],
    keep_credentials: bool = False,
    keep_turn_state: bool = False,
) -> Headers:
    """What a target gets of a client's header fields.

    `dialect` is the target's. `configured` are the provider's own extra fields: they replace the client's. `model` is
    the target's model id, for the one field that repeats it. `keep_credentials`: the target takes the caller's login.
    `keep_turn_state`: the target is the one that issued the turn state. Fields that could break a line are dropped.
    Raises `HeaderError` when a configured field is not valid.
    """
    dropped = _RARELY_SENT
    if keep_credentials or keep_turn_state:
        dropped = _NEVER_SENT | (set() if keep_credentials else _CREDENTIALS)
        dropped |= set() if keep_turn_state else {_TURN_STATE}
    extra = tuple(pair(name, value) for name, value in configured.items())
    dropped = dropped.union(_named_in_connection(client), (name.lower() for name, _ in extra))
    kept = [
        _with_hint(name, value, model)
        for name, value in client
        if (key := name.lower()) not in dropped and _is_sound(name, value) and _crosses(key, dialect, client_dialect)
    ]
    return (*kept, *extra, *_defaults([*kept, *extra], dialect))


def response_headers(
    target: Headers, *, requested_model: str | None, keep_length: bool, decoded: bool = False
) -> Headers:
    """What a client gets of a target's header fields; `etag`, request ids and rate limits among them.

    `requested_model` goes into `openai-model` if the target sent that field; None removes it. `keep_length`: the body
    has the length that the target announced. `decoded`: the content coding was undone.
    """
    dropped = (_NEVER_GIVEN if keep_length and not decoded else _RARELY_GIVEN).union(_named_in_connection(target))
    if decoded:
        dropped |= {b"content-encoding"}
    if requested_model is None:
        dropped |= {_MODEL}
    return tuple(
        pair("openai-model", requested_model) if key == _MODEL and requested_model is not None else (name, value)
        for name, value in target
        if (key := name.lower()) not in dropped and _is_sound(name, value)
    )


def _named_in_connection(headers: Headers) -> list[bytes]:
    """The fields that a Connection header declares to be hop-by-hop."""
    values = [value for name, value in headers if name.lower() == b"connection"]
    return [token.strip().lower() for value in values for token in value.split(b",")]


def _is_sound(name: bytes, value: bytes) -> bool:
    return _TOKEN.match(name) is not None and _FORBIDDEN.search(value) is None


def _crosses(key: bytes, dialect: Dialect, client_dialect: Dialect) -> bool:
    return dialect is client_dialect or not (key in _CLIENT_ONLY or key.startswith(_CLIENT_ONLY_PREFIXES))


def _with_hint(name: bytes, value: bytes, model: str) -> tuple[bytes, bytes]:
    """Codex repeats the model in a field of its own; it must name the model that is asked now."""
    if name.lower() == _ROUTING_HINT and value.startswith(b"model="):
        return (name, b"model=" + pair("model", model)[1])
    return (name, value)


def _defaults(headers: Iterable[tuple[bytes, bytes]], dialect: Dialect) -> Headers:
    present = {name.lower() for name, _ in headers}
    wanted = [(b"content-type", b"application/json"), (b"accept-encoding", b"identity")]
    if dialect is Dialect.MESSAGES:
        wanted.append((b"anthropic-version", ANTHROPIC_VERSION.encode()))
    return tuple(field for field in wanted if field[0] not in present)
