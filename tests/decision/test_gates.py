"""Names of gates and backends."""

import pytest

from combos.decision.gates import Backend, Closed, Gate, backend_of, backend_of_combo
from decisions import main_of, registry, row


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


def test_the_backend_of_a_combo() -> None:
    made = registry(providers={"tev": row("http://127.0.0.1:1/systemone")}, decisionProvider="tev")
    assert backend_of_combo(main_of(made).config) is Backend.SYSTEMONE


def test_a_closed_gate_says_its_name() -> None:
    assert str(Closed(Gate.NO_STATE)) == "no_state"
