"""What the scripted providers answer, in the words of each dialect.

A step is a plain answer (`answer`, `edit`, `summary`), a call of the client's shell tool (`tool`, or `full`, which says
that the context is nearly full), or a stream that breaks: `cut` in the middle of a message, `cut-early` before it.
"""

import json
import uuid
from collections.abc import Iterator
from typing import Any

OK = "FINAL-ANSWER-OK"
PART = "PART-OF-A-MESSAGE"
SUMMARY = "SUMMARY-OF-THE-CONVERSATION"
COMMAND = "echo TOOL_RAN_$((40+2))"
TOOL_RESULT = "TOOL_RAN_42"
EDITED = "edited.txt"
EDIT = f"{EDITED}\n```\n{OK}\n```\n{OK}\n"
CUTS = ("cut", "cut-early")
_TEXTS = {"edit": EDIT, "cut": PART, "summary": SUMMARY}
_INPUT_TOKENS = {"full": 190_000}

type Event = dict[str, Any]


def new_id(kind: str) -> str:
    """An id that no other answer has: clients take answers with one id for one answer."""
    return f"{kind}_{uuid.uuid4().hex}"


def is_call(step: str) -> bool:
    """Whether this step calls the client's tool."""
    return step in ("tool", "full")


def text_of(step: str) -> str:
    """The text of a step that is no call."""
    return _TEXTS.get(step, OK)


def tokens_of(step: str) -> int:
    """How many input tokens the provider says it read."""
    return _INPUT_TOKENS.get(step, 9)


def tool_names(body: Event) -> list[str]:
    """The tools that a request offers, in any dialect."""
    names = []
    for tool in body.get("tools") or []:
        inner = tool.get("functionDeclarations") or [tool.get("function") or tool]
        names += [str(each.get("name")) for each in inner]
    return names


def call_of(body: Event) -> tuple[str, Event]:
    """The client's own shell tool, by the name it goes by, and a call of it."""
    names = tool_names(body)
    if "exec_command" in names:
        return "exec_command", {"cmd": COMMAND}
    name = next((each for each in ("Bash", "bash", "shell") if each in names), "no_shell_offered")
    return name, {"command": COMMAND, "description": "run"}


# -- Responses


def responses_events(step: str, body: Event) -> Iterator[Event]:
    """A Responses stream."""
    whole = responses_whole(step, body)
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    if step == "cut-early":
        return
    item = whole["output"][0]
    empty = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {"arguments": ""})}
    yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
    yield from _responses_parts(step, item)
    if step == "cut":
        return
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": whole}


def _responses_parts(step: str, item: Event) -> Iterator[Event]:
    at = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "function_call":
        yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        return
    part = {"type": "output_text", "text": "", "annotations": []}
    yield {"type": "response.content_part.added", **at, "content_index": 0, "part": part}
    yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": text_of(step)}
    if step != "cut":
        yield {"type": "response.output_text.done", **at, "content_index": 0, "text": text_of(step)}
        full = {**part, "text": text_of(step)}
        yield {"type": "response.content_part.done", **at, "content_index": 0, "part": full}


def _responses_item(step: str, body: Event) -> Event:
    if is_call(step):
        name, arguments = call_of(body)
        call = {"id": new_id("fc"), "type": "function_call", "status": "completed", "call_id": new_id("call")}
        return {**call, "name": name, "arguments": json.dumps(arguments)}
    content = [{"type": "output_text", "text": text_of(step), "annotations": []}]
    return {"id": new_id("msg"), "type": "message", "role": "assistant", "status": "completed", "content": content}


def responses_whole(step: str, body: Event) -> Event:
    """A Responses answer that is not streamed."""
    read = tokens_of(step)
    usage = {"input_tokens": read, "output_tokens": 3, "total_tokens": read + 3}
    head = {"id": new_id("resp"), "object": "response", "created_at": 1, "model": body["model"], "status": "completed"}
    return {**head, "output": [_responses_item(step, body)], "usage": usage}


# -- Chat Completions


def chat_events(step: str, body: Event) -> Iterator[Event]:
    """The chunks of a Chat Completions stream."""
    head = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def chunk(delta: Event, finish: str | None = None) -> Event:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": None if is_call(step) else ""})
    if step == "cut-early":
        return
    message = _chat_message(step, body)
    if is_call(step):
        yield chunk({"tool_calls": [{"index": 0, **message["tool_calls"][0]}]})
    else:
        yield chunk({"content": message["content"]})
    if step == "cut":
        return
    yield chunk({}, "tool_calls" if is_call(step) else "stop")
    yield {**head, "choices": [], "usage": _chat_usage(step)}


def _chat_message(step: str, body: Event) -> Event:
    if not is_call(step):
        return {"role": "assistant", "content": text_of(step)}
    name, arguments = call_of(body)
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": new_id("call"), "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _chat_usage(step: str) -> Event:
    read = tokens_of(step)
    return {"prompt_tokens": read, "completion_tokens": 3, "total_tokens": read + 3}


def chat_whole(step: str, body: Event) -> Event:
    """A Chat Completions answer that is not streamed."""
    finish = "tool_calls" if is_call(step) else "stop"
    choice = {"index": 0, "message": _chat_message(step, body), "finish_reason": finish}
    head = {"id": new_id("chatcmpl"), "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [choice], "usage": _chat_usage(step)}


# -- Messages


def messages_events(step: str, body: Event) -> Iterator[Event]:
    """A Messages stream."""
    whole = messages_whole(step, body)
    block = whole["content"][0]
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    if step == "cut-early":
        return
    empty, delta = _messages_block(block)
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    if step == "cut":
        return
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


def _messages_block(block: Event) -> tuple[Event, Event]:
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def messages_whole(step: str, body: Event) -> Event:
    """A message that is not streamed."""
    block: Event = {"type": "text", "text": text_of(step)}
    if is_call(step):
        name, arguments = call_of(body)
        block = {"type": "tool_use", "id": new_id("toolu"), "name": name, "input": arguments}
    head = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": body["model"], "content": [block]}
    stop = "tool_use" if is_call(step) else "end_turn"
    usage = {"input_tokens": tokens_of(step), "output_tokens": 3}
    return {**head, "stop_reason": stop, "stop_sequence": None, "usage": usage}


# -- Gemini


def gemini_events(step: str, body: Event) -> Iterator[Event]:
    """The chunks of a Gemini stream."""
    if step == "cut-early":
        yield {"responseId": new_id("r"), "modelVersion": "m1", "usageMetadata": {"promptTokenCount": 9}}
        return
    whole = gemini_whole(step, body)
    candidate = whole["candidates"][0]
    yield {**whole, "candidates": [{"index": 0, "content": candidate["content"]}]}
    if step != "cut":
        end = {"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}
        yield {**whole, "candidates": [end]}


def gemini_whole(step: str, body: Event) -> Event:
    """A Gemini answer that is not streamed."""
    part: Event = {"text": text_of(step)}
    if is_call(step):
        name, arguments = call_of(body)
        part = {"functionCall": {"name": name, "args": arguments}}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    read = tokens_of(step)
    usage = {"promptTokenCount": read, "candidatesTokenCount": 3, "totalTokenCount": read + 3}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m1", "responseId": new_id("r")}
