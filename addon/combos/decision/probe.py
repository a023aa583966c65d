"""Trial decisions: what is asked when somebody tests a decision service or a method, and how the result is told.

The question is fixed and holds nothing of anybody; a trial may cost a call all the same.
"""

from collections.abc import Mapping
from functools import partial

from combos.core.config import decision_model_fault
from combos.core.config_types import near_miss
from combos.core.limits import (
    DECISION_MODEL_MAX,
    DECISION_TIMEOUT_DEFAULT_MS,
    DECISION_TIMEOUT_MAX_MS,
    DECISION_TIMEOUT_MIN_MS,
)
from combos.core.names import TYPESAFE_PROVIDER
from combos.core.registry import Registry
from combos.core.values import dataclass
from combos.decision.decide import Question
from combos.decision.evidence import Evidence
from combos.decision.gates import Gate
from combos.decision.options import Candidate
from combos.decision.service import Hosted, Issue, is_preset, usable_row
from combos.engine.record import DecisionRecord

TASK = "Connection test: choose any option."
_EFFORTS = ("low", "high")
_NAMES = ("comboId", "decisionProvider", "decisionModel", "decisionTimeoutMs")

type Json = dict[str, object]


class TrialRefused(Exception):  # noqa: N818
    """A test that cannot be made; the text says why. `issue`: the row's fault, `disabled`, `endpoint` or `model`."""

    def __init__(self, message: str, issue: str | None = None) -> None:
        super().__init__(message)
        self.issue = issue


def _question(provider: str | None, model: str | None, candidate: Candidate, timeout_ms: int) -> Question:
    return Question(provider, model, (candidate,), partial(Evidence, TASK), timeout_ms)


# -- the test of a provider row


def provider_question(name: str) -> Question:
    """The trial of a decision row: one option for TypeSafe, two for a compatible row, which takes no fewer."""
    efforts = () if name == TYPESAFE_PROVIDER else _EFFORTS
    return _question(name, None, Candidate("jev", "probe", efforts), DECISION_TIMEOUT_DEFAULT_MS)


def is_testable(name: str, registry: Registry, hosted: Hosted) -> bool:
    """False for a row named `jev` that was pointed elsewhere: its address is never asked."""
    row = registry.providers.get(name)
    return name != TYPESAFE_PROVIDER or row is None or is_preset(row.config, hosted)


def provider_result(record: DecisionRecord) -> Json:
    """The result for people: an error names the gate and nothing else."""
    if record.gate == Gate.APPLY:
        return {"ok": True, "latencyMs": record.latency_ms, "message": "Decision service answered"}
    error = "not configured" if record.gate == Gate.MISSING_KEY else record.gate
    return {"ok": False, "latencyMs": record.latency_ms, "error": error}


# -- the test of a method


@dataclass(frozen=True, slots=True)
class _Fields:
    combo_id: str | None
    provider: str | None
    model: str | None
    timeout_ms: int


def trial_question(body: object, registry: Registry) -> Question:
    """The trial that a request body describes: `{comboId?, decisionProvider?, decisionModel?, decisionTimeoutMs?}`.

    The method is that of the body alone. Raises `TrialRefused`.
    """
    fields = _fields(body)
    if fields.provider is not None and fields.model is not None:
        raise TrialRefused("decisionModel excludes decisionProvider: give one of them")
    if fields.provider is not None and fields.provider != TYPESAFE_PROVIDER:
        _check_row(fields.provider, registry)
    if fields.model is not None:
        _check_route(fields.model, fields.combo_id, registry)
    return _question(fields.provider, fields.model, Candidate("probe", "decision", _EFFORTS), fields.timeout_ms)


def trial_result(record: DecisionRecord) -> Json:
    """The result for programs."""
    ok = record.gate == Gate.APPLY
    result: Json = {"ok": ok, "backend": record.backend, "gate": record.gate, "latencyMs": record.latency_ms}
    return {**result, "effort": record.effort} if ok else result


def _fields(body: object) -> _Fields:
    if not isinstance(body, Mapping):
        raise TrialRefused("the body must be a JSON object")
    _refuse_unknown(body)
    texts = {name: _text(body, name) for name in ("comboId", "decisionProvider", "decisionModel")}
    timeout = body.get("decisionTimeoutMs")
    if timeout is None:
        timeout = DECISION_TIMEOUT_DEFAULT_MS
    if type(timeout) is not int or not DECISION_TIMEOUT_MIN_MS <= timeout <= DECISION_TIMEOUT_MAX_MS:
        raise TrialRefused(
            f"decisionTimeoutMs must be a whole number from {DECISION_TIMEOUT_MIN_MS} to {DECISION_TIMEOUT_MAX_MS}"
        )
    return _Fields(texts["comboId"], texts["decisionProvider"], texts["decisionModel"], timeout)


def _refuse_unknown(body: Mapping[str, object]) -> None:
    """A misspelt method would be a decision of TypeSafe, which costs."""
    for name in body:
        if name not in _NAMES:
            raise TrialRefused(f"{name} is not expected here{near_miss(name, list(_NAMES))}")


def _text(body: Mapping[str, object], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise TrialRefused(f"{name} must be a text that is not empty")
    return value


def _check_row(name: str, registry: Registry) -> None:
    try:
        usable_row(name, registry)
    except Issue as issue:
        if issue.name == "missing":
            raise TrialRefused(f"decisionProvider: {name} is not a configured decision service") from None
        raise TrialRefused(f"decisionProvider: {name} cannot be used ({issue.name})", issue.name) from None


def _check_route(model: str, combo_id: str | None, registry: Registry) -> None:
    """The rules of a saved combo, and that the name leads somewhere."""
    if len(model) > DECISION_MODEL_MAX:
        raise TrialRefused(f"decisionModel must be a text of 1 to {DECISION_MODEL_MAX} characters")
    fault = decision_model_fault(registry.config, combo_id, model)
    if fault is not None:
        raise TrialRefused(f"decisionModel {fault}")
    if (registry.resolve(model) or registry.resolve_bare(model)) is None:
        raise TrialRefused(f"decisionModel: {model} names no configured model")
