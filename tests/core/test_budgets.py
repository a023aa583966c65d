"""The running account: what counts, what is over, and pages that turn at midnight."""

from datetime import UTC, datetime
from typing import Any

import pytest

from combos.core.budgets import COMBOS, PROVIDERS, Purse, Spending, Spent
from combos.core.config import Config, parse_config
from configs import document

NOON = round(datetime(2026, 10, 31, 12, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 86_400_000


def made(**budgets: Any) -> Config:
    return parse_config(document(budgets=budgets))


def test_without_budgets_nothing_is_over() -> None:
    spending = Spending(UTC)
    spending.add("alpha", "main", 10**6, 10**12, NOON)
    assert not spending.over(made().budgets, "alpha", "main", NOON)


@pytest.mark.parametrize(
    ("limits", "usd", "tokens", "over"),
    [
        ({"usdPerDay": 1}, 0.99, 0, False),
        ({"usdPerDay": 1}, 1.0, 0, True),
        ({"usdPerMonth": 1}, 1.5, 0, True),
        ({"tokensPerDay": 100}, 99, 99, False),
        ({"tokensPerDay": 100}, 0, 100, True),
        ({"tokensPerMonth": 100, "usdPerDay": 5}, 0, 101, True),
        ({"tokensPerDay": 0}, 0, 0, True),
        ({"usdPerDay": 1}, None, 10**9, False),
    ],
)
@pytest.mark.parametrize("kind", [PROVIDERS, COMBOS])
def test_limits(kind: str, limits: dict[str, Any], usd: float | None, tokens: int, over: bool) -> None:
    budgets = made(**{kind: {"alpha" if kind == PROVIDERS else "main": limits}}).budgets
    spending = Spending(UTC)
    spending.add("alpha", "main", usd, tokens, NOON)
    assert spending.over(budgets, "alpha", "main", NOON) is over
    assert spending.state(budgets, NOON)[0]["exhausted"] is over
    if limits != {"tokensPerDay": 0}:
        assert not spending.over(budgets, "beta", "other", NOON)


def test_a_direct_route_spends_of_its_provider_alone() -> None:
    budgets = made(providers={"alpha": {"tokensPerDay": 10}}, combos={"main": {"tokensPerDay": 10}}).budgets
    spending = Spending(UTC)
    spending.add("alpha", None, None, 10, NOON)
    assert spending.over(budgets, "alpha", None, NOON)
    assert not spending.over(budgets, "beta", "main", NOON)


def test_the_day_turns_and_the_month_goes_on_until_it_turns_too() -> None:
    daily = made(providers={"alpha": {"tokensPerDay": 10}}).budgets
    monthly = made(providers={"alpha": {"tokensPerMonth": 10}}).budgets
    spending = Spending(UTC)
    spending.add("alpha", "main", None, 10, NOON - DAY_MS)
    assert spending.over(daily, "alpha", "main", NOON - DAY_MS)
    assert not spending.over(daily, "alpha", "main", NOON)
    assert spending.over(monthly, "alpha", "main", NOON)
    assert not spending.over(monthly, "alpha", "main", NOON + DAY_MS)  # the first of November


def test_midnight_is_seen_within_a_second() -> None:
    budgets = made(providers={"alpha": {"tokensPerDay": 10}}).budgets
    midnight = NOON + DAY_MS // 2
    spending = Spending(UTC)
    spending.add("alpha", "main", None, 10, midnight - 500)
    assert spending.over(budgets, "alpha", "main", midnight - 1)
    assert not spending.over(budgets, "alpha", "main", midnight + 500)


def test_what_the_ledger_knows_is_added_to_what_was_spent_meanwhile() -> None:
    budgets = made(combos={"main": {"usdPerDay": 3}}).budgets
    spending = Spending(UTC)
    spending.look(NOON)
    spending.add("alpha", "main", 1.0, 5, NOON)
    spending.open({Purse(COMBOS, "main"): Spent(2.0, 7)}, {Purse(COMBOS, "main"): Spent(2.5, 8)})
    assert spending.over(budgets, "alpha", "main", NOON)
    (row,) = spending.state(budgets, NOON)
    assert (row["kind"], row["name"]) == ("combos", "main")
    assert row["day"] == {
        "since": NOON - DAY_MS // 2, "usd": 3.0, "usdLimit": 3.0, "tokens": 12, "tokensLimit": None,
    }  # fmt: skip
    assert row["month"]["usd"] == 3.5  # type: ignore[index]
