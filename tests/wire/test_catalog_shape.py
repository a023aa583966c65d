"""Which shape a request for the model list gets."""

from typing import Any

import orjson
import pytest

from catalogs import CHATGPT, catalog, provider, targets
from combos.core.facts import Headers
from combos.wire.catalog_shape import ListRequest, Shape, list_request, render

VERSION = (b"Anthropic-Version", b"2023-06-01")
DOCUMENT: dict[str, Any] = {
    "providers": {"openai": CHATGPT, "up": provider()},
    "combos": {"c": {"targets": targets("up/m")}},
    "disabledModels": ["gpt-5.5"],
}


@pytest.mark.parametrize(
    ("query", "headers", "shape", "encoded"),
    [
        ("", (), Shape.OPENAI, False),
        ("limit=1000", ((b"user-agent", b"claude-code/2.1.197"),), Shape.OPENAI, False),
        ("client_version=0.171.0", (), Shape.CODEX, False),
        ("x=1&client_version", (VERSION,), Shape.CODEX, False),
        ("limit=1000", (VERSION, (b"User-Agent", b"claude-code/2.1.197")), Shape.ANTHROPIC, True),
        ("", (VERSION, (b"User-Agent", b"claude-cli/2.1.197 (external)")), Shape.ANTHROPIC, True),
        ("", (VERSION, (b"User-Agent", b"Anthropic/Python 2.14")), Shape.ANTHROPIC, False),
        ("ids=cli", (VERSION,), Shape.ANTHROPIC, True),
        ("flavor=anthropic", (), Shape.ANTHROPIC, False),
        ("flavor=openai", (), Shape.OPENAI, False),
    ],
)
def test_shape(query: str, headers: Headers, shape: Shape, encoded: bool) -> None:
    assert list_request(query, headers) == ListRequest(shape, encoded)


@pytest.mark.parametrize(
    ("shape", "key", "id_key", "combo", "has_hidden"),
    [
        (Shape.OPENAI, "data", "id", "combo/c", False),
        (Shape.CODEX, "models", "slug", "combo/c", True),
        (Shape.ANTHROPIC, "data", "id", "claude-ocx-combo--c", False),
    ],
)
def test_render(shape: Shape, key: str, id_key: str, combo: str, has_hidden: bool) -> None:
    names = [row[id_key] for row in orjson.loads(render(catalog(DOCUMENT), ListRequest(shape, encoded_ids=True)))[key]]
    assert combo in names
    assert ("gpt-5.5" in names) is has_hidden
    assert "claude-ocx-openai--gpt-5.5" not in names
