"""A JSON schema in words: the kind and bounds of a value, and what stands in for one that is left out."""

import json
from collections.abc import Mapping
from typing import Any

type Schema = Mapping[str, Any]
type Definitions = Mapping[str, Schema]


def name_of(reference: str) -> str:
    """The definition that a `$ref` names."""
    return reference.rpartition("/")[2]


def object_of(schema: Schema) -> Schema:
    """The schema with members: itself, or the one of its alternatives that is not a short way of writing."""
    return schema if "anyOf" not in schema else next(part for part in schema["anyOf"] if "properties" in part)


def words(schema: Schema, defs: Definitions, links: Mapping[str, str]) -> str:
    """The kind of a value with its bounds. `links`: the place in the page of definitions that have one."""
    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return f"[{links[name]}](#{anchor(links[name])})" if name in links else words(defs[name], defs, links)
    if "anyOf" in schema:
        return " or ".join(words(part, defs, links) for part in schema["anyOf"] if part.get("type") != "null")
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    return _plain(schema, defs, links)


def _plain(schema: Schema, defs: Definitions, links: Mapping[str, str]) -> str:
    match schema.get("type"):
        case "integer" | "number" as kind:
            low, high = schema.get("minimum"), schema.get("maximum")
            return kind if high is None else f"{kind} ({low} to {high})"
        case "string":
            low, high = schema.get("minLength", 0), schema.get("maxLength")
            return "string" if high is None else f"string ({low} to {high} characters)"
        case "array":
            return f"list of {words(schema.get('items', {}), defs, links)}"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"map to {words(schema['additionalProperties'], defs, links)}"
        case "boolean":
            return "`true`, `false`"
        case None:
            return "any value"
        case kind:
            return str(kind)


def default(key: str, parent: Schema) -> str:
    """What holds when the member is left out."""
    if key in parent.get("required", ()):
        return "**required**"
    schema = parent["properties"][key]
    if "default" not in schema:
        return "`{}`" if schema.get("type") == "object" else "none"
    return "none" if schema["default"] is None else f"`{json.dumps(schema['default'])}`"


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    kept = "".join(char for char in heading.lower() if char.isalnum() or char in " -_")
    return kept.replace(" ", "-")
