"""The configuration as a whole: any document gives a configuration or a list of problems, nothing else."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from combos.core.config import Config, config_warnings, parse_config, save_problems
from combos.core.config_combo import ComboConfig, TargetConfig
from combos.core.config_document import key_names
from combos.core.config_provider import ProviderConfig
from combos.core.errors import ConfigError, ConfigProblem
from configs import combo, config, document, provider

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["jev", "alpha", "combo", "force", "forward", "https://x.example", "$A", "gpt-5.5", "a/b"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def objects(model: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(sorted(key_names(model).values())), VALUES, max_size=6)


TARGETS = st.lists(objects(TargetConfig) | st.just({"provider": "alpha", "model": "m"}), max_size=3)
COMBOS = st.builds(lambda fields, targets: {**fields, "targets": targets}, objects(ComboConfig), TARGETS)
PROVIDERS = st.builds(
    lambda fields, valid: {**fields, **valid}, objects(ProviderConfig), st.just(provider()) | st.just({})
)
DOCUMENTS = st.builds(
    lambda fields, providers, combos: {**fields, "providers": providers, "combos": combos},
    objects(Config),
    st.dictionaries(st.sampled_from(["alpha", "jev", "combo", "a-"]) | st.text(max_size=3), PROVIDERS, max_size=3),
    st.dictionaries(st.sampled_from(["main", "alpha", "-"]) | st.text(max_size=3), COMBOS, max_size=3),
)


def outcome(value: object) -> Config | tuple[ConfigProblem, ...]:
    try:
        return parse_config(value)
    except ConfigError as error:
        return error.problems


@given(VALUES | DOCUMENTS)
@settings(max_examples=200, deadline=None)
def test_any_document(value: object) -> None:
    before = copy.deepcopy(value)
    made = outcome(value)
    if isinstance(made, Config):
        assert set(save_problems(made)) <= set(config_warnings(made))
    else:
        assert made
        assert all(problem.message for problem in made)
    assert repr(value) == repr(before)


def test_an_empty_document_is_valid() -> None:
    made = config({})
    assert (made.providers, made.combos, made.port, made.hostname) == ({}, {}, 10100, "127.0.0.1")
    assert (made.fast_rows, made.cursor_effort_rows) == (True, False)


def test_order_of_providers_and_combos_is_that_of_the_file() -> None:
    value = {"providers": {"z": provider(), "a": provider()}, "combos": {"y": combo(), "b": combo()}}
    made = config(value)
    assert (list(made.providers), list(made.combos)) == (["z", "a"], ["y", "b"])


def test_models_are_frozen() -> None:
    made = config()
    with pytest.raises(ValidationError):
        made.port = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        made.combos["main"].sticky_limit = 2  # type: ignore[misc]


def test_admission_keys_are_texts_or_objects() -> None:
    made = config(document(apiKeys=["plain", {"key": "named", "id": "x"}]))
    assert [entry.key.get_secret_value() for entry in made.api_keys] == ["plain", "named"]
    assert [entry.id for entry in made.api_keys] == [None, "x"]
    assert "plain" not in repr(made)


def test_unknown_values_stay_out_of_reprs() -> None:
    assert "9zq" not in repr(config(document(apiKyes=["9zq"])))
