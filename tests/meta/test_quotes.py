"""Messages of ours that the troubleshooting page quotes are said by the program."""

import ast
from collections.abc import Iterator

import pytest

from manual.markup import DOCUMENTS, ROOT, blocks

GAP = "\0"
QUOTED = [block for block in blocks("text") if block.page == "docs/troubleshooting.md"]
QUOTES = [line for block in QUOTED for line in block.text.split("\n") if line]


def said() -> Iterator[str]:
    """Every text in the sources, with a mark where something is filled in."""
    for path in (ROOT / "addon").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.fixture(scope="module")
def texts() -> str:
    return "\n\n".join(said())


@pytest.mark.parametrize("line", QUOTES)
def test_a_quoted_message_is_one_of_ours(line: str, texts: str) -> None:
    parts = [part.strip() for part in line.split("…")]
    assert sum(len(part) for part in parts) > 10
    assert [part for part in parts if part not in texts] == []


def test_the_quotes_are_in_the_page() -> None:
    assert len(QUOTES) > 30
    assert "combo_unavailable" in DOCUMENTS["docs/troubleshooting.md"]
