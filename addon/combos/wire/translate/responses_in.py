"""Reads a Responses request into the intermediate form. It knows nothing of the target.

Raises Unsupported for state kept at the provider, hosted-tool history and media that no other provider can reach.
"""

from collections.abc import Callable, Mapping
from typing import Any

from combos.core.facts import Dialect
from combos.wire.translate import compaction, effort, fields, media, opaque, toolset
from combos.wire.translate.ir import (
    Call,
    Choice,
    Media,
    Mode,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Result,
    Role,
    Schema,
    Text,
    Tool,
)
from combos.wire.translate.shape import Json, Unsupported, as_dict, as_int, as_list, as_number, as_str, dicts

_ME = Dialect.RESPONSES
_ECHOED = (
    "instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "reasoning", "temperature", "text",
    "tool_choice", "tools", "top_p",
)  # fmt: skip
_DROPPED_ITEMS = frozenset(
    {"web_search_call", "tool_search_call", "tool_search_output", "image_generation_call", "compaction_trigger"}
)
_ENCRYPTED_MARKER = "[encrypted content]"


def parse(document: Json) -> Request:
    """The request in `document`. Raises Unsupported."""
    request = Request(stream=document.get("stream") is True)
    _refuse_state(document)
    request.echo = {key: document[key] for key in _ECHOED if document.get(key) is not None}
    request.add_system(as_str(document.get("instructions")))
    for tool in as_list(document.get("tools")):
        _tool(as_dict(tool), None, request)
    _input(document.get("input"), request)
    request.tools = toolset.unique(request.tools)
    request.choice = _choice(document.get("tool_choice"))
    _settings(document, request)
    fields.note_unknown(document, _ME, request)
    return request


def _refuse_state(document: Json) -> None:
    for name in ("previous_response_id", "conversation", "prompt"):
        if document.get(name):
            raise Unsupported(name, "refers to state kept by another provider")
    if document.get("background"):
        raise Unsupported("background")


def _settings(document: Json, request: Request) -> None:
    request.max_tokens = as_int(document.get("max_output_tokens"))
    request.temperature = as_number(document.get("temperature"))
    request.top_p = as_number(document.get("top_p"))
    parallel = document.get("parallel_tool_calls")
    request.parallel = parallel if isinstance(parallel, bool) else None
    reasoning, text = as_dict(document.get("reasoning")), as_dict(document.get("text"))
    request.effort = effort.known(reasoning.get("effort"))
    request.summary = as_str(reasoning.get("summary")) or None
    request.verbosity = as_str(text.get("verbosity")) or None
    request.schema = _schema(as_dict(text.get("format")))
    request.cache_key = as_str(document.get("prompt_cache_key")) or None
    request.user = as_str(document.get("safety_identifier")) or as_str(document.get("user")) or None
    if document.get("store") is True:
        request.dropped.add("store")
    if any(entry != "reasoning.encrypted_content" for entry in as_list(document.get("include"))):
        request.dropped.add("include")


def _schema(form: Json) -> Schema | None:
    match form.get("type"):
        case "json_schema":
            strict = form.get("strict")
            return Schema(
                as_dict(form.get("schema")),
                as_str(form.get("name")) or None,
                strict if isinstance(strict, bool) else None,
                as_str(form.get("description")) or None,
            )
        case "json_object":
            return Schema(None)
        case _:
            return None


def _tool(tool: Json, namespace: str | None, request: Request) -> None:
    kind = as_str(tool.get("type"))
    if kind == "namespace" and namespace is None:
        for _index, child in dicts(tool.get("tools")):
            _tool(child, as_str(tool.get("name")), request)
        return
    name = as_str(tool.get("name"))
    if kind not in ("function", "custom") or not name:
        toolset.hosted(kind, _ME, request.dropped)
        return
    strict, shape = tool.get("strict"), tool.get("format")
    request.tools.append(
        Tool(
            name,
            namespace,
            as_str(tool.get("description")) or None,
            None if kind == "custom" else toolset.object_schema(as_dict(tool.get("parameters"))),
            strict if isinstance(strict, bool) else None,
            kind == "custom",
            shape if isinstance(shape, dict) else None,
        )
    )


def _choice(value: object) -> Choice | None:
    if isinstance(value, str):
        return Choice(Mode(value)) if value in ("auto", "required", "none") else None
    choice = as_dict(value)
    kind = as_str(choice.get("type"))
    if kind in ("function", "custom"):
        return Choice(Mode.NAMED, (as_str(choice.get("name")),))
    if kind == "allowed_tools":
        names = tuple(as_str(tool.get("name")) for _index, tool in dicts(choice.get("tools")) if tool.get("name"))
        return Choice(Mode.REQUIRED if choice.get("mode") == "required" else Mode.AUTO, names)
    if kind:
        raise Unsupported("tool_choice", f"forces {kind!r}, which only its own provider can run")
    return None


