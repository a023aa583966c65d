"""Rules of combo objects that need more than one field or object: ids, targets, aliases, effort."""

from collections.abc import Iterator

from combos.core.config_combo import ComboConfig, DefaultEffortMode, TargetConfig
from combos.core.config_problems import problem
from combos.core.config_view import ConfigView
from combos.core.errors import ConfigProblem
from combos.core.names import (
    COMBO_NAMESPACE,
    is_alias,
    is_combo_id,
    is_native_family,
    is_provider_name,
    is_reserved_alias,
)
from combos.core.native_models import NATIVE_MODELS, native_model


def combo_ids(view: ConfigView) -> Iterator[ConfigProblem]:
    """Grammar of ids; an id is not a provider's name."""
    for combo_id in sorted(view.combo_ids):
        if not is_combo_id(combo_id):
            yield problem(
                ("combos", combo_id),
                "id must have 1 to 64 letters, digits, dots, underscores or hyphens and begin with a letter or digit",
            )
        elif combo_id in view.provider_names:
            yield problem(("combos", combo_id), "id is the name of a provider")


def targets(view: ConfigView) -> Iterator[ConfigProblem]:
    """At least one target, no provider/model pair twice, no combo and no decision service among them."""
    for combo_id, combo in view.combos.items():
        path = ("combos", combo_id, "targets")
        if not combo.targets:
            yield problem(path, "must hold at least one target")
        first: dict[tuple[str, str], int] = {}
        for index, target in enumerate(combo.targets):
            pair = (target.provider, target.model)
            if pair in first:
                yield problem((*path, index), f"repeats the provider and model of targets[{first[pair]}]")
            first.setdefault(pair, index)
            yield from _target(view, (*path, index), target)


def _target(view: ConfigView, path: tuple[str | int, ...], target: TargetConfig) -> Iterator[ConfigProblem]:
    if target.provider == COMBO_NAMESPACE:
        yield problem((*path, "provider"), "must not be a combo: combos cannot be nested")
    elif not is_provider_name(target.provider):
        yield problem((*path, "provider"), "is not a provider name")
    elif view.is_decision_row(target.provider):
        yield problem((*path, "provider"), "is a decision service and answers no model request")
    if target.model != target.model.strip():
        yield problem((*path, "model"), "must not begin or end with blanks")
    efforts = target.reasoning_efforts
    if efforts is not None and not efforts:
        yield problem((*path, "reasoningEfforts"), "must hold at least one effort; leave it out to allow all")
    elif efforts is not None and len(set(efforts)) < len(efforts):
        yield problem((*path, "reasoningEfforts"), "must not repeat an effort")


def efforts(view: ConfigView) -> Iterator[ConfigProblem]:
    """`defaultEffortMode: "force"` needs a `defaultEffort`."""
    for combo_id, combo in view.combos.items():
        if combo.default_effort_mode is DefaultEffortMode.FORCE and combo.default_effort is None:
            yield problem(("combos", combo_id, "defaultEffortMode"), 'must not be "force" without a defaultEffort')


def aliases(view: ConfigView) -> Iterator[ConfigProblem]:
    """An alias is well formed and nobody else's: no other combo's, no provider's, no model's."""
    taken = _provider_claims(view)
    owners: dict[str, str] = {}
    for combo_id, combo in view.combos.items():
        path = ("combos", combo_id, "alias")
        if combo.alias is None:
            continue
        fault = _alias_fault(combo.alias, native=combo.native_alias)
        if fault:
            yield problem(path, fault)
            continue
        if combo.alias in owners:
            yield problem(path, f'is already the alias of combo "{owners[combo.alias]}"')
        owners.setdefault(combo.alias, combo_id)
        if combo.alias.casefold() in taken:
            yield problem(path, f"is already {taken[combo.alias.casefold()]} (case is ignored)")
        first, slash, _ = combo.alias.partition("/")
        if slash and first in view.config.codex_account_namespaces:
            yield ConfigProblem(problem(path, "").path, "begins with the name of an account namespace", "conflict")


def _alias_fault(alias: str, *, native: bool) -> str | None:
    if is_reserved_alias(alias):
        return "must not lie in the combo namespace"
    if not is_alias(alias):
        return (
            "must be one or two names joined by a slash, each of 1 to 64 letters, digits, dots, underscores or hyphens"
            " that begins with a letter or digit"
        )
    if is_native_family(alias) and not native:
        return "is a name of a native OpenAI family (gpt-, o1-, o3-, o4-, codex-); that needs nativeAlias: true"
    return None


def _provider_claims(view: ConfigView) -> dict[str, str]:
    """Public names that providers own, case folded, with a description of the owner."""
    claims: dict[str, str] = {}
    for name, row in view.providers.items():
        if row.alias:
            claims.setdefault(row.alias.casefold(), f'the alias of provider "{name}"')
        for alias in row.model_aliases.values():
            claims.setdefault(alias.casefold(), f'a model alias of provider "{name}"')
    return claims


def native_aliases(view: ConfigView) -> Iterator[ConfigProblem]:
    """A native name is taken only explicitly, only if it can be given back, and only under a label of its own."""
    for combo_id, combo in view.combos.items():
        if combo.native_alias:
            yield from _native_alias(("combos", combo_id), combo)


def _native_alias(path: tuple[str, ...], combo: ComboConfig) -> Iterator[ConfigProblem]:
    if combo.alias is None or native_model(combo.alias) is None:
        slugs = ", ".join(model.slug for model in NATIVE_MODELS)
        yield problem((*path, "nativeAlias"), f"needs an alias that is one of {slugs}")
    if combo.display_name is None:
        yield problem((*path, "displayName"), "is required with nativeAlias: true and must not be empty")
