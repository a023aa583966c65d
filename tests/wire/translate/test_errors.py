"""Errors in every dialect: one row per kind, read from codes, types, words and statuses."""

import json

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import retry_after_s, translate_error
from combos.wire.translate.errors import KINDS, kind_of
from translations import DIALECTS, Json

R, C, M, G = DIALECTS


def openai(message: str, type_: str | None = None, code: object = None) -> Json:
    return {"error": {"message": message, "type": type_, "code": code, "param": None}}


def anthropic(type_: str, message: str = "m") -> Json:
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}


def google(status: str, code: int, message: str = "m") -> Json:
    return {"error": {"code": code, "message": message, "status": status}}


def said(status: int, body: Json | list[Json], client: Dialect, target: Dialect) -> tuple[int, Json]:
    code, raw = translate_error(status, json.dumps(body).encode(), client, target)
    return code, json.loads(raw)["error"]


ROWS = [
    (400, anthropic("invalid_request_error"), M, R, 400, "invalid_request_error", None),
    (
        400,
        anthropic("invalid_request_error", "prompt is too long: 9"),
        M,
        R,
        400,
        "invalid_request_error",
        "context_length_exceeded",
    ),
    (
        400,
        google("INVALID_ARGUMENT", 400, "input exceeds the maximum number of tokens"),
        G,
        C,
        400,
        "invalid_request_error",
        "context_length_exceeded",
    ),
    (401, anthropic("authentication_error"), M, C, 401, "authentication_error", "invalid_api_key"),
    (402, anthropic("billing_error"), M, R, 402, "insufficient_quota", "insufficient_quota"),
    (403, google("PERMISSION_DENIED", 403), G, R, 403, "permission_error", None),
    (404, anthropic("not_found_error"), M, R, 404, "invalid_request_error", "model_not_found"),
    (413, anthropic("request_too_large"), M, C, 413, "invalid_request_error", "request_too_large"),
    (429, anthropic("rate_limit_error"), M, R, 429, "rate_limit_error", "rate_limit_exceeded"),
    (500, anthropic("api_error"), M, R, 500, "server_error", "server_error"),
    (502, google("INTERNAL", 500), G, R, 502, "server_error", "server_error"),
    (503, google("UNAVAILABLE", 503), G, C, 503, "server_error", "server_is_overloaded"),
    (504, google("DEADLINE_EXCEEDED", 504), G, C, 504, "server_error", "timeout"),
    (529, anthropic("overloaded_error"), M, R, 503, "server_error", "server_is_overloaded"),
]


@pytest.mark.parametrize(("status", "body", "target", "client", "want", "type_", "code"), ROWS)
def test_to_the_openai_dialects(
    status: int, body: Json, target: Dialect, client: Dialect, want: int, type_: str, code: str | None
) -> None:
    got, error = said(status, body, client, target)
    assert (got, error["type"], error["code"]) == (want, type_, code)
    assert error["message"] == body["error"]["message"]
    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("status", "body", "want", "type_"),
    [
        (400, openai("m", "invalid_request_error"), 400, "invalid_request_error"),
        (401, openai("m", None, "invalid_api_key"), 401, "authentication_error"),
        (429, openai("m", "insufficient_quota", "insufficient_quota"), 429, "rate_limit_error"),
        (429, openai("m", "requests", "rate_limit_exceeded"), 429, "rate_limit_error"),
        (503, openai("m", "server_error", "server_is_overloaded"), 529, "overloaded_error"),
        (503, openai("m"), 529, "overloaded_error"),
        (504, openai("m"), 504, "timeout_error"),
        (500, openai("m", "server_error", 500), 500, "api_error"),
        (418, openai("m"), 418, "invalid_request_error"),
    ],
)
def test_to_messages(status: int, body: Json, want: int, type_: str) -> None:
    code, error = said(status, body, M, C)
    assert (code, error) == (want, {"type": type_, "message": "m"})


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [(429, anthropic("rate_limit_error"), "RESOURCE_EXHAUSTED"), (529, anthropic("overloaded_error"), "UNAVAILABLE")],
)
def test_to_gemini(status: int, body: Json, name: str) -> None:
    code, error = said(status, body, G, M)
    assert error == {"code": code, "message": "m", "status": name}


