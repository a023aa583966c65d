"""Oracle for streams: breaches of the event order, ids and fields that client libraries rely on. [] means clean.

Each lint is a small state machine over the whole stream; a breach is named once.
"""

import json
from collections.abc import Callable
from typing import Any

from oracle_common import Json, sse

_TERMINALS = ("response.completed", "response.incomplete", "response.failed", "error")
_PLACED = ("response.output_item.", "response.content_part.", "response.output_text.", "response.function_call_arg")


def lint_stream(dialect: str, raw: bytes) -> list[str]:
    """The breaches of a whole stream."""
    try:
        events = sse(raw)
    except ValueError as error:
        return [f"unparsable SSE data: {error}"]
    if not events:
        return ["empty stream"]
    return list(dict.fromkeys(_LINTS[dialect](events)))


class _Responses:
    def __init__(self) -> None:
        self.bad: list[str] = []
        self.sequence = -1
        self.id: str | None = None
        self.open: dict[int, Json] = {}
        self.closed: dict[int, Json] = {}
        self.terminal: str | None = None
        self.ids: set[str] = set()

    def check(self, condition: bool, breach: str) -> None:
        if not condition:
            self.bad.append(breach)

    def run(self, events: list[tuple[str | None, Any]]) -> list[str]:
        for name, event in events:
            if event == "[DONE]":
                self.bad.append("[DONE] in a Responses stream")
            else:
                self.event(name, event)
        self.check(self.terminal is not None, "no terminal event")
        if self.terminal not in ("response.failed", "error", None):
            self.check(sorted(self.closed) == list(range(len(self.closed))), "output_index not contiguous")
        return self.bad

    def event(self, name: str | None, event: Json) -> None:
        kind = event["type"]
        self.order(name, kind, event)
        if kind.startswith(_PLACED) and event.get("output_index") is None:
            self.bad.append(f"{kind} without output_index")
            return
        if "response" in event:
            self.id = self.id or event["response"].get("id")
            self.check(bool(self.id) and event["response"].get("id") == self.id, "response id missing or changed")
        if kind == "response.output_item.added":
            self.added(event)
        elif kind == "response.output_item.done":
            self.done(event)
        elif "item_id" in event:
            self.part(kind, event)
        if kind in _TERMINALS:
            self.end(kind, event)

    def order(self, name: str | None, kind: str, event: Json) -> None:
        self.check(name in (None, kind), f"event name {name!r} != type {kind!r}")
        self.check(self.terminal is None, f"{kind} after terminal {self.terminal}")
        number = event.get("sequence_number")
        if number is None:
            self.bad.append(f"{kind} without sequence_number")
            return
        self.check(number > self.sequence, f"sequence_number {number} after {self.sequence}")
        self.sequence = number
        self.check(number != 0 or kind in ("response.created", "error"), f"first event is {kind}")

    def added(self, event: Json) -> None:
        index, item = event["output_index"], event["item"]
        self.check(index not in self.open and index not in self.closed, f"output_index {index} reused")
        self.check(bool(item.get("id")), f"item without id at {index}")
        self.check(item.get("id") not in self.ids, f"item id reused: {item.get('id')}")
        self.ids.add(item.get("id"))
        self.open[index] = {"id": item.get("id"), "parts": {}, "said": "", "summary": {}}

    def done(self, event: Json) -> None:
        index, item = event["output_index"], event["item"]
        was = self.open.pop(index, None)
        self.closed[index] = item
        if was is None:
            self.bad.append(f"output_item.done without added at {index}")
            return
        self.check(was["id"] == item.get("id"), "item id differs between added and done")
        for position, part in enumerate(item.get("content") or [] if item["type"] == "message" else []):
            got = was["parts"].get(position)
            self.check(got in (None, part.get("text", part.get("refusal"))), "message text in done differs from deltas")
        said = {"function_call": "arguments", "custom_tool_call": "input"}.get(item["type"])
        if said:
            self.check(was["said"] in ("", item[said]), f"{said} in done differ from deltas")
            self.check(bool(item.get("call_id")), "call without call_id")

    def part(self, kind: str, event: Json) -> None:
        was = self.open.get(event.get("output_index", -1))
        if was is None:
            self.bad.append(f"{kind} for an item that is not open")
            return
        self.check(was["id"] == event["item_id"], f"{kind} item_id mismatch")
        match kind:
            case "response.content_part.added":
                was["parts"][event["content_index"]] = ""
            case "response.output_text.delta" | "response.refusal.delta":
                self.check(event["content_index"] in was["parts"], "text delta without content_part.added")
                was["parts"][event["content_index"]] = was["parts"].get(event["content_index"], "") + event["delta"]
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                was["said"] += event["delta"]
            case "response.function_call_arguments.done":
                self.check(was["said"] in ("", event["arguments"]), "arguments.done differs from deltas")
            case "response.reasoning_summary_part.added":
                was["summary"][event["summary_index"]] = ""
            case "response.reasoning_summary_text.delta":
                self.check(event["summary_index"] in was["summary"], "summary delta without summary_part.added")
            case _:
                pass

    def end(self, kind: str, event: Json) -> None:
        self.terminal = kind
        if kind == "response.failed":
            self.check(bool((event["response"].get("error") or {}).get("message")), "failed without error.message")
        if kind not in ("response.completed", "response.incomplete"):
            return
        response = event["response"]
        self.check(not self.open, f"terminal with open items {sorted(self.open)}")
        listed = [item.get("id") for item in response.get("output") or []]
        streamed = [self.closed[index].get("id") for index in sorted(self.closed)]
        self.check(listed == streamed, "terminal output does not list the streamed items in order")
        self.check(bool(response.get("usage")), "terminal without usage")
        self.check(response.get("status") == kind.removeprefix("response."), f"status {response.get('status')!r}")


