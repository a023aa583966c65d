"""Header fields: what reaches a target, what reaches a client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Dialect, Headers
from combos.wire.headers import HeaderError, get, pair, request_headers, response_headers

R, C, M = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES


def to_target(
    *client: tuple[str, str],
    dialect: Dialect = R,
    client_dialect: Dialect = R,
    configured: dict[str, str] | None = None,
    keep_credentials: bool = False,
    keep_turn_state: bool = False,
) -> dict[str, str]:
    headers = request_headers(
        tuple((name.encode(), value.encode()) for name, value in client),
        dialect=dialect,
        client_dialect=client_dialect,
        model="m2",
        configured=configured or {},
        keep_credentials=keep_credentials,
        keep_turn_state=keep_turn_state,
    )
    assert len({name.lower() for name, _ in headers}) == len(headers)
    return {name.decode(): value.decode() for name, value in headers}


DEFAULTS = {"content-type": "application/json", "accept-encoding": "identity"}
CREDENTIALS = [
    "Authorization", "x-api-key", "X-Goog-Api-Key", "api-key", "Cookie", "ChatGPT-Account-ID",
    "OpenAI-Organization", "OpenAI-Project",
]  # fmt: skip


def test_get_finds_any_case_and_the_first_value() -> None:
    headers = ((b"X-A", b" one "), (b"x-a", b"two"), (b"x-b", b"\xe9"))
    assert get(headers, "x-A") == "one"
    assert get(headers, "X-B") == "\xe9"
    assert get(headers, "x-c") is None


@pytest.mark.parametrize(
    "name",
    [
        "Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding",
        "Upgrade", "Host", "Content-Length", "Content-Encoding", "Expect", "Via", "Forwarded", "X-Forwarded-For",
        "x-codex-turn-state", "Content-MD5", "X-Combos-API-Key", "x-opencodex-api-key",
    ],
)  # fmt: skip
def test_never_to_a_target(name: str) -> None:
    assert to_target((name, "x"), ("X-Kept", "1")) == {"X-Kept": "1", **DEFAULTS}
    if name != "x-codex-turn-state":
        assert to_target((name, "x"), keep_credentials=True, keep_turn_state=True) == DEFAULTS


@pytest.mark.parametrize("name", CREDENTIALS)
def test_the_callers_login_goes_nowhere_unless_told(name: str) -> None:
    assert to_target((name, "secret")) == DEFAULTS
    assert to_target((name, "secret"), keep_credentials=True) == {name: "secret", **DEFAULTS}


def test_the_turn_state_goes_to_its_issuer_only() -> None:
    assert to_target(("x-codex-turn-state", "s"), keep_turn_state=True)["x-codex-turn-state"] == "s"


def test_fields_named_in_connection_are_dropped() -> None:
    assert to_target(("Connection", "close, X-Hop ,x-more"), ("x-hop", "1"), ("X-More", "2"), ("x-a", "3")) == {
        "x-a": "3",
        **DEFAULTS,
    }


def test_encoding_is_identity_whatever_the_client_takes() -> None:
    assert to_target(("Accept-Encoding", "zstd, gzip"))["accept-encoding"] == "identity"


def test_configured_fields_replace_the_clients() -> None:
    configured = {"X-Title": "mine", "Content-Type": "application/json; v=2"}
    headers = to_target(("x-title", "client"), ("content-type", "text/x"), configured=configured)
    assert headers == {**configured, "accept-encoding": "identity"}


def test_anthropic_version_is_added_only_where_it_is_missing() -> None:
    assert to_target(dialect=M, client_dialect=M)["anthropic-version"] == "2023-06-01"
    given_version = to_target(("Anthropic-Version", "2026-10-21"), dialect=M, client_dialect=M)
    assert given_version["Anthropic-Version"] == "2026-10-21"
    assert "anthropic-version" not in given_version
    assert "anthropic-version" not in to_target()


def test_vendor_fields_stay_in_their_dialect() -> None:
    client = (("anthropic-beta", "b"), ("x-app", "cli"), ("X-Stainless-OS", "l"), ("session-id", "s"), ("x-a", "1"))
    assert to_target(*client) == {**dict(client), **DEFAULTS}
    assert to_target(*client, dialect=C, client_dialect=M) == {"x-a": "1", **DEFAULTS}


def test_the_routing_hint_names_the_targets_model() -> None:
    assert to_target(("x-codex-routing-hint", "model=combo/main"))["x-codex-routing-hint"] == "model=m2"
    assert to_target(("x-codex-routing-hint", "other"))["x-codex-routing-hint"] == "other"


@pytest.mark.parametrize(
    ("name", "value"), [("x-a", "1\r\nx-b: 2"), ("x-a", "1\n2"), ("x-a", "\0"), ("x a", "1"), ("", "1")]
)
def test_fields_that_break_a_line(name: str, value: str) -> None:
    with pytest.raises(HeaderError) as caught:
        to_target(configured={name: value})
    assert value not in str(caught.value) or value == "1"
    assert to_target((name, value)) == DEFAULTS
    assert response_headers(((name.encode(), value.encode()),), requested_model=None, keep_length=True) == ()


def test_a_model_that_breaks_a_line() -> None:
    with pytest.raises(HeaderError):
        response_headers(((b"openai-model", b"m"),), requested_model="x\r\ny", keep_length=True)


@given(st.text(max_size=12), st.text(max_size=12))
def test_pair_never_holds_a_line_end(name: str, value: str) -> None:
    try:
        raw = pair(name, value)
    except HeaderError:
        return
    assert not set(raw[0] + raw[1]) & set(b"\r\n\0")


ANSWER: Headers = (
    (b"Content-Type", b"text/event-stream"),
    (b"Content-Length", b"5"),
    (b"Content-Encoding", b"gzip"),
    (b"ETag", b'"e"'),
    (b"x-models-etag", b"m"),
    (b"request-id", b"req-beta"),
    (b"X-Codex-Turn-State", b"ts"),
    (b"OpenAI-Model", b"m2"),
    (b"Set-Cookie", b"c"),
    (b"Alt-Svc", b"h3"),
    (b"Strict-Transport-Security", b"x"),
    (b"Transfer-Encoding", b"chunked"),
    (b"Connection", b"x-hop"),
    (b"x-hop", b"1"),
    (b"x-twice", b"1"),
    (b"x-twice", b"2"),
)
KEPT = [b"ETag", b"x-models-etag", b"request-id", b"X-Codex-Turn-State", b"x-twice", b"x-twice"]


@pytest.mark.parametrize(
    ("keep_length", "decoded", "begin"),
    [
        (True, False, [b"Content-Type", b"Content-Length", b"Content-Encoding"]),
        (False, False, [b"Content-Type", b"Content-Encoding"]),
        (True, True, [b"Content-Type"]),
    ],
)
def test_answer(keep_length: bool, decoded: bool, begin: list[bytes]) -> None:
    headers = response_headers(ANSWER, requested_model=None, keep_length=keep_length, decoded=decoded)
    assert [name for name, _ in headers] == begin + KEPT


def test_the_answering_model_is_the_requested_one() -> None:
    headers = response_headers(ANSWER, requested_model="combo/main", keep_length=False)
    assert get(headers, "openai-model") == "combo/main"
    without = tuple(field for field in ANSWER if field[0] != b"OpenAI-Model")
    assert get(response_headers(without, requested_model="combo/main", keep_length=False), "openai-model") is None


@pytest.mark.parametrize("name", ["location", "Location", "content-location", "refresh", "set-cookie", "alt-svc"])
def test_an_answer_sends_the_client_nowhere(name: str) -> None:
    answer = ((name.encode(), b"https://elsewhere.example/v1"), (b"x-kept", b"1"))
    assert response_headers(answer, requested_model=None, keep_length=True) == ((b"x-kept", b"1"),)
