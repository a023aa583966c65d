"""Oracle for answers: what a whole answer, a stream or an error of any dialect says, in one comparable form.

A stream is read from its increments, the way a client sees it, never from a final snapshot.
"""

from collections.abc import Callable
from typing import Any

from oracle_common import Json, arguments, qualified, sse

_CHAT_REASONS = {"function_call": "tool_calls"}
_MESSAGES_REASONS = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
    "pause_turn": "pause", "refusal": "content_filter", "model_context_window_exceeded": "length",
}  # fmt: skip
_GEMINI_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_RESPONSES_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def digest_answer(dialect: str, document: Json) -> Json:
    """The digest of a whole answer."""
    digest = _empty()
    _WHOLE[dialect](digest, document)
    return _tool_finish(digest)


def digest_stream(dialect: str, raw: bytes) -> Json:
    """The digest of a whole stream."""
    digest = _empty()
    _STREAMS[dialect](digest, [payload for _name, payload in sse(raw) if payload != "[DONE]"])
    return _tool_finish(digest)


def _empty() -> Json:
    return {
        "text": "", "refusal": "", "reasoning": "", "opaque": [], "calls": [], "builtin": [], "finish": None,
        "usage": None, "error": None,
    }  # fmt: skip


def _tool_finish(digest: Json) -> Json:
    if digest["finish"] == "stop" and digest["calls"]:
        digest["finish"] = "tool_calls"
    return digest


def _usage(total: Any, cached: Any, written: Any, output: Any, reasoning: Any) -> Json:
    names = ("input_total", "cached", "cache_write", "output", "reasoning")
    return {name: value or 0 for name, value in zip(names, (total, cached, written, output, reasoning), strict=True)}


def _openai_usage(usage: Json, before: str, after: str) -> Json:
    one, two = usage.get(f"{before}_tokens_details") or {}, usage.get(f"{after}_tokens_details") or {}
    counts = (usage.get(f"{before}_tokens"), one.get("cached_tokens"), one.get("cache_write_tokens"))
    return _usage(*counts, usage.get(f"{after}_tokens"), two.get("reasoning_tokens"))


def _messages_usage(usage: Json) -> Json:
    cached, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    details = usage.get("output_tokens_details") or {}
    total = (usage.get("input_tokens") or 0) + cached + written
    return _usage(total, cached, written, usage.get("output_tokens"), details.get("thinking_tokens"))


def _gemini_usage(usage: Json) -> Json:
    total = (usage.get("promptTokenCount") or 0) + (usage.get("toolUsePromptTokenCount") or 0)
    thoughts = usage.get("thoughtsTokenCount") or 0
    output = (usage.get("candidatesTokenCount") or 0) + thoughts
    return _usage(total, usage.get("cachedContentTokenCount"), 0, output, thoughts)


def _whole_responses(digest: Json, document: Json) -> None:
    for item in document.get("output") or []:
        _responses_item(digest, item)
    word = (document.get("incomplete_details") or {}).get("reason")
    status = {"completed": "stop", "failed": "error"}.get(document.get("status", ""))
    digest["finish"] = status or _RESPONSES_REASONS.get(word, word)
    if document.get("usage"):
        digest["usage"] = _openai_usage(document["usage"], "input", "output")
    if document.get("error"):
        digest["error"] = document["error"].get("code")


def _responses_item(digest: Json, item: Json) -> None:
    match item["type"]:
        case "message":
            digest["text"] += "".join(part["text"] for part in item["content"] if part["type"] == "output_text")
            digest["refusal"] += "".join(part["refusal"] for part in item["content"] if part["type"] == "refusal")
        case "reasoning":
            parts = item.get("summary") or item.get("content") or []
            digest["reasoning"] += "".join(part["text"] for part in parts)
            digest["opaque"] += [item["encrypted_content"]] if item.get("encrypted_content") else []
        case "function_call":
            digest["calls"].append([item["call_id"], qualified(item), arguments(item["arguments"])])
        case "custom_tool_call":
            digest["calls"].append([item["call_id"], qualified(item), "raw:" + item["input"]])
        case kind:
            digest["builtin"].append(kind)


