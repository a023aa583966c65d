"""Reads a Chat Completions request into the intermediate form. It knows nothing of the target.

Raises Unsupported for several choices, audio, the legacy function fields and provider-kept files.
"""

from combos.core.facts import Dialect
from combos.wire.translate import effort, fields, media, toolset
from combos.wire.translate.ir import (
    Call,
    Choice,
    Media,
    Mode,
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

_ME = Dialect.CHAT


def parse(document: Json) -> Request:
    """The request in `document`. Raises Unsupported."""
    _refuse(document)
    request = Request(stream=document.get("stream") is True)
    request.include_usage = as_dict(document.get("stream_options")).get("include_usage") is True
    for _index, tool in dicts(document.get("tools")):
        _tool(tool, request)
    if not isinstance(document.get("messages"), list):
        raise Unsupported("messages", "is not a list")
    for index, message in dicts(document.get("messages")):
        _message(message, f"messages[{index}]", request)
    request.tools = toolset.unique(request.tools)
    request.choice = _choice(document.get("tool_choice"))
    _settings(document, request)
    fields.note_unknown(document, _ME, request)
    return request


def _refuse(document: Json) -> None:
    choices = document.get("n")
    if choices is not None and choices != 1:
        raise Unsupported("n", "above 1 asks for several answers")
    if document.get("audio") or "audio" in as_list(document.get("modalities")):
        raise Unsupported("audio" if document.get("audio") else "modalities")
    for name in ("functions", "function_call"):
        if document.get(name):
            raise Unsupported(name, "is the legacy form of tools")


def _settings(document: Json, request: Request) -> None:
    limit = as_int(document.get("max_completion_tokens"))
    request.max_tokens = as_int(document.get("max_tokens")) if limit is None else limit
    request.temperature = as_number(document.get("temperature"))
    request.top_p = as_number(document.get("top_p"))
    stop = document.get("stop")
    request.stop = [stop] if isinstance(stop, str) else [text for text in as_list(stop) if isinstance(text, str)]
    parallel = document.get("parallel_tool_calls")
    request.parallel = parallel if isinstance(parallel, bool) else None
    request.schema = _schema(as_dict(document.get("response_format")))
    request.verbosity = as_str(document.get("verbosity")) or None
    request.cache_key = as_str(document.get("prompt_cache_key")) or None
    request.user = as_str(document.get("safety_identifier")) or as_str(document.get("user")) or None
    _reasoning_settings(document, request)
    if document.get("store") is True:
        request.dropped.add("store")


def _reasoning_settings(document: Json, request: Request) -> None:
    reasoning = as_dict(document.get("reasoning"))
    request.effort = effort.known(document.get("reasoning_effort")) or effort.known(reasoning.get("effort"))
    request.summary = as_str(reasoning.get("summary")) or None
    if request.summary is None:
        shown = document.get("include_reasoning")
        asked = request.effort not in (None, "none") if shown is None else shown is True
        request.summary = "auto" if asked else None


def _schema(form: Json) -> Schema | None:
    if form.get("type") == "json_object":
        return Schema(None)
    if form.get("type") != "json_schema":
        return None
    inner = as_dict(form.get("json_schema"))
    strict = inner.get("strict")
    return Schema(
        as_dict(inner.get("schema")),
        as_str(inner.get("name")) or None,
        strict if isinstance(strict, bool) else None,
        as_str(inner.get("description")) or None,
    )


def _tool(tool: Json, request: Request) -> None:
    kind = as_str(tool.get("type"))
    body = as_dict(tool.get(kind)) if kind in ("function", "custom") else {}
    name = as_str(body.get("name"))
    if not name:
        toolset.hosted(kind, _ME, request.dropped)
        return
    strict = body.get("strict")
    custom = kind == "custom"
    request.tools.append(
        Tool(
            name,
            None,
            as_str(body.get("description")) or None,
            None if custom else toolset.object_schema(as_dict(body.get("parameters"))),
            strict if isinstance(strict, bool) else None,
            custom,
            _flat_format(as_dict(body.get("format"))) if custom else None,
        )
    )


def _flat_format(form: Json) -> Json | None:
    """The Responses form of a custom tool's format: the grammar is not nested."""
    if form.get("type") == "grammar":
        return {"type": "grammar", **as_dict(form.get("grammar"))}
    return form or None


def _choice(value: object) -> Choice | None:
    if isinstance(value, str):
        return Choice(Mode(value)) if value in ("auto", "required", "none") else None
    choice = as_dict(value)
    kind = as_str(choice.get("type"))
    if kind in ("function", "custom"):
        return Choice(Mode.NAMED, (as_str(as_dict(choice.get(kind)).get("name")),))
    if kind == "allowed_tools":
        allowed = as_dict(choice.get("allowed_tools"))
        found = (as_dict(tool.get(as_str(tool.get("type")))).get("name") for _i, tool in dicts(allowed.get("tools")))
        names = tuple(name for name in found if isinstance(name, str))
        return Choice(Mode.REQUIRED if allowed.get("mode") == "required" else Mode.AUTO, names)
    return None


def _message(message: Json, where: str, request: Request) -> None:
    match message.get("role"):
        case "system" | "developer":
            parts = _parts(message.get("content"), f"{where}.content")
            request.add_system("".join(part.text for part in parts if isinstance(part, Text)))
        case "user":
            request.add(Role.USER, *_parts(message.get("content"), f"{where}.content"))
        case "assistant":
            request.add(Role.ASSISTANT, *_assistant(message, where))
        case "tool":
            parts = _parts(message.get("content"), f"{where}.content")
            wanted: list[Text | Media] = [part for part in parts if isinstance(part, Text | Media)]
            request.add(Role.USER, Result(as_str(message.get("tool_call_id")), wanted))
        case role:
            raise Unsupported(f"{where}.role", f"is {role!r}")


def _assistant(message: Json, where: str) -> list[Part]:
    if message.get("function_call"):
        raise Unsupported(f"{where}.function_call", "is the legacy form of tools")
    thought = as_str(message.get("reasoning_content")) or as_str(message.get("reasoning"))
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += _parts(message.get("content"), f"{where}.content")
    if refusal := as_str(message.get("refusal")):
        parts.append(Refusal(refusal))
    parts += [_call(call) for _index, call in dicts(message.get("tool_calls"))]
    return parts


def _call(call: Json) -> Call:
    custom = call.get("type") == "custom"
    body = as_dict(call.get("custom" if custom else "function"))
    text = as_str(body.get("input" if custom else "arguments"))
    return Call(as_str(call.get("id")), as_str(body.get("name")), text, None, custom)


def _parts(content: object, where: str) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)]
    found: list[Part] = []
    for index, part in dicts(content):
        place = f"{where}[{index}]"
        match part.get("type"):
            case "text":
                found.append(Text(as_str(part.get("text"))))
            case "refusal":
                found.append(Refusal(as_str(part.get("refusal"))))
            case "image_url":
                found.append(_image(part.get("image_url"), place))
            case "file":
                found.append(_file(as_dict(part.get("file")), place))
            case kind:
                raise Unsupported(place, f"is of type {kind!r}")
    return found


def _image(value: object, where: str) -> Media:
    image = {"url": value} if isinstance(value, str) else as_dict(value)
    detail = as_str(image.get("detail")) or None
    return media.from_url(as_str(image.get("url")), image=True, where=where, detail=detail)


def _file(body: Json, where: str) -> Media:
    url = as_str(body.get("file_data"))
    if not url:
        raise Unsupported(where, "refers to a file kept by another provider")
    return media.from_url(url, image=False, where=where, filename=as_str(body.get("filename")) or None)
