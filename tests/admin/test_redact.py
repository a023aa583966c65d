"""No secret of a configuration is ever shown, wherever it stands."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.admin.redact import hinted, redacted
from combos.core.config import parse_config
from configs import combo, document, provider

CANARY = "sk-CANARY-9f8e7d6c5b4a"


@pytest.mark.parametrize(
    ("key", "shown"),
    [("", "****"), ("12345678", "****"), ("123456789", "1234****6789"), (CANARY, "sk-C****5b4a")],
)
def test_a_hint_of_a_key(key: str, shown: str) -> None:
    assert hinted(key) == shown


def test_references_and_order_stay() -> None:
    made = document(providers={"b": provider(apiKey="${KEY}", models=["m"]), "a": provider(apiKey="keychain:a/x")})
    shown = redacted(parse_config(made))
    assert shown == made
    assert list(shown["providers"]) == ["b", "a"]


def test_both_ways_of_writing_an_admission_key() -> None:
    made = document(apiKeys=[CANARY, {"key": CANARY, "id": "x"}, {"id": "y", "key": "$Y"}])
    assert redacted(parse_config(made))["apiKeys"] == ["****", {"key": "****", "id": "x"}, {"id": "y", "key": "$Y"}]


PLACES: list[Any] = [
    lambda: document(apiKeys=[CANARY]),
    lambda: document(apiKeys=[{"key": CANARY, "secret": CANARY}]),
    lambda: document(token=CANARY),
    lambda: document(nested={"deep": [{"er": CANARY}]}),
    lambda: document(providers={"alpha": provider(apiKey=CANARY), "beta": provider()}),
    lambda: document(providers={"alpha": provider(apikey=CANARY), "beta": provider()}),
    lambda: document(providers={"alpha": provider(headers={"x-key": CANARY}), "beta": provider()}),
    lambda: document(providers={"alpha": provider(proxy=f"http://u:{CANARY}@p.example"), "beta": provider()}),
    lambda: document(providers={"alpha": provider(apiKeyPool=[{"id": "a", "key": CANARY}]), "beta": provider()}),
    lambda: document(providers={"alpha": provider(modelCosts={"m": {"note": CANARY}}), "beta": provider()}),
    lambda: document(combos={"main": combo(secret=CANARY)}),
    lambda: document(combos={"main": {"targets": [{"provider": "alpha", "model": "m", "key": CANARY}]}}),
]


@settings(max_examples=60)
@given(place=st.sampled_from(PLACES), hint=st.booleans())
def test_a_canary_in_any_place_is_not_shown(place: Any, hint: bool) -> None:
    config = parse_config(place())
    shown = redacted(config, hinted) if hint else redacted(config)
    assert CANARY not in json.dumps(shown)
