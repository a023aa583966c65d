"""How targets are read from the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.cli.targets import TargetError, parse_target_keys, parse_targets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/m", [("a", "m", None)]),
        ("a/m:2", [("a", "m", 2)]),
        (" a/m:2 , ,b/n ,", [("a", "m", 2), ("b", "n", None)]),
        ("ollama/qwen3:4b", [("ollama", "qwen3:4b", None)]),
        ("ollama/x:7", [("ollama", "x", 7)]),
        ("ollama/x:7:1", [("ollama", "x:7", 1)]),
        ("a/b/c:3", [("a", "b/c", 3)]),
        ("a:1/m", [("a:1", "m", None)]),
        ("a/m:", [("a", "m:", None)]),
        ("a/:5", [("a", ":5", None)]),
        ("a/m:-1", [("a", "m", -1)]),
        ("a/m:1.5", [("a", "m:1.5", None)]),
        ("a/m:\u0663", [("a", "m:\u0663", None)]),
    ],
)
def test_targets(text: str, expected: list[tuple[str, str, int | None]]) -> None:
    found = [(target["provider"], target["model"], target.get("weight")) for target in parse_targets(text)]
    assert found == expected


@pytest.mark.parametrize("text", ["", " , ", "a", "a/", "/m", "a/m,b"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(TargetError):
        parse_targets(text)


def test_keys() -> None:
    assert parse_target_keys("a/m:7, b/n") == ["a/m:7", "b/n"]
    with pytest.raises(TargetError):
        parse_target_keys("a/m,b")


NAMES = st.text("abc.-:/", min_size=1, max_size=8).filter(lambda text: text.strip(","))


@given(provider=st.text("abc-.", min_size=1, max_size=6), model=NAMES, weight=st.integers(1, 10_000))
def test_a_weight_written_out_is_read_back(provider: str, model: str, weight: int) -> None:
    assert parse_targets(f"{provider}/{model}:{weight}") == [{"provider": provider, "model": model, "weight": weight}]