def test_a_list_a_string_and_no_json_at_all() -> None:
    assert said(429, [google("RESOURCE_EXHAUSTED", 429)], R, G)[1]["code"] == "rate_limit_exceeded"
    assert said(400, {"error": "plain"}, M, C)[1] == {"type": "invalid_request_error", "message": "plain"}
    assert said(400, {"detail": "why"}, M, C)[1]["message"] == "why"
    status, body = translate_error(502, b"<html>Bad gateway</html>", M, C)
    assert (status, json.loads(body)["error"]) == (502, {"type": "api_error", "message": "<html>Bad gateway</html>"})
    assert json.loads(translate_error(500, b"", R, M)[1])["error"]["message"] == "HTTP 500"
    assert said(500, [], R, G)[1]["message"] == "HTTP 500"


def test_numeric_codes_are_not_codes_and_parameters_survive() -> None:
    body = {"error": {"message": "m", "type": "server_error", "code": 502, "param": "p"}}
    error = said(502, body, R, C)[1]
    assert (error["code"], error["param"]) == ("server_error", "p")


def test_the_request_id_reaches_messages_clients_and_long_texts_are_cut() -> None:
    body = json.dumps({**openai("x" * 9000), "request_id": "req_9"}).encode()
    document = json.loads(translate_error(400, body, M, C)[1])
    assert document["request_id"] == "req_9"
    assert len(document["error"]["message"]) == 4096


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        ("12s", 12),
        ("0.5s", 1),
        ("3.000s", 3),
        ("3.001s", 4),
        ("x", None),
        ("-1s", None),
        ("1", None),
        (7, None),
        ("²s", None),
    ],
)
def test_the_delay_of_gemini(delay: object, seconds: int | None) -> None:
    document = {"error": {"details": [{"@type": "other"}, {"retryDelay": delay}]}}
    assert retry_after_s(json.dumps(document).encode(), G) == seconds
    assert retry_after_s(json.dumps([document]).encode(), G) == seconds
    assert retry_after_s(b"{", G) is None


def test_kinds_have_names_of_their_own_and_every_kind_is_reached() -> None:
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)
    reached = {kind_of(kind.code or "", kind.type, kind.status, "").name for kind in KINDS}
    reached |= {kind_of("", kind.anthropic, None, "").name for kind in KINDS}
    assert reached == set(names)


SPECIFIC = {
    401: ("authentication_error", "invalid_api_key", "authentication_error", 401, "UNAUTHENTICATED"),
    402: ("insufficient_quota", "insufficient_quota", "billing_error", 402, "FAILED_PRECONDITION"),
    403: ("permission_error", None, "permission_error", 403, "PERMISSION_DENIED"),
    404: ("invalid_request_error", "model_not_found", "not_found_error", 404, "NOT_FOUND"),
    413: ("invalid_request_error", "request_too_large", "request_too_large", 413, "INVALID_ARGUMENT"),
    429: ("rate_limit_error", "rate_limit_exceeded", "rate_limit_error", 429, "RESOURCE_EXHAUSTED"),
    503: ("server_error", "server_is_overloaded", "overloaded_error", 529, "UNAVAILABLE"),
    504: ("server_error", "timeout", "timeout_error", 504, "DEADLINE_EXCEEDED"),
}
CATCH_ALLS = [
    (C, openai("m", "invalid_request_error")),
    (R, openai("m", "server_error")),
    (C, openai("m", "upstream_error")),
    (C, openai("m")),
    (M, anthropic("invalid_request_error")),
    (M, anthropic("api_error")),
    (G, google("INVALID_ARGUMENT", 400)),
    (G, google("INTERNAL", 500)),
]


@pytest.mark.parametrize(("target", "body"), CATCH_ALLS, ids=lambda value: json.dumps(value)[:60])
@pytest.mark.parametrize("status", SPECIFIC)
def test_a_type_for_everything_says_less_than_the_status(status: int, target: Dialect, body: Json) -> None:
    type_, code, anthropic_type, anthropic_status, gemini = SPECIFIC[status]
    for client in DIALECTS:
        if client is target:
            continue
        got, error = said(status, body, client, target)
        if client is M:
            assert (got, error["type"]) == (anthropic_status, anthropic_type)
        elif client is G:
            assert (got, error["code"], error["status"]) == (status, status, gemini)
        else:
            assert (got, error["type"], error["code"]) == (status, type_, code)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_overflow_is_one_whatever_the_status(status: int) -> None:
    body = openai("This model's maximum context length is 9", "invalid_request_error")
    assert said(status, body, R, C)[1]["code"] == "context_length_exceeded"
