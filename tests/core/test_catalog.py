"""The rows of a catalog: which exist, their names and order, what is hidden and what is left out."""

from typing import Any

import pytest

from catalogs import CHATGPT, NATIVE_ALIAS, catalog, discovered, ids, provider, registry, row, targets
from combos.core.capabilities import Omission
from combos.core.catalog import Omitted, RowKind, listing_hosts
from combos.core.native_models import NATIVE_MODELS
from combos.core.registry import ComboRoute

UNGATED = [model.slug for model in NATIVE_MODELS if not model.gated]


def document(**changes: Any) -> dict[str, Any]:
    return {
        "providers": {
            "openai": CHATGPT,
            "zeta": provider(models=["z2", "z1"]),
            "beta": provider(models=["b"], modelDisplayNames={"b": "The B"}),
        },
        "combos": {
            "main": {"targets": targets("zeta/z1", "beta/b")},
            "alpha": {"alias": "zz/last", "targets": targets("beta/b")},
        },
        **changes,
    }


def with_native_alias(**changes: Any) -> dict[str, Any]:
    doc = document(**changes)
    return {**doc, "combos": {**doc["combos"], "nova": {**NATIVE_ALIAS, "targets": targets("beta/b")}}}


def test_order_natives_then_providers_with_combos_among_them() -> None:
    found = catalog(document())
    assert ids(found.rows) == [*UNGATED, "beta/b", "zz/last", "combo/main", "zeta/z1", "zeta/z2"]
    assert [r.kind for r in found.rows[len(UNGATED) :]] == [
        RowKind.ROUTED,
        RowKind.COMBO,
        RowKind.COMBO,
        RowKind.ROUTED,
        RowKind.ROUTED,
    ]


def test_one_row_for_each_combo_under_its_public_name() -> None:
    found = catalog(document())
    assert ids(found.combos) == ["zz/last", "combo/main"]
    assert [(r.namespace, r.name) for r in found.combos] == [("combo", "alpha"), ("combo", "main")]
    assert row(found, "combo/main").targets == ("zeta/z1", "beta/b")


def test_labels() -> None:
    found = catalog(with_native_alias(), {"zeta": [discovered("z1")]})
    assert row(found, "beta/b").label == "The B"
    assert row(found, "gpt-5.6-sol").label == "Nova1 - sol"
    assert row(found, "combo/main").label is None


def test_native_metadata_is_the_pinned_one() -> None:
    sol = row(catalog(document()), "gpt-5.6-luna")
    assert (sol.kind, sol.can.context, sol.can.max_output) == (RowKind.NATIVE, 272_000, 128_000)
    assert (sol.can.ladder, sol.can.default_effort) == (("low", "medium", "high", "xhigh", "max"), "medium")
    assert sol.can.modalities == ("text", "image")


@pytest.mark.parametrize(
    ("openai", "natives"),
    [
        (CHATGPT, UNGATED),
        ({**CHATGPT, "disabled": True}, []),
        (provider(models=["gpt-5.5"]), ["gpt-5.5"]),
        (provider(), []),
    ],
)
def test_natives_are_listed_when_their_provider_has_them(openai: dict[str, Any], natives: list[str]) -> None:
    found = catalog({"providers": {"openai": openai}})
    assert [r.id for r in found.rows if r.kind is RowKind.NATIVE] == natives


def test_a_gated_native_needs_proof() -> None:
    gated = "gpt-6-astra-minor"
    assert gated not in ids(catalog(document()).rows)
    assert gated in ids(catalog(document(), {"openai": [discovered(gated)]}).rows)


def test_a_native_is_not_listed_again_as_a_routed_row() -> None:
    found = catalog({"providers": {"openai": {**CHATGPT, "models": ["gpt-5.5", "other"]}}})
    assert ids(found.rows) == [*UNGATED, "openai/other"]


def test_a_native_alias_stands_where_the_native_model_stood() -> None:
    found = catalog(with_native_alias())
    assert ids(found.rows)[: len(UNGATED)] == UNGATED
    sol = row(found, "gpt-5.6-sol")
    assert (sol.kind, sol.namespace, sol.name) == (RowKind.NATIVE_ALIAS, "combo", "nova")
    assert sol.can.default_effort == "low"


def test_a_native_alias_needs_no_native_provider() -> None:
    doc = with_native_alias()
    del doc["providers"]["openai"]
    assert ids(catalog(doc).rows)[0] == "gpt-5.6-sol"


@pytest.mark.parametrize(
    ("disabled", "native_alias", "marked", "gone"),
    [
        (["gpt-5.5"], False, ["gpt-5.5"], []),
        (["gpt-5.5"], True, [], ["gpt-5.5"]),
        (["gpt-5.6-sol"], True, [], []),
        (["combo/nova"], True, [], ["gpt-5.6-sol"]),
        (["combo/nova"], False, [], []),
    ],
)
def test_disabled_natives(disabled: list[str], native_alias: bool, marked: list[str], gone: list[str]) -> None:
    make = with_native_alias if native_alias else document
    found = catalog(make(disabledModels=disabled))
    assert [r.id for r in found.rows if r.hidden] == marked
    assert [slug for slug in UNGATED if slug not in ids(found.rows)] == gone
    assert [slug for slug in UNGATED if slug not in ids(found.visible)] == [*marked, *gone]


