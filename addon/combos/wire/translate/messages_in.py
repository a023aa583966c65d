"""Reads a Messages request into the intermediate form. It knows nothing of the target.

Raises Unsupported for file ids, server-tool history other than search, containers and MCP servers.
"""

import hashlib

from combos.core.facts import Dialect
from combos.wire.translate import effort, fields, media, opaque, toolset
from combos.wire.translate.ir import (
    Call,
    Choice,
    Media,
    Mode,
    Opaque,
    Part,
    Reasoning,
    Request,
    Result,
    Role,
    Schema,
    Text,
    Tool,
)
from combos.wire.translate.shape import Json, Unsupported, as_dict, as_int, as_list, as_number, as_str, dicts, dump_str

_ME = Dialect.MESSAGES
TELEMETRY = "x-anthropic-billing-header:"
"""Start of a system block that Claude Code adds for its own vendor; removed when leaving it."""

MAX_NESTING = 8
"""How deep documents may hold documents; the API itself knows one level."""

_MODES = {"auto": Mode.AUTO, "any": Mode.REQUIRED, "none": Mode.NONE}
_SEARCH_BLOCKS = frozenset(
    {"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result"}
)
_SEARCH_TOOLS = ("web_search", "web_fetch", "tool_search_tool")


def parse(document: Json) -> Request:
    """The request in `document`. Raises Unsupported."""
    for name in fields.REFUSED[_ME]:
        if document.get(name):
            raise Unsupported(name, "refers to state kept by another provider")
    request = Request(stream=document.get("stream") is True)
    _system(document.get("system"), request)
    for _index, tool in dicts(document.get("tools")):
        _tool(tool, request)
    if not isinstance(document.get("messages"), list):
        raise Unsupported("messages", "is not a list")
    for index, message in dicts(document.get("messages")):
        _message(message, f"messages[{index}]", request)
    request.tools = toolset.unique(request.tools)
    _choice(as_dict(document.get("tool_choice")), request)
    _settings(document, request)
    fields.note_unknown(document, _ME, request)
    return request


def _system(value: object, request: Request) -> None:
    blocks = [{"text": value}] if isinstance(value, str) else as_list(value)
    for block in blocks:
        text = as_str(as_dict(block).get("text"))
        if not text.startswith(TELEMETRY):
            request.add_system(text)


def _settings(document: Json, request: Request) -> None:
    request.max_tokens = as_int(document.get("max_tokens"))
    request.temperature = as_number(document.get("temperature"))
    request.top_p = as_number(document.get("top_p"))
    request.top_k = as_int(document.get("top_k"))
    request.stop = [text for text in as_list(document.get("stop_sequences")) if isinstance(text, str)]
    output = as_dict(document.get("output_config"))
    form = as_dict(output.get("format"))
    if form.get("type") == "json_schema":
        request.schema = Schema(as_dict(form.get("schema")))
    _thinking(as_dict(document.get("thinking")), output.get("effort"), request)
    metadata = as_dict(document.get("metadata"))
    request.user = as_str(metadata.get("user_id")) or None
    if request.user:
        digest = hashlib.sha256(request.user.encode("utf-8", "surrogatepass"))
        request.cache_key = digest.hexdigest()[:32]
    if any(key != "user_id" for key in metadata):
        request.dropped.add("metadata")


def _thinking(thinking: Json, level: object, request: Request) -> None:
    request.effort = effort.known(level)
    match thinking.get("type"):
        case "disabled":
            request.effort = "none"
            return
        case "enabled":
            budget = as_int(thinking.get("budget_tokens"))
            if request.effort is None and budget is not None:
                request.effort = effort.from_budget(budget)
        case "adaptive":
            pass
        case _:
            return
    if request.effort != "none":
        request.summary = "auto"


def _tool(tool: Json, request: Request) -> None:
    kind = as_str(tool.get("type"))
    name = as_str(tool.get("name"))
    if not name or not (kind in ("", "custom") or (isinstance(tool.get("input_schema"), dict))):
        toolset.hosted(kind, _ME, request.dropped)
        return
    strict = tool.get("strict")
    request.tools.append(
        Tool(
            name,
            None,
            as_str(tool.get("description")) or None,
            toolset.object_schema(as_dict(tool.get("input_schema"))),
            strict if isinstance(strict, bool) else None,
        )
    )


