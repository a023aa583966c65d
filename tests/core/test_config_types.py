"""What messages show of values, and that keys written in the wrong place do not leak."""

import pytest

from combos.core.config_types import kind_of, near_miss, shown
from configs import problems, with_combo, with_provider


@pytest.mark.parametrize(
    ("value", "kind", "display"),
    [
        (None, "null", "null"),
        (True, "true", "true"),
        (12, "a number", "12"),
        (1.5, "a number", "1.5"),
        ("", "an empty string", "an empty string"),
        ("sk-key", "a string", "a string"),
        ([1], "an array", "an array"),
        ((1,), "an array", "an array"),
        ({}, "an object", "an object"),
        (object(), "another value", "another value"),
    ],
)
def test_kinds(value: object, kind: str, display: str) -> None:
    assert (kind_of(value), shown(value)) == (kind, display)


def test_long_numbers_are_cut() -> None:
    assert len(shown(10**100)) == 40


def test_near_miss() -> None:
    assert near_miss("straetgy", ["strategy", "targets"]) == '; did you mean "strategy"?'
    assert near_miss("zzz", ["strategy"]) == ""


SECRET = "sk-live-9zq9zq"


@pytest.mark.parametrize(
    "document",
    [
        with_provider(adapter=SECRET),
        with_provider(baseUrl=SECRET),
        with_provider(authMode=SECRET),
        with_provider(apiKey="$-" + SECRET),
        with_provider(apiKey=" " + SECRET),
        with_provider(apiKey=[SECRET]),
        with_provider(apiKeyPool=[SECRET]),
        with_provider(apiKeyPool={"id": SECRET}),
        with_provider(headers={"Authorization": SECRET}),
        with_provider(headers={"X-A": SECRET + "\n"}),
        with_provider(proxy=SECRET),
        with_provider(models=SECRET),
        with_combo(strategy=SECRET),
        with_combo(alias=SECRET + "/" + SECRET + "/x"),
        with_combo(defaultEffort=SECRET),
        with_combo(decisionProvider=SECRET, strategy="jev"),
        with_combo(decisionModel=SECRET + "/x", strategy="jev"),
        with_combo(targets=[{"provider": SECRET + "/", "model": SECRET + " "}]),
        {"apiKeys": ["$-" + SECRET], "defaultProvider": SECRET, "corsAllowOrigins": [SECRET]},
        {"apiKeys": [{"id": SECRET}], "combos": SECRET, "providers": [SECRET]},
    ],
)
def test_no_text_value_gets_into_a_message(document: object) -> None:
    found = problems(document)
    assert found
    assert "9zq9" not in str(found)


@pytest.mark.parametrize("document", [with_provider(apiKey=123456789), {"apiKeys": [123456789]}])
def test_numeric_keys_are_not_shown(document: object) -> None:
    found = problems(document)
    assert found
    assert "123456789" not in str(found)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("openai", '; did you mean "openai-responses" or "openai-chat" or "azure-openai"?'),
        ("Anthropic", '; did you mean "anthropic"?'),
        ("ollama", '; did you mean "ollama-native"?'),
        ("openai-caht", '; did you mean "openai-chat"?'),
        ("o", ""),
        ("sk-canary", ""),
    ],
)
def test_a_wrong_word_is_answered_with_those_that_may_be_meant(written: str, meant: str) -> None:
    said = problems(with_provider(adapter=written))["providers.alpha.adapter"]
    assert said.partition(", got a string")[2] == meant


@pytest.mark.parametrize(
    ("key", "got"), [("", "an empty string"), ("k" * 9_000, "9000 characters"), (0, "a number"), (True, "true")]
)
def test_a_length_is_not_taken_for_a_value(key: object, got: str) -> None:
    assert problems(with_provider(apiKey=key))["providers.alpha.apiKey"].endswith(f", got {got}")
