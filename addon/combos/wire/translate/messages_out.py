"""Writes a request in the Messages dialect: thinking form, cache markers, results before text."""

import re

from combos.core.facts import Dialect
from combos.wire.translate import effort, media, opaque
from combos.wire.translate.choice import forced, named_tool, narrowed
from combos.wire.translate.ir import (
    Call,
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
from combos.wire.translate.profile import TargetProfile, Thinking
from combos.wire.translate.shape import Json
from combos.wire.translate.toolset import (
    FREEFORM_SCHEMA,
    Catalog,
    arguments_object,
    fit_id,
    freeform_description,
    object_schema,
)

_ME = Dialect.MESSAGES
ID_LIMIT = 64
FOREIGN_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_MARKER = {"type": "ephemeral"}
_CHOICES = {Mode.AUTO: "auto", Mode.REQUIRED: "any", Mode.NONE: "none"}
_MARKED_TURNS = 2


def render(request: Request, profile: TargetProfile, catalog: Catalog) -> Json:
    """The request for this target. Members stand in a fixed order, so that equal requests are equal bytes."""
    turns = [turn for message in request.messages if (turn := _turn(message, profile, catalog)) is not None]
    messages = _merged(turns)
    body: Json = {"model": profile.model, "max_tokens": request.max_tokens, "stream": request.stream}
    if system := [block for text in request.system for block in _text(text)]:
        body["system"] = system
    body["messages"] = messages
    _tools(request, profile, catalog, body)
    _thinking(request, profile, messages, body)
    _settings(request, body)
    if profile.cache_markers:
        _mark(body)
    return body


def _settings(request: Request, body: Json) -> None:
    if request.schema is not None and request.schema.schema is not None:
        output = body.setdefault("output_config", {})
        output["format"] = {"type": "json_schema", "schema": request.schema.schema}
    if "thinking" not in body or body["thinking"]["type"] == "disabled":
        rows = (("temperature", request.temperature), ("top_p", request.top_p), ("top_k", request.top_k))
        body.update((name, value) for name, value in rows if value is not None)
    if request.stop:
        body["stop_sequences"] = request.stop
    if request.user:
        body["metadata"] = {"user_id": request.user}


def _tools(request: Request, profile: TargetProfile, catalog: Catalog, body: Json) -> None:
    tools = narrowed(request)
    if not tools:
        return
    body["tools"] = [_tool(tool, profile, catalog) for tool in tools]
    choice: Json | None = None
    if request.choice is not None and request.choice.mode is Mode.NAMED:
        name = request.choice.names[0]
        tool = named_tool(request, name)
        choice = {"type": "tool", "name": catalog.wire_name(tool.namespace if tool else None, name)}
    elif request.choice is not None:
        choice = {"type": _CHOICES[request.choice.mode]}
    if request.parallel is False and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    if choice is not None:
        body["tool_choice"] = choice


def _tool(tool: Tool, profile: TargetProfile, catalog: Catalog) -> Json:
    body: Json = {"name": catalog.wire_name(tool.namespace, tool.name)}
    description = freeform_description(tool) if tool.freeform else tool.description
    if description:
        body["description"] = description
    body["input_schema"] = FREEFORM_SCHEMA if tool.freeform else object_schema(tool.schema)
    if profile.strict_tools and tool.strict is not None:
        body["strict"] = tool.strict
    return body


def _thinking(request: Request, profile: TargetProfile, messages: list[Json], body: Json) -> None:
    """Fill in thinking, effort and the output limit that depends on them."""
    wanted, level = request.max_tokens, request.effort
    active = level not in (None, "none") and profile.thinking is not Thinking.NONE
    body["max_tokens"] = wanted or effort.default_max_tokens(level if active else None, profile)
    if level == "none" and profile.thinking_disable:
        body["thinking"] = {"type": "disabled"}
    if profile.thinking is Thinking.ADAPTIVE:
        _adaptive(request, body, active)
    elif profile.thinking is Thinking.BUDGET and active and level is not None:
        if forced(request.choice) or _misses_thinking(messages):
            return
        limit, budget = effort.anthropic_budget(level, wanted or profile.max_output_tokens)
        body["max_tokens"] = limit
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _adaptive(request: Request, body: Json, active: bool) -> None:
    """A forced tool call and thinking exclude each other; the effort may stay."""
    wants_thoughts = active or (request.effort is None and request.summary is not None)
    if wants_thoughts and not forced(request.choice):
        body["thinking"] = {"type": "adaptive"}
    if active and request.effort is not None:
        body["output_config"] = {"effort": effort.anthropic_level(request.effort)}


def _misses_thinking(messages: list[Json]) -> bool:
    """Whether an open tool round lost its thinking: the budget form then answers 400."""
    if len(messages) < 2 or not any(block["type"] == "tool_result" for block in messages[-1]["content"]):
        return False
    first = messages[-2]["content"][0]
    return first["type"] not in ("thinking", "redacted_thinking")


def _turn(message: Message, profile: TargetProfile, catalog: Catalog) -> Json | None:
    if message.role is Role.SYSTEM:
        return _system_turn(message, profile)
    blocks = [block for part in message.parts for block in _blocks(part, profile, catalog)]
    if len(blocks) > 1:
        blocks.sort(key=lambda block: block["type"] != "tool_result")  # stable: results first, in their order
    return {"role": message.role.value, "content": blocks} if blocks else None


def _system_turn(message: Message, profile: TargetProfile) -> Json | None:
    blocks = [block for part in message.parts if isinstance(part, Text) for block in _text(part.text)]
    if not blocks:
        return None
    if profile.mid_system:
        return {"role": "system", "content": blocks}
    return {"role": "user", "content": [{**one, "text": f"<system>\n{one['text']}\n</system>"} for one in blocks]}


def _merged(turns: list[Json]) -> list[Json]:
    merged: list[Json] = []
    for turn in turns:
        if merged and merged[-1]["role"] == turn["role"]:
            merged[-1]["content"].extend(turn["content"])
        else:
            merged.append(turn)
    return merged


def _blocks(part: Part, profile: TargetProfile, catalog: Catalog) -> list[Json]:
    match part:
        case Text() | Refusal():
            return _text(part.text)
        case Media():
            return [media.to_anthropic(part)]
        case Call():
            return [_call(part, catalog)]
        case Result():
            return [_result(part)]
        case Reasoning():
            return _reasoning(part, profile)


def _text(text: str) -> list[Json]:
    """One block, or none: the API answers 400 to a block of nothing but white space, which other models do write."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _call(call: Call, catalog: Catalog) -> Json:
    arguments = {"input": call.arguments} if call.freeform else arguments_object(call.arguments)
    return {
        "type": "tool_use",
        "id": fit_id(call.id, ID_LIMIT, FOREIGN_IN_ID),
        "name": catalog.wire_name(call.namespace, call.name),
        "input": arguments,
    }


def _result(result: Result) -> Json:
    parts: list[Json] = []
    for part in result.parts:
        if isinstance(part, Media):
            parts.append(media.to_anthropic(part))
        else:
            parts += _text(part.text)
    content: str | list[Json] = parts
    if all(part["type"] == "text" for part in parts) and len(parts) < 2:
        content = parts[0]["text"] if parts else ""
    block: Json = {"type": "tool_result", "tool_use_id": fit_id(result.call_id, ID_LIMIT, FOREIGN_IN_ID)}
    block["content"] = content
    if result.is_error:
        block["is_error"] = True
    return block


def _reasoning(part: Reasoning, profile: TargetProfile) -> list[Json]:
    state = part.opaque
    if state is None or not opaque.fits(state, _ME, profile.key):
        return []
    if state.redacted:
        return [{"type": "redacted_thinking", "data": state.blob}]
    return [{"type": "thinking", "thinking": state.text, "signature": state.blob}]


def _mark(body: Json) -> None:
    """Up to four cache markers: last tool, last system block, last block of the last two user turns."""
    places = [body.get("tools", []), body.get("system", [])]
    users = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    for blocks in [*places, *users[-_MARKED_TURNS:]]:
        if blocks:
            blocks[-1]["cache_control"] = dict(_MARKER)
