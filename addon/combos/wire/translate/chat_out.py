"""Writes a request in the Chat Completions dialect. Tool messages hold text only; images follow in a user message."""

from combos.wire.translate import media
from combos.wire.translate.choice import named_tool, narrowed
from combos.wire.translate.ir import (
    Call,
    Choice,
    Media,
    Message,
    Mode,
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
    USER_LIMIT,
    Catalog,
    fit_id,
    freeform_description,
    object_schema,
    wrap_freeform,
)

ID_LIMIT = 40
SEE_ATTACHMENT = "[see attachment]"


def render(request: Request, profile: TargetProfile, catalog: Catalog) -> Json:
    """The request for this target. Members stand in a fixed order, so that equal requests are equal bytes."""
    system = "developer" if profile.developer_role else "system"
    messages: list[Json] = [{"role": system, "content": text} for text in request.system]
    for message in request.messages:
        messages.extend(_messages(message, profile, catalog, system))
    body: Json = {"model": profile.model, "messages": messages, "stream": request.stream}
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    tools = request.tools if profile.custom_tools else narrowed(request)
    if tools:
        body["tools"] = [_tool(tool, profile, catalog) for tool in tools]
        if request.choice is not None:
            body["tool_choice"] = _choice(request.choice, request, profile, catalog)
        if request.parallel is not None:
            body["parallel_tool_calls"] = request.parallel
    _settings(request, profile, body)
    return body


def _settings(request: Request, profile: TargetProfile, body: Json) -> None:
    if request.max_tokens is not None:
        body["max_tokens" if profile.legacy_max_tokens else "max_completion_tokens"] = request.max_tokens
    rows = (
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("stop", request.stop or None),
        ("response_format", _format(request)),
        ("reasoning_effort", request.effort),
        ("verbosity", request.verbosity),
        ("prompt_cache_key", request.cache_key),
        ("user", fit_id(request.user, USER_LIMIT) if request.user else None),
    )
    body.update((name, value) for name, value in rows if value is not None)


def _format(request: Request) -> Json | None:
    schema = request.schema
    if schema is None:
        return None
    if schema.schema is None:
        return {"type": "json_object"}
    form: Json = {"name": schema.name or "response"}
    if schema.description:
        form["description"] = schema.description
    return {"type": "json_schema", "json_schema": form | {"schema": schema.schema, "strict": bool(schema.strict)}}


def _tool(tool: Tool, profile: TargetProfile, catalog: Catalog) -> Json:
    body: Json = {"name": catalog.wire_name(tool.namespace, tool.name)}
    if tool.freeform and profile.custom_tools:
        form = {"description": tool.description, "format": _nested_format(tool.format)}
        return {"type": "custom", "custom": body | {key: value for key, value in form.items() if value}}
    description = freeform_description(tool) if tool.freeform else tool.description
    if description:
        body["description"] = description
    body["parameters"] = FREEFORM_SCHEMA if tool.freeform else object_schema(tool.schema)
    if tool.strict is not None:
        body["strict"] = tool.strict
    return {"type": "function", "function": body}


def _nested_format(form: Json | None) -> Json | None:
    if form is None or form.get("type") != "grammar":
        return form
    return {"type": "grammar", "grammar": {key: value for key, value in form.items() if key != "type"}}


def _choice(choice: Choice, request: Request, profile: TargetProfile, catalog: Catalog) -> Json | str:
    if choice.mode is Mode.NAMED:
        return _named(choice.names[0], request, profile, catalog)
    if choice.names and profile.custom_tools:
        tools = [_named(name, request, profile, catalog) for name in choice.names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode.value, "tools": tools}}
    return choice.mode.value


def _named(name: str, request: Request, profile: TargetProfile, catalog: Catalog) -> Json:
    tool = named_tool(request, name)
    kind = "custom" if profile.custom_tools and tool is not None and tool.freeform else "function"
    return {"type": kind, kind: {"name": catalog.wire_name(tool.namespace if tool else None, name)}}


def _messages(message: Message, profile: TargetProfile, catalog: Catalog, system: str) -> list[Json]:
    match message.role:
        case Role.SYSTEM:
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            return [{"role": system, "content": text} for text in texts]
        case Role.ASSISTANT:
            return [_assistant(message, profile, catalog)] if _says_something(message, profile) else []
        case _:
            return _user(message, profile)


def _says_something(message: Message, profile: TargetProfile) -> bool:
    return profile.reasoning_content or any(not isinstance(part, Reasoning) for part in message.parts)


def _assistant(message: Message, profile: TargetProfile, catalog: Catalog) -> Json:
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return {"role": "assistant", "content": message.parts[0].text}
    text = "".join(part.text for part in message.parts if isinstance(part, Text))
    body: Json = {"role": "assistant", "content": text or None}
    refusal = "".join(part.text for part in message.parts if isinstance(part, Refusal))
    if refusal:
        body["refusal"] = refusal
    thought = "\n\n".join(part.text for part in message.parts if isinstance(part, Reasoning) and part.text)
    if profile.reasoning_content and thought:
        body["reasoning_content"] = thought
    calls = [_call(part, profile, catalog) for part in message.parts if isinstance(part, Call)]
    if calls:
        body["tool_calls"] = calls
    elif not text and not refusal:
        body["content"] = ""
    return body


def _call(call: Call, profile: TargetProfile, catalog: Catalog) -> Json:
    name, call_id = catalog.wire_name(call.namespace, call.name), fit_id(call.id, ID_LIMIT)
    if call.freeform and profile.custom_tools:
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    arguments = wrap_freeform(call.arguments) if call.freeform else call.arguments or "{}"
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _user(message: Message, profile: TargetProfile) -> list[Json]:
    """Tool messages, their attachments, then what the user said."""
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return [{"role": "user", "content": message.parts[0].text}]
    results = [part for part in message.parts if isinstance(part, Result)]
    messages = [_tool_message(result) for result in results]
    messages += [note for result in results if (note := _attachments(result)) is not None]
    content = [_content(part) for part in message.parts if isinstance(part, Text | Media)]
    if content:
        messages.append({"role": "user", "content": _plain(content, profile)})
    return messages


def _plain(content: list[Json], profile: TargetProfile) -> str | list[Json]:
    """A single text as a string; targets that take text only get one string in any case."""
    if all(part["type"] == "text" for part in content) and (len(content) == 1 or profile.text_only):
        return "\n".join(part["text"] for part in content)
    return content


def _content(part: Text | Media) -> Json:
    return {"type": "text", "text": part.text} if isinstance(part, Text) else media.to_chat(part)


def _tool_message(result: Result) -> Json:
    text = "".join(part.text for part in result.parts if isinstance(part, Text))
    if not text and any(isinstance(part, Media) for part in result.parts):
        text = SEE_ATTACHMENT
    if result.is_error:
        text = f"[tool error] {text}"
    return {"role": "tool", "tool_call_id": fit_id(result.call_id, ID_LIMIT), "content": text}


def _attachments(result: Result) -> Json | None:
    found = [media.to_chat(part) for part in result.parts if isinstance(part, Media)]
    if not found:
        return None
    label = f"[attachments of tool result {fit_id(result.call_id, ID_LIMIT)}]"
    return {"role": "user", "content": [{"type": "text", "text": label}, *found]}
