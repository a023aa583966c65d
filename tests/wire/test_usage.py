"""Token counts: one set of names, unknown stays unknown."""

import pytest

from combos.core.facts import Dialect
from combos.wire.usage import COUNT_MAX, flat_usage, merge_usage


@pytest.mark.parametrize(
    ("known", "later", "merged"),
    [
        (None, None, None),
        ({"input_tokens": 1}, None, {"input_tokens": 1}),
        (None, {"input_tokens": 1}, {"input_tokens": 1}),
        ({"input_tokens": 25, "output_tokens": 1}, {"output_tokens": 7}, {"input_tokens": 25, "output_tokens": 7}),
        ({"output_tokens": 1}, {"output_tokens": 0}, {"output_tokens": 0}),
    ],
)
def test_a_later_count_replaces_an_earlier_one(
    known: dict[str, int] | None, later: dict[str, int] | None, merged: dict[str, int] | None
) -> None:
    assert merge_usage(known, later) == merged


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("usage", [None, {}, [], 7, "x", {"input_tokens": None, "prompt_tokens": 1.5}])
def test_nothing_reported_is_unknown(dialect: Dialect, usage: object) -> None:
    assert flat_usage(dialect, usage) is None


def test_zero_is_a_count() -> None:
    assert flat_usage(Dialect.RESPONSES, {"output_tokens": 0}) == {"output_tokens": 0}


def test_the_standard_name_of_cached_tokens_comes_before_the_vendors_own() -> None:
    usage = {"prompt_tokens_details": {"cached_tokens": 3}, "prompt_cache_hit_tokens": 4}
    assert flat_usage(Dialect.CHAT, usage) == {"cached_input_tokens": 3}
    assert flat_usage(Dialect.CHAT, {"prompt_cache_hit_tokens": 4}) == {"cached_input_tokens": 4}


@pytest.mark.parametrize("count", [COUNT_MAX + 1, 2**63, 2**64 - 1, -1, True, 1.0, 1e30])
def test_a_count_that_no_request_has_is_none(count: object) -> None:
    assert flat_usage(Dialect.MESSAGES, {"input_tokens": count, "output_tokens": COUNT_MAX}) == {
        "output_tokens": COUNT_MAX
    }
