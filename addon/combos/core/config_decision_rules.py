"""Rules of the decision fields: who may be asked, and that a decision never asks a combo which decides itself."""

from collections.abc import Iterator

from combos.core.config_combo import ComboConfig, Strategy
from combos.core.config_problems import problem
from combos.core.config_types import near_miss
from combos.core.config_view import ConfigView
from combos.core.destinations import is_systemone_url
from combos.core.errors import ConfigProblem
from combos.core.ladder import RUNGS
from combos.core.names import TYPESAFE_PROVIDER, combo_id_of, split_selector

_FIELDS = (
    ("decisionProvider", "decision_provider"),
    ("decisionModel", "decision_model"),
    ("decisionTimeoutMs", "decision_timeout_ms"),
)
_SUFFIXES = frozenset(("fast", "minimal", *RUNGS))


def decision_fields(view: ConfigView) -> Iterator[ConfigProblem]:
    """`decision…` fields are for strategy `jev` only, and `decisionProvider` excludes `decisionModel`."""
    for combo_id, combo in view.combos.items():
        path = ("combos", combo_id)
        if combo.strategy is not Strategy.JEV:
            for key, name in _FIELDS:
                if getattr(combo, name) is not None:
                    yield problem((*path, key), 'is only for strategy "jev"')
        elif combo.decision_provider is not None and combo.decision_model is not None:
            yield problem((*path, "decisionModel"), "excludes decisionProvider: give one of them")


def decision_providers(view: ConfigView) -> Iterator[ConfigProblem]:
    """A `decisionProvider` is `jev`, or a decision service whose `baseUrl` ends in `/systemone`."""
    for combo_id, combo in view.combos.items():
        fault = _provider_fault(view, combo.decision_provider) if combo.strategy is Strategy.JEV else None
        if fault:
            yield problem(("combos", combo_id, "decisionProvider"), fault)


def _provider_fault(view: ConfigView, name: str | None) -> str | None:
    if name is None or name == TYPESAFE_PROVIDER:
        return None
    row = view.providers.get(name)
    if row is None:
        near = near_miss(name, sorted({*view.provider_names, TYPESAFE_PROVIDER}))
        return None if name in view.provider_names else f"is not a configured provider{near}"
    if not view.is_decision_row(name):
        return "must be a provider with adapter jev-decision"
    return None if is_systemone_url(row.base_url) else "needs a provider whose baseUrl path ends in /systemone"


def decision_models(view: ConfigView) -> Iterator[ConfigProblem]:
    """A `decisionModel` can be asked: not this combo, no combo that decides itself, no decision service."""
    for combo_id, combo in view.combos.items():
        if combo.strategy is Strategy.JEV and combo.decision_model is not None:
            fault = model_fault(view, combo_id, combo.decision_model)
            if fault:
                yield problem(("combos", combo_id, "decisionModel"), fault)


def model_fault(view: ConfigView, own_id: str | None, model: str) -> str | None:
    """What is wrong with a decision model of a combo; `own_id` is None outside a combo."""
    if model != model.strip():
        return "must not begin or end with blanks"
    for name in _readings(model):
        fault = _combo_fault(view, own_id, name)
        if fault:
            return fault
    if any(combo_id_of(name) in view.combo_ids or _by_alias(view, name) for name in _readings(model)):
        return None
    if combo_id_of(model) is not None:
        return "names a combo that is not configured"
    return _route_fault(view, model)


def _readings(model: str) -> tuple[str, ...]:
    """The id as written, and without the suffix that asks for a tier or an effort."""
    base, separator, word = model.rpartition("--")
    return (model, base) if separator and base and word in _SUFFIXES else (model,)


def _by_alias(view: ConfigView, name: str) -> tuple[str, ComboConfig] | None:
    return next(((key, combo) for key, combo in view.combos.items() if combo.alias == name), None)


def _combo_fault(view: ConfigView, own_id: str | None, name: str) -> str | None:
    combo_id = combo_id_of(name)
    found = (combo_id, view.combos.get(combo_id)) if combo_id is not None else _by_alias(view, name)
    if found is None or found[1] is None:
        return None
    if found[0] == own_id:
        return "must not name this combo"
    return "must not name a combo with strategy jev" if found[1].strategy is Strategy.JEV else None


def _route_fault(view: ConfigView, model: str) -> str | None:
    selector = split_selector(model)
    if selector is None or any(name in row.models for row in view.providers.values() for name in _readings(model)):
        return None
    name = selector.provider if selector.provider in view.provider_names else view.provider_by_alias(selector.provider)
    if name is not None:
        return "must not route to a decision service" if view.is_decision_row(name) else None
    if selector.provider in view.config.codex_account_namespaces:
        return None
    near = near_miss(selector.provider, sorted(view.provider_names))
    return f"begins with a name that is not a configured provider{near}"
