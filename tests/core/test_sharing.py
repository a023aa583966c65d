"""Which proxies share by default: those that serve the same combos from the same places."""

import pytest

from combos.core.config import parse_config
from combos.core.registry import build_registry
from combos.core.sharing import group_of
from playbook import config, provider


def group(document: dict[str, object], generation: int = 1) -> str:
    return group_of(build_registry(parse_config(document), generation))


def test_the_name_is_that_of_the_combos_whatever_else_the_configuration_says() -> None:
    first = group(config("alpha/m1", "beta/m2"))
    assert len(first) == 16
    assert first == group(config("alpha/m1", "beta/m2", strategy="random"), 7)
    assert first == group({**config("alpha/m1", "beta/m2"), "disabledModels": ["gamma/m9"]})


@pytest.mark.parametrize(
    "other",
    [
        config("beta/m2", "alpha/m1"),
        config("alpha/m1"),
        config("alpha/m1", "beta/m3"),
        config("alpha/m1", "beta/m2", providers={"alpha": {**provider("alpha"), "baseUrl": "http://127.0.0.1:9/v1"}}),
        {**config(), "combos": {"other": config("alpha/m1", "beta/m2")["combos"]["main"]}},  # type: ignore[index]
    ],
    ids=["order", "fewer", "model", "place", "id"],
)
def test_other_combos_are_another_group(other: dict[str, object]) -> None:
    assert group(other) != group(config("alpha/m1", "beta/m2"))