_MESSAGES_DELTAS = {
    "text": ("text_delta", "citations_delta"), "thinking": ("thinking_delta", "signature_delta"),
    "tool_use": ("input_json_delta",), "server_tool_use": ("input_json_delta",),
}  # fmt: skip


class _Messages:
    def __init__(self) -> None:
        self.bad: list[str] = []
        self.started = self.delta_seen = self.stopped = self.failed = False
        self.open: int | None = None
        self.next = 0
        self.kind = ""
        self.said = ""

    def check(self, condition: bool, breach: str) -> None:
        if not condition:
            self.bad.append(breach)

    def run(self, events: list[tuple[str | None, Any]]) -> list[str]:
        for name, event in events:
            if event == "[DONE]":
                self.bad.append("[DONE] in a Messages stream")
                continue
            self.check(name == event["type"], f"event name {name!r} != type {event['type']!r}")
            if event["type"] != "ping":
                self.event(event)
        self.check(self.stopped or self.failed, "no message_stop")
        return self.bad

    def event(self, event: Json) -> None:
        kind = event["type"]
        self.check(not (self.stopped or self.failed), f"{kind} after the end")
        self.check(self.started or kind in ("message_start", "error"), f"{kind} before message_start")
        match kind:
            case "message_start":
                self.start(event["message"])
            case "error":
                self.failed = True
            case "content_block_start":
                self.block(event)
            case "content_block_delta":
                self.delta(event)
            case "content_block_stop":
                self.stop(event)
            case "message_delta":
                self.message_delta(event)
            case "message_stop":
                self.stopped = True
                self.check(self.delta_seen, "message_stop without message_delta")
            case _:
                pass

    def start(self, message: Json) -> None:
        self.check(not self.started, "second message_start")
        self.started = True
        usage = message.get("usage") or {}
        counted = isinstance(usage.get("input_tokens"), int) and isinstance(usage.get("output_tokens"), int)
        self.check(counted, "message_start.usage needs integer input_tokens and output_tokens")
        shape = (message.get("content"), message.get("role"), message.get("type"))
        self.check(shape == ([], "assistant", "message") and bool(message.get("id")), "malformed message_start")

    def block(self, event: Json) -> None:
        index, block = event["index"], event["content_block"]
        self.check(self.open is None, f"block {index} opened while {self.open} is open")
        self.check(index == self.next, f"block index {index}, expected {self.next}")
        self.open, self.next, self.kind, self.said = index, index + 1, block["type"], ""
        if self.kind == "tool_use":
            whole = bool(block.get("id")) and bool(block.get("name")) and block.get("input") == {}
            self.check(whole, "tool_use start needs id, name and input {}")

    def delta(self, event: Json) -> None:
        self.check(event["index"] == self.open, f"delta for block {event['index']} while {self.open} is open")
        kind = event["delta"]["type"]
        self.check(kind in _MESSAGES_DELTAS.get(self.kind, ()), f"{kind} in a {self.kind} block")
        self.said += event["delta"].get("partial_json", "")

    def stop(self, event: Json) -> None:
        self.check(event["index"] == self.open, f"stop for block {event['index']} while {self.open} is open")
        self.open = None
        if self.kind == "tool_use" and self.said:
            self.check(_is_object(self.said), "tool input is not a JSON object")

    def message_delta(self, event: Json) -> None:
        self.delta_seen = True
        self.check(self.open is None, "message_delta with an open block")
        self.check(isinstance((event.get("usage") or {}).get("output_tokens"), int), "message_delta without usage")
        self.check(bool(event["delta"].get("stop_reason")), "message_delta without stop_reason")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class _Chat:
    def __init__(self) -> None:
        self.bad: list[str] = []
        self.id: str | None = None
        self.role = self.done = self.failed = False
        self.finish: str | None = None
        self.seen: set[int] = set()

    def check(self, condition: bool, breach: str) -> None:
        if not condition:
            self.bad.append(breach)

    def run(self, events: list[tuple[str | None, Any]]) -> list[str]:
        for name, event in events:
            self.check(name is None, "event: field in a Chat stream")
            self.check(not self.done, "data after [DONE]")
            if event == "[DONE]":
                self.done = True
            elif event.get("error"):
                self.failed = True
            else:
                self.chunk(event)
        if not self.failed:
            self.check(self.finish is not None, "no finish_reason")
            self.check(self.done, "no [DONE]")
        return self.bad

    def chunk(self, event: Json) -> None:
        self.id = self.id or event.get("id")
        self.check(bool(self.id) and event.get("id") == self.id, "chunk id missing or changed")
        self.check(event.get("object") == "chat.completion.chunk", f"object is {event.get('object')!r}")
        self.check("created" in event and "model" in event, "chunk without created or model")
        for choice in event.get("choices") or []:
            self.choice(choice)

    def choice(self, choice: Json) -> None:
        delta = choice.get("delta") or {}
        late = self.finish is not None and (delta.get("content") or delta.get("tool_calls"))
        self.check(not late, "content after finish_reason")
        self.role = self.role or delta.get("role") == "assistant"
        self.check(self.role, "first delta without role")
        for call in delta.get("tool_calls") or []:
            self.call(call)
        if choice.get("finish_reason"):
            self.check(self.finish is None, "two finish_reason")
            self.finish = choice["finish_reason"]

    def call(self, call: Json) -> None:
        index = call.get("index")
        if index is None:
            self.bad.append("tool call delta without index")
        elif index not in self.seen:
            named = (call.get("function") or call.get("custom") or {}).get("name")
            self.check(bool(call.get("id")) and bool(named), f"first delta of tool {index} lacks id or name")
            self.check(index == len(self.seen), f"tool index {index} out of order")
            self.seen.add(index)


def _gemini(events: list[tuple[str | None, Any]]) -> list[str]:
    last = events[-1][1]
    bad = ["[DONE] in a Gemini stream" for _name, event in events if event == "[DONE]"]
    ends = isinstance(last, dict) and (last.get("error") or any(c.get("finishReason") for c in last["candidates"]))
    return bad if ends else [*bad, "no finishReason"]


_LINTS: dict[str, Callable[[list[tuple[str | None, Any]]], list[str]]] = {
    "responses": lambda events: _Responses().run(events),
    "messages": lambda events: _Messages().run(events),
    "chat": lambda events: _Chat().run(events),
    "gemini": _gemini,
}
