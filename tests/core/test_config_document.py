"""A configuration back as the document it came from, and the keys nobody knows."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from combos.core.config import Config, to_document, unknown_keys
from combos.core.config_combo import ComboConfig, TargetConfig
from combos.core.config_provider import Adapter, ProviderConfig
from configs import combo, config, document, provider

FULL: dict[str, Any] = {
    "later": {"kept": [1, None, {"x": True}]},
    "combos": {"m": {"zz": 1, **combo(alias="a/b", cooldownMs=60_000, strategy="random", defaultEffort=None)}},
    "apiKeys": ["plain", {"key": "${K}", "name": "n"}],
    "$schema": "./s.json",
    "providers": {
        "alpha": provider(
            apiKey="${A}",
            apiKeyPool=[{"key": "k", "id": "i", "note": "kept"}],
            headers={"X-B": "1", "X-A": "2"},
            modelCosts={"m": {"output": 2.0, "input": 1.0}},
            noProxy=["a", "b"],
            requestPacing={},
            newField=[],
        )
    },
    "disabledModels": ["combo/m"],
}


def test_everything_comes_back_in_order() -> None:
    assert json.dumps(to_document(config(FULL))) == json.dumps(FULL)


def test_parts_come_back_too() -> None:
    assert to_document(config(FULL).combos["m"]) == FULL["combos"]["m"]


def test_objects_made_in_code_give_the_keys_that_were_set() -> None:
    row = ProviderConfig(adapter=Adapter.OPENAI_CHAT, base_url="https://x.example", live_models=False)
    made = Config(
        providers={"alpha": row},
        combos={"m": ComboConfig(targets=(TargetConfig(provider="alpha", model="m", weight=2),))},
    )
    assert to_document(made) == {
        "providers": {"alpha": {"adapter": "openai-chat", "baseUrl": "https://x.example", "liveModels": False}},
        "combos": {"m": {"targets": [{"provider": "alpha", "model": "m", "weight": 2}]}},
    }


def test_snake_case_is_unknown_in_a_document() -> None:
    made = config(document(default_provider="alpha"))
    assert made.default_provider is None
    found = {problem.path: problem.message for problem in unknown_keys(made)}
    assert found == {"default_provider": 'is not a known setting; did you mean "defaultProvider"?'}


def test_unknown_keys_are_found_everywhere() -> None:
    found = [problem.path for problem in unknown_keys(config(FULL))]
    assert found == [
        "later",
        "providers.alpha.newField",
        "providers.alpha.apiKeyPool[0].note",
        "combos.m.zz",
    ]


def test_a_known_configuration_has_no_unknown_keys() -> None:
    assert unknown_keys(config(document(apiKeys=["k"]))) == ()


EXTRA = st.dictionaries(
    st.text(alphabet="xyz_ é.", min_size=1, max_size=6),
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=5,
    ),
    max_size=4,
)


@settings(deadline=None)
@given(EXTRA, EXTRA, EXTRA, st.randoms(use_true_random=False))
def test_round_trip_keeps_unknown_keys(top: Any, in_provider: Any, in_combo: Any, random: Any) -> None:
    members = list(
        {
            **top,
            "providers": {"alpha": {**in_provider, **provider(models=["a"])}},
            "combos": {"main": {**combo(stickyLimit=3), **in_combo}},
        }.items()
    )
    random.shuffle(members)
    value = dict(members)
    assert json.dumps(to_document(config(value))) == json.dumps(value)
