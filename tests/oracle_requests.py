"""Oracle for requests: what a request of any dialect says, in one form that compares across dialects."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from oracle_common import Json, arguments, image_at, inline_image, qualified


def digest_request(dialect: str, document: Json) -> Json:
    """The digest of a request."""
    digest: Json = {
        "system": [], "turns": [], "tools": [], "tool_choice": None, "parallel": None, "max_tokens": None,
        "effort": None, "schema": None, "stop": [], "temperature": document.get("temperature"),
        "top_p": document.get("top_p"), "stream": bool(document.get("stream")),
    }  # fmt: skip
    _READERS[dialect](digest, document)
    return digest


def _text(part: Json) -> tuple[str, Any]:
    return "text", part.get("text", "")


def _input_image(part: Json) -> tuple[str, Any]:
    return "image", image_at(part["image_url"]) if part.get("image_url") else f"image:file:{part.get('file_id')}"


def _image_url(part: Json) -> tuple[str, Any]:
    url = part["image_url"]
    return "image", image_at(url["url"] if isinstance(url, dict) else url)


def _anthropic_image(part: Json) -> tuple[str, Any]:
    source = part["source"]
    if source["type"] == "base64":
        return "image", inline_image(source["media_type"], source["data"])
    return "image", f"image:url:{source['url']}" if source["type"] == "url" else f"image:file:{source.get('file_id')}"


def _document(part: Json) -> tuple[str, Any]:
    source = part["source"]
    inline = source["type"] == "base64"
    return "file", inline_image(source.get("media_type"), source.get("data")) if inline else source["type"]


def _input_file(part: Json) -> tuple[str, Any]:
    return "file", image_at(part["file_data"]) if part.get("file_data") else part.get("file_url") or part.get("file_id")


def _chat_file(part: Json) -> tuple[str, Any]:
    return _input_file(part["file"])


def _refusal(part: Json) -> tuple[str, Any]:
    return "refusal", part.get("refusal", "")


_PARTS: dict[str, Callable[[Json], tuple[str, Any]]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "input_image": _input_image,
    "image_url": _image_url,
    "image": _anthropic_image,
    "document": _document,
    "input_file": _input_file,
    "file": _chat_file,
}


def _parts(content: Any) -> list[tuple[str, Any]]:
    if isinstance(content, str):
        return [("text", content)] if content else []
    return [_PARTS[part["type"]](part) for part in content or []]


def _words(content: Any) -> str:
    return "".join(value for kind, value in _parts(content) if kind == "text")


def _result(digest: Json, call_id: Any, content: Any) -> None:
    digest["turns"].append(["tool", "result", call_id, _words(content)])


def _result_images(digest: Json, content: Any) -> None:
    digest["turns"] += [["tool", "image", value] for kind, value in _parts(content) if kind == "image"]


def _schema(schema: Any) -> str:
    return json.dumps(schema or {"type": "object", "properties": {}}, sort_keys=True)


def _openai_choice(choice: Any) -> Any:
    if choice is None or isinstance(choice, str):
        return choice
    if choice.get("type") in ("function", "custom"):
        return "fn:" + (choice.get("name") or choice[choice["type"]]["name"])
    return choice.get("type")


def _responses(digest: Json, document: Json) -> None:
    if document.get("instructions"):
        digest["system"].append(document["instructions"])
    items = document.get("input", [])
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        _responses_item(digest, item)
    digest["tools"] += [row for tool in document.get("tools") or [] for row in _responses_tools(tool, "")]
    digest["tool_choice"] = _openai_choice(document.get("tool_choice"))
    digest["parallel"] = document.get("parallel_tool_calls")
    digest["max_tokens"] = document.get("max_output_tokens")
    digest["effort"] = (document.get("reasoning") or {}).get("effort")
    form = (document.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        digest["schema"] = _schema(form["schema"])


def _responses_item(digest: Json, item: Json) -> None:
    turns = digest["turns"]
    match item.get("type", "message"):
        case "message" if item["role"] in ("system", "developer"):
            digest["system"].append(_words(item["content"]))
        case "message":
            turns += [[item["role"], *part] for part in _parts(item["content"])]
        case "reasoning":
            summary, content = item.get("summary") or [], item.get("content") or []
            turns.append(["assistant", "reasoning", "".join(part["text"] for part in summary or content)])
            if item.get("encrypted_content"):
                turns.append(["assistant", "opaque", item["encrypted_content"]])
        case "function_call":
            turns.append(["assistant", "call", item["call_id"], qualified(item), arguments(item["arguments"])])
        case "custom_tool_call":
            turns.append(["assistant", "call", item["call_id"], qualified(item), "raw:" + item["input"]])
        case "function_call_output" | "custom_tool_call_output":
            _result(digest, item.get("call_id"), item["output"])
            _result_images(digest, item["output"])
        case "additional_tools":
            digest["tools"] += [row for tool in item["tools"] for row in _responses_tools(tool, "")]
        case kind:
            turns.append(["?", kind, None])


def _responses_tools(tool: Json, prefix: str) -> Iterator[list[Any]]:
    match tool.get("type"):
        case "namespace":
            for child in tool["tools"]:
                yield from _responses_tools(child, tool["name"] + ".")
        case "function":
            yield [prefix + tool["name"], "function", _schema(tool.get("parameters"))]
        case "custom":
            yield [prefix + tool["name"], "custom", None]
        case kind:
            yield [kind, "builtin", None]


def _chat(digest: Json, document: Json) -> None:
    for message in document.get("messages", []):
        _chat_message(digest, message)
    for tool in document.get("tools") or []:
        body = tool[tool["type"]]
        custom = tool["type"] == "custom"
        digest["tools"].append([body["name"], tool["type"], None if custom else _schema(body.get("parameters"))])
    digest["tool_choice"] = _openai_choice(document.get("tool_choice"))
    digest["parallel"] = document.get("parallel_tool_calls")
    digest["max_tokens"] = document.get("max_completion_tokens", document.get("max_tokens"))
    digest["effort"] = document.get("reasoning_effort")
    form = document.get("response_format") or {}
    if form.get("type") == "json_schema":
        digest["schema"] = _schema(form["json_schema"].get("schema"))
    stop = document.get("stop")
    digest["stop"] = [stop] if isinstance(stop, str) else list(stop or [])


def _chat_message(digest: Json, message: Json) -> None:
    role, content = message["role"], message.get("content")
    if role in ("system", "developer"):
        digest["system"].append(_words(content))
        return
    if role == "tool":
        _result(digest, message["tool_call_id"], content)
        _result_images(digest, content)
        return
    turns = digest["turns"]
    if thought := message.get("reasoning_content"):
        turns.append([role, "reasoning", thought])
    turns += [[role, *part] for part in _parts(content)]
    if message.get("refusal"):
        turns.append([role, "refusal", message["refusal"]])
    for call in message.get("tool_calls") or []:
        body = call[call["type"]]
        said = "raw:" + body["input"] if call["type"] == "custom" else arguments(body.get("arguments"))
        turns.append([role, "call", call["id"], body["name"], said])


def _messages(digest: Json, document: Json) -> None:
    system = document.get("system") or []
    digest["system"] += [system] if isinstance(system, str) else [block["text"] for block in system]
    for message in document.get("messages", []):
        content = message["content"]
        if message["role"] == "system":
            digest["system"].append(_words(content))
            continue
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            _messages_block(digest, message["role"], block)
    for tool in document.get("tools") or []:
        known = "input_schema" in tool
        digest["tools"].append(
            [tool["name"], "function", _schema(tool["input_schema"])] if known else [tool.get("type"), "builtin", None]
        )
    _messages_settings(digest, document)


def _messages_settings(digest: Json, document: Json) -> None:
    if choice := document.get("tool_choice"):
        modes = {"auto": "auto", "any": "required", "none": "none"}
        digest["tool_choice"] = modes.get(choice["type"]) or "fn:" + choice["name"]
        digest["parallel"] = False if choice.get("disable_parallel_tool_use") else None
    digest["max_tokens"] = document.get("max_tokens")
    output, thinking = document.get("output_config") or {}, document.get("thinking") or {}
    budget = f"budget:{thinking['budget_tokens']}" if thinking.get("type") == "enabled" else None
    digest["effort"] = "none" if thinking.get("type") == "disabled" else output.get("effort") or budget
    form = output.get("format") or {}
    if form.get("type") == "json_schema":
        digest["schema"] = _schema(form["schema"])
    digest["stop"] = list(document.get("stop_sequences") or [])


def _messages_block(digest: Json, role: str, block: Json) -> None:
    turns = digest["turns"]
    match block["type"]:
        case "thinking":
            turns.append([role, "reasoning", block["thinking"]])
            if block.get("signature"):
                turns.append([role, "opaque", block["signature"]])
        case "redacted_thinking":
            turns.append([role, "opaque", block["data"]])
        case "tool_use":
            turns.append([role, "call", block["id"], block["name"], arguments(block["input"])])
        case "tool_result":
            _result(digest, block["tool_use_id"], block.get("content"))
            if block.get("is_error"):
                turns.append(["tool", "is_error", block["tool_use_id"]])
            _result_images(digest, block.get("content"))
        case _:
            turns += [[role, *part] for part in _parts([block]) if part != ("text", "")]


def _gemini(digest: Json, document: Json) -> None:
    if system := document.get("systemInstruction"):
        digest["system"].append("".join(part.get("text", "") for part in system["parts"]))
    for content in document.get("contents", []):
        role = {"model": "assistant"}.get(content.get("role", "user"), content.get("role", "user"))
        for part in content["parts"]:
            _gemini_part(digest, role, part)
    for tool in document.get("tools") or []:
        for entry in tool.get("functionDeclarations") or []:
            schema = entry.get("parametersJsonSchema") or entry.get("parameters")
            digest["tools"].append([entry["name"], "function", _schema(schema)])
    _gemini_settings(digest, document.get("generationConfig") or {})
    calling = (document.get("toolConfig") or {}).get("functionCallingConfig") or {}
    digest["tool_choice"] = {"AUTO": "auto", "ANY": "required", "NONE": "none"}.get(calling.get("mode"))


def _gemini_settings(digest: Json, config: Json) -> None:
    digest["max_tokens"], digest["temperature"] = config.get("maxOutputTokens"), config.get("temperature")
    digest["top_p"], digest["stop"] = config.get("topP"), list(config.get("stopSequences") or [])
    thinking = config.get("thinkingConfig") or {}
    budget = f"budget:{thinking['thinkingBudget']}" if "thinkingBudget" in thinking else None
    digest["effort"] = thinking.get("thinkingLevel") or budget
    if schema := config.get("responseJsonSchema") or config.get("responseSchema"):
        digest["schema"] = _schema(schema)


def _gemini_part(digest: Json, role: str, part: Json) -> None:
    turns = digest["turns"]
    if part.get("thought"):
        turns.append([role, "reasoning", part.get("text", "")])
    elif "text" in part:
        turns.append([role, "text", part["text"]])
    elif inline := part.get("inlineData"):
        turns.append([role, "image", inline_image(inline["mimeType"], inline["data"])])
    elif call := part.get("functionCall"):
        turns.append(["assistant", "call", call.get("id"), call["name"], arguments(call.get("args"))])
    elif answer := part.get("functionResponse"):
        response = answer.get("response") or {}
        value = response.get("output", response.get("result", response))
        said = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        turns.append(["tool", "result", answer.get("id"), said])
    if part.get("thoughtSignature"):
        turns.append([role, "opaque", part["thoughtSignature"]])


_READERS: dict[str, Callable[[Json, Json], None]] = {
    "responses": _responses,
    "chat": _chat,
    "messages": _messages,
    "gemini": _gemini,
}
