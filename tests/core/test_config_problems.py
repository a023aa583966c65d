"""Paths, and the shape that every document must have."""

from typing import Any

import pytest

from combos.core.config_problems import path_of, shape_problems
from configs import problems


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((), ""),
        (("combos",), "combos"),
        (("combos", "main", "targets", 0, "weight"), "combos.main.targets[0].weight"),
        (("$schema",), "$schema"),
        (("modelCosts", "gpt-5.6"), 'modelCosts["gpt-5.6"]'),
        (("a", 'x"\n'), 'a["x\\"\\n"]'),
        (("a", ""), 'a[""]'),
        (("a", "x" * 100), 'a["' + "x" * 80 + '"]'),
    ],
)
def test_paths(parts: tuple[str | int, ...], path: str) -> None:
    assert path_of(parts) == path


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("document", "path", "word"),
    [
        (None, "", "JSON object, got null"),
        ([], "", "JSON object, got an array"),
        ("x", "", "JSON object, got a string"),
        ({"x": float("nan")}, "x", "finite"),
        ({"x": [float("-inf")]}, "x[0]", "finite"),
        ({"x": "\ud800"}, "x", "Unicode"),
        ({"x": {"\udfff": 1}}, "x", "Unicode"),
        ({"x": 2**64}, "x", "out of range"),
        ({"x": 1e300}, "x", "out of range"),
        ({"x": {1: 2}}, "x", "strings"),
        ({"x": b"bytes"}, "x", "JSON value"),
        ({"x": {"y": object()}}, "x.y", "JSON value"),
    ],
)
def test_shape(document: object, path: str, word: str) -> None:
    found = problems(document)
    assert list(found) == [path]
    assert word in found[path]


@pytest.mark.parametrize(("depth", "valid"), [(63, True), (64, False), (5000, False)])
def test_depth(depth: int, valid: bool) -> None:
    assert (shape_problems({"x": nested(depth)}) == ()) is valid


def test_shape_problems_are_counted_up_to_a_limit() -> None:
    assert len(shape_problems({"x": [float("nan")] * 1000})) == 200


def test_shape_problems_come_in_file_order() -> None:
    found = shape_problems({"a": [float("nan"), 1, float("nan")], "b": float("nan")})
    assert [problem.path for problem in found] == ["a[0]", "a[2]", "b"]
