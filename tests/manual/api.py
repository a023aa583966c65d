"""The reference of the management API, made from its own OpenAPI description."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adminstage import stage
from combos.core.config_schema import json_schema
from manual.markdown import code, table
from manual.schema import Definitions, Schema, name_of, words

HEAD = """# Management API: reference

Every route with its parameters, body and answer. How to get in, how refusals look, what a `PUT` keeps and what the
events say is on the page [Management API](management.md); the same document as JSON is at `/api/openapi.json`.

Made by `./scripts/docs` from that document; a test fails when this page is behind.

```console
$ curl -s -H "Authorization: Bearer $(cat ~/.combos/admin-api-token)" http://127.0.0.1:10100/api/combos
```
"""

# Shapes that are described where the configuration is.
ELSEWHERE = {"ComboConfig": "configuration.md#combo", "ProviderConfig": "configuration.md#provider"}


def page() -> str:
    """The whole page."""
    document = openapi()
    defs = document["components"]["schemas"]
    configuration = frozenset(json_schema()["$defs"])
    own = {name: schema for name, schema in defs.items() if _is_shown(name, schema, configuration)}
    return "".join((HEAD, *_routes(document, defs, own), "\n## Shapes\n", *_shapes(defs, own)))


def openapi() -> Any:
    """The description as the API serves it."""

    async def ask() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            async with stage(Path(folder) / "config.json", {}) as api:
                return (await api.call("GET", "/api/openapi.json"))[1]

    return json.loads(json.dumps(asyncio.run(ask())))


def _is_shown(name: str, schema: Schema, configuration: frozenset[str]) -> bool:
    return "properties" in schema and name not in configuration


def _routes(document: Any, defs: Definitions, own: Definitions) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"\n## {method.upper()} {path}\n\n{operation['summary']}."
            yield " Needs no token.\n" if operation.get("security") == [] else "\n"
            yield from _parameters(operation)
            yield from _body(operation, defs, own)
            yield from _answers(operation, defs, own)


def _parameters(operation: Any) -> Iterator[str]:
    for row in operation.get("parameters", ()):
        yield f"\n- `?{row['name']}=`{' (required)' if row['required'] else ''}"
    if "parameters" in operation:
        yield "\n"


def _body(operation: Any, defs: Definitions, own: Definitions) -> Iterator[str]:
    if "requestBody" in operation:
        yield f"\nBody: {_shape(operation['requestBody'], defs, own)}\n"


def _answers(operation: Any, defs: Definitions, own: Definitions) -> Iterator[str]:
    refused = []
    for status, answer in operation["responses"].items():
        if status == "200":
            yield f"\n200: {_shape(answer, defs, own)}\n"
        else:
            refused.append(code(status))
    yield f"\nRefusals: {', '.join(refused)}\n"


def _shape(carrier: Any, defs: Definitions, own: Definitions) -> str:
    if "content" not in carrier:
        return "text or events, see [Management API](management.md)"
    return _words(carrier["content"]["application/json"]["schema"], defs, own)


def _words(schema: Schema, defs: Definitions, own: Definitions) -> str:
    if "$ref" in schema and (place := ELSEWHERE.get(name_of(schema["$ref"]))):
        return f"[{name_of(schema['$ref'])}]({place})"
    return words(schema, defs, {name: name for name in own})


def _shapes(defs: Definitions, own: Definitions) -> Iterator[str]:
    for name, schema in sorted(own.items()):
        said = str(schema.get("description", "")).replace("\n", " ")
        yield f"\n### {name}\n\n{said}\n\n" if said else f"\n### {name}\n\n"
        yield table(("Member", "Value", ""), _members(schema, defs, own))


def _members(schema: Schema, defs: Definitions, own: Definitions) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    for key, member in schema["properties"].items():
        optional = "" if key in required else "optional"
        null = any(part.get("type") == "null" for part in member.get("anyOf", ()))
        yield code(key), _words(member, defs, own), ", ".join(filter(None, (optional, "may be `null`" if null else "")))
