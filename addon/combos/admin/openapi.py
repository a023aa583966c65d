"""The description of the management API, made from its table of routes and the models of their bodies."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from combos import __version__
from combos.admin.answers import Handler
from combos.admin.shapes import ComboPutBody, DryRunBody, ErrorAnswer, ProviderAddBody
from combos.core.config import ComboConfig, ProviderConfig
from combos.core.values import dataclass

_REFERENCE = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table. `query` holds the names of parameters, `!` before those that are required."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    query: Sequence[str] = ()
    public: bool = False
    many: bool = False
    refusals: Sequence[int] = ()


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    table = list(routes)
    paths: dict[str, Any] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Combos management API", "version": __version__},
        "paths": paths,
        "components": {"schemas": _schemas(table), "securitySchemes": _SECURITY},
        "security": [{"bearer": []}, {"key": []}],
    }


# Members of bodies that are objects of the configuration, judged by its rules and not by the body's.
_OBJECTS: dict[tuple[type[BaseModel], str], type[BaseModel]] = {
    (ComboPutBody, "combo"): ComboConfig,
    (DryRunBody, "combo"): ComboConfig,
    (ProviderAddBody, "provider"): ProviderConfig,
}

_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Combos-API-Key"},
}


def _schemas(table: Sequence[Route]) -> dict[str, Any]:
    answers: list[type[BaseModel]] = [ErrorAnswer, *(route.answer for route in table if route.answer)]
    bodies = [route.body for route in table if route.body]
    wanted = [(model, "serialization") for model in dict.fromkeys(answers)]
    wanted += [(model, "validation") for model in dict.fromkeys(bodies)]
    wanted += [(model, "validation") for model in dict.fromkeys(_OBJECTS.values())]
    _, schema = models_json_schema(wanted, by_alias=True, ref_template=_REFERENCE)  # type: ignore[arg-type]
    found: dict[str, Any] = schema["$defs"]
    for (body, member), model in _OBJECTS.items():
        if body.__name__ in found:
            found[body.__name__]["properties"][member] = _ref(model)
    return found


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_').replace('-', '_').replace('.', '_')}",
        "responses": _responses(route),
    }
    if route.query:
        operation["parameters"] = [_parameter(name) for name in route.query]
    if route.body:
        operation["requestBody"] = {"required": True, "content": _json(_ref(route.body))}
    if route.public:
        operation["security"] = []
    return operation


def _responses(route: Route) -> dict[str, Any]:
    refused = {"description": "refused", "content": _json(_ref(ErrorAnswer))}
    refusals = [*route.refusals, *(() if route.public else (401, 503)), 403]
    found = {str(status): refused for status in sorted(set(refusals))}
    if route.answer is not None:
        schema = {"type": "array", "items": _ref(route.answer)} if route.many else _ref(route.answer)
        return {"200": {"description": "done", "content": _json(schema)}, **found}
    return found if 405 in route.refusals else {"200": {"description": "done"}, **found}


def _parameter(name: str) -> dict[str, Any]:
    bare = name.removeprefix("!")
    return {"name": bare, "in": "query", "required": name != bare, "schema": {"type": "string"}}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