@pytest.mark.parametrize("disabled", [[], ["gpt-5.5"], ["gpt-5.6-sol"], ["combo/nova"], ["combo/nova", "gpt-5.6-sol"]])
@pytest.mark.parametrize("make", [document, with_native_alias])
@pytest.mark.parametrize("models", [["gpt-5.5", "gpt-5.6-sol", "other"], []])
def test_a_native_model_that_is_not_shown_does_not_return_under_its_owner(
    make: Any, disabled: list[str], models: list[str]
) -> None:
    doc = make(disabledModels=[*disabled, "other"])
    doc["providers"] = {**doc["providers"], "openai": {**CHATGPT, "models": models}}
    found = catalog(doc, {"openai": [discovered("gpt-5.5"), discovered("gpt-5.6-sol"), discovered("other")]})
    assert [name for name in ids(found.rows) if name.startswith("openai/")] == ["openai/other"]


def test_a_hidden_combo_still_routes() -> None:
    doc = document(disabledModels=["combo/main"])
    assert "combo/main" not in ids(catalog(doc).rows)
    assert isinstance(registry(doc).resolve("combo/main"), ComboRoute)


def test_a_hidden_provider_row_is_left_out() -> None:
    assert "zeta/z1" not in ids(catalog(document(disabledModels=["zeta/z1"])).rows)


def test_a_combo_wins_over_a_provider_row_of_the_same_name() -> None:
    doc = document(combos={"x": {"alias": "beta/b", "targets": targets("zeta/z1")}})
    found = catalog(doc)
    assert row(found, "beta/b").kind is RowKind.COMBO
    assert Omitted("beta/b", "a combo has this name") in found.omitted
    hidden = catalog({**doc, "disabledModels": ["combo/x"]})
    assert "beta/b" not in ids(hidden.rows), "the name still routes to the combo"


@pytest.mark.parametrize(
    ("fields", "listed"),
    [
        ({"models": ["a", "b"]}, ["a", "b", "found"]),
        ({"models": ["a"], "liveModels": False}, ["a"]),
        ({"defaultModel": "d"}, ["d", "found"]),
        ({"models": ["a"], "selectedModels": ["found"]}, ["found"]),
        ({"models": ["a"], "selectedModels": ["a"], "retainModels": ["kept"]}, ["a", "kept"]),
        ({"models": ["a"], "selectedModels": []}, []),
    ],
)
def test_the_models_of_a_provider(fields: dict[str, Any], listed: list[str]) -> None:
    found = catalog({"providers": {"up": provider(**fields)}}, {"up": [discovered("found")]})
    assert ids(found.rows) == [f"up/{model}" for model in listed]


def test_disabled_providers_and_decision_services_have_no_rows() -> None:
    decision = {"adapter": "jev-decision", "baseUrl": "https://d.example/v1/systemone", "defaultModel": "tev1"}
    found = catalog({"providers": {"off": provider(models=["m"], disabled=True), "decide": decision}})
    assert found.rows == ()


def test_a_disabled_provider_contributes_no_member() -> None:
    found = catalog(
        {
            "providers": {
                "small": provider(contextWindow=10, disabled=True),
                "large": provider(contextWindow=1000, modelInputModalities={"m": ["text", "image"]}),
            },
            "combos": {"c": {"targets": targets("small/m", "large/m")}},
        }
    )
    assert row(found, "combo/c").can.context == 1000
    assert row(found, "combo/c").can.modalities == ("text", "image")


def test_a_combo_that_cannot_be_listed_is_reported() -> None:
    found = catalog(
        {
            "providers": {"up": provider(modelInputModalities={"m": ["image"]})},
            "combos": {"c": {"imageInput": "disabled", "targets": targets("up/m")}},
        }
    )
    assert ids(found.combos) == []
    assert found.omitted == (Omitted("combo/c", Omission.NO_MODALITY.value),)


def test_a_combo_publishes_what_its_configuration_says() -> None:
    found = catalog(
        {
            "providers": {
                "up": provider(reasoningEfforts=["low", "high"], modelInputModalities={"m": ["text", "image"]}),
                "plain": provider(reasoningEfforts=[], modelInputModalities={"m": ["text", "image"]}),
            },
            "combos": {
                "strict": {"targets": targets("up/m", "plain/m")},
                "mixed": {
                    "targets": targets("up/m", "plain/m"),
                    "reasoningEffortMode": "adaptive",
                    "defaultEffort": "max",
                    "imageInput": "disabled",
                },
            },
        }
    )
    strict, mixed = row(found, "combo/strict").can, row(found, "combo/mixed").can
    assert (strict.ladder, strict.default_effort, strict.modalities) == ((), None, ("text", "image"))
    assert (mixed.ladder, mixed.default_effort, mixed.modalities) == (("low", "high"), "high", ("text",))


@pytest.mark.parametrize(
    ("second", "native_tools"),
    [
        ({"adapter": "openai-responses", "baseUrl": "https://api.openai.com/v1"}, True),
        ({"adapter": "openai-responses", "baseUrl": "https://api.openai.com.evil.example/v1"}, False),
        ({"adapter": "openai-chat", "baseUrl": "https://api.openai.com/v1"}, False),
    ],
)
def test_native_tools_need_openai_targets_only(second: dict[str, Any], native_tools: bool) -> None:
    doc = {"providers": {"openai": CHATGPT, "two": second}, "combos": {"c": {"targets": targets("openai/m", "two/m")}}}
    assert row(catalog(doc), "combo/c").native_tools is native_tools


def test_lists_of_known_hosts_take_the_combos() -> None:
    hosts = listing_hosts(registry({"providers": {"up": provider(baseUrl="https://UP.example:8443/v1")}}))
    assert hosts == {"api.openai.com", "chatgpt.com", "api.anthropic.com", "up.example"}
