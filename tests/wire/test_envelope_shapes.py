import json

import pytest

from combos.wire.envelope_shapes import LONGEST_CODE, parse_json, read_error


def said(document: object) -> tuple[str, str, str]:
    error = read_error(document)
    return error.message, error.folded_code, error.error_type


def rewrapped(error: object, **members: object) -> dict[str, object]:
    return {"error": {"message": "Provider error 502: " + json.dumps({"error": error}), **members}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            {"error": {"message": "m", "type": "tokens", "param": None, "code": "Rate-Limit_exceeded "}},
            ("m", "rate_limit_exceeded", "tokens"),
        ),
        ({"response": {"error": {"message": "m", "code": "c"}}}, ("m", "c", "")),
        ({"response": {"last_error": {"message": "m", "code": "c"}}}, ("m", "c", "")),
        ({"last_error": {"message": "m", "code": "c"}}, ("m", "c", "")),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"},
            ("Overloaded", "server_is_overloaded", "overloaded_error"),
        ),
        (
            {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}},
            ("m", "rate_limit_exceeded", "resource_exhausted"),
        ),
        (
            [{"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}],
            ("m", "server_is_overloaded", "unavailable"),
        ),
        (
            {"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}},
            ("", "invalid_api_key", "invalid_argument"),
        ),
        ({"detail": "Not authenticated"}, ("Not authenticated", "", "")),
        ({"detail": [{"msg": "a"}, {"msg": "b"}, 3, {"msg": 4}]}, ("a; b", "", "")),
        ({"detail": {"message": "m", "code": "c", "type": "t"}}, ("m", "c", "t")),
        ({"type": "about:blank", "detail": "text"}, ("text", "", "about:blank")),
        ({"error": "text"}, ("text", "", "")),
        ({"error": "text", "code": "c"}, ("text", "c", "")),
        ({"message": "m", "code": "c"}, ("m", "c", "")),
        ({"type": "error", "message": "m"}, ("m", "", "")),
        ({"type": "response.failed", "message": "m"}, ("m", "", "")),
        ({"error": {"code": 1302}}, ("", "1302", "")),
        ({"error": {"code": True, "message": "m"}}, ("m", "", "")),
        ({"error": {"code": 99, "message": "m"}}, ("m", "99", "")),
        ({"error": {"error": {"message": "quoted", "code": "c"}}}, ("", "", "")),
        ({"error": {"type": "billing_error", "code": "other", "message": "m"}}, ("m", "other", "billing_error")),
        ({"error": {"type": "billing_error", "code": " ", "message": "m"}}, ("m", "billing_error", "billing_error")),
        ({"error": {}, "message": "root"}, ("root", "", "")),
        ([], ("", "", "")),
        ([{"error": "a"}, {"error": "b"}], ("", "", "")),
        ("text", ("", "", "")),
        (None, ("", "", "")),
    ],
)
def test_shapes(document: object, expected: tuple[str, str, str]) -> None:
    assert said(document) == expected


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (rewrapped({"message": "m", "code": "c"}), ("m", "c", "")),
        (rewrapped({"message": "m", "code": "c"}, code="upstream_server_error"), ("m", "c", "")),
        (rewrapped({"message": "m", "code": "c"}, code="specific"), ("m", "specific", "")),
        (rewrapped({"message": "m"}, code="server_error", type="t"), ("m", "server_error", "t")),
        (rewrapped({"message": "m", "type": "inner"}, type="outer"), ("m", "", "inner")),
        ({"error": {"message": json.dumps({"error": {"message": "m", "code": "c"}})}}, ("m", "c", "")),
        ({"error": {"message": "Provider error 502: bad gateway"}}, ("bad gateway", "", "")),
        ({"error": {"message": 'Provider error 502: {"error":', "code": "c"}}, ("", "c", "")),
        ({"error": {"message": "[400] model is unavailable"}}, ("[400] model is unavailable", "", "")),
    ],
)
def test_wrapping(document: object, expected: tuple[str, str, str]) -> None:
    assert said(document) == expected


def test_what_is_wrapped_too_deep_is_no_prose() -> None:
    error: object = {"message": "usage limit reached", "code": "1308"}
    for _ in range(5):
        error = rewrapped(error)["error"]
    assert said({"error": error}) == ("", "", "")


def test_codes_of_all_carriers_are_kept() -> None:
    document = {
        "code": "root",
        "error": {"code": "a", "message": "m"},
        "response": {"error": {"code": "B-b"}, "last_error": {"type": "cyber_policy"}},
        "last_error": {"code": "c"},
        "detail": {"code": "d"},
        "elsewhere": {"code": "no"},
    }
    assert read_error(document).folded_carried == {"root", "a", "b_b", "cyber_policy", "c", "d"}
    inner = read_error(rewrapped({"code": "inner", "message": "m"}, code="outer"))
    assert inner.folded_carried == {"outer", "inner"}


def test_params_and_bounds() -> None:
    assert read_error({"error": {"message": "m", "param": "p"}}).param == "p"
    assert read_error({"error": {"message": "m", "param": 3}}).param is None
    assert len(read_error({"error": {"code": "x" * 5000}}).code) == LONGEST_CODE


def test_parse_json() -> None:
    assert parse_json("[1]") == [1]
    assert parse_json("{") is None
    assert parse_json("[" * 60_000) is None


def test_half_a_surrogate_pair_in_a_message_does_not_hide_the_code() -> None:
    error = read_error(parse_json('{"error":{"message":"a\\ud800","code":"insufficient_quota"}}'))
    assert (error.message, error.code) == ("a\ufffd", "insufficient_quota")
