"""What each kind of entry in `disabledModels` hides."""

from typing import Any

import pytest

from catalogs import NATIVE_ALIAS, provider, registry, targets
from combos.core.visibility import Visibility, visibility_of

COMBOS = {
    "plain": {"targets": targets("up/m")},
    "named": {"alias": "daily", "targets": targets("up/m")},
    "team": {"alias": "team/daily", "targets": targets("up/m")},
}


def visibility(*disabled: str, **combos: Any) -> tuple[Visibility, list[str]]:
    found = registry(
        {"providers": {"up": provider()}, "combos": {**COMBOS, **combos}, "disabledModels": list(disabled)}
    )
    rules = visibility_of(found)
    return rules, [combo.id for combo in found.combos.values() if rules.hides_combo(combo)]


@pytest.mark.parametrize(
    ("entry", "hidden"),
    [
        ("combo/plain", ["plain"]),
        ("combo/named", ["named"]),
        ("daily", ["named"]),
        ("team/daily", ["team"]),
        ("plain", []),
        ("Daily", []),
        ("gpt-5.5", []),
    ],
)
def test_combos(entry: str, hidden: list[str]) -> None:
    assert visibility(entry)[1] == hidden


def test_a_bare_slug_means_the_dormant_native_row_and_not_the_combo_that_took_it() -> None:
    native = {**NATIVE_ALIAS, "targets": targets("up/m")}
    rules, hidden = visibility("gpt-5.6-sol", sol=native)
    assert hidden == []
    assert rules.hides_native("gpt-5.6-sol")
    assert visibility("combo/sol", sol=native)[1] == ["sol"]


def test_natives() -> None:
    rules, _ = visibility("gpt-5.5", "daily", "team/daily")
    assert rules.hides_native("gpt-5.5")
    assert not rules.hides_native("gpt-5.6-sol")
    assert not rules.hides_native("daily"), "the entry is a combo's alias"
    assert not rules.hides_native("team/daily")


def test_hidden_natives_are_omitted_only_while_a_native_alias_exists() -> None:
    assert not visibility("gpt-5.5")[0].omits_hidden_natives
    assert visibility("gpt-5.5", sol={**NATIVE_ALIAS, "targets": targets("up/m")})[0].omits_hidden_natives


@pytest.mark.parametrize(("entry", "hides"), [("up/a/b", True), ("up/a-b", True), ("up-a/b", False), ("a/b", False)])
def test_routed_rows(entry: str, hides: bool) -> None:
    assert visibility(entry)[0].hides_routed("up", "a/b") is hides
