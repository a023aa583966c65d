"""The two errors the rules raise: a configuration that cannot be used, and a request refused here.

Status, type, code and message of every local refusal are written once, in this module. How they look on the wire in
a dialect is decided by `wire.errors`; which situation calls for which refusal is decided by the engine.
"""

from combos.core.facts import TransportFault
from combos.core.values import dataclass


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One broken rule: where (`combos.main.targets[0].weight`) and what is wrong. The message holds no secret value.

    `code` is `conflict` when a well-formed name is taken by something else that owns it, `invalid` otherwise.
    """

    path: str
    message: str
    code: str = "invalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(Exception):
    """The configuration cannot be used. `problems` holds every broken rule, in file order within each check."""

    def __init__(self, problems: tuple[ConfigProblem, ...]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


class ProxyError(Exception):
    """A refusal made here, not by a target: HTTP status, error type, machine code, text, seconds for Retry-After.

    `param` is the part of the request that is to blame, where one is.
    """

    def __init__(
        self,
        status: int,
        type: str,
        code: str,
        message: str,
        retry_after_s: int | None = None,
        param: str | None = None,
    ) -> None:
        message = _sayable(message)
        super().__init__(message)
        self.status = status
        self.type = type
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.param = param

    def __repr__(self) -> str:
        return f"ProxyError({self.status}, {self.type!r}, {self.code!r}, {self.message!r}, {self.retry_after_s!r})"


_LONGEST_MESSAGE = 1_000


def _sayable(message: str) -> str:
    """A message quotes what a client sent: it can be of any length, and hold bytes that are no UTF-8."""
    shown = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
    return shown.encode(errors="replace").decode()


_INVALID = "invalid_request_error"
_SERVER = "server_error"

# An answer that began and then stalled is a gateway timeout; everything else counts as a bad gateway.
_TIMEOUTS = frozenset({TransportFault.IDLE_TIMEOUT})


def unknown_combo(combo_id: str) -> ProxyError:
    """404. The code is `model_not_found` because Codex repeats a 404 with any other code five times."""
    return ProxyError(404, _INVALID, "model_not_found", f"Unknown combo: {combo_id}")


def unknown_model(model: str) -> ProxyError:
    """404 on the proxy's own address for a model that no combo, alias or provider answers to."""
    return ProxyError(404, _INVALID, "model_not_found", f"Unknown model: {model}")


def combo_unavailable(combo_id: str, retry_after_s: int | None = None) -> ProxyError:
    """503, nothing eligible and nothing dispatched. `retry_after_s` is None when no target of the combo is cooling."""
    return ProxyError(503, _SERVER, "combo_unavailable", f"No available targets for combo: {combo_id}", retry_after_s)


def target_unavailable(target: str, reason: str) -> ProxyError:
    """503: the one target of a direct route cannot be called; `reason` is the name of the eligibility rule."""
    return ProxyError(503, _SERVER, "target_unavailable", f"{target} is not available: {reason}")


def unsupported_by_target(target: str, param: str, reason: str) -> ProxyError:
    """400: `param` of the request cannot be sent to the target, and no other is left. `reason` begins with a verb."""
    message = f"{param} {reason} and cannot be sent to {target}."
    return ProxyError(400, _INVALID, "unsupported_by_target", message, param=param)


def send_budget_exhausted() -> ProxyError:
    """429 without Retry-After: the send budget refused the first target."""
    message = "request send budget exhausted before combo dispatch"
    return ProxyError(429, "rate_limit_error", "request_send_budget_exhausted", message)


def client_cancelled() -> ProxyError:
    """499: the caller is gone; recorded, hardly ever read."""
    return ProxyError(499, "client_cancelled", "client_cancelled", "Client cancelled request")


def image_refused(combo_id: str) -> ProxyError:
    """400 for `imageInput: "disabled"`; names the id, also when an alias was requested."""
    return ProxyError(400, _INVALID, _INVALID, f'Combo "{combo_id}" does not accept image input')


def encrypted_task() -> ProxyError:
    """400: a sub-agent task that only the native ChatGPT backend can read, and no such target is available."""
    message = "task is encrypted for the native ChatGPT backend"
    return ProxyError(400, _INVALID, "unreadable_encrypted_agent_task", message)


def recursive_decision(combo_id: str) -> ProxyError:
    """400: a decision was routed to a combo that would ask for a decision itself; no client sees it."""
    return ProxyError(400, _INVALID, "recursive_decision", f"A decision cannot ask combo {combo_id}: it decides itself")


def previous_response_not_found(response_id: str) -> ProxyError:
    """400: the state behind `previous_response_id` is not known here, and targets do not share storage."""
    message = f"Previous response {response_id!r} is not available here; send the full conversation instead"
    return ProxyError(400, _INVALID, "previous_response_not_found", message, param="previous_response_id")


def forbidden(message: str) -> ProxyError:
    """403: this client may not use combos."""
    return ProxyError(403, "permission_error", "forbidden", message)


def loop_detected() -> ProxyError:
    """508: a request that this proxy sent to a target came back to it through another proxy."""
    return ProxyError(508, _SERVER, "loop_detected", "This request has come back to the proxy that sent it")


def head_too_large(limit: int) -> ProxyError:
    """431: the header fields are more than a target would take."""
    message = f"The request's header fields are over the limit of {limit} bytes"
    return ProxyError(431, _INVALID, "request_header_fields_too_large", message)


def body_too_large(limit_bytes: int) -> ProxyError:
    """413: the request body, as sent or decompressed, is over the limit."""
    return ProxyError(413, _INVALID, "request_too_large", f"Request body is larger than {limit_bytes} bytes")


def bad_request(message: str, code: str = _INVALID) -> ProxyError:
    """400: the request cannot be understood."""
    return ProxyError(400, _INVALID, code, message)


def internal_failure() -> ProxyError:
    """500: a defect of the proxy, told in the client's format like everything else. The log knows where."""
    return ProxyError(500, _SERVER, "internal_error", "The proxy failed to make a response")


def transport_failure(fault: TransportFault, detail: str) -> ProxyError:
    """502 or 504 in place of an answer that never came; the code is the fault's name."""
    return ProxyError(504 if fault in _TIMEOUTS else 502, _SERVER, fault.value, detail)
