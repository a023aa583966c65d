"""Why a change was not made: one exception for the store, the management API and the command line."""

from collections.abc import Mapping
from enum import StrEnum

from combos.core.errors import ConfigError, ConfigProblem


class Kind(StrEnum):
    """What kind of refusal it is; the API has a status for each."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"


class RefusalError(Exception):
    """A change that was understood and refused. `code` is for programs, `problems` says where, `extra` adds facts.

    No text of it holds a value of the configuration.
    """

    def __init__(
        self,
        kind: Kind,
        code: str,
        message: str,
        problems: tuple[ConfigProblem, ...] = (),
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.code = code
        self.message = message
        self.problems = problems
        self.extra = dict(extra or {})


def invalid(
    message: str, code: str = "invalid_request", problems: tuple[ConfigProblem, ...] = (), at: str = ""
) -> RefusalError:
    """The request itself is wrong. `at`: the field or parameter at fault, where `problems` do not say more."""
    if at and not problems:
        problems = (ConfigProblem(at, message.removeprefix(f"{at} ")),)
    return RefusalError(Kind.INVALID, code, message, problems)


def not_found(message: str, code: str = "not_found") -> RefusalError:
    """It names something that is not there."""
    return RefusalError(Kind.NOT_FOUND, code, message)


def conflict(message: str, code: str, **extra: object) -> RefusalError:
    """Something else stands in the way."""
    return RefusalError(Kind.CONFLICT, code, message, extra=extra)


def broken_file(path: object, error: ConfigError) -> RefusalError:
    """The file as it lies there cannot be used, and is not written over."""
    message = f"{path} is not valid and is left as it is; mend it first: {error.problems[0]}"
    return RefusalError(Kind.CONFLICT, "config_invalid", message, error.problems)


def not_valid(problems: tuple[ConfigProblem, ...]) -> RefusalError:
    """The configuration would not be valid after the change. The first problem is the message."""
    is_conflict = any(problem.code == "conflict" for problem in problems)
    kind = Kind.CONFLICT if is_conflict else Kind.INVALID
    return RefusalError(kind, "conflict" if is_conflict else "invalid_config", str(problems[0]), problems)
