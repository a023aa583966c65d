"""Names of gates and backends."""

import pytest

from combos.decision.gates import Closed, Gate, backend_of


@pytest.mark.parametrize(
    ("provider", "model", "backend"),
    [
        (None, None, "typesafe"),
        ("jev", None, "typesafe"),
        ("tev", None, "systemone"),
        (None, "a/b", "model"),
        ("tev", "a/b", "model"),
    ],
)
def test_the_backend_follows_from_the_selectors(provider: str | None, model: str | None, backend: str) -> None:
    assert backend_of(provider, model) == backend


def test_a_closed_gate_says_its_name() -> None:
    assert str(Closed(Gate.NO_STATE)) == "no_state"
