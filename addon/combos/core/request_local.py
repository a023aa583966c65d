"""Request-local incompatibility: a 400 that says this target cannot take an optional part of this very request.

The target is healthy, so a match hops and cools nothing. Every row is exact: whatever does not match is an ordinary
invalid request (functional spec, "Request-local target compatibility"). Reads parsed JSON; refuses to know statuses.
"""

import re
from collections.abc import Callable, Mapping

from combos.core.failure_codes import GENERIC_CODES
from combos.core.failure_facts import fold_code
from combos.core.values import dataclass

LONGEST_BODY = 16_384
"""Characters of a body that may carry evidence of this kind."""

_MOST_ENVELOPES = 3
_REWRAPPED = "Provider error 400: "
_GENERIC = frozenset({"", "invalid_request_error", "unsupported_parameter", "unsupported_value"})
_IMAGE = re.compile(r"Model '[^']{1,256}' does not support image inputs\.")
_TOOLS_WITH_EFFORT = re.compile(
    r"Function tools with reasoning_effort are not supported for gpt-6-astra(-[0-9]{4}-[0-9]{2}-[0-9]{2})?"
    r" in /v1/chat/completions\."
    r"( To use function tools, use /v1/responses or set reasoning_effort to 'none'\."
    r"| Please use /v1/responses instead\.)?",
)
_INCAPABLE = (
    "unavailable",
    "not available",
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "cannot be used",
    "is not enabled",
)


@dataclass(frozen=True, slots=True)
class Rejection:
    """The leaf error object of an intact 400: its message, its members and its folded code."""

    message: str
    error: Mapping[str, object]
    code: str

    def param_is(self, *names: str | None) -> bool:
        """Whether `param` is present with one of these values (None: JSON null)."""
        return "param" in self.error and self.error["param"] in names


@dataclass(frozen=True, slots=True)
class LocalRow:
    """One row of the table; `framed` also accepts a body that is a single `data:` line."""

    name: str
    codes: frozenset[str]
    matches: Callable[[Rejection], bool]
    framed: bool = False


def _is_user(rejection: Rejection) -> bool:
    """`Unsupported parameter: user`, about the parameter `user`."""
    named = "param" not in rejection.error or rejection.param_is("user")
    return named and rejection.message == "Unsupported parameter: user"


def _is_effort(rejection: Rejection) -> bool:
    """`Unsupported value: … not supported …`, about the reasoning effort."""
    message = rejection.message
    said = message.startswith("Unsupported value:") and "not supported" in message
    return said and rejection.param_is("reasoning.effort", "reasoning_effort")


def _is_image(rejection: Rejection) -> bool:
    """`Model '…' does not support image inputs.`, about `input`."""
    return rejection.param_is("input") and _IMAGE.match(rejection.message) is not None


def _is_response_format(rejection: Rejection) -> bool:
    """A message that names `response_format` and says that it is not supported."""
    named = "param" not in rejection.error or rejection.param_is(None, "response_format")
    message = rejection.message.lower()
    return named and "response_format" in message and any(phrase in message for phrase in _INCAPABLE)


def _is_tools_with_effort(rejection: Rejection) -> bool:
    """Function tools together with `reasoning_effort`, on Chat Completions."""
    codeless = "code" in rejection.error and rejection.error["code"] is None
    said = _TOOLS_WITH_EFFORT.fullmatch(rejection.message) is not None
    return codeless and said and rejection.param_is("reasoning_effort")


LOCAL_ROWS: tuple[LocalRow, ...] = (
    LocalRow("user", frozenset({"", "invalid_request_error", "unsupported_parameter"}), _is_user),
    LocalRow("effort", frozenset({"unsupported_value"}), _is_effort),
    LocalRow("image", GENERIC_CODES, _is_image),
    LocalRow("response-format", _GENERIC | {"invalid_parameter_error"}, _is_response_format, framed=True),
    LocalRow("tools-with-effort", frozenset({""}), _is_tools_with_effort),
)


def local_row(
    document: object,
    *,
    characters: int,
    framed: bool,
    parse: Callable[[str], object],
) -> str | None:
    """Name of the row that an intact body matches, or None.

    `characters` is the length of the whole body, `framed` says that it was one `data:` line, and `parse` reads JSON
    text (None when it is not JSON) for messages that a relay has wrapped.
    """
    if characters > LONGEST_BODY:
        return None
    rejection = _leaf(document, parse)
    if rejection is None:
        return None
    rows = (row for row in LOCAL_ROWS if row.framed or not framed)
    return next((row.name for row in rows if rejection.code in row.codes and row.matches(rejection)), None)


def _leaf(document: object, parse: Callable[[str], object]) -> Rejection | None:
    """The innermost error object. A wrapping envelope has no code of its own, so the inner code speaks for it."""
    for _ in range(_MOST_ENVELOPES):
        error = document.get("error") if isinstance(document, Mapping) else None
        if not isinstance(error, Mapping):
            return None
        message, code = error.get("message"), error.get("code")
        if not isinstance(message, str) or not (code is None or isinstance(code, str)):
            return None
        folded = fold_code(code or "")
        if not message.startswith(_REWRAPPED):
            caller = error.get("type") == "invalid_request_error"
            return Rejection(message, error, folded) if caller else None
        if "param" in error or folded not in GENERIC_CODES:
            return None
        document = parse(message.removeprefix(_REWRAPPED))
    return None