def _choice(choice: Json, request: Request) -> None:
    kind = as_str(choice.get("type"))
    if choice.get("disable_parallel_tool_use") is True:
        request.parallel = False
    if kind == "tool":
        name = as_str(choice.get("name"))
        if name not in {tool.name for tool in request.tools}:
            raise Unsupported("tool_choice", f"forces {name!r}, which is not one of the client's own tools")
        request.choice = Choice(Mode.NAMED, (name,))
    elif kind in _MODES:
        request.choice = Choice(_MODES[kind])


def _message(message: Json, where: str, request: Request) -> None:
    content = message.get("content")
    match message.get("role"):
        case "system":
            parts = _parts(content, where, request)
            request.add_system("".join(part.text for part in parts if isinstance(part, Text)))
        case "user":
            request.add(Role.USER, *_parts(content, where, request))
        case "assistant":
            request.add(Role.ASSISTANT, *_parts(content, where, request))
        case role:
            raise Unsupported(f"{where}.role", f"is {role!r}")


def _parts(content: object, where: str, request: Request) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)]
    found: list[Part] = []
    for index, block in dicts(content):
        found.extend(_block(block, f"{where}.content[{index}]", request))
    return found


def _block(block: Json, where: str, request: Request) -> list[Part]:
    kind = as_str(block.get("type"))
    match kind:
        case "thinking":
            return [Reasoning(as_str(block.get("thinking")), _signature(block))]
        case "redacted_thinking":
            return [Reasoning("", _redacted(block))]
        case "tool_use":
            arguments = dump_str(as_dict(block.get("input")))
            return [Call(as_str(block.get("id")), as_str(block.get("name")), arguments)]
        case "tool_result":
            parts = _result_parts(block.get("content"), where)
            return [Result(as_str(block.get("tool_use_id")), parts, block.get("is_error") is True)]
        case _ if kind in _SEARCH_BLOCKS:
            _search_block(block, where, request)
            return []
        case _:
            return list(_content(block, where))


def _search_block(block: Json, where: str, request: Request) -> None:
    kind = as_str(block.get("type"))
    if kind == "server_tool_use" and not as_str(block.get("name")).startswith(_SEARCH_TOOLS):
        raise Unsupported(where, "is a call of a tool that only its own provider can run")
    request.dropped.add(f"messages.{kind}")


def _content(block: Json, where: str, depth: int = 0) -> list[Text | Media]:
    """Blocks that users and tool results may both hold. Raises Unsupported for any other."""
    match block.get("type"):
        case "text":
            return [Text(as_str(block.get("text")))]
        case "image":
            return [media.from_anthropic(block, image=True, where=where)]
        case "document":
            return _document(block, where, depth)
        case "search_result":
            heading = f"{as_str(block.get('title'))} ({as_str(block.get('source'))})\n"
            return [Text(heading), *_result_parts(block.get("content"), where, depth + 1)]
        case "tool_reference":
            return [Text(f"[tool {as_str(block.get('tool_name'))}]")]
        case kind:
            raise Unsupported(where, f"is of type {kind!r}")


def _document(block: Json, where: str, depth: int) -> list[Text | Media]:
    source = as_dict(block.get("source"))
    match source.get("type"):
        case "text":
            return [Text(as_str(source.get("data")))]
        case "content":
            return _result_parts(source.get("content"), where, depth + 1)
        case _:
            return [media.from_anthropic(block, image=False, where=where)]


def _result_parts(content: object, where: str, depth: int = 0) -> list[Text | Media]:
    if isinstance(content, str):
        return [Text(content)]
    if depth > MAX_NESTING:
        raise Unsupported(where, "is nested too deeply")
    found: list[Text | Media] = []
    for index, block in dicts(content):
        found.extend(_content(block, f"{where}.content[{index}]", depth))
    return found


def _signature(block: Json) -> Opaque | None:
    state = opaque.read(block.get("signature"), _ME)
    if state is not None and not state.origin:
        state.text = as_str(block.get("thinking"))
    return state


def _redacted(block: Json) -> Opaque | None:
    state = opaque.read(block.get("data"), _ME)
    if state is not None and not state.origin:
        state.redacted = True
    return state
