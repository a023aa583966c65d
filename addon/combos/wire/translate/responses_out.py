"""Writes a request in the Responses dialect: stateless, with reasoning state only where the target made it."""

from combos.core.facts import Dialect
from combos.wire.translate import media, opaque
from combos.wire.translate.choice import named_tool
from combos.wire.translate.ir import (
    Call,
    Choice,
    Media,
    Message,
    Mode,
    Part,
    Reasoning,
    Refusal,
    Request,
    Result,
    Role,
    Text,
    Tool,
)
from combos.wire.translate.profile import TargetProfile
from combos.wire.translate.shape import Json
from combos.wire.translate.toolset import USER_LIMIT, Catalog, fit_id, object_schema

_ME = Dialect.RESPONSES
ID_LIMIT = 64
MIN_OUTPUT_TOKENS = 16
"""The API refuses a smaller output limit."""


def render(request: Request, profile: TargetProfile, catalog: Catalog) -> Json:
    """The request for this target. Members stand in a fixed order, so that equal requests are equal bytes."""
    body: Json = {"model": profile.model, "store": False, "stream": request.stream}
    if request.system:
        body["instructions"] = "\n\n".join(request.system)
    body["input"] = [item for message in request.messages for item in _items(message, profile, catalog)]
    if request.tools:
        body["tools"] = [_tool(tool, catalog) for tool in request.tools]
        if request.choice is not None:
            body["tool_choice"] = _choice(request.choice, request, catalog)
        if request.parallel is not None:
            body["parallel_tool_calls"] = request.parallel
    _settings(request, body)
    return body


def _settings(request: Request, body: Json) -> None:
    if request.max_tokens is not None:
        body["max_output_tokens"] = max(MIN_OUTPUT_TOKENS, request.max_tokens)
    for name, value in (("temperature", request.temperature), ("top_p", request.top_p)):
        if value is not None:
            body[name] = value
    if text := _text(request):
        body["text"] = text
    reasoning = {"effort": request.effort, "summary": None if request.effort == "none" else request.summary}
    if used := {key: value for key, value in reasoning.items() if value is not None}:
        body["reasoning"] = used
        body["include"] = ["reasoning.encrypted_content"]
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.user:
        body["user"] = fit_id(request.user, USER_LIMIT)


def _text(request: Request) -> Json:
    text: Json = {}
    if request.schema is not None:
        text["format"] = _format(request)
    if request.verbosity:
        text["verbosity"] = request.verbosity
    return text


def _format(request: Request) -> Json:
    schema = request.schema
    if schema is None or schema.schema is None:
        return {"type": "json_object"}
    form: Json = {"type": "json_schema", "name": schema.name or "response"}
    if schema.description:
        form["description"] = schema.description
    return form | {"schema": schema.schema, "strict": bool(schema.strict)}


def _tool(tool: Tool, catalog: Catalog) -> Json:
    name = catalog.wire_name(tool.namespace, tool.name)
    body: Json = {"type": "custom" if tool.freeform else "function", "name": name}
    if tool.description:
        body["description"] = tool.description
    if tool.freeform:
        return body | ({"format": tool.format} if tool.format else {})
    return body | {"parameters": object_schema(tool.schema), "strict": bool(tool.strict)}


def _choice(choice: Choice, request: Request, catalog: Catalog) -> Json | str:
    if choice.mode is Mode.NAMED:
        return _named(choice.names[0], request, catalog)
    if choice.names:
        tools = [_named(name, request, catalog) for name in choice.names]
        return {"type": "allowed_tools", "mode": choice.mode.value, "tools": tools}
    return choice.mode.value


def _named(name: str, request: Request, catalog: Catalog) -> Json:
    tool = named_tool(request, name)
    kind = "custom" if tool is not None and tool.freeform else "function"
    return {"type": kind, "name": catalog.wire_name(tool.namespace if tool else None, name)}


def _items(message: Message, profile: TargetProfile, catalog: Catalog) -> list[Json]:
    """The items of one turn; runs of plain parts share a message."""
    items: list[Json] = []
    run: list[Json] = []
    for part in message.parts:
        content = _content(part, message.role)
        if content is not None:
            run.append(content)
            continue
        _flush(run, message.role, items)
        item = _item(part, profile, catalog)
        if item is not None:
            items.append(item)
    _flush(run, message.role, items)
    return items


def _flush(run: list[Json], role: Role, items: list[Json]) -> None:
    if run:
        wire_role = "developer" if role is Role.SYSTEM else role.value
        items.append({"type": "message", "role": wire_role, "content": list(run)})
        run.clear()


def _content(part: Part, role: Role) -> Json | None:
    match part:
        case Text() if role is Role.ASSISTANT:
            return {"type": "output_text", "text": part.text, "annotations": []}
        case Text():
            return {"type": "input_text", "text": part.text}
        case Refusal():
            return {"type": "refusal", "refusal": part.text}
        case Media():
            return media.to_responses(part)
        case _:
            return None


def _item(part: Part, profile: TargetProfile, catalog: Catalog) -> Json | None:
    match part:
        case Call():
            return _call(part, catalog)
        case Result():
            kind = "custom_tool_call_output" if part.freeform else "function_call_output"
            return {"type": kind, "call_id": fit_id(part.call_id, ID_LIMIT), "output": _output(part)}
        case _:
            return _reasoning(part, profile) if isinstance(part, Reasoning) else None


def _call(call: Call, catalog: Catalog) -> Json:
    name, call_id = catalog.wire_name(call.namespace, call.name), fit_id(call.id, ID_LIMIT)
    if call.freeform:
        return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": call.arguments}
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": call.arguments or "{}"}


def _output(result: Result) -> str | list[Json]:
    text = "".join(part.text for part in result.parts if isinstance(part, Text))
    if result.is_error:
        text = f"[tool error] {text}"
    images = [media.to_responses(part) for part in result.parts if isinstance(part, Media)]
    if not images:
        return text
    return [*([{"type": "input_text", "text": text}] if text else []), *images]


def _reasoning(part: Reasoning, profile: TargetProfile) -> Json | None:
    state = part.opaque
    if state is None or not opaque.fits(state, _ME, profile.key):
        return None
    item: Json = {"type": "reasoning"}
    if state.item_id.startswith("rs_"):
        item["id"] = state.item_id
    item["summary"] = [{"type": "summary_text", "text": state.text}] if state.text else []
    return item | {"encrypted_content": state.blob}