def _input(value: object, request: Request) -> None:
    if isinstance(value, str):
        request.add(Role.USER, Text(value))
        return
    if value is not None and not isinstance(value, list):
        raise Unsupported("input", "is neither text nor a list of items")
    for index, item in dicts(value):
        kind = as_str(item.get("type")) or "message"
        where = f"input[{index}]"
        if kind in _DROPPED_ITEMS:
            if kind != "compaction_trigger":
                request.dropped.add(f"input.{kind}")
            continue
        reader = _ITEMS.get(kind)
        if reader is None:
            raise Unsupported("input", f"holds an item of type {kind!r}, which only its own provider can read")
        reader(item, where, request)


def _message(item: Json, where: str, request: Request) -> None:
    role = as_str(item.get("role"))
    parts = _parts(item.get("content"), f"{where}.content")
    if role in ("system", "developer"):
        request.add_system("".join(part.text for part in parts if isinstance(part, Text)))
    else:
        request.add(Role.ASSISTANT if role == "assistant" else Role.USER, *parts)


def _parts(content: object, where: str) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)]
    found: list[Part] = []
    for index, part in dicts(content):
        place = f"{where}[{index}]"
        match part.get("type"):
            case "input_text" | "output_text" | "text" | "summary_text":
                found.append(Text(as_str(part.get("text"))))
            case "refusal":
                found.append(Refusal(as_str(part.get("refusal"))))
            case "input_image":
                found.append(_image(part, place))
            case "input_file":
                found.append(_file(part, place))
            case kind:
                raise Unsupported(place, f"is of type {kind!r}")
    return found


def _image(part: Json, where: str) -> Media:
    url = part.get("image_url")
    if not isinstance(url, str):
        raise Unsupported(where, "refers to a file kept by another provider")
    return media.from_url(url, image=True, where=where, detail=as_str(part.get("detail")) or None)


def _file(part: Json, where: str) -> Media:
    url = as_str(part.get("file_data")) or as_str(part.get("file_url"))
    if not url:
        raise Unsupported(where, "refers to a file kept by another provider")
    return media.from_url(url, image=False, where=where, filename=as_str(part.get("filename")) or None)


def _reasoning(item: Json, _where: str, request: Request) -> None:
    text = _joined(item.get("summary")) or _joined(item.get("content"))
    state = opaque.read(item.get("encrypted_content"), _ME)
    if state is not None and not state.origin:
        state = Opaque(state.dialect, state.blob, item_id=as_str(item.get("id")))
    request.add(Role.ASSISTANT, Reasoning(text, state))


def _joined(parts: Any) -> str:
    return "\n\n".join(text for _index, part in dicts(parts) if (text := as_str(part.get("text"))))


def _call(item: Json, _where: str, request: Request) -> None:
    freeform = item.get("type") == "custom_tool_call"
    request.add(
        Role.ASSISTANT,
        Call(
            as_str(item.get("call_id")),
            as_str(item.get("name")),
            as_str(item.get("input" if freeform else "arguments")),
            as_str(item.get("namespace")) or None,
            freeform,
        ),
    )


def _result(item: Json, where: str, request: Request) -> None:
    parts = _parts(item.get("output"), f"{where}.output")
    wanted: list[Text | Media] = [part for part in parts if isinstance(part, Text | Media)]
    request.add(Role.USER, Result(as_str(item.get("call_id")), wanted))


def _additional_tools(item: Json, _where: str, request: Request) -> None:
    for _index, tool in dicts(item.get("tools")):
        _tool(tool, None, request)


def _agent_message(item: Json, where: str, request: Request) -> None:
    request.add(Role.USER, Text(compaction.agent_text(item, where, _ENCRYPTED_MARKER)))


def _compaction(item: Json, _where: str, request: Request) -> None:
    summary = compaction.own_summary(item.get("encrypted_content"))
    if summary is None:
        raise Unsupported("input", "holds a compaction item, which only its own provider can read")
    request.add(Role.USER, Text(compaction.replayed(summary)))


_ITEMS: Mapping[str, Callable[[Json, str, Request], None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "custom_tool_call": _call,
    "function_call_output": _result,
    "custom_tool_call_output": _result,
    "additional_tools": _additional_tools,
    "agent_message": _agent_message,
    "compaction": _compaction,
}