def _whole_chat(digest: Json, document: Json) -> None:
    choice = document["choices"][0]
    message = choice["message"]
    digest["text"], digest["refusal"] = message.get("content") or "", message.get("refusal") or ""
    digest["reasoning"] = message.get("reasoning_content") or ""
    for call in message.get("tool_calls") or []:
        body = call[call["type"]]
        said = "raw:" + body["input"] if call["type"] == "custom" else arguments(body.get("arguments"))
        digest["calls"].append([call["id"], body["name"], said])
    digest["finish"] = _CHAT_REASONS.get(choice["finish_reason"], choice["finish_reason"])
    if document.get("usage"):
        digest["usage"] = _openai_usage(document["usage"], "prompt", "completion")


def _whole_messages(digest: Json, document: Json) -> None:
    for block in document.get("content") or []:
        _messages_block(digest, block, block.get("input"))
    digest["finish"] = _MESSAGES_REASONS.get(document.get("stop_reason", ""))
    if document.get("usage"):
        digest["usage"] = _messages_usage(document["usage"])


def _messages_block(digest: Json, block: Json, said: Any) -> None:
    match block["type"]:
        case "text":
            digest["text"] += block["text"]
        case "thinking":
            digest["reasoning"] += block["thinking"]
            digest["opaque"] += [block["signature"]] if block.get("signature") else []
        case "redacted_thinking":
            digest["opaque"].append(block["data"])
        case "tool_use":
            digest["calls"].append([block["id"], block["name"], arguments(said)])
        case kind:
            digest["builtin"].append(kind)


def _whole_gemini(digest: Json, document: Json) -> None:
    if document.get("error"):
        digest["finish"], digest["error"] = "error", document["error"].get("status")
    for candidate in document.get("candidates") or []:
        for part in (candidate.get("content") or {}).get("parts") or []:
            _gemini_part(digest, part)
        if word := candidate.get("finishReason"):
            digest["finish"] = _GEMINI_REASONS.get(word, "content_filter")
    if document.get("usageMetadata"):
        digest["usage"] = _gemini_usage(document["usageMetadata"])


def _gemini_part(digest: Json, part: Json) -> None:
    digest["opaque"] += [part["thoughtSignature"]] if part.get("thoughtSignature") else []
    if part.get("thought"):
        digest["reasoning"] += part.get("text", "")
    elif "text" in part:
        digest["text"] += part["text"]
    elif call := part.get("functionCall"):
        digest["calls"].append([call.get("id"), call["name"], arguments(call.get("args"))])


def _stream_responses(digest: Json, events: list[Json]) -> None:
    items: dict[Any, Json] = {}
    for event in events:
        match event["type"]:
            case "response.output_item.added" | "response.output_item.done":
                index = event.get("output_index")
                items[event["item"].get("id") if index is None else index] = event["item"]
            case "response.completed" | "response.incomplete" | "response.failed":
                _whole_responses(digest, {**event["response"], "output": []})
            case "error":
                digest["finish"], digest["error"] = "error", event.get("code")
            case _:
                pass
    for key in sorted(items, key=lambda key: (isinstance(key, str), key if isinstance(key, int) else 0)):
        _responses_item(digest, items[key])


def _stream_chat(digest: Json, events: list[Json]) -> None:
    calls: dict[int, Json] = {}
    for event in events:
        if error := event.get("error"):
            digest["finish"], digest["error"] = "error", error.get("code") or error.get("type")
            continue
        if event.get("usage"):
            digest["usage"] = _openai_usage(event["usage"], "prompt", "completion")
        for choice in event.get("choices") or []:
            if not choice.get("index"):
                _chat_choice(digest, choice, calls)
    for index in sorted(calls):
        call = calls[index]
        said = "raw:" + call["said"] if call["raw"] else arguments(call["said"])
        digest["calls"].append([call["id"], call["name"], said])


