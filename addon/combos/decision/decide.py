"""One decision from question to record: the order of its gates, and that it always ends with something to dispatch.

It sends nothing and measures no time; the host does both between `prepare` and `conclude`.
"""

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial

from combos.core.limits import DECISION_TIMEOUT_DEFAULT_MS, DECISION_TIMEOUT_MAX_MS, DECISION_TIMEOUT_MIN_MS
from combos.core.names import TYPESAFE_PROVIDER
from combos.core.registry import Registry
from combos.core.values import dataclass
from combos.decision import model as model_method
from combos.decision import service as services
from combos.decision import systemone
from combos.decision.evidence import Evidence, evidence_of
from combos.decision.gates import Backend, Closed, Gate, backend_of
from combos.decision.options import Candidate, Option, Options, candidates_of, fail_open, notes_of, options_of
from combos.decision.service import Hosted, Secrets, Service
from combos.decision.systemone import Answer
from combos.engine.commands import Decide
from combos.engine.record import DecisionRecord


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be decided, and by whom. `evidence` is read only when somebody is there to be asked."""

    provider: str | None
    model: str | None
    candidates: tuple[Candidate, ...]
    evidence: Callable[[], Evidence] = field(repr=False)
    timeout_ms: int = DECISION_TIMEOUT_DEFAULT_MS

    @property
    def backend(self) -> Backend:
        """Who is asked."""
        return backend_of(self.provider, self.model)

    @property
    def deadline_ms(self) -> int:
        """How long the decision may take; a value that the configuration would refuse counts as the default."""
        is_valid = DECISION_TIMEOUT_MIN_MS <= self.timeout_ms <= DECISION_TIMEOUT_MAX_MS
        return self.timeout_ms if is_valid else DECISION_TIMEOUT_DEFAULT_MS


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A request to a System One service."""

    service: Service
    body: bytes = field(repr=False)
    options: Options = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """An internal turn for a model."""

    body: bytes = field(repr=False)
    options: Options = field(repr=False)


type Call = ServiceCall | ModelCall


@dataclass(frozen=True, slots=True)
class Means:
    """What there is to decide with. `has_models`: internal turns can be run."""

    secrets: Secrets
    hosted: Hosted = field(default_factory=Hosted)
    has_models: bool = True


def question_of(ask: Decide) -> Question:
    """The question of a turn."""
    config = ask.combo.config
    return Question(
        provider=config.decision_provider,
        model=config.decision_model,
        candidates=candidates_of(ask.combo, ask.eligible),
        evidence=partial(evidence_of, ask.facts),
        timeout_ms=config.decision_deadline_ms,
    )


def prepare(question: Question, registry: Registry, means: Means) -> Call:
    """The call to make. Raises `Closed` when none is made.

    Order of the gates: candidates and bounds, service, number of options, state, size.
    """
    options = options_of(question.candidates)
    if question.model is not None:
        if not means.has_models:
            raise Closed(Gate.MISSING_KEY)
        return _model_call(question, question.model, options, registry)
    service = _service(question, registry, means)
    systemone.check_count(service.backend, options)
    body = systemone.request_body(service.backend, service.model, question.candidates, options, _state(question))
    return ServiceCall(service, body, options)


def _service(question: Question, registry: Registry, means: Means) -> Service:
    if question.provider is None or question.provider == TYPESAFE_PROVIDER:
        return services.typesafe(registry, means.secrets, means.hosted)
    return services.compatible(question.provider, registry, means.secrets, means.hosted)


def _model_call(question: Question, model: str, options: Options, registry: Registry) -> ModelCall:
    model_method.check_count(options)
    effort = model_method.effort_for(model, registry)
    return ModelCall(model_method.request_body(model, effort, options, _state(question)), options)


def _state(question: Question) -> dict[str, object]:
    evidence = question.evidence()
    if not evidence.is_enough:
        raise Closed(Gate.NO_STATE)
    return evidence.state(notes_of(question.candidates))


def conclude(question: Question, ended: Answer | Gate, latency_ms: int) -> DecisionRecord:
    """The record of a decision: what the answer chose, or what is used because it failed."""
    if isinstance(ended, Answer):
        record = _record(question, Gate.APPLY, options_of(question.candidates)[ended.choice], latency_ms)
        return replace(record, confidence=ended.confidence, probability=ended.probability, usage=ended.usage)
    return _record(question, ended, fail_open(question.candidates), latency_ms)


def _record(question: Question, gate: Gate, chosen: Option | None, latency_ms: int) -> DecisionRecord:
    return DecisionRecord(
        backend=question.backend.value,
        gate=gate.value,
        provider=chosen.candidate.provider if chosen else None,
        model=chosen.candidate.model if chosen else None,
        effort=chosen.effort if chosen else None,
        latency_ms=latency_ms,
    )
