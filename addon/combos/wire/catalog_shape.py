"""Which shape of the model list a client asked for, and the answer in that shape."""

from enum import StrEnum
from urllib.parse import parse_qs

import orjson

from combos.core.catalog import Catalog
from combos.core.facts import Headers
from combos.core.values import dataclass
from combos.wire.catalog_anthropic import anthropic_document
from combos.wire.catalog_codex import codex_document
from combos.wire.catalog_openai import openai_document
from combos.wire.headers import get

_CLAUDE_CODE = ("claude-code/", "claude-cli/")


class Shape(StrEnum):
    """A vendor's form of a model list."""

    OPENAI = "openai"
    CODEX = "codex"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What a client wants. `encoded_ids`: Messages rows named so that Claude Code lists them."""

    shape: Shape
    encoded_ids: bool = False


def list_request(query: str, headers: Headers) -> ListRequest:
    """The shape a `GET …/models` asks for; `query` without its question mark."""
    words = parse_qs(query, keep_blank_values=True)
    if "client_version" in words:
        return ListRequest(Shape.CODEX)
    if get(headers, "anthropic-version") is None and words.get("flavor") != ["anthropic"]:
        return ListRequest(Shape.OPENAI)
    agent = (get(headers, "user-agent") or "").lower()
    return ListRequest(Shape.ANTHROPIC, agent.startswith(_CLAUDE_CODE) or words.get("ids") == ["cli"])


def render(catalog: Catalog, wanted: ListRequest) -> bytes:
    """The whole list as JSON."""
    match wanted.shape:
        case Shape.OPENAI:
            document = openai_document(catalog.visible, fast_rows=catalog.fast_rows)
        case Shape.CODEX:
            document = codex_document(catalog.rows)
        case Shape.ANTHROPIC:
            document = anthropic_document(catalog.visible, encoded=wanted.encoded_ids)
    return orjson.dumps(document)
