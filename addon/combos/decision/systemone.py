"""The System One contract: the request with its one choice question, and what makes a reply a valid answer.

Where the request goes, and with which key, is decided elsewhere.
"""

import math
from collections.abc import Mapping

import orjson

from combos.core.values import dataclass
from combos.decision.gates import Backend, Closed, Gate
from combos.decision.options import Candidate, Options
from combos.decision.profiles import instructions

# Functional spec, "Shared limits, state, and statistics": requests and responses are bounded to 64 KiB.
REQUEST_MAX = 65_536
REPLY_MAX = 65_536
# A compatible row takes this many options; TypeSafe documents 255, which the bound on candidates need not repeat.
OPTIONS_MIN = 2
OPTIONS_MAX = 26

_SUM_TOLERANCE = 0.02
_MAX_TOLERANCE = 1e-6
_SAFE_INTEGER = 2**53 - 1
_COUNTERS = (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))


@dataclass(frozen=True, slots=True)
class Answer:
    """A valid answer: the key of the option chosen, and what the service says of itself."""

    choice: str
    confidence: float | None = None
    probability: float | None = None
    usage: dict[str, int] | None = None


def check_count(backend: Backend, options: Options) -> None:
    """Raises `Closed` when a compatible row may not be asked to choose between so many options."""
    if backend is Backend.SYSTEMONE and len(options) < OPTIONS_MIN:
        raise Closed(Gate.NO_CHOICES)
    if backend is Backend.SYSTEMONE and len(options) > OPTIONS_MAX:
        raise Closed(Gate.INVALID)


def request_body(
    backend: Backend, model: str, candidates: tuple[Candidate, ...], options: Options, state: Mapping[str, object]
) -> bytes:
    """The request, the same bytes for the same input. Raises `Closed` (`invalid`) when it is too large."""
    is_typed = backend is Backend.TYPESAFE
    criteria = {key: option.criteria if is_typed else option.description for key, option in options.items()}
    question = {"type": "choice", "instructions": instructions(candidates), "criteria": criteria}
    body = orjson.dumps({"model": model, "state": state, "questions": {"route": question}})
    if len(body) > REQUEST_MAX:
        raise Closed(Gate.INVALID)
    return body


def read_reply(body: bytes, options: Options) -> Answer:
    """The answer in a 2xx reply. Raises `Closed`: `malformed` for bytes that are no JSON, else `invalid`."""
    if len(body) > REPLY_MAX:
        raise Closed(Gate.MALFORMED)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Closed(Gate.MALFORMED) from None
    route = _member(_member(document, "answers"), "route")
    choice = _member(route, "choice")
    if not isinstance(choice, str) or choice not in options:
        raise Closed(Gate.INVALID)
    probability = None
    if isinstance(route, Mapping) and "probabilities" in route:
        probability = _probability(route["probabilities"], choice, options)
    # A confidence that is no share is dropped: it decides nothing.
    return Answer(choice, share(_member(route, "confidence")), probability, usage_of(_member(document, "usage")))


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None


def _probability(table: object, choice: str, options: Options) -> float:
    """The chosen option's probability, of a distribution over exactly the offered options in which it is a mode."""
    if not isinstance(table, Mapping) or table.keys() != options.keys():
        raise Closed(Gate.INVALID)
    numbers = {key: number for key, value in table.items() if (number := share(value)) is not None}
    is_distribution = len(numbers) == len(table) and abs(sum(numbers.values()) - 1) <= _SUM_TOLERANCE
    if not is_distribution or numbers[choice] < max(numbers.values()) - _MAX_TOLERANCE:
        raise Closed(Gate.INVALID)
    return numbers[choice]


def share(value: object) -> float | None:
    """A finite number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def usage_of(usage: object) -> dict[str, int] | None:
    """Input and output tokens that a service reports; None unless both are whole, not negative and exact."""
    found = {names[0]: count for names in _COUNTERS if (count := _count(usage, names)) is not None}
    return found if len(found) == len(_COUNTERS) else None


def _count(usage: object, names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := whole(_member(usage, name))) is not None), None)


def whole(value: object) -> int | None:
    """A whole number that is not negative and that every JSON reader keeps exactly."""
    return value if type(value) is int and 0 <= value <= _SAFE_INTEGER else None
