"""What a client of each dialect understands of an answer: text, thoughts and tool calls, piece by piece or at once."""

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

type Json = dict[str, Any]

_CUT_SHORT = ("max_output_tokens", "content_filter", "max_tokens")


@dataclass
class Said:
    """`calls`: name and arguments of each, in order; the arguments of the last may be incomplete."""

    text: str = ""
    thoughts: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def everything(self) -> str:
        """All of it, to look for marks."""
        return self.text + self.thoughts + "".join(name + arguments for name, arguments in self.calls)


class Reader:
    """Follows one stream. `end`: empty until it ended, then `complete` or `error`; `starts`: how often it began."""

    def __init__(self, dialect: str) -> None:
        self.end = ""
        self.starts = 0
        self.faults: list[str] = []
        self._read = getattr(self, f"_{dialect}")
        self._said = Said()
        self._calls: dict[Hashable, list[str]] = {}

    @property
    def said(self) -> Said:
        """What was said so far."""
        calls = [(name, arguments) for name, arguments in self._calls.values()]
        return Said(self._said.text, self._said.thoughts, calls)

    def take(self, data: bytes) -> None:
        """The data of one event."""
        if data == b"[DONE]":
            self._ended("complete")
            return
        try:
            document = json.loads(data)
        except ValueError:
            self.faults.append(f"unreadable event {data[:80]!r}")
            self._ended("error")  # clients raise here
            return
        if isinstance(document, dict):
            self._read(document)

    def _ended(self, how: str) -> None:
        self.end = self.end or how

    def _goes_on(self, piece: object) -> str:
        """The piece, when it is one."""
        if not isinstance(piece, str) or not piece:
            return ""
        if self.end:
            self.faults.append("output after the end")
        return piece

    def _say(self, text: object) -> None:
        self._said.text += self._goes_on(text)

    def _think(self, thought: object) -> None:
        self._said.thoughts += self._goes_on(thought)

    def _call(self, key: Hashable, name: object, arguments: object) -> None:
        call = self._calls.setdefault(key, ["", ""])
        call[0] += self._goes_on(name)
        call[1] += self._goes_on(arguments)

    def _chat(self, document: Json) -> None:
        if document.get("error"):
            self._ended("error")
        for choice in document.get("choices") or []:
            delta = choice.get("delta") or {}
            self._think(delta.get("reasoning_content"))
            self._say(delta.get("content"))
            for call in delta.get("tool_calls") or []:
                told = call.get("function") or {}
                self._call(call.get("index"), told.get("name"), told.get("arguments"))
            if reason := choice.get("finish_reason"):
                self._ended("error" if reason == "error" else "complete")

    def _responses(self, document: Json) -> None:
        item, response = document.get("item") or {}, document.get("response") or {}
        match document.get("type"):
            case "response.created":
                self.starts += 1
            case "response.output_text.delta":
                self._say(document.get("delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(document.get("delta"))
            case "response.output_item.added" if item.get("type") == "function_call":
                self._call(document.get("output_index"), item.get("name"), item.get("arguments"))
            case "response.function_call_arguments.delta":
                self._call(document.get("output_index"), "", document.get("delta"))
            case "response.completed":
                self._ended("complete")
            case "response.incomplete":
                reason = (response.get("incomplete_details") or {}).get("reason")
                self._ended("complete" if reason in _CUT_SHORT else "error")
            case "response.failed" | "error":
                self._ended("error")

    def _messages(self, document: Json) -> None:
        delta, block = document.get("delta") or {}, document.get("content_block") or {}
        match document.get("type"):
            case "message_start":
                self.starts += 1
            case "content_block_start" if block.get("type") == "tool_use":
                self._call(document.get("index"), block.get("name"), "")
            case "content_block_delta" if delta.get("type") == "input_json_delta":
                self._call(document.get("index"), "", delta.get("partial_json"))
            case "content_block_delta":
                self._think(delta.get("thinking"))
                self._say(delta.get("text"))
            case "message_delta" if delta.get("stop_reason"):
                self._ended("error" if delta["stop_reason"] == "error" else "complete")
            case "message_stop":
                self._ended("complete")
            case "error":
                self._ended("error")

    def _gemini(self, document: Json) -> None:
        if document.get("error"):
            self._ended("error")
        for candidate in document.get("candidates") or []:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if part.get("thought"):
                    self._think(part.get("text"))
                else:
                    self._say(part.get("text"))
                if call := part.get("functionCall"):
                    self._call(len(self._calls), call.get("name"), json.dumps(call.get("args")))
            if candidate.get("finishReason"):
                self._ended("complete")
        if (document.get("promptFeedback") or {}).get("blockReason"):
            self._ended("complete")


def whole(dialect: str, document: Json) -> Said:
    """A complete answer."""
    said = Said()
    for kind, value in _PARTS[dialect](document):
        match kind:
            case "text":
                said.text += value or ""
            case "thought":
                said.thoughts += value or ""
            case _:
                said.calls.append(value)
    return said


type _Parts = Iterator[tuple[str, Any]]


def _chat_parts(document: Json) -> _Parts:
    for choice in document.get("choices", []):
        message = choice["message"]
        yield "thought", message.get("reasoning_content")
        yield "text", message.get("content")
        for call in message.get("tool_calls") or []:
            yield "call", (call["function"]["name"], call["function"]["arguments"])


def _responses_parts(document: Json) -> _Parts:
    for item in document.get("output", []):
        kind = "thought" if item.get("type") == "reasoning" else "text"
        for part in [*item.get("summary", []), *(item.get("content") or [])]:
            yield kind, part.get("text")
        if item.get("type") == "function_call":
            yield "call", (item["name"], item["arguments"])


def _messages_parts(document: Json) -> _Parts:
    for block in document.get("content", []):
        yield "thought", block.get("thinking")
        yield "text", block.get("text")
        if block.get("type") == "tool_use":
            yield "call", (block["name"], json.dumps(block["input"]))


def _gemini_parts(document: Json) -> _Parts:
    for candidate in document.get("candidates", []):
        for part in candidate.get("content", {}).get("parts", []):
            yield "thought" if part.get("thought") else "text", part.get("text")
            if call := part.get("functionCall"):
                yield "call", (call["name"], json.dumps(call["args"]))


_PARTS = {
    "chat": _chat_parts,
    "responses": _responses_parts,
    "messages": _messages_parts,
    "gemini": _gemini_parts,
}
