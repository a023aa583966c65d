"""Tools of a request: which hosted ones are dropped or refused, how names fit other dialects, and the way back.

Names are a pure function of the declared tools, so that a prompt's prefix is the same on every turn.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.translate.ir import Tool
from combos.wire.translate.shape import Json, Unsupported, as_dict, as_str, dump_str, load_object

NAME_LIMIT = 64
MAIN_NAMESPACE = "functions"
"""The namespace whose children keep their bare name outside Responses."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")

DROPPED_TOOLS: Mapping[Dialect, tuple[str, ...]] = {
    Dialect.RESPONSES: ("web_search", "tool_search", "image_generation"),
    Dialect.CHAT: (),
    Dialect.MESSAGES: ("web_search_", "web_fetch_", "tool_search_tool_"),
    Dialect.GEMINI: ("googleSearch", "urlContext", "google_search", "url_context", "googleMaps"),
}
"""Prefixes of hosted tool types whose absence costs the model an ability, not the conversation."""

FREEFORM_SCHEMA: Json = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def hosted(kind: str, client: Dialect, dropped: set[str]) -> None:
    """Drop a provider-hosted tool and name it. Raises Unsupported for one that the conversation depends on."""
    if not kind or not kind.startswith(DROPPED_TOOLS[client] or ("\0",)):
        raise Unsupported("tools", f"holds {kind or 'a tool without type'!r}, which only its own provider can run")
    dropped.add(f"tools.{kind}")


def digest8(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


USER_LIMIT = 64
"""What the OpenAI APIs take as the end user's name; Claude Code's has about 150 characters."""


def fit_id(call_id: str, limit: int, foreign: re.Pattern[str] | None = None) -> str:
    """An id within a target's limits: a readable prefix and a hash of the original, stable over turns."""
    clean = foreign.sub("_", call_id) if foreign else call_id
    if clean == call_id and 0 < len(call_id) <= limit:
        return call_id
    return f"{clean[: limit - 9]}_{digest8(call_id)}"


def plain_name(namespace: str | None, name: str) -> str:
    """The wire name outside Responses, before collisions are looked at."""
    full = name if namespace in (None, "", MAIN_NAMESPACE) else f"{namespace}__{name}"
    clean = _FOREIGN.sub("_", full) or "tool"
    return clean if len(clean) <= NAME_LIMIT else f"{clean[: NAME_LIMIT - 9]}_{digest8(full)}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The declared tools by wire name, and the wire name of each (namespace, name)."""

    by_wire: Mapping[str, Tool] = field(default_factory=dict)
    wire: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def wire_name(self, namespace: str | None, name: str) -> str:
        """The name a call in the history gets; tools that are no longer declared follow the same rule."""
        return self.wire.get((namespace or "", name)) or plain_name(namespace, name)

    def find(self, wire_name: str, namespace: str | None = None) -> Tool | None:
        """The tool behind a name that the target used."""
        if namespace:
            return self.by_wire.get(self.wire_name(namespace, wire_name))
        return self.by_wire.get(wire_name)


def build_catalog(tools: Iterable[Tool]) -> Catalog:
    """Give every tool a wire name; a taken name gets the hash of the full name as its tail."""
    by_wire: dict[str, Tool] = {}
    wire: dict[tuple[str, str], str] = {}
    for tool in tools:
        key = (tool.namespace or "", tool.name)
        if key in wire:
            continue
        name = plain_name(tool.namespace, tool.name)
        if name in by_wire:
            name = f"{name[: NAME_LIMIT - 9]}_{digest8('.'.join(key))}"
        by_wire[name] = tool
        wire[key] = name
    return Catalog(by_wire, wire)


def unique(tools: Iterable[Tool]) -> list[Tool]:
    """The tools without repetitions, first declaration first (additional_tools may repeat a tool)."""
    return list({(tool.namespace or "", tool.name): tool for tool in reversed(list(tools))}.values())[::-1]


def object_schema(schema: Json | None) -> Json:
    """A parameter schema that every API takes: an object with properties; unknown keywords stay."""
    result = dict(schema or {})
    if result.get("type") != "object":
        result["type"] = "object"
    if not isinstance(result.get("properties"), dict):
        result["properties"] = {}
    return result


def freeform_description(tool: Tool) -> str:
    """The description of a freeform tool where only JSON arguments exist: the grammar becomes words."""
    shape = as_dict(tool.format)
    definition = as_str(shape.get("definition"))
    lines = [tool.description or ""]
    lines.append("Put the whole input, unescaped, into the string `input`.")
    if definition:
        lines.append(f"The input follows this {as_str(shape.get('syntax')) or 'grammar'} grammar:\n{definition}")
    return "\n\n".join(line for line in lines if line)


def wrap_freeform(text: str) -> str:
    """Plain input as the JSON arguments of the stand-in function."""
    return dump_str({"input": text})


def unwrap_freeform(arguments: str) -> str:
    """The plain input in JSON arguments; anything that is not that object is taken as it stands."""
    document = load_object(arguments) if arguments.lstrip()[:1] == "{" else None
    if document is not None and isinstance(document.get("input"), str) and len(document) == 1:
        return str(document["input"])
    return arguments


def arguments_object(arguments: str) -> Json:
    """Arguments for dialects that hold them as an object."""
    if not arguments.strip():
        return {}
    document = load_object(arguments)
    return {"_raw": arguments} if document is None else document
