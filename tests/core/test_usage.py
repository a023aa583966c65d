"""Token counts under one meaning, and what they cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config_provider import ModelCost
from combos.core.facts import Dialect
from combos.core.usage import Tokens, cost_usd, tokens_of

PRICE = ModelCost(input=3, output=15, cache_read=0.3, cache_write=3.75)


@pytest.mark.parametrize(
    ("dialect", "usage", "tokens"),
    [
        (Dialect.MESSAGES, {"input_tokens": 25, "output_tokens": 7}, Tokens(25, 7, total=32)),
        (
            Dialect.MESSAGES,
            {"input_tokens": 5, "output_tokens": 7, "cached_input_tokens": 100, "cache_creation_input_tokens": 20},
            Tokens(125, 7, 100, 20, total=132),
        ),
        (
            Dialect.RESPONSES,
            {"input_tokens": 125, "output_tokens": 7, "total_tokens": 132, "cached_input_tokens": 100},
            Tokens(125, 7, 100, total=132),
        ),
        (
            Dialect.GEMINI,
            {"input_tokens": 10, "output_tokens": 4, "reasoning_output_tokens": 6, "total_tokens": 20},
            Tokens(10, 10, reasoning=6, total=20),
        ),
        (Dialect.CHAT, {"input_tokens": 10}, Tokens(10, total=10)),
        (Dialect.CHAT, {"input_tokens": 0, "output_tokens": 0}, Tokens(0, 0, total=0)),
        (Dialect.CHAT, {"cached_input_tokens": 3}, Tokens(cache_read=3)),
        (Dialect.CHAT, {}, Tokens()),
        (Dialect.CHAT, None, Tokens()),
        (None, {"input_tokens": 1}, Tokens(1, total=1)),
    ],
)
def test_tokens(dialect: Dialect | None, usage: dict[str, int] | None, tokens: Tokens) -> None:
    assert tokens_of(dialect, usage) == tokens


def test_unknown_is_not_zero() -> None:
    assert not tokens_of(Dialect.CHAT, None).is_known
    assert tokens_of(Dialect.CHAT, {"output_tokens": 0}).is_known
    assert tokens_of(Dialect.CHAT, None).spent == 0


@pytest.mark.parametrize(
    ("price", "tokens", "usd"),
    [
        (PRICE, Tokens(1_000_000, 100_000), 3 + 1.5),
        (PRICE, Tokens(1_000_000, 0, cache_read=1_000_000), 0.3),
        (PRICE, Tokens(1_000_000, 0, cache_write=1_000_000), 3.75),
        (ModelCost(input=2, output=4), Tokens(1_000_000, 0, cache_read=500_000, cache_write=500_000), 2),
        (ModelCost(input=2), Tokens(1_000_000, 0), 2),
        (ModelCost(input=2), Tokens(1_000_000, 5), None),
        (ModelCost(output=2), Tokens(5, 5), None),
        (ModelCost(input=0, output=0), Tokens(5, 5), 0),
        (PRICE, Tokens(), None),
        (None, Tokens(5, 5), None),
    ],
)
def test_costs(price: ModelCost | None, tokens: Tokens, usd: float | None) -> None:
    assert cost_usd(price, tokens) == (usd if usd is None else pytest.approx(usd))


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cost_lies_between_its_cheapest_and_its_dearest_reading(read: int, out: int, cached: int, made: int) -> None:
    tokens = tokens_of(
        Dialect.MESSAGES,
        {
            "input_tokens": read,
            "output_tokens": out,
            "cached_input_tokens": cached,
            "cache_creation_input_tokens": made,
        },
    )
    cost = cost_usd(PRICE, tokens)
    assert tokens.input is not None
    assert cost is not None
    assert 0 <= cost <= (tokens.input * 3.75 + out * 15) / 1_000_000 + 1e-6
    assert cost >= (tokens.input * 0.3 + out * 15) / 1_000_000 - 1e-6
