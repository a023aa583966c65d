"""Writes a generateContent request. The model stands in the URL, so the body does not name it."""

from combos.core.facts import Dialect
from combos.wire.translate import effort, media, opaque
from combos.wire.translate.choice import narrowed
from combos.wire.translate.ir import (
    Call,
    Media,
    Message,
    Mode,
    Opaque,
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
from combos.wire.translate.toolset import (
    FREEFORM_SCHEMA,
    Catalog,
    arguments_object,
    freeform_description,
    object_schema,
)

_ME = Dialect.GEMINI
_MODES = {Mode.AUTO: "AUTO", Mode.REQUIRED: "ANY", Mode.NONE: "NONE", Mode.NAMED: "ANY"}
SKIP_SIGNATURE = "skip_thought_signature_validator"
"""The API's own stand-in for the signature of a call that another model made."""


def render(request: Request, profile: TargetProfile, catalog: Catalog) -> Json:
    """The request for this target. Members stand in a fixed order, so that equal requests are equal bytes."""
    body: Json = {}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in request.system]}
    names = _call_names(request.messages, catalog)
    body["contents"] = _merged([_content(message, profile, catalog, names) for message in request.messages])
    tools = narrowed(request)
    if tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool, catalog) for tool in tools]}]
        _choice(request, catalog, body)
    if config := _config(request, profile):
        body["generationConfig"] = config
    return body


def _config(request: Request, profile: TargetProfile) -> Json:
    rows = (
        ("maxOutputTokens", request.max_tokens),
        ("temperature", request.temperature),
        ("topP", request.top_p),
        ("topK", request.top_k),
        ("stopSequences", request.stop or None),
        ("responseMimeType", "application/json" if request.schema is not None else None),
        ("responseJsonSchema", _bare(request.schema.schema) if request.schema and request.schema.schema else None),
        ("thinkingConfig", effort.gemini_config(request.effort, request.summary is not None, profile.thinking)),
    )
    return {name: value for name, value in rows if value is not None}


def _bare(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key != "$schema"}


def _tool(tool: Tool, catalog: Catalog) -> Json:
    description = freeform_description(tool) if tool.freeform else tool.description
    body: Json = {"name": catalog.wire_name(tool.namespace, tool.name)}
    if description:
        body["description"] = description
    schema = FREEFORM_SCHEMA if tool.freeform else _bare(object_schema(tool.schema))
    return body | {"parametersJsonSchema": schema}


def _choice(request: Request, catalog: Catalog, body: Json) -> None:
    choice = request.choice
    if choice is None:
        return
    config: Json = {"mode": _MODES[choice.mode]}
    if choice.mode is Mode.NAMED:
        name = choice.names[0]
        tool = next((tool for tool in request.tools if tool.name == name), None)
        config["allowedFunctionNames"] = [catalog.wire_name(tool.namespace if tool else None, name)]
    body["toolConfig"] = {"functionCallingConfig": config}


def _call_names(messages: list[Message], catalog: Catalog) -> dict[str, str]:
    calls = (part for message in messages for part in message.parts if isinstance(part, Call))
    return {call.id: catalog.wire_name(call.namespace, call.name) for call in calls}


def _content(message: Message, profile: TargetProfile, catalog: Catalog, names: dict[str, str]) -> Json:
    role = "model" if message.role is Role.ASSISTANT else "user"
    if message.role is Role.SYSTEM:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        return {"role": role, "parts": [{"text": f"<system>\n{text}\n</system>"} for text in texts]}
    if message.role is Role.ASSISTANT:
        return {"role": role, "parts": _model_parts(message, profile, catalog)}
    parts = [wire for part in message.parts for wire in _user_parts(part, names)]
    if len(parts) > 1:
        parts.sort(key=lambda part: "functionResponse" not in part)  # stable: results first, in their order
    return {"role": role, "parts": parts}


def _merged(contents: list[Json]) -> list[Json]:
    merged: list[Json] = []
    for content in contents:
        if not content["parts"]:
            continue
        if merged and merged[-1]["role"] == content["role"]:
            merged[-1]["parts"].extend(content["parts"])
        else:
            merged.append(content)
    return merged


def _user_parts(part: Part, names: dict[str, str]) -> list[Json]:
    match part:
        case Text():
            return [{"text": part.text}]
        case Media():
            return [media.to_gemini(part)]
        case Result():
            return _result(part, names)
        case _:
            return []


def _result(result: Result, names: dict[str, str]) -> list[Json]:
    text = "".join(part.text for part in result.parts if isinstance(part, Text))
    if result.is_error:
        text = f"[tool error] {text}"
    name = names.get(result.call_id, "tool")
    response = {"id": result.call_id, "name": name, "response": {"output": text}}
    attached = [media.to_gemini(part) for part in result.parts if isinstance(part, Media)]
    if not attached:
        return [{"functionResponse": response}]
    return [{"functionResponse": response}, {"text": f"[attachments of tool result {result.call_id}]"}, *attached]


def _model_parts(message: Message, profile: TargetProfile, catalog: Catalog) -> list[Json]:
    """Text, thoughts and calls; a signature that travelled apart is put back on the part it sat on."""
    parts: list[Json] = []
    waiting = ""
    signed = not profile.skip_signature
    for part in message.parts:
        match part:
            case Text() | Refusal():
                parts.append({"text": part.text})
            case Call():
                wire = _call(part, catalog)
                if waiting or not signed:
                    wire["thoughtSignature"] = waiting or SKIP_SIGNATURE
                parts.append(wire)
                waiting, signed = "", True
            case Reasoning():
                state = part.opaque
                if state is not None and opaque.fits(state, _ME, profile.key):
                    waiting = _restore(state, parts) or waiting
    return parts


def _restore(state: Opaque, parts: list[Json]) -> str:
    """Put a thought or a text signature back; the signature of a call is returned for the call that follows."""
    if state.place == "call":
        return state.blob
    if state.place == "text" and parts and "text" in parts[-1]:
        parts[-1]["thoughtSignature"] = state.blob
    else:
        parts.append({"text": state.text, "thought": True, "thoughtSignature": state.blob})
    return ""


def _call(call: Call, catalog: Catalog) -> Json:
    arguments = {"input": call.arguments} if call.freeform else arguments_object(call.arguments)
    return {"functionCall": {"id": call.id, "name": catalog.wire_name(call.namespace, call.name), "args": arguments}}
