"""What is secret is compared in constant time: no `==` and no `in` on what holds a token, a key or a password."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "addon" / "combos"

# Names of variables, attributes and methods that stand for the secret itself, not for a name or a digest of it.
SECRET = frozenset(
    {
        "token", "admin_token", "secret", "password", "passwd", "presented", "shown", "credential",
        "api_key", "access_token", "reveal", "get_secret_value", "stand_in", "configured_key", "admission_key",
    }
)  # fmt: skip


# Both sides come from the configuration: nobody who asks chooses either.
ALLOWED = {"upstream/members.py: own.reveal() not in [key for _, key in named]"}


def names(node: ast.expr) -> Iterator[str]:
    """The names by which an operand says what it is: the last part of it."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(attr=name):
            yield name
        case ast.Call(func=func):
            yield from names(func)
        case ast.Subscript(value=value):
            yield from names(value)


def unsafe(tree: ast.AST) -> list[str]:
    """Comparisons of a secret with something that is no constant. Behind `in` stands what it is looked for in."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            continue
        looked_up = isinstance(node.ops[0], ast.In | ast.NotIn)
        sides = [node.left] if looked_up else [node.left, *node.comparators]
        is_secret = any(name in SECRET for side in sides for name in names(side))
        if is_secret and not any(isinstance(side, ast.Constant) for side in sides):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "source", ["token == other", "shown in known", "a != row.secret", "x.reveal() == y", "row.api_key not in keys"]
)
def test_the_search_finds_what_it_is_for(source: str) -> None:
    assert unsafe(ast.parse(source)) == [source]


@pytest.mark.parametrize("source", ['token == ""', "token is None", "name in shown", "secret_name == other"])
def test_the_search_leaves_alone_what_is_harmless(source: str) -> None:
    assert unsafe(ast.parse(source)) == []


@pytest.mark.parametrize("layer", ["admin", "mitm", "upstream", "cli", "core"])
def test_secrets_are_compared_in_constant_time(layer: str) -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in sorted((PACKAGE / layer).rglob("*.py"))
        for text in unsafe(ast.parse(path.read_text()))
    }
    assert found <= ALLOWED


@pytest.mark.parametrize("place", ["admin/auth.py", "admin/admin_token.py", "mitm/access.py"])
def test_the_comparisons_there_are_are_the_right_ones(place: str) -> None:
    assert "compare_digest(" in (PACKAGE / place).read_text()
