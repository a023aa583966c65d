"""Budgets: what is accepted, what is refused, and what is probably not meant."""

from typing import Any

import pytest

from combos.core.config import config_warnings, parse_config
from configs import combo, document, problems, provider

PRICED = provider(modelCosts={"m1": {"input": 1, "output": 2}})


@pytest.mark.parametrize(
    ("budgets", "path", "word"),
    [
        ({"providers": {"alpha": {"usdPerDay": 5}}}, None, ""),
        ({"combos": {"main": {"tokensPerMonth": 1_000_000, "usdPerMonth": 0.5}}}, None, ""),
        ({"providers": {"alpha": {"tokensPerDay": 0}}}, None, ""),
        ({"providers": {"alpha": {}}}, "budgets.providers.alpha", "must set usdPerDay"),
        ({"combos": {"main": {}}}, "budgets.combos.main", "must set usdPerDay"),
        ({"combos": {"main": {"usdPerDay": -1}}}, "budgets.combos.main.usdPerDay", "from 0 to"),
        ({"combos": {"main": {"usdPerDay": "5"}}}, "budgets.combos.main.usdPerDay", "from 0 to"),
        ({"combos": {"main": {"tokensPerDay": 1.5}}}, "budgets.combos.main.tokensPerDay", "integer"),
        ({"combos": []}, "budgets.combos", "object"),
        ([], "budgets", "object"),
    ],
)
def test_fields(budgets: Any, path: str | None, word: str) -> None:
    found = problems(document(budgets=budgets))
    assert (found == {}) if path is None else word in found[path]


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        ({"providers": {"alpha": {"usdPerDay": 1}}}, []),
        ({"providers": {"beta": {"tokensPerDay": 1}}}, []),
        ({"providers": {"beta": {"usdPerDay": 1}}}, ["no modelCosts"]),
        ({"providers": {"alpah": {"usdPerDay": 1}}}, ['did you mean "alpha"?']),
        ({"combos": {"mian": {"usdPerDay": 1}}}, ['did you mean "main"?']),
        ({"combos": {"main": {"usdPerDay": 1}}}, ["beta/m2 has no entry in modelCosts"]),
    ],
)
def test_warnings(budgets: Any, words: list[str]) -> None:
    targets = [{"provider": "alpha", "model": "m1"}, {"provider": "beta", "model": "m2"}]
    made = document(
        providers={"alpha": PRICED, "beta": provider()}, combos={"main": combo(targets=targets)}, budgets=budgets
    )
    found = [str(warning) for warning in config_warnings(parse_config(made))]
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_an_unknown_limit_is_named() -> None:
    made = parse_config(document(budgets={"providers": {"alpha": {"usdPerDay": 1, "usdPerWeek": 1}}}))
    assert any("usdPerWeek" in str(warning) for warning in config_warnings(made))
