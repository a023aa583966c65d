"""What a PUT keeps, resets and refuses, and how references follow a rename."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.admin.combo_edits import ComboPut, merge_combo, put_combo, remove_combo
from combos.admin.refusal import Kind, RefusalError
from combos.core.config import parse_config
from combos.core.errors import ConfigError
from configs import provider

ALPHA = {"provider": "alpha", "model": "m1"}
BETA = {"provider": "beta", "model": "m2"}


def document(**combos: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"providers": {"alpha": provider(), "beta": provider()}}
    return {**made, "combos": combos} if combos else made


def put(before: dict[str, Any], combo: Any, id: str = "main", rename_from: str | None = None) -> dict[str, Any]:
    edit = put_combo(copy.deepcopy(before), ComboPut(id, combo, rename_from))
    parse_config(edit.document)
    assert edit.result == edit.document["combos"][id]
    return edit.document


def refused(before: dict[str, Any], combo: Any, id: str = "main", rename_from: str | None = None) -> RefusalError:
    with pytest.raises(RefusalError) as caught:
        put_combo(copy.deepcopy(before), ComboPut(id, combo, rename_from))
    return caught.value


def test_a_new_combo_is_stored_with_the_fields_that_are_always_written() -> None:
    made = put(document(), {"targets": [ALPHA], "cooldownMs": 60000, "imageInput": "auto", "alias": " "})
    assert made["combos"]["main"] == {
        "strategy": "failover",
        "stickyLimit": 1,
        "defaultEffort": None,
        "targets": [{"provider": "alpha", "model": "m1", "weight": 1}],
        "cooldownMs": 60000,
    }
    assert list(made["combos"]["main"]) == ["strategy", "stickyLimit", "defaultEffort", "targets", "cooldownMs"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("waitForCooldownMs", 0),
        ("cooldownWaitPolicy", None),
        ("defaultEffortMode", "fallback"),
        ("reasoningEffortMode", "strict"),
        ("imageInput", "auto"),
        ("alias", None),
        ("alias", ""),
        ("nativeAlias", False),
        ("displayName", None),
        ("displayName", "  "),
        ("decisionProvider", None),
        ("decisionModel", None),
        ("decisionTimeoutMs", None),
        ("contextOverflow", "stop"),
        ("affinity", "none"),
    ],
)
def test_a_default_is_not_stored(field: str, value: object) -> None:
    assert field not in put(document(), {"targets": [ALPHA], field: value})["combos"]["main"]


def test_an_explicit_typesafe_provider_is_stored_as_omission() -> None:
    made = put(document(), {"targets": [ALPHA], "strategy": "jev", "decisionProvider": "jev"})
    assert "decisionProvider" not in made["combos"]["main"]


@pytest.mark.parametrize(("field", "value"), [("lastResort", False), ("reasoningEfforts", None), ("modelProfile", " ")])
def test_a_default_of_a_target_is_not_stored(field: str, value: object) -> None:
    made = put(document(), {"targets": [{**ALPHA, field: value}]})
    assert made["combos"]["main"]["targets"] == [{**ALPHA, "weight": 1}]


FC_52 = {
    "strategy": "failover",
    "stickyLimit": 1,
    "defaultEffort": "high",
    "targets": [{**ALPHA, "weight": 1}, {**BETA, "weight": 1, "lastResort": True}],
    "cooldownMs": 7000,
    "waitForCooldownMs": 2000,
    "imageInput": "disabled",
    "defaultEffortMode": "force",
    "reasoningEffortMode": "adaptive",
}


def test_fc_52_what_a_put_leaves_out_it_keeps() -> None:
    sent = {"targets": [ALPHA, BETA], "strategy": "failover", "defaultEffort": "high", "alias": "team/x"}
    made = put(document(main=FC_52), sent)
    assert made["combos"]["main"] == {**FC_52, "alias": "team/x"}


def test_fc_52_a_zero_resets_the_wait_alone() -> None:
    sent = {"targets": [ALPHA, BETA], "defaultEffort": "high", "waitForCooldownMs": 0}
    made = put(document(main=FC_52), sent)
    assert made["combos"]["main"] == {key: value for key, value in FC_52.items() if key != "waitForCooldownMs"}


KEPT_FIELDS = [
    ("cooldownMs", 7000),
    ("waitForCooldownMs", 2000),
    ("cooldownWaitPolicy", "before-last-resort"),
    ("reasoningEffortMode", "adaptive"),
    ("imageInput", "disabled"),
    ("contextOverflow", "hop"),
    ("affinity", "conversation"),
    ("firstOutputTimeoutMs", 9000),
    ("hedgeAfterMs", 800),
    ("x-own", {"note": 1}),
]


@pytest.mark.parametrize(("field", "value"), KEPT_FIELDS)
def test_a_kept_field(field: str, value: object) -> None:
    before = document(main={"targets": [ALPHA], field: value})
    assert put(before, {"targets": [ALPHA]})["combos"]["main"][field] == value


@pytest.mark.parametrize(
    ("field", "value", "after"),
    [
        ("alias", "x", None),
        ("displayName", "X", None),
        ("defaultEffort", "high", None),
        ("strategy", "random", "failover"),
        ("stickyLimit", 5, 1),
    ],
)
def test_a_field_that_goes_back_to_its_default(field: str, value: object, after: object) -> None:
    before = document(main={"targets": [ALPHA], field: value})
    assert put(before, {"targets": [ALPHA]})["combos"]["main"].get(field) == after


def test_weights_go_back_and_the_last_resort_stays_with_its_target() -> None:
    before = document(main={"targets": [{**ALPHA, "weight": 5}, {**BETA, "lastResort": True, "x-own": 1}]})
    made = put(before, {"targets": [BETA, ALPHA, {"provider": "beta", "model": "m3"}]})
    assert made["combos"]["main"]["targets"] == [
        {**BETA, "weight": 1, "lastResort": True, "x-own": 1},
        {**ALPHA, "weight": 1},
        {"provider": "beta", "model": "m3", "weight": 1},
    ]


def test_an_explicit_false_clears_the_last_resort() -> None:
    before = document(main={"targets": [{**BETA, "lastResort": True}]})
    assert put(before, {"targets": [{**BETA, "lastResort": False}]})["combos"]["main"]["targets"] == [
        {**BETA, "weight": 1}
    ]


JEV = {"targets": [ALPHA], "strategy": "jev", "decisionModel": "alpha/m9", "decisionTimeoutMs": 9000}


@pytest.mark.parametrize(
    ("sent", "after"),
    [
        ({}, {"decisionModel": "alpha/m9", "decisionTimeoutMs": 9000}),
        ({"decisionTimeoutMs": 5000}, {"decisionModel": "alpha/m9", "decisionTimeoutMs": 5000}),
        ({"decisionTimeoutMs": None}, {"decisionModel": "alpha/m9"}),
        ({"decisionModel": None}, {"decisionTimeoutMs": 9000}),
        ({"decisionProvider": None}, {"decisionTimeoutMs": 9000}),
        ({"decisionProvider": "jev"}, {"decisionTimeoutMs": 9000}),
        ({"decisionModel": "beta/m1"}, {"decisionModel": "beta/m1", "decisionTimeoutMs": 9000}),
        ({"strategy": "random"}, {}),
    ],
)
def test_the_decision_method_is_kept_as_one(sent: dict[str, Any], after: dict[str, Any]) -> None:
    made = put(document(main=JEV), {"targets": [ALPHA], "strategy": "jev", **sent})["combos"]["main"]
    assert {key: value for key, value in made.items() if key.startswith("decision")} == after


def test_a_rename_keeps_what_the_renamed_definition_had_and_where_it_stood() -> None:
    before = document(one={"targets": [ALPHA], "cooldownMs": 5}, two={"targets": [BETA]})
    made = put(before, {"targets": [ALPHA]}, "first", "one")
    assert list(made["combos"]) == ["first", "two"]
    assert made["combos"]["first"]["cooldownMs"] == 5


def test_references_follow_a_rename_and_a_new_alias() -> None:
    before = document(
        one={"targets": [ALPHA], "alias": "team/one"},
        asks={"targets": [ALPHA], "strategy": "jev", "decisionModel": "team/one--high"},
        also={"targets": [ALPHA], "strategy": "jev", "decisionModel": "combo/one"},
    )
    before |= {"disabledModels": ["combo/one", "team/one", "alpha/x"], "blockedModelRedirects": {"bad": "combo/one"}}
    made = put(before, {"targets": [ALPHA], "alias": "crew/uno"}, "uno", "one")
    assert made["disabledModels"] == ["combo/uno", "crew/uno", "alpha/x"]
    assert made["combos"]["asks"]["decisionModel"] == "crew/uno--high"
    assert made["combos"]["also"]["decisionModel"] == "combo/uno"
    assert made["blockedModelRedirects"] == {"bad": "combo/uno"}


def test_a_budget_follows_a_rename() -> None:
    before = document(one={"targets": [ALPHA], "alias": "team/one"}, two={"targets": [BETA]})
    before |= {"budgets": {"combos": {"two": {"usdPerDay": 2}, "one": {"usdPerDay": 1}}}}
    made = put(before, {"targets": [ALPHA]}, "uno", "one")
    assert made["budgets"]["combos"] == {"two": {"usdPerDay": 2}, "uno": {"usdPerDay": 1}}
    assert put(before, {"targets": [BETA]}, "two")["budgets"] == before["budgets"]


def test_without_an_alias_the_canonical_name_takes_its_place() -> None:
    before = document(one={"targets": [ALPHA], "alias": "one-alias"}) | {"disabledModels": ["one-alias"]}
    assert put(before, {"targets": [ALPHA]}, "one")["disabledModels"] == ["combo/one"]


def test_a_native_alias_is_not_followed() -> None:
    native = {"targets": [ALPHA], "alias": "gpt-5.6-sol", "nativeAlias": True, "displayName": "N"}
    before = document(one=native) | {"disabledModels": ["gpt-5.6-sol", "combo/one"]}
    assert put(before, {"targets": [ALPHA]}, "uno", "one")["disabledModels"] == ["gpt-5.6-sol", "combo/uno"]


@pytest.mark.parametrize(
    ("id", "rename_from", "code"),
    [
        ("x", "", "rename_invalid"),
        ("one", "one", "rename_invalid"),
        ("x", "three", "rename_unknown"),
        ("two", "one", "rename_taken"),
    ],
)
def test_a_rename_that_cannot_be(id: str, rename_from: str, code: str) -> None:
    before = document(one={"targets": [ALPHA]}, two={"targets": [BETA]})
    refusal = refused(before, {"targets": [ALPHA]}, id, rename_from)
    assert (refusal.kind, refusal.code) == (Kind.INVALID, code)


@pytest.mark.parametrize("combo", [None, [], "x", 1])
def test_a_combo_is_an_object(combo: object) -> None:
    assert refused(document(), combo).code == "combo_missing"


def test_unknown_settings_are_refused_with_a_suggestion() -> None:
    refusal = refused(document(), {"targets": [{**ALPHA, "wieght": 2}], "stickyLimt": 1})
    assert [str(problem) for problem in refusal.problems] == [
        'combos.main.stickyLimt: is not a known setting; did you mean "stickyLimit"?',
        'combos.main.targets[0].wieght: is not a known setting; did you mean "weight"?',
    ]


def test_a_row_of_the_list_can_be_sent_back() -> None:
    assert "id" not in put(document(), {"id": "main", "model": "combo/main", "targets": [ALPHA]})["combos"]["main"]


def test_merging_changes_only_what_is_sent() -> None:
    before = document(main={**FC_52, "alias": "team/x", "displayName": "X"})
    edit = merge_combo(before, ComboPut("main", {"strategy": "random", "displayName": None}))
    assert edit.result == {**FC_52, "alias": "team/x", "strategy": "random"}


def test_merging_away_from_jev_drops_the_decision_fields() -> None:
    edit = merge_combo(document(main=JEV), ComboPut("main", {"strategy": "random"}))
    assert not [key for key in edit.result if key.startswith("decision")]


def test_merging_can_clear_a_kept_field() -> None:
    edit = merge_combo(document(main=FC_52), ComboPut("main", {"imageInput": None}, clear=frozenset({"cooldownMs"})))
    assert "imageInput" not in edit.result
    assert "cooldownMs" not in edit.result


def test_merging_into_nothing_is_refused_with_a_suggestion() -> None:
    with pytest.raises(RefusalError, match='unknown combo: mian; did you mean "main"'):
        merge_combo(document(main=FC_52), ComboPut("mian", {}))


def test_removing_the_last_combo_removes_the_key() -> None:
    before = document(main={"targets": [ALPHA], "alias": "m"}) | {"disabledModels": ["combo/main", "m", "x"]}
    made = remove_combo(before, "main").document
    assert "combos" not in made
    assert made["disabledModels"] == ["x"]


def test_a_combo_that_decides_for_another_stays() -> None:
    asks = {"targets": [ALPHA], "strategy": "jev", "decisionModel": "combo/main"}
    with pytest.raises(RefusalError) as caught:
        remove_combo(document(main={"targets": [ALPHA]}, asks=asks), "main")
    assert (caught.value.kind, caught.value.extra) == (Kind.CONFLICT, {"combos": ["asks"]})


def test_removing_what_is_not_there() -> None:
    with pytest.raises(RefusalError) as caught:
        remove_combo(document(), "main")
    assert caught.value.kind is Kind.NOT_FOUND


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "jev", "high", "x", "alpha", "force"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["provider", "model", "q"]), inner),
    max_leaves=5,
)
KEYS = st.sampled_from(["targets", "strategy", "alias", "cooldownMs", "nativeAlias", "decisionModel", "nonsense", "id"])


@settings(max_examples=200)
@given(combo=st.dictionaries(KEYS, JSON), merge=st.booleans())
def test_whatever_is_sent_is_stored_or_refused(combo: dict[str, Any], merge: bool) -> None:
    before = document(main=FC_52)
    try:
        edit = (merge_combo if merge else put_combo)(before, ComboPut("main", combo))
    except RefusalError:
        return
    assert set(edit.document) == {"providers", "combos"}


@settings(max_examples=100)
@given(st.sets(st.sampled_from([field for field, _ in KEPT_FIELDS])))
def test_sending_the_stored_form_again_changes_nothing(fields: set[str]) -> None:
    combo = {"targets": [ALPHA, BETA], **{field: value for field, value in KEPT_FIELDS if field in fields}}
    once = put(document(main=combo), {"targets": [ALPHA, BETA]})
    assert put(once, once["combos"]["main"]) == once


@pytest.mark.parametrize(("field", "value"), [("reasoningEfforts", False), ("lastResort", None), ("lastResort", 0)])
def test_a_wrong_type_is_no_default(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=field):
        put(document(), {"targets": [{**ALPHA, field: value}]})
