"""Which header fields cross the proxy, both ways. Knows names; who may use whose login is decided elsewhere."""

import re
from collections.abc import Mapping
from functools import lru_cache

from combos.core.facts import Dialect, Headers

type Field = tuple[bytes, bytes]

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
_CONNECTION = b"connection"
TURN_STATE = b"x-codex-turn-state"
# RFC 8586: every proxy adds its mark and refuses requests that carry it already.
LOOP_HEADER = b"cdn-loop"
_ROUTING_HINT = b"x-codex-routing-hint"
_MODEL = b"openai-model"
# Fields of an answer that bind the client to the target's host.
_HOST_BOUND = frozenset({b"set-cookie", b"set-cookie2", b"alt-svc", b"strict-transport-security", b"public-key-pins"})
# Fields that would send the client, and what it asked, to an address of the target's choice: SDKs follow redirects.
_LEADS_AWAY = frozenset({b"location", b"content-location", b"refresh"})

# What crosses in no case, and in most.
_NEVER_SENT = _HOP_BY_HOP | _MESSAGE | _PROXY_TRAIL | _OURS
_RARELY_SENT = _NEVER_SENT | _CREDENTIALS | {TURN_STATE}
_NEVER_GIVEN = _HOP_BY_HOP | _HOST_BOUND | _LEADS_AWAY
_RARELY_GIVEN = _NEVER_GIVEN | {b"content-length"}

# What a request has that brings no such field of its own.
_DEFAULTS: Headers = ((b"content-type", b"application/json"), (b"accept-encoding", b"identity"))
_MESSAGES_DEFAULTS: Headers = (*_DEFAULTS, (b"anthropic-version", ANTHROPIC_VERSION.encode()))

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_KEY_MAX = 64  # bytes of a name that is remembered
_FORBIDDEN = re.compile(rb"[\r\n\0]")


class HeaderError(ValueError):
    """A header field that could end its line early. The text names the field, never the value."""


def get(headers: Headers, name: str) -> str | None:
    """The first value of a field, None when it is absent. Bytes above ASCII come out as Latin-1."""
    wanted = _encoded(name)
    length = len(wanted)
    for key, value in headers:
        # Most names differ in length already, and asking for it costs half of what folding the case does.
        if len(key) == length and key.lower() == wanted:
            return value.decode("latin-1").strip()
    return None


@lru_cache(256)
def _encoded(name: str) -> bytes:
    return name.lower().encode("latin-1")


def pair(name: str, value: str) -> Field:
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
    mark: bytes = b"",
) -> Headers:
    """What a target gets of a client's header fields.

    `dialect` is the target's. `configured` are the provider's own extra fields: they replace the client's. `model` is
    the target's model id, for the one field that repeats it. `keep_credentials`: the target takes the caller's login.
    `keep_turn_state`: the target is the one that issued the turn state. `mark`: what this proxy puts behind the marks
    of the proxies before it. Fields that could break a line are dropped. Raises `HeaderError` when a configured field
    is not valid.
    """
    dropped = _RARELY_SENT
    if keep_credentials or keep_turn_state:
        dropped = _NEVER_SENT | (set() if keep_credentials else _CREDENTIALS)
        dropped |= set() if keep_turn_state else {TURN_STATE}
    extra = [pair(name, value) for name, value in configured.items()] if configured else []
    if extra:
        dropped = dropped.union([name.lower() for name, _ in extra])
    sound = _sound(client, dropped)
    if dialect is not client_dialect:
        sound = [(key, field) for key, field in sound if not _is_client_only(key)]
    kept = [field if key != _ROUTING_HINT else _with_hint(field, model) for key, field in sound]
    kept += extra
    present = {key for key, _ in sound}
    if extra:
        present.update([name.lower() for name, _ in extra])
    defaults = _MESSAGES_DEFAULTS if dialect is Dialect.MESSAGES else _DEFAULTS
    kept += [field for field in defaults if field[0] not in present]
    if mark:
        kept = [*kept, (LOOP_HEADER, mark)] if LOOP_HEADER not in present else _marked(kept, mark)
    return tuple(kept)


def _marked(headers: list[Field], mark: bytes) -> list[Field]:
    """The fields with this proxy's mark behind those of the proxies before it."""
    passed = [value for name, value in headers if name.lower() == LOOP_HEADER]
    others = [field for field in headers if field[0].lower() != LOOP_HEADER]
    return [*others, (LOOP_HEADER, b", ".join([*passed, mark]))]


def response_headers(
    target: Headers, *, requested_model: str | None, keep_length: bool, decoded: bool = False
) -> Headers:
    """What a client gets of a target's header fields; `etag`, request ids and rate limits among them.

    `requested_model` goes into `openai-model` if the target sent that field; None removes it. `keep_length`: the body
    has the length that the target announced. `decoded`: the content coding was undone.
    """
    dropped = _NEVER_GIVEN if keep_length and not decoded else _RARELY_GIVEN
    if decoded:
        dropped = dropped | {b"content-encoding"}
    sound = _sound(target, dropped)
    if requested_model is None:
        return tuple([field for key, field in sound if key != _MODEL])
    return tuple([field if key != _MODEL else pair("openai-model", requested_model) for key, field in sound])


def _sound(headers: Headers, dropped: frozenset[bytes]) -> list[tuple[bytes, Field]]:
    """The fields that are not dropped (`connection` is), nor declared to be hop-by-hop, nor able to break a line, with
    their names in lower case."""
    sound: list[tuple[bytes, Field]] = []
    declared = b""
    for field in headers:
        name, value = field
        # The same few names come again with every request.
        key = _remembered_key(name) if len(name) <= _KEY_MAX else _key(name)
        if key is None:
            continue
        if key not in dropped:
            if _FORBIDDEN.search(value) is None:
                sound.append((key, field))
        elif key == _CONNECTION:
            declared += b"," + value
    if not declared:
        return sound
    gone = {token.strip().lower() for token in declared.split(b",")}
    return [(key, field) for key, field in sound if key not in gone]


def _key(name: bytes) -> bytes | None:
    """A field's name in lower case; None for one that is no token."""
    return name.lower() if _TOKEN.match(name) is not None else None


_remembered_key = lru_cache(512)(_key)


def _is_sound(name: bytes, value: bytes) -> bool:
    return _TOKEN.match(name) is not None and _FORBIDDEN.search(value) is None


def _is_client_only(key: bytes) -> bool:
    return key in _CLIENT_ONLY or key.startswith(_CLIENT_ONLY_PREFIXES)


def _with_hint(field: Field, model: str) -> Field:
    """Codex repeats the model in a field of its own; it must name the model that is asked now."""
    name, value = field
    return (name, b"model=" + pair("model", model)[1]) if value.startswith(b"model=") else field
