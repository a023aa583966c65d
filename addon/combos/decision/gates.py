"""The names that a decision ends with, and those of the services that make one."""

from enum import StrEnum

from combos.core.names import TYPESAFE_PROVIDER


class Gate(StrEnum):
    """How a decision ended; only `apply` is one. The order is that of the statistics."""

    APPLY = "apply"
    MISSING_KEY = "missing_key"
    NO_CHOICES = "no_choices"
    NO_STATE = "no_state"
    INVALID = "invalid"
    TIMEOUT = "timeout"
    NETWORK = "network"
    REDIRECT = "redirect"
    HTTP = "http"
    MALFORMED = "malformed"


class Backend(StrEnum):
    """Who decides: TypeSafe's hosted service, a server with the same contract, an ordinary model."""

    TYPESAFE = "typesafe"
    SYSTEMONE = "systemone"
    MODEL = "model"


class Closed(Exception):  # noqa: N818 - a gate closes
    """The decision ends here, without a choice."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(gate.value)
        self.gate = gate


def backend_of(provider: str | None, model: str | None) -> Backend:
    """The backend that the two selectors of a combo mean; there is no stored one."""
    if model is not None:
        return Backend.MODEL
    return Backend.TYPESAFE if provider in (None, TYPESAFE_PROVIDER) else Backend.SYSTEMONE
