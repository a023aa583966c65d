"""Reads a generateContent request into the intermediate form. It knows nothing of the target.

Model and streaming stand in the URL, so `stream` is set by the caller. Raises Unsupported for several candidates,
cached content, provider-side tools and files by address of the provider.
"""

from collections import deque
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.spelling import camel
from combos.wire.translate import effort, fields, opaque, toolset
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

_ME = Dialect.GEMINI
_MODES = {"AUTO": Mode.AUTO, "VALIDATED": Mode.AUTO, "ANY": Mode.REQUIRED, "NONE": Mode.NONE}
_HANDLED = frozenset(
    {
        "maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "candidateCount", "responseMimeType",
        "responseJsonSchema", "responseSchema", "thinkingConfig", "responseModalities",
    }
)  # fmt: skip
_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


@dataclass(slots=True)
class _Ids:
    """Gives calls without id one, and finds it again for results, which match by name and order."""

    open: dict[str, deque[str]] = field(default_factory=dict)
    made: int = 0

    def of_call(self, name: str, given: str) -> str:
        """The id of a call."""
        self.made += 1
        call_id = given or f"call_{self.made}_{toolset.digest8(name)}"
        self.open.setdefault(name, deque()).append(call_id)
        return call_id

    def of_result(self, name: str, given: str) -> str:
        """The id of the call that a result answers: the one it names, else the oldest open call of that function."""
        queue = self.open.get(name)
        if given:
            if queue and given in queue:
                queue.remove(given)
            return given
        return queue.popleft() if queue else f"call_0_{toolset.digest8(name)}"


def parse(document: Json) -> Request:
    """The request in `document`. Raises Unsupported."""
    document = camel(document)
    request = Request(summary=None)
    if document.get("cachedContent"):
        raise Unsupported("cachedContent", "refers to state kept by another provider")
    system = as_dict(document.get("systemInstruction"))
    request.add_system("".join(as_str(part.get("text")) for _index, part in dicts(system.get("parts"))))
    for _index, tool in dicts(document.get("tools")):
        _tools(tool, request)
    ids = _Ids()
    for index, content in dicts(document.get("contents")):
        _content(content, f"contents[{index}]", ids, request)
    request.tools = toolset.unique(request.tools)
    _choice(camel(document.get("toolConfig")), request)
    _settings(camel(document.get("generationConfig")), request)
    fields.note_unknown(document, _ME, request)
    return request


def _settings(config: Json, request: Request) -> None:
    if config.get("candidateCount") not in (None, 1):
        raise Unsupported("generationConfig.candidateCount", "above 1 asks for several answers")
    if any(kind != "TEXT" for kind in as_list(config.get("responseModalities"))):
        raise Unsupported("generationConfig.responseModalities")
    request.max_tokens = as_int(config.get("maxOutputTokens"))
    request.temperature = as_number(config.get("temperature"))
    request.top_p = as_number(config.get("topP"))
    request.top_k = as_int(config.get("topK"))
    request.stop = [text for text in as_list(config.get("stopSequences")) if isinstance(text, str)]
    _schema(config, request)
    thinking = camel(config.get("thinkingConfig"))
    budget = as_int(thinking.get("thinkingBudget"))
    request.effort = effort.known(as_str(thinking.get("thinkingLevel")).lower())
    if request.effort is None and budget is not None:
        request.effort = effort.from_budget(budget)
    if thinking.get("includeThoughts") is True and request.effort != "none":
        request.summary = "auto"
    extra = (key for key, value in config.items() if key not in _HANDLED and value is not None)
    request.dropped.update(f"generationConfig.{key}" for key in extra)


def _schema(config: Json, request: Request) -> None:
    schema = config.get("responseJsonSchema")
    if schema is None and config.get("responseSchema") is not None:
        schema = lower_types(config["responseSchema"])
    if isinstance(schema, dict):
        request.schema = Schema(schema)
    elif config.get("responseMimeType") == "application/json":
        request.schema = Schema(None)


