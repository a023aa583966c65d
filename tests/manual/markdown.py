"""The few forms of Markdown that the generated pages are made of."""

import json
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are escaped."""
    lines = [head, ["---"] * len(head), *([cell(text) for text in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: object) -> str:
    """A word as code; an empty one is nothing."""
    return f"`{text}`" if text != "" else ""


def codes(words: Iterable[object]) -> str:
    """Words as code, in a row."""
    return ", ".join(code(word) for word in words)


def json_block(value: object) -> str:
    """A snippet of JSON, short members on one line."""
    return f"```json\n{_pretty(value, '')}\n```\n"


def _pretty(value: object, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= 96 or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        members = [f"{inner}{_pretty(member, inner)}" for member in value]
        return "[\n" + ",\n".join(members) + f"\n{indent}]"
    members = [f"{inner}{json.dumps(key)}: {_pretty(member, inner)}" for key, member in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"
