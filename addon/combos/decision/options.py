"""What a decision may choose between: the eligible targets, and each of them with each effort it supports.

Never widens what the combo allows: an unknown ladder offers no effort, and an allowlist that fits no rung of today's
ladder takes the target out of the decision (fallback still reaches it).
"""

from collections.abc import Mapping, Sequence

from combos.core.config_combo import TargetConfig
from combos.core.ladder import RUNGS, resolve_at_or_below
from combos.core.names import TYPESAFE_PROVIDER, target_key
from combos.core.registry import Combo, Target
from combos.core.values import dataclass
from combos.decision.gates import Closed, Gate

CANDIDATES_MAX = 64
FIELD_MAX = 512  # characters of a key, provider, model or note
PREFERRED = "medium"  # effort of the target that is used without a decision
NO_EFFORT = "none"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A target on offer. `efforts` is ascending; empty when its effort cannot be chosen."""

    provider: str
    model: str
    efforts: tuple[str, ...] = ()
    note: str = ""

    @property
    def key(self) -> str:
        """The target's key."""
        return target_key(self.provider, self.model)


@dataclass(frozen=True, slots=True)
class Option:
    """One target with one effort; None for a target whose effort cannot be chosen."""

    candidate: Candidate
    effort: str | None

    @property
    def key(self) -> str:
        """How an answer names the option."""
        return f"{self.candidate.key}:{self.effort or NO_EFFORT}"

    @property
    def description(self) -> str:
        """The option in words, for services that take no objects."""
        who = f"Target {self.candidate.key} (provider {self.candidate.provider}, model {self.candidate.model})"
        if self.effort is None:
            return f"{who} with no reasoning-effort control."
        return f"{who} with {self.effort} reasoning effort."

    @property
    def criteria(self) -> dict[str, str | None]:
        """The option as an object."""
        return {
            "target": self.candidate.key,
            "provider": self.candidate.provider,
            "model": self.candidate.model,
            "reasoning_effort": self.effort,
        }


type Options = Mapping[str, Option]


def candidates_of(combo: Combo, eligible: Sequence[Target]) -> tuple[Candidate, ...]:
    """The candidates among the eligible targets, in configuration order."""
    rows = {target_key(row.provider, row.model): row for row in combo.config.targets}
    service = combo.config.decision_provider or TYPESAFE_PROVIDER
    offered = [target for target in eligible if target.provider_name != service]
    found = [(target, _candidate(target, rows.get(target.key))) for target in offered]
    return _without_last_resorts(combo, [(target, made) for target, made in found if made is not None])


def _candidate(target: Target, row: TargetConfig | None) -> Candidate | None:
    efforts = tuple(rung for rung in RUNGS if rung in (target.ladder or ()))
    if row is not None and row.reasoning_efforts is not None:
        efforts = tuple(rung for rung in efforts if rung in row.reasoning_efforts)
        if not efforts:
            return None
    note = (row.model_profile or "").strip() if row is not None else ""
    return Candidate(target.provider_name, target.model, efforts, note)


def _without_last_resorts(combo: Combo, found: list[tuple[Target, Candidate]]) -> tuple[Candidate, ...]:
    """Last resorts are withheld while a normal target is on offer, if the combo's policy says so."""
    normal = [made for target, made in found if target in combo.normal]
    return tuple(normal or [made for _, made in found])


def fail_open(candidates: Sequence[Candidate]) -> Option | None:
    """What is used when the decision fails: the first candidate at medium effort or the nearest it has."""
    if not candidates:
        return None
    return Option(candidates[0], resolve_at_or_below(PREFERRED, candidates[0].efforts))


def options_of(candidates: Sequence[Candidate]) -> dict[str, Option]:
    """The options by key, in the order of targets and ladders.

    Raises `Closed`: `no_choices` without a candidate, `invalid` for too many, an overlong text, a key seen twice.
    """
    if not candidates:
        raise Closed(Gate.NO_CHOICES)
    if len(candidates) > CANDIDATES_MAX or not all(_is_bounded(candidate) for candidate in candidates):
        raise Closed(Gate.INVALID)
    made = [Option(candidate, effort) for candidate in candidates for effort in candidate.efforts or (None,)]
    options = {option.key: option for option in made}
    if len(options) != len(made):
        raise Closed(Gate.INVALID)
    return options


def _is_bounded(candidate: Candidate) -> bool:
    texts = (candidate.key, candidate.provider, candidate.model)
    return all(1 <= len(text) <= FIELD_MAX for text in texts) and len(candidate.note) <= FIELD_MAX


def notes_of(candidates: Sequence[Candidate]) -> dict[str, str]:
    """The operator's notes by target key."""
    return {candidate.key: candidate.note for candidate in candidates if candidate.note}
