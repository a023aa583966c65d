"""The reference of the management API, made from its own OpenAPI description."""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adminstage import Stage, stage
from combos.core.config_schema import json_schema
from manual.markdown import code, json_block, table
from manual.schema import Definitions, Schema, name_of, words

HEAD = """# Management API: reference

Every route with its parameters, body and answer. How to get in, how refusals look, what a `PUT` keeps and what the
events say is on the page [Management API](management.md); the same document as JSON is at `/api/openapi.json`.

Made by `./scripts/docs` from that document; a test fails when this page is behind.

```console
$ curl -s -H "Authorization: Bearer $(cat ~/.combos/admin-api-token)" http://127.0.0.1:10100/api/combos
```
"""

TARGETS = ({"provider": "anthropic", "model": "claude-opus-4-8"}, {"provider": "backup", "model": "claude-opus-4-8"})
CONFIGURATION = {
    "providers": {
        "anthropic": {"adapter": "anthropic", "baseUrl": "https://api.anthropic.com", "apiKey": "${ANTHROPIC_API_KEY}"},
        "backup": {"adapter": "anthropic", "baseUrl": "https://gateway.example.com", "apiKey": "${BACKUP_API_KEY}"},
    },
    "combos": {"main": {"alias": "team/main", "targets": TARGETS}, "other": {"targets": TARGETS}},
}

# Shapes that are described where the configuration is.
ELSEWHERE = {"ComboConfig": "configuration.md#combo", "ProviderConfig": "configuration.md#provider"}


class Call(NamedTuple):
    """A call whose answer is shown: path with its query, body, how much of a list is shown."""

    path: str
    body: Any = None
    rows: int | None = None


# By method and path. They are made one after the other, on one configuration.
CALLS: Mapping[str, Call] = {
    "GET /healthz": Call("/healthz"),
    "GET /readyz": Call("/readyz"),
    "GET /api/combos": Call("/api/combos"),
    "PUT /api/combos": Call("/api/combos", {"id": "spare", "combo": {"targets": [TARGETS[1]]}, "dryRun": True}),
    "GET /api/combos/state": Call("/api/combos/state?id=main"),
    "POST /api/combos/dry-run": Call("/api/combos/dry-run", {"model": "combo/main"}),
    "POST /api/combos/cooldowns/clear": Call("/api/combos/cooldowns/clear?id=main"),
    "GET /api/providers": Call("/api/providers", rows=1),
    "GET /api/providers/presets": Call("/api/providers/presets", rows=1),
    "GET /api/models": Call("/api/models", rows=1),
    "GET /api/config": Call("/api/config"),
    "DELETE /api/combos": Call("/api/combos?id=other"),
}
VARYING: Mapping[str, object] = {"pid": 4711, "port": 10100, "uptime": 86400.5, "version": "…"}
"""What an answer says that differs from run to run."""


def page() -> str:
    """The whole page."""
    document, answers = asyncio.run(_asked())
    defs = document["components"]["schemas"]
    configuration = frozenset(json_schema()["$defs"])
    own = {name: schema for name, schema in defs.items() if _is_shown(name, schema, configuration)}
    return "".join((HEAD, *_routes(document, defs, own, answers), "\n## Shapes\n", *_shapes(defs, own)))


async def _asked() -> tuple[Any, dict[str, Any]]:
    """The description as the API serves it, and the answers to the calls."""
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder) / "config.json", CONFIGURATION) as api:
            document = (await api.call("GET", "/api/openapi.json"))[1]
            answers = {name: await _answer(api, name.split(" ")[0], call) for name, call in CALLS.items()}
            return json.loads(json.dumps(document)), json.loads(json.dumps(answers).replace(folder, "~/.combos"))


async def _answer(api: Stage, method: str, call: Call) -> Any:
    status, answer = await api.call(method, call.path, call.body)
    assert status == 200, (call, answer)
    return _steady(answer, call.rows)


def _steady(answer: Any, rows: int | None) -> Any:
    """An answer without what differs from run to run, and its lists as long as wanted."""
    if isinstance(answer, list):
        return [_steady(member, rows) for member in answer[:rows]]
    if isinstance(answer, dict):
        return {key: VARYING.get(key, _steady(member, rows)) for key, member in answer.items()}
    return answer


def _is_shown(name: str, schema: Schema, configuration: frozenset[str]) -> bool:
    return "properties" in schema and name not in configuration


def _routes(document: Any, defs: Definitions, own: Definitions, answers: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"\n## {method.upper()} {path}\n\n{operation['summary']}."
            yield " Needs no token.\n" if operation.get("security") == [] else "\n"
            yield from _parameters(operation)
            yield from _body(operation, defs, own)
            yield from _answers(operation, defs, own)
            yield from _example(f"{method.upper()} {path}", answers)


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


def _example(name: str, answers: Mapping[str, Any]) -> Iterator[str]:
    if name in answers:
        call = CALLS[name]
        yield f"\n`{name.split(' ')[0]} {call.path}`"
        yield f" with\n\n{json_block(call.body)}\nanswers\n\n" if call.body else " answers\n\n"
        yield json_block(answers[name])
        yield "\nand more rows like it.\n" if call.rows else ""


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
