"""All rules between the objects of a configuration, in the order in which they are reported.

`RULES` hold whenever a file is loaded. `SAVE_RULES` hold in addition when somebody saves: a file that breaks one of
them still loads, so that disabling a provider by hand never takes the other combos down.
"""

from collections.abc import Iterator

from combos.core.config_budget import budgets, effective_budgets
from combos.core.config_combo import ComboConfig, Strategy
from combos.core.config_combo_rules import aliases, combo_ids, efforts, native_aliases, targets
from combos.core.config_decision_rules import decision_fields, decision_models, decision_providers
from combos.core.config_problems import problem
from combos.core.config_provider_rules import (
    accounts,
    authentication,
    base_urls,
    destinations,
    headers,
    keys,
    provider_names,
    public_names,
)
from combos.core.config_top_rules import account_namespaces, default_provider, exempt_hosts, origins
from combos.core.config_types import ConfigModel, near_miss
from combos.core.config_view import ConfigView, Rule
from combos.core.errors import ConfigProblem
from combos.core.names import TYPESAFE_PROVIDER


def usable_targets(view: ConfigView) -> Iterator[ConfigProblem]:
    """One enabled provider at least; judged only when every target's provider is configured."""
    for combo_id, combo in view.combos.items():
        rows = [view.providers.get(target.provider) for target in combo.targets]
        if rows and all(row is not None and row.disabled for row in rows):
            yield problem(("combos", combo_id, "targets"), "must hold a target whose provider is enabled")


def usable_decision_providers(view: ConfigView) -> Iterator[ConfigProblem]:
    """The decision service is enabled and says which model to ask."""
    for combo_id, combo in view.combos.items():
        fault = _decision_row_fault(view, combo)
        if fault:
            yield problem(("combos", combo_id, "decisionProvider"), fault)


def _decision_row_fault(view: ConfigView, combo: ComboConfig) -> str | None:
    name = combo.decision_provider
    row = view.providers.get(name) if name and name != TYPESAFE_PROVIDER else None
    if combo.strategy is not Strategy.JEV or row is None:
        return None
    if row.disabled:
        return "must name an enabled provider"
    return None if row.default_model or row.models else "must name a provider with a defaultModel or a model in models"


def configured_targets(view: ConfigView) -> Iterator[ConfigProblem]:
    """A target of a provider that does not exist is never eligible; nothing else is wrong with it."""
    for combo_id, combo in view.combos.items():
        for index, target in enumerate(combo.targets):
            if target.provider not in view.provider_names:
                near = near_miss(target.provider, sorted(view.provider_names))
                path = ("combos", combo_id, "targets", index, "provider")
                yield problem(path, f"is not a configured provider, so this target is never used{near}")


# Key in the file and attribute of what is read for the sake of files that another program wrote.
_IDLE = (("port", "port"), ("hostname", "hostname"), ("blockedModelRedirects", "blocked_model_redirects"))
_IDLE_OF_PROVIDERS = (
    ("requestPacing", "request_pacing"),
    ("upstreamHttpVersion", "upstream_http_version"),
    ("modelDefaultReasoningEfforts", "model_default_reasoning_efforts"),
    ("pinnedReasoningEffort", "pinned_reasoning_effort"),
)


def idle_settings(view: ConfigView) -> Iterator[ConfigProblem]:
    """Settings that are kept for other programs and do nothing here are left at their defaults."""
    yield from _idle((), view.config, _IDLE)
    for name, row in view.providers.items():
        yield from _idle(("providers", name), row, _IDLE_OF_PROVIDERS)


def _idle(path: tuple[str, ...], written: ConfigModel, keys: tuple[tuple[str, str], ...]) -> Iterator[ConfigProblem]:
    for key, name in keys:
        usual = type(written).model_fields[name].get_default(call_default_factory=True)
        if getattr(written, name) != usual:
            yield problem((*path, key), "is kept and has no effect here")


RULES: tuple[tuple[str, Rule], ...] = (
    ("provider names", provider_names),
    ("provider destinations", destinations),
    ("provider headers", headers),
    ("keys", keys),
    ("authentication", authentication),
    ("accounts", accounts),
    ("provider aliases", public_names),
    ("default provider", default_provider),
    ("account namespaces", account_namespaces),
    ("origins", origins),
    ("exempt hosts", exempt_hosts),
    ("combo ids", combo_ids),
    ("default effort", efforts),
    ("aliases", aliases),
    ("native aliases", native_aliases),
    ("decision fields", decision_fields),
    ("decision providers", decision_providers),
    ("decision models", decision_models),
    ("targets", targets),
    ("budgets", budgets),
)

SAVE_RULES: tuple[tuple[str, Rule], ...] = (
    ("usable targets", usable_targets),
    ("usable decision providers", usable_decision_providers),
)

WARNINGS: tuple[tuple[str, Rule], ...] = (
    ("base URLs", base_urls),
    ("configured targets", configured_targets),
    ("effective budgets", effective_budgets),
    ("idle settings", idle_settings),
    *SAVE_RULES,
)


def broken_rules(view: ConfigView, rules: tuple[tuple[str, Rule], ...]) -> tuple[ConfigProblem, ...]:
    """What the given rules find, in their order."""
    return tuple(found for _, rule in rules for found in rule(view))
