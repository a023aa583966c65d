"""Local refusals: the exact status, type, code and message of each."""

import pytest

from combos.core import errors
from combos.core.errors import ConfigError, ConfigProblem, ProxyError
from combos.core.facts import TransportFault

INVALID = "invalid_request_error"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.unknown_combo("nope"), (404, INVALID, "model_not_found", "Unknown combo: nope", None)),
        (
            errors.combo_unavailable("main", 7),
            (503, "server_error", "combo_unavailable", "No available targets for combo: main", 7),
        ),
        (
            errors.combo_unavailable("main"),
            (503, "server_error", "combo_unavailable", "No available targets for combo: main", None),
        ),
        (
            errors.unsupported_by_target("alpha/m1", "audio", "has no counterpart"),
            (400, INVALID, "unsupported_by_target", "audio has no counterpart and cannot be sent to alpha/m1.", None),
        ),
        (
            errors.send_budget_exhausted(),
            (
                429,
                "rate_limit_error",
                "request_send_budget_exhausted",
                "request send budget exhausted before combo dispatch",
                None,
            ),
        ),
        (
            errors.client_cancelled(),
            (499, "client_cancelled", "client_cancelled", "Client cancelled request", None),
        ),
        (
            errors.image_refused("main"),
            (400, INVALID, INVALID, 'Combo "main" does not accept image input', None),
        ),
        (
            errors.encrypted_task(),
            (
                400,
                INVALID,
                "unreadable_encrypted_agent_task",
                "task is encrypted for the native ChatGPT backend",
                None,
            ),
        ),
        (
            errors.recursive_decision("main"),
            (
                400,
                INVALID,
                "recursive_decision",
                "A decision cannot ask combo main: it decides itself",
                None,
            ),
        ),
        (errors.forbidden("no key"), (403, "permission_error", "forbidden", "no key", None)),
        (
            errors.body_too_large(10),
            (413, INVALID, "request_too_large", "Request body is larger than 10 bytes", None),
        ),
        (
            errors.head_too_large(10),
            (
                431,
                INVALID,
                "request_header_fields_too_large",
                "The request's header fields are over the limit of 10 bytes",
                None,
            ),
        ),
        (errors.bad_request("no model"), (400, INVALID, INVALID, "no model", None)),
        (errors.bad_request("no model", "missing_model"), (400, INVALID, "missing_model", "no model", None)),
        (
            errors.transport_failure(TransportFault.REFUSED, "alpha refused the connection"),
            (502, "server_error", "connection_refused", "alpha refused the connection", None),
        ),
        (
            errors.transport_failure(TransportFault.HEAD_TIMEOUT, "no answer"),
            (502, "server_error", "response_header_timeout", "no answer", None),
        ),
        (
            errors.transport_failure(TransportFault.IDLE_TIMEOUT, "stalled"),
            (504, "server_error", "idle_timeout", "stalled", None),
        ),
    ],
)
def test_refusals(error: ProxyError, expected: tuple[object, ...]) -> None:
    assert (error.status, error.type, error.code, error.message, error.retry_after_s) == expected
    assert str(error) == error.message


def test_lost_continuation_names_the_response() -> None:
    error = errors.previous_response_not_found("resp_1")
    assert (error.status, error.code) == (400, "previous_response_not_found")
    assert "'resp_1'" in error.message


def test_repr_shows_every_field() -> None:
    assert repr(ProxyError(400, "t", "c", "m", 3)) == "ProxyError(400, 't', 'c', 'm', 3)"


def test_config_error_lists_every_problem() -> None:
    first, second = ConfigProblem("a.b", "is required"), ConfigProblem("", "the file is empty")
    error = ConfigError((first, second))
    assert error.problems == (first, second)
    assert str(error) == "a.b: is required; the file is empty"


@pytest.mark.parametrize("quoted", ["x" * 100_000, "\udcff\ud83d", "\udcff" * 5_000])
def test_a_message_can_be_written_whatever_it_quotes(quoted: str) -> None:
    message = errors.unknown_model(quoted).message
    assert message.startswith("Unknown model: ")
    assert len(message.encode()) <= 1_100
