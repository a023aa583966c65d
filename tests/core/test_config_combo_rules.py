"""Rules over more than one combo field or object."""

from typing import Any

import pytest

from combos.core.config import parse_config
from combos.core.errors import ConfigError
from configs import TARGET, combo, document, problems, provider, with_combo

DECISION_ROW = provider(adapter="jev-decision", baseUrl="https://x.example/v1/systemone")


@pytest.mark.parametrize(
    ("combo_id", "word"),
    [
        ("main", None),
        ("a" * 64, None),
        ("9.x_-", None),
        ("a" * 65, "1 to 64"),
        ("", "1 to 64"),
        ("-a", "1 to 64"),
        ("a/b", "1 to 64"),
        ("a b", "1 to 64"),
        ("alpha", "name of a provider"),
        ("Alpha", None),
    ],
)
def test_ids(combo_id: str, word: str | None) -> None:
    found = problems(document(combos={combo_id: combo()}))
    assert (found == {}) if word is None else word in "".join(found.values())


@pytest.mark.parametrize(
    ("targets", "path", "word"),
    [
        ([], "targets", "at least one"),
        ([TARGET, {**TARGET, "weight": 2}], "targets[1]", "repeats the provider and model of targets[0]"),
        ([{**TARGET, "provider": "combo"}], "targets[0].provider", "nested"),
        ([{**TARGET, "provider": "a/b"}], "targets[0].provider", "not a provider name"),
        ([{**TARGET, "provider": "row"}], "targets[0].provider", "decision service"),
        ([{**TARGET, "model": " m"}], "targets[0].model", "blanks"),
        ([{**TARGET, "model": " "}], "targets[0].model", "blanks"),
        ([{**TARGET, "reasoningEfforts": []}], "targets[0].reasoningEfforts", "at least one effort"),
        ([{**TARGET, "reasoningEfforts": ["low", "low"]}], "targets[0].reasoningEfforts", "repeat"),
    ],
)
def test_targets_refused(targets: list[Any], path: str, word: str) -> None:
    found = problems(document(providers={"alpha": provider(), "row": DECISION_ROW}, combos={"m": {"targets": targets}}))
    assert list(found) == [f"combos.m.{path}"]
    assert word in next(iter(found.values()))


@pytest.mark.parametrize(
    "targets",
    [
        [TARGET, {**TARGET, "model": "m2"}],
        [TARGET, {**TARGET, "model": "M1"}],
        [{"provider": "not-configured", "model": "m"}],
        [{**TARGET, "model": "openai/gpt-5.5:free"}],
    ],
)
def test_targets_accepted(targets: list[Any]) -> None:
    assert problems(with_combo(targets=targets)) == {}


def test_every_repetition_is_reported() -> None:
    assert list(problems(with_combo(targets=[TARGET] * 3))) == ["combos.main.targets[1]", "combos.main.targets[2]"]


@pytest.mark.parametrize(
    ("fields", "valid"),
    [
        ({"defaultEffortMode": "force", "defaultEffort": "high"}, True),
        ({"defaultEffortMode": "force"}, False),
        ({"defaultEffortMode": "force", "defaultEffort": None}, False),
        ({"defaultEffortMode": "fallback"}, True),
    ],
)
def test_forcing_needs_an_effort(fields: dict[str, Any], valid: bool) -> None:
    assert list(problems(with_combo(**fields))) == ([] if valid else ["combos.main.defaultEffortMode"])


@pytest.mark.parametrize(
    ("alias", "word"),
    [
        ("daily-fast", None),
        ("team/daily-fast", None),
        ("gpt-like/x", None),
        ("GPT-5", None),
        ("main", None),
        ("combo", "combo namespace"),
        ("combo/x", "combo namespace"),
        ("combo/", "combo namespace"),
        ("a/b/c", "two names"),
        ("/a", "two names"),
        ("a b", "two names"),
        ("a" * 65, "two names"),
        ("gpt-5.5", "nativeAlias"),
        ("o1-x", "nativeAlias"),
        ("o3-x", "nativeAlias"),
        ("o4-x", "nativeAlias"),
        ("codex-x", "nativeAlias"),
        ("SHORT", "model alias"),
        ("al", "alias of provider"),
        ("AL", "alias of provider"),
        ("work/x", "account namespace"),
        ("Work/x", None),
    ],
)
def test_alias(alias: str, word: str | None) -> None:
    row = provider(alias="Al", modelAliases={"m1": "short"})
    found = problems(
        {"providers": {"alpha": row}, "combos": {"m": combo(alias=alias)}, "codexAccountNamespaces": {"work": "@main"}}
    )
    assert list(found) == ([] if word is None else ["combos.m.alias"])
    assert word is None or word in found["combos.m.alias"]


def test_an_account_namespace_conflict_has_its_own_code() -> None:
    value = document(combos={"m": combo(alias="work/x")}, codexAccountNamespaces={"work": "@main"})
    with pytest.raises(ConfigError) as caught:
        parse_config(value)
    assert [problem.code for problem in caught.value.problems] == ["conflict"]


def test_aliases_are_unique_and_exact() -> None:
    pairs = {"a": combo(alias="x"), "b": combo(alias="x"), "c": combo(alias="X")}
    assert problems(document(combos=pairs)) == {"combos.b.alias": 'is already the alias of combo "a"'}


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"alias": "gpt-5.6-sol", "displayName": "Mine"}, []),
        ({"alias": "gpt-6-astra-minor", "displayName": "Mine"}, []),
        ({"alias": "gpt-5.6-sol"}, ["displayName"]),
        ({"alias": "gpt-5.6-sol", "displayName": "  "}, ["displayName"]),
        ({"alias": "gpt-5.4", "displayName": "Mine"}, ["nativeAlias"]),
        ({"alias": "gpt-unknown", "displayName": "Mine"}, ["nativeAlias"]),
        ({"alias": "daily", "displayName": "Mine"}, ["nativeAlias"]),
        ({"displayName": "Mine"}, ["nativeAlias"]),
        ({}, ["nativeAlias", "displayName"]),
    ],
)
def test_native_alias(fields: dict[str, Any], paths: list[str]) -> None:
    found = problems(with_combo(nativeAlias=True, **fields))
    assert list(found) == [f"combos.main.{path}" for path in paths]
