"""Vendors' families: prefixes of the last part of an id, no family in the shadow of another."""

from itertools import combinations

import pytest

from combos.core.vendor_models import VENDOR_MODELS, vendor_model


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        ("claude-haiku-4-5", "claude-"),
        ("anthropic/claude-opus-4.8", "claude-"),
        ("Gemini-3-pro", "gemini-"),
        ("gpt-4o-mini", "gpt-4o"),
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4", None),
        ("my-claude-1", None),
        ("claude-x/other", None),
        ("", None),
    ],
)
def test_family(model: str, prefix: str | None) -> None:
    family = vendor_model(model)
    assert (family.prefix if family else None) == prefix


def test_no_prefix_begins_with_another() -> None:
    for one, other in combinations((family.prefix for family in VENDOR_MODELS), 2):
        assert not one.startswith(other)
        assert not other.startswith(one)
