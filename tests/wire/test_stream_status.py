import pytest

from combos.core.facts import Dialect
from combos.wire.envelope_shapes import read_error
from combos.wire.stream_status import STATUS_ROWS, explicit_status, stated_status, stream_error
from combos.wire.terminal import FailureTerminal


def terminal(kind: str, **event: object) -> FailureTerminal:
    return FailureTerminal(Dialect.RESPONSES, kind, event)


UNSTATED = {"type": "upstream_error", "code": "upstream_server_error", "message": ""}


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (terminal("failed", response={"error": {"code": "c"}}), {"code": "c"}),
        (terminal("failed", response={"error": None}, error={"code": "d"}), {"code": "d"}),
        (terminal("failed", response={"error": {"code": "c"}}, error={"code": "d"}), {"code": "c"}),
        (terminal("failed", response={"last_error": {"code": "l"}}), {"code": "l"}),
        (terminal("failed", response={"status": "failed"}), UNSTATED),
        (terminal("failed", status="failed", error={"message": "m"}), {"message": "m"}),
        (terminal("error", error={"code": "d"}, response={"error": {"code": "c"}}), {"code": "d"}),
        (terminal("error", error="text"), {"message": "text"}),
        (
            terminal("error", type="error", code="c", message="m", param=None, sequence_number=2),
            {"code": "c", "message": "m", "param": None},
        ),
        (terminal("error", type="error", code=1302), {"code": 1302}),
        (terminal("error", type="error"), UNSTATED),
        (terminal("error", type="error", error={}, message=3), UNSTATED),
    ],
)
def test_error_objects(failure: FailureTerminal, expected: dict[str, object]) -> None:
    assert stream_error(failure) == expected


@pytest.mark.parametrize("kind", ["eof", "incomplete", "malformed"])
def test_silent_ends_are_upstream_failures(kind: str) -> None:
    failure = terminal(kind, error={"code": "cyber_policy"}, status=400)
    assert stream_error(failure)["code"] == "upstream_server_error"
    assert explicit_status(failure) is None
    assert stated_status(read_error({"error": stream_error(failure)})) == 502


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (terminal("error", status=503, error={"status": 400}), 503),
        (terminal("error", status="410", error={"message": "m"}), 410),
        (terminal("error", error={"http_status": 429}), 429),
        (terminal("error", status_code=418.0, message="m"), 418),
        (terminal("error", status=200, error={"status_code": 500}), 500),
        (terminal("error", status="failed", message="m"), None),
        (terminal("error", status="5034", message="m"), None),
        (terminal("error", status=600, message="m"), None),
        (terminal("error", status=True, message="m"), None),
        (terminal("error", status=400.5, message="m"), None),
        (terminal("error", status=float("inf"), message="m"), None),
        (terminal("error", error={"code": 502, "message": "m"}), 502),
        (terminal("error", error={"code": 1302, "message": "m"}), None),
        (terminal("error", error={"code": "502", "message": "m"}), None),
        (terminal("failed", status=503, response={"error": {"message": "m"}}), None),
        (terminal("failed", response={"error": {"code": 429, "message": "m"}}), 429),
    ],
)
def test_explicit_statuses(failure: FailureTerminal, status: int | None) -> None:
    assert explicit_status(failure) == status


STATED = [
    ("cancelled", {"code": "client_cancelled"}, 499),
    ("policy", {"code": "cyber_policy"}, 400),
    ("policy", {"message": "possible cybersecurity risk"}, 400),
    ("quota", {"code": "1308"}, 429),
    ("quota", {"type": "usage_limit_reached"}, 429),
    ("named-429", {"code": "rate_limit_exceeded"}, 429),
    ("named-429", {"type": "rate_limit_error"}, 429),
    ("named-401", {"type": "authentication_error"}, 401),
    ("named-403", {"code": "subscription_required"}, 403),
    ("named-429", {"code": "insufficient_quota"}, 429),
    ("named-503", {"code": "slow_down"}, 503),
    ("named-529", {"type": "overloaded_error"}, 529),
    ("named-500", {"type": "api_error"}, 500),
    ("named-402", {"type": "billing_error"}, 402),
    ("named-504", {"type": "timeout_error"}, 504),
    ("named-404", {"type": "not_found_error"}, 404),
    ("named-413", {"type": "request_too_large"}, 413),
    ("caller", {"type": "invalid_request_error", "code": "x", "message": "overloaded"}, 400),
    ("caller", {"code": "invalid_request_error"}, 400),
    ("says-window", {"message": "The usage limit has been reached"}, 429),
    ("says-rate", {"message": "Rate-limit hit"}, 429),
    ("says-rate", {"message": "Resource has been exhausted"}, 429),
    ("says-credentials", {"message": "Unauthorized"}, 401),
    ("says-permission", {"message": "No permission for this"}, 403),
    ("says-malformed-upstream", {"message": "malformed upstream frame"}, 502),
    ("says-unavailable", {"message": "Server busy"}, 503),
    ("says-server", {"type": "server_error", "message": "invalid answer"}, 502),
    ("says-request", {"message": "Model not found"}, 400),
    ("says-timeout", {"message": "The request timed out"}, 504),
]


@pytest.mark.parametrize(("_row", "error", "status"), STATED)
def test_stated_statuses(_row: str, error: dict[str, object], status: int) -> None:
    assert stated_status(read_error({"error": error})) == status


@pytest.mark.parametrize(
    "error",
    [
        {"message": "An error occurred while processing your request."},
        {"message": "failed to generate or moderate"},
        {"code": "invalid_request_error", "type": "server_error"},
        {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."},
        {"code": "model_not_found"},
        {},
    ],
)
def test_anything_else_is_a_bad_gateway(error: dict[str, object]) -> None:
    assert stated_status(read_error({"error": error})) == 502


def test_every_row_is_reached() -> None:
    assert {name for name, _, _ in STATUS_ROWS} == {row for row, _, _ in STATED}
