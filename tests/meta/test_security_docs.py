"""The page on security says for each claim which test holds it, and those tests exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def claims() -> list[str]:
    """The rows of the table of claims."""
    section = PAGE.partition("## How it is held")[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| Claim")]


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def test_there_are_claims() -> None:
    assert len(claims()) > 20


@pytest.mark.parametrize("row", claims())
def test_a_claim_names_tests_that_exist(row: str) -> None:
    named = NAMED.findall(row)
    assert named
    assert row.count("tests/") == len(named)
    for path, name in named:
        assert name in functions(ROOT / path), f"{path}::{name}"