def _chat_choice(digest: Json, choice: Json, calls: dict[int, Json]) -> None:
    delta = choice.get("delta") or {}
    for name, member in (("text", "content"), ("refusal", "refusal"), ("reasoning", "reasoning_content")):
        digest[name] += delta.get(member) or ""
    for part in delta.get("tool_calls") or []:
        call = calls.setdefault(part["index"], {"id": None, "name": "", "said": "", "raw": False})
        body = part.get("function") or part.get("custom") or {}
        call["id"], call["raw"] = call["id"] or part.get("id"), call["raw"] or bool(part.get("custom"))
        call["name"] += body.get("name") or ""
        call["said"] += body.get("arguments") or body.get("input") or ""
    if word := choice.get("finish_reason"):
        digest["finish"] = _CHAT_REASONS.get(word, word)


_MESSAGES_DELTAS = {
    "text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature",
    "input_json_delta": "partial_json",
}  # fmt: skip


def _stream_messages(digest: Json, events: list[Json]) -> None:
    blocks: dict[int, Json] = {}
    usage: Json = {}
    for event in events:
        match event["type"]:
            case "message_start":
                usage |= {key: value for key, value in event["message"]["usage"].items() if value is not None}
            case "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "partial_json": ""}
            case "content_block_delta":
                member = _MESSAGES_DELTAS.get(event["delta"]["type"])
                if member:
                    blocks[event["index"]][member] += event["delta"][member]
            case "message_delta":
                digest["finish"] = _MESSAGES_REASONS.get(event["delta"].get("stop_reason"))
                usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            case "error":
                digest["finish"], digest["error"] = "error", event["error"]["type"]
            case _:
                pass
    for index in sorted(blocks):
        _messages_block(digest, blocks[index], blocks[index]["partial_json"] or blocks[index].get("input"))
    digest["usage"] = _messages_usage(usage) if usage else None


def _stream_gemini(digest: Json, events: list[Json]) -> None:
    for event in events:
        _whole_gemini(digest, event)


_GEMINI_ERRORS = {
    "INVALID_ARGUMENT": "invalid", "FAILED_PRECONDITION": "invalid", "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "permission", "NOT_FOUND": "not_found", "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "overloaded", "INTERNAL": "server", "DEADLINE_EXCEEDED": "timeout",
}  # fmt: skip
_ERROR_TYPES = {
    "invalid_request_error": "invalid", "authentication_error": "auth", "permission_error": "permission",
    "not_found_error": "not_found", "request_too_large": "too_large", "rate_limit_error": "rate_limit",
    "billing_error": "quota", "overloaded_error": "overloaded", "timeout_error": "timeout",
    "insufficient_quota": "quota",
}  # fmt: skip
_ERROR_CODES = {
    "insufficient_quota": "quota", "rate_limit_exceeded": "rate_limit", "server_is_overloaded": "overloaded",
    "invalid_api_key": "auth",
}  # fmt: skip


def digest_error(dialect: str, document: Json) -> list[str]:
    """[kind, message] of an error body."""
    error = document["error"]
    if dialect == "gemini":
        return [_GEMINI_ERRORS.get(error.get("status"), "server"), error["message"]]
    kind = _ERROR_TYPES.get(error.get("type"), "server")
    return [_ERROR_CODES.get(str(error.get("code")), kind), error["message"]]


_WHOLE: dict[str, Callable[[Json, Json], None]] = {
    "responses": _whole_responses, "chat": _whole_chat, "messages": _whole_messages, "gemini": _whole_gemini,
}  # fmt: skip
_STREAMS: dict[str, Callable[[Json, list[Json]], None]] = {
    "responses": _stream_responses, "chat": _stream_chat, "messages": _stream_messages, "gemini": _stream_gemini,
}  # fmt: skip
