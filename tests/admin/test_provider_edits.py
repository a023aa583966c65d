"""Adding, changing and removing providers: what is kept, what stands in the way."""

import copy
from typing import Any

import pytest

from combos.admin.provider_edits import (
    add_provider,
    patch_provider,
    remove_provider,
    set_default_provider,
    set_disabled_models,
)
from combos.admin.refusal import Kind, RefusalError
from configs import document, provider


def refusal(change: Any, *arguments: Any, **options: Any) -> RefusalError:
    with pytest.raises(RefusalError) as caught:
        change(*arguments, **options)
    return caught.value


def test_defaults_are_left_out_when_one_is_added() -> None:
    sent = provider(authMode="key", disabled=False, liveModels=True, models=[], connectTimeoutMs=10_000, apiKey="k")
    assert add_provider({}, "new", sent).result == provider(apiKey="k")


def test_replacing_needs_to_be_asked_for() -> None:
    assert refusal(add_provider, document(), "alpha", provider()).code == "provider_exists"
    edit = add_provider(document(), "alpha", provider(models=["m"]), replace=True)
    assert list(edit.document["providers"]) == ["alpha", "beta"]
    assert edit.result["models"] == ["m"]


@pytest.mark.parametrize("name", ["main", "combo"])
def test_names_that_combos_own(name: str) -> None:
    found = refusal(add_provider, document(), name, provider())
    assert (found.kind, found.code) == (Kind.CONFLICT, "name_taken")


@pytest.mark.parametrize("row", [None, [], "x"])
def test_a_provider_is_an_object(row: Any) -> None:
    assert refusal(add_provider, {}, "x", row).code == "provider_missing"


def test_a_patch_changes_what_it_names() -> None:
    before = document(providers={"alpha": provider(apiKey="k", models=["a"], headers={"x-a": "1"}, own=1)})
    edit = patch_provider(copy.deepcopy(before), "alpha", {"models": ["b"], "headers": {"x-b": "2"}})
    assert edit.result == provider(apiKey="k", models=["b"], headers={"x-a": "1", "x-b": "2"}, own=1)
    edit = patch_provider(copy.deepcopy(before), "alpha", {"apiKey": None, "headers": {"x-a": None}, "own": None})
    assert edit.result == provider(models=["a"])
    assert patch_provider(before, "alpha", {}).document == before


def test_unknown_fields_are_refused_with_a_suggestion() -> None:
    found = refusal(patch_provider, document(), "alpha", {"basUrl": "x"})
    assert 'did you mean "baseUrl"' in found.message


@pytest.mark.parametrize(
    "combo",
    [
        {"targets": [{"provider": "alpha", "model": "m"}]},
        {"targets": [{"provider": "beta", "model": "m"}], "strategy": "jev", "decisionModel": "alpha/m"},
    ],
)
def test_a_provider_that_a_combo_names_stays(combo: dict[str, Any]) -> None:
    found = refusal(remove_provider, document(combos={"user": combo}), "alpha")
    assert (found.code, found.extra) == ("provider_has_dependent_combos", {"combos": ["user"]})


def test_a_decision_service_that_a_combo_asks_stays() -> None:
    row = {"adapter": "jev-decision", "baseUrl": "https://d.example/v1/systemone", "defaultModel": "m"}
    combo = {"targets": [{"provider": "beta", "model": "m"}], "strategy": "jev", "decisionProvider": "row"}
    made = document(providers={"row": row, "beta": provider()}, combos={"user": combo})
    found = refusal(remove_provider, made, "row")
    assert (found.code, found.extra) == ("provider_has_dependent_combos", {"combos": ["user"]})


@pytest.mark.parametrize("model", ["al/m", "AL/m", "alone", "short", "AL/x/y", "usual"])
def test_a_provider_that_a_decision_model_leads_to_stays(model: str) -> None:
    alpha = provider(alias="Al", models=["alone"], modelAliases={"alone": "short"}, defaultModel="usual")
    beta = {"targets": [{"provider": "beta", "model": "m"}]}
    combos = {"user": {**beta, "strategy": "jev", "decisionModel": model}, "plain": beta}
    made = document(providers={"alpha": alpha, "beta": provider(models=["other"])}, combos=combos)
    found = refusal(remove_provider, made, "alpha")
    assert (found.code, found.extra) == ("provider_has_dependent_combos", {"combos": ["user"]})
    combos["user"]["decisionModel"] = "combo/plain"
    assert list(remove_provider(made, "alpha").document["providers"]) == ["beta"]


def test_the_last_and_the_default_provider_stay() -> None:
    assert refusal(remove_provider, {"providers": {"a": provider()}}, "a").code == "last_provider"
    made = {"providers": {"a": provider(), "b": provider()}, "defaultProvider": "a"}
    assert refusal(remove_provider, copy.deepcopy(made), "a").code == "default_provider"
    moved = set_default_provider(made, "b").document
    assert list(remove_provider(moved, "a").document["providers"]) == ["b"]


@pytest.mark.parametrize("change", [remove_provider, set_default_provider])
def test_an_unknown_provider(change: Any) -> None:
    found = refusal(change, document(), "alhpa")
    assert (found.kind, found.message) == (Kind.NOT_FOUND, 'unknown provider: alhpa; did you mean "alpha"?')


def test_hidden_models_are_listed_once() -> None:
    assert set_disabled_models({}, ["b", "a", "b"]).document == {"disabledModels": ["b", "a"]}
    assert set_disabled_models({"disabledModels": ["a"]}, []).document == {}
    assert refusal(set_disabled_models, {}, "a").code == "disabled_models_missing"


@pytest.mark.parametrize(
    "changes",
    [
        {"apiKey": "****"},
        {"apiKey": "sk-a****wxyz"},
        {"headers": {"x-a": "****"}},
        {"apiKeyPool": [{"id": "a", "key": "****"}]},
        {"proxy": "http://****@proxy.example"},
    ],
)
def test_a_masked_value_that_is_sent_back_is_refused(changes: dict[str, Any]) -> None:
    assert "is a masked value" in refusal(patch_provider, document(), "alpha", changes).message
