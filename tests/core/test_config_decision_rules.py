"""Rules of the decision fields: strategy, exclusion, decision services, recursion."""

from typing import Any

import pytest

from configs import combo, problems, provider

ROW = provider(adapter="jev-decision", baseUrl="http://127.0.0.1:1/v1/systemone", allowPrivateNetwork=True)


def found(fields: dict[str, Any], **top: Any) -> dict[str, str]:
    document = {
        "providers": {
            "alpha": provider(alias="al", models=["vendor/m9"]),
            "row": {**ROW, "alias": "rw"},
            "plain": {**ROW, "baseUrl": "https://x.example/v1"},
            "off": {**ROW, "disabled": True},
        },
        "combos": {
            "me": combo(strategy="jev", alias="mine", **fields),
            "other": combo(strategy="jev", alias="team/other"),
            "normal": combo(alias="team/normal"),
        },
        "codexAccountNamespaces": {"work": "@main"},
        **top,
    }
    return problems(document)


@pytest.mark.parametrize(
    ("key", "value"), [("decisionProvider", "jev"), ("decisionModel", "alpha/m"), ("decisionTimeoutMs", 4000)]
)
def test_only_with_strategy_jev(key: str, value: object) -> None:
    document = {"providers": {"alpha": provider()}, "combos": {"m": combo(**{key: value})}}
    assert problems(document) == {f"combos.m.{key}": 'is only for strategy "jev"'}
    document["combos"]["m"][key] = None
    assert problems(document) == {}


@pytest.mark.parametrize("name", ["jev", "row"])
def test_method_is_one_of_two(name: str) -> None:
    both = {"decisionProvider": name, "decisionModel": "alpha/m"}
    assert found(both) == {"combos.me.decisionModel": "excludes decisionProvider: give one of them"}
    assert found({**both, "decisionProvider": None}) == {}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        (None, None),
        ("jev", None),
        ("row", None),
        ("off", None),
        ("alpha", "adapter jev-decision"),
        ("plain", "/systemone"),
        ("rows", 'did you mean "row"?'),
        ("absent", "not a configured provider"),
    ],
)
def test_provider(name: str | None, word: str | None) -> None:
    problem = found({"decisionProvider": name})
    assert list(problem) == ([] if word is None else ["combos.me.decisionProvider"])
    assert word is None or word in problem["combos.me.decisionProvider"]


@pytest.mark.parametrize(
    "model",
    [
        "combo/me",
        "mine",
        "combo/me--fast",
        "mine--high",
        "mine--ultra",
        "mine--minimal",
        "combo/other",
        "team/other",
        "combo/other--fast",
        "team/other--max",
    ],
)
def test_no_recursion(model: str) -> None:
    assert list(found({"decisionModel": model})) == ["combos.me.decisionModel"]


@pytest.mark.parametrize(
    ("model", "word"),
    [
        ("combo/normal", None),
        ("team/normal", None),
        ("team/normal--fast", None),
        ("combo/normal--low", None),
        ("alpha/anything", None),
        ("AL/anything", None),
        ("vendor/m9", None),
        ("vendor/m9--fast", None),
        ("gpt-5.5", None),
        ("work/gpt-5.5", None),
        ("mine--slow", None),
        ("Mine", None),
        ("combo/absent", "not configured"),
        ("combo/normal--slow", "not configured"),
        ("row/m", "decision service"),
        ("rw/m", "decision service"),
        ("alhpa/m", 'did you mean "alpha"?'),
        ("absent/m", "not a configured provider"),
        (" alpha/m", "blanks"),
    ],
)
def test_model(model: str, word: str | None) -> None:
    problem = found({"decisionModel": model})
    assert list(problem) == ([] if word is None else ["combos.me.decisionModel"])
    assert word is None or word in problem["combos.me.decisionModel"]


def test_a_broken_row_or_combo_is_not_reported_again_by_its_users() -> None:
    broken = {"adapter": "jev-decision"}
    value = {
        "providers": {"alpha": provider(), "row": broken},
        "combos": {"me": combo(strategy="jev", decisionProvider="row"), "b": combo(strategy="nope")},
    }
    assert list(problems(value)) == ["providers.row.baseUrl", "combos.b.strategy"]
    value["combos"]["me"] = combo(strategy="jev", decisionModel="combo/b")
    assert list(problems(value)) == ["providers.row.baseUrl", "combos.b.strategy"]
