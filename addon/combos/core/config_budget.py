"""The budgets of the configuration: how much a provider or a combo may cost in a day or a month before it rests.

Shape and rules only. What has been spent is known elsewhere; a budget that names nothing is a warning, not an error,
because removing a provider or a combo must not make the file invalid.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from combos.core.config_problems import problem
from combos.core.config_provider import ProviderConfig
from combos.core.config_types import Amount, Between, ConfigModel, near_miss
from combos.core.config_view import ConfigView
from combos.core.errors import ConfigProblem
from combos.core.ladder import for_model
from combos.core.limits import BUDGET_TOKENS_MAX, BUDGET_USD_MAX

type Usd = Annotated[float, Amount(BUDGET_USD_MAX)]
type BudgetTokens = Annotated[int, Between(0, BUDGET_TOKENS_MAX)]


class Budget(ConfigModel):
    """Limits of one provider or combo; any that is reached makes its targets ineligible until the period ends.

    Periods are calendar days and months of the local time zone. 0 allows nothing.
    """

    usd_per_day: Usd | None = None
    """US dollars per calendar day, counted with `modelCosts`."""
    usd_per_month: Usd | None = None
    """US dollars per calendar month."""
    tokens_per_day: BudgetTokens | None = None
    """Input and output tokens per calendar day, cached input included."""
    tokens_per_month: BudgetTokens | None = None
    """Input and output tokens per calendar month."""

    @property
    def has_limit(self) -> bool:
        """Whether it limits anything."""
        limits = (self.usd_per_day, self.usd_per_month, self.tokens_per_day, self.tokens_per_month)
        return any(limit is not None for limit in limits)

    @property
    def counts_usd(self) -> bool:
        """Whether prices matter to it."""
        return self.usd_per_day is not None or self.usd_per_month is not None


class Budgets(ConfigModel):
    """Budgets by provider name and by combo id."""

    providers: Mapping[str, Budget] = Field(default_factory=dict)
    """Limits by provider name."""
    combos: Mapping[str, Budget] = Field(default_factory=dict)
    """Limits by combo id."""

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return bool(self.providers or self.combos)


def budgets(view: ConfigView) -> Iterator[ConfigProblem]:
    """A budget sets at least one limit."""
    for kind, rows in (("providers", view.config.budgets.providers), ("combos", view.config.budgets.combos)):
        for name, budget in rows.items():
            if not budget.has_limit:
                yield problem(
                    ("budgets", kind, name), "must set usdPerDay, usdPerMonth, tokensPerDay or tokensPerMonth"
                )


def effective_budgets(view: ConfigView) -> Iterator[ConfigProblem]:
    """Budgets name something that exists, and what they count in USD has a price."""
    for name, budget in view.config.budgets.providers.items():
        path = ("budgets", "providers", name)
        row = view.providers.get(name)
        if name not in view.provider_names:
            yield problem(path, f"is not a configured provider{near_miss(name, sorted(view.provider_names))}")
        elif budget.counts_usd and row is not None and not row.model_costs:
            yield problem(path, "counts USD, and the provider has no modelCosts: nothing is ever counted")
    for combo_id, budget in view.config.budgets.combos.items():
        path = ("budgets", "combos", combo_id)
        if combo_id not in view.combo_ids:
            yield problem(path, f"is not a configured combo{near_miss(combo_id, sorted(view.combo_ids))}")
        elif budget.counts_usd:
            yield from _unpriced(view, path, combo_id)


def _unpriced(view: ConfigView, path: tuple[str, ...], combo_id: str) -> Iterator[ConfigProblem]:
    combo = view.combos.get(combo_id)
    for target in combo.targets if combo else ():
        row = view.providers.get(target.provider)
        if row is not None and not is_priced(row, target.model):
            yield problem(path, f"counts USD, and {target.provider}/{target.model} has no entry in modelCosts")


def is_priced(row: ProviderConfig, model: str) -> bool:
    """Whether the provider's `modelCosts` has a price for this model."""
    cost = for_model(row.model_costs, model)
    return cost is not None and (cost.input is not None or cost.output is not None)
