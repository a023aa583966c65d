"""The table of native models: complete, ordered, consistent."""

import pytest

from combos.core.ladder import RUNGS
from combos.core.native_models import NATIVE_MODELS, native_model


def test_slugs_and_order() -> None:
    assert [model.slug for model in NATIVE_MODELS] == [
        "gpt-5.5",
        "gpt-5.6-sol",
        "gpt-5.6-terra",
        "gpt-5.6-luna",
        "gpt-daybreak-blue-latest",
        "gpt-6-astra",
        "gpt-6-sol",
        "gpt-6-luna",
        "gpt-6-astra-minor",
    ]


def test_ladders_are_ascending_and_hold_the_default() -> None:
    for model in NATIVE_MODELS:
        assert model.ladder == tuple(rung for rung in RUNGS if rung in model.ladder)
        assert model.default_effort in model.ladder


def test_gated_models() -> None:
    assert [model.slug for model in NATIVE_MODELS if model.gated] == ["gpt-daybreak-blue-latest", "gpt-6-astra-minor"]


@pytest.mark.parametrize("slug", ["gpt-5.4", "gpt-5.4-mini", "gpt-5.3-codex-spark", "GPT-5.5", "gpt-5.5-x", ""])
def test_other_slugs_are_unknown(slug: str) -> None:
    assert native_model(slug) is None


def test_lookup() -> None:
    model = native_model("gpt-6-sol")
    assert model is not None
    assert (model.context, model.long_context, model.max_output) == (272_000, 872_000, 128_000)