def lower_types(schema: object, depth: int = 0) -> object:
    """An OpenAPI schema of this API (types in capitals) as JSON Schema. Raises Unsupported beyond 64 levels."""
    if depth > 64:
        raise Unsupported("tools", "holds a schema that is nested too deeply")
    if isinstance(schema, list):
        return [lower_types(entry, depth + 1) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: lower_types(value, depth + 1) for key, value in schema.items()}
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        result["type"] = kind.lower()
        if result.pop("nullable", None) is True:
            result["type"] = [kind.lower(), "null"]
    return result


def _tools(tool: Json, request: Request) -> None:
    for kind in tool:
        if kind not in ("functionDeclarations", "function_declarations"):
            toolset.hosted(kind, _ME, request.dropped)
    for _index, declared in dicts(camel(tool).get("functionDeclarations")):
        entry = camel(declared)
        schema = entry.get("parametersJsonSchema")
        if not isinstance(schema, dict):
            schema = as_dict(lower_types(entry.get("parameters")))
        name = as_str(entry.get("name"))
        if name:
            description = as_str(entry.get("description")) or None
            request.tools.append(Tool(name, None, description, toolset.object_schema(schema)))


def _choice(config: Json, request: Request) -> None:
    calling = camel(config.get("functionCallingConfig"))
    mode = _MODES.get(as_str(calling.get("mode")))
    names = tuple(name for name in as_list(calling.get("allowedFunctionNames")) if isinstance(name, str))
    if mode is Mode.REQUIRED and len(names) == 1:
        request.choice = Choice(Mode.NAMED, names)
    elif mode is not None:
        request.choice = Choice(mode, names)


def _content(content: Json, where: str, ids: _Ids, request: Request) -> None:
    role = Role.ASSISTANT if content.get("role") == "model" else Role.USER
    for index, part in dicts(content.get("parts")):
        parts = _part(part, (where, index), ids)
        if parts:
            request.add(role, *parts)


def _part(part: Json, place: tuple[str, int], ids: _Ids) -> list[Part]:
    """The parts of the intermediate form. The text of `place` is made only for what must name it."""
    part = camel(part)
    signature = None
    if "thoughtSignature" in part:
        signature = opaque.read(opaque.from_gemini_slot(part["thoughtSignature"]), _ME)
    if part.get("thought") is True:
        return [Reasoning(as_str(part.get("text")), _placed(signature, "thought"))]
    if isinstance(call := part.get("functionCall"), dict):
        return [*_carrier(signature, "call"), _call(call, ids)]
    if isinstance(text := part.get("text"), str) and "functionResponse" not in part:
        return [Text(text), *_carrier(signature, "text")]
    where = f"{place[0]}.parts[{place[1]}]"
    if isinstance(answer := part.get("functionResponse"), dict):
        return [_result(answer, where, ids)]
    if isinstance(inline := part.get("inlineData"), dict):
        return [_inline(inline, where)]
    raise Unsupported(where, "is of a kind that only its own provider can read")


def _placed(state: Opaque | None, place: str) -> Opaque | None:
    if state is not None and not state.origin:
        state.place = place
    return state


def _carrier(state: Opaque | None, place: str) -> list[Part]:
    """A signature on a text or call part, as a reasoning part of its own."""
    return [] if state is None else [Reasoning("", _placed(state, place))]


def _call(call: Json, ids: _Ids) -> Call:
    name = as_str(call.get("name"))
    return Call(ids.of_call(name, as_str(call.get("id"))), name, dump_str(as_dict(call.get("args"))))


def _result(answer: Json, where: str, ids: _Ids) -> Result:
    name = as_str(answer.get("name"))
    response = as_dict(answer.get("response"))
    value = response.get("output", response.get("result", response.get("error", response)))
    text = value if isinstance(value, str) else dump_str(value)
    parts: list[Text | Media] = [Text(text)]
    for index, part in dicts(answer.get("parts")):
        parts.append(_inline(as_dict(camel(part).get("inlineData")), f"{where}.functionResponse.parts[{index}]"))
    return Result(ids.of_result(name, as_str(answer.get("id"))), parts, "error" in response)


def _inline(inline: Json, where: str) -> Media:
    media_type = as_str(inline.get("mimeType") or inline.get("mime_type"))
    if not media_type.startswith("image/") and media_type != "application/pdf":
        raise Unsupported(where, f"has media type {media_type!r}")
    return Media(media_type.startswith("image/"), where, media_type, as_str(inline.get("data")))
