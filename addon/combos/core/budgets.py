"""What has been spent in the current day and month, against the configured budgets.

A running account in memory: the host opens it with the sums of the ledger and adds every finished attempt. Unknown
usage and unknown prices add nothing, because nobody knows what; which targets a spent budget keeps out is said here,
what that means for a request by eligibility.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import NamedTuple

from combos.core.config_budget import Budget, Budgets
from combos.core.usage_windows import day_start, month_start


class Spent(NamedTuple):
    """Amounts of one period."""

    usd: float = 0.0
    tokens: int = 0

    def plus(self, usd: float, tokens: int) -> "Spent":
        """Both added."""
        return Spent(self.usd + usd, self.tokens + tokens)


class Purse(NamedTuple):
    """Whose money it is: `providers` and a name, or `combos` and an id, as in the configuration."""

    kind: str
    name: str


PROVIDERS = "providers"
COMBOS = "combos"


@dataclass(slots=True)
class Period:
    """One running period: since when (epoch ms), and what each purse has spent in it."""

    since: int
    spent: dict[Purse, Spent] = field(default_factory=dict)

    def turn(self, since: int) -> None:
        """A new period may have begun."""
        if since != self.since:
            self.since, self.spent = since, {}


class Spending:
    """The account of one process. `zone` is whose midnight counts; None is the machine's own."""

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone = zone
        self.day = Period(0)
        self.month = Period(0)
        self._next_look = 0

    def look(self, epoch_ms: int) -> tuple[int, int]:
        """When the current day and the current month began, in epoch ms. Looked up once a second at most, because
        calendars cost more than a comparison."""
        if not self.day.since <= epoch_ms < self._next_look:
            self._next_look = epoch_ms + 1000
            self.day.turn(day_start(epoch_ms, self._zone))
            self.month.turn(month_start(epoch_ms, self._zone))
        return self.day.since, self.month.since

    def open(self, day: Mapping[Purse, Spent], month: Mapping[Purse, Spent]) -> None:
        """Add what the ledger knows of the current periods from before this process."""
        for period, sums in ((self.day, day), (self.month, month)):
            for purse, spent in sums.items():
                period.spent[purse] = period.spent.get(purse, Spent()).plus(*spent)

    def add(self, provider: str, combo: str | None, usd: float | None, tokens: int, epoch_ms: int) -> None:
        """Count one attempt."""
        self.look(epoch_ms)
        purses = [Purse(PROVIDERS, provider), *([Purse(COMBOS, combo)] if combo is not None else [])]
        for period in (self.day, self.month):
            for purse in purses:
                period.spent[purse] = period.spent.get(purse, Spent()).plus(usd or 0.0, tokens)

    def over(self, budgets: Budgets, provider: str, combo: str | None, epoch_ms: int) -> bool:
        """Whether the provider's or the combo's budget is spent."""
        if not budgets.are_set:
            return False
        self.look(epoch_ms)
        mine = budgets.providers.get(provider)
        if mine is not None and self._is_spent(mine, Purse(PROVIDERS, provider)):
            return True
        its = budgets.combos.get(combo) if combo is not None else None
        return its is not None and self._is_spent(its, Purse(COMBOS, combo or ""))

    def state(self, budgets: Budgets, epoch_ms: int) -> list[dict[str, object]]:
        """Every configured budget with what is spent of it, ready for JSON."""
        self.look(epoch_ms)
        rows = [(Purse(PROVIDERS, name), budget) for name, budget in budgets.providers.items()]
        rows += [(Purse(COMBOS, name), budget) for name, budget in budgets.combos.items()]
        return [self._row(purse, budget) for purse, budget in rows]

    def _is_spent(self, budget: Budget, purse: Purse) -> bool:
        day, month = self.day.spent.get(purse, Spent()), self.month.spent.get(purse, Spent())
        limits = (
            (budget.usd_per_day, day.usd),
            (budget.usd_per_month, month.usd),
            (budget.tokens_per_day, day.tokens),
            (budget.tokens_per_month, month.tokens),
        )
        return any(limit is not None and spent >= limit for limit, spent in limits)

    def _row(self, purse: Purse, budget: Budget) -> dict[str, object]:
        day, month = self.day.spent.get(purse, Spent()), self.month.spent.get(purse, Spent())
        return {
            "kind": purse.kind,
            "name": purse.name,
            "exhausted": self._is_spent(budget, purse),
            "day": {
                "since": self.day.since,
                "usd": round(day.usd, 6),
                "usdLimit": budget.usd_per_day,
                "tokens": day.tokens,
                "tokensLimit": budget.tokens_per_day,
            },
            "month": {
                "since": self.month.since,
                "usd": round(month.usd, 6),
                "usdLimit": budget.usd_per_month,
                "tokens": month.tokens,
                "tokensLimit": budget.tokens_per_month,
            },
        }
