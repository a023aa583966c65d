"""What a client got, byte for byte, and what it understands of it in its own dialect."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codings import CodingError, unpacked

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\n\n|\n\r\n")


@dataclass
class Answer:
    """Bytes and framing. `clean`: the framing said that it is complete; `left`: the client did not wait for that."""

    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    clean: bool = False
    left: bool = False
    hung: bool = False
    sent: bool = False
    reason: str = ""


@dataclass
class Heard:
    """`ending`: `complete`, `error`, `cut` (the framing shows it), `silent` (nothing shows it), `none`."""

    text: str = ""
    ending: str = "none"
    faults: list[str] = field(default_factory=list)


def heard(dialect: str, answer: Answer) -> Heard:
    """Read the answer as a client of the dialect does."""
    if not answer.status:
        return Heard()
    try:
        body = unpacked(answer.fields.get("content-encoding", ""), bytes(answer.body))
    except CodingError:
        return Heard(ending="cut" if not answer.clean else "silent", faults=["the body cannot be unpacked"])
    if answer.status >= 300:
        return Heard(
            ending="error" if answer.clean or answer.left else "cut", faults=_error_faults(dialect, answer, body)
        )
    if answer.fields.get("content-type", "text/event-stream").startswith("text/event-stream"):
        return _stream(dialect, body, answer)
    return _whole(dialect, body, answer)


def _error_faults(dialect: str, answer: Answer, body: bytes) -> list[str]:
    """What is wrong with an error that is said in JSON. Others are a provider's own page."""
    if "json" not in answer.fields.get("content-type", "") or not answer.clean:
        return []
    try:
        document = json.loads(body)
    except ValueError:
        return ["an error that is no JSON"]
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return ["an error without a message"]
    if dialect == "messages" and document.get("type") != "error":
        return ["not an error of the dialect"]
    return []


def _whole(dialect: str, body: bytes, answer: Answer) -> Heard:
    if not answer.clean:
        return Heard(ending="cut")
    try:
        document = json.loads(body)
    except ValueError:
        return Heard(ending="silent", faults=["an answer that is no JSON"])
    if not isinstance(document, dict):
        return Heard(ending="silent", faults=["an answer that is no object"])
    text = "".join(_texts(dialect, document))
    failed = not text and (document.get("error") or document.get("status") == "failed")
    return Heard(text, "error" if failed else "complete")


def _texts(dialect: str, document: dict[str, Any]) -> Iterator[str]:
    match dialect:
        case "chat":
            yield from (choice["message"].get("content") or "" for choice in document.get("choices", []))
        case "messages":
            yield from (block.get("text", "") for block in document.get("content", []))
        case "responses":
            for item in document.get("output", []):
                yield from (part.get("text", "") for part in item.get("content", []))
        case _:
            for candidate in document.get("candidates", []):
                parts = candidate.get("content", {}).get("parts", [])
                yield from (part.get("text", "") for part in parts)


def events(body: bytes) -> Iterator[bytes]:
    """The data of each event."""
    for frame in _BLANK.split(body):
        lines = [line for line in frame.splitlines() if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(line[5:].removeprefix(b" ") for line in lines)


class _Reader:
    """Follows one stream."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.text: list[str] = []
        self.end = ""
        self.starts = 0
        self.faults: list[str] = []

    def take(self, data: bytes) -> None:
        """One event."""
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
            getattr(self, f"_{self.dialect}")(document)

    def _ended(self, how: str) -> None:
        self.end = self.end or how

    def _say(self, text: object) -> None:
        if isinstance(text, str) and text:
            if self.end:
                self.faults.append("text after the end")
            self.text.append(text)

    def _chat(self, document: dict[str, Any]) -> None:
        if document.get("error"):
            self._ended("error")
        for choice in document.get("choices") or []:
            self._say((choice.get("delta") or {}).get("content"))
            if reason := choice.get("finish_reason"):
                self._ended("error" if reason == "error" else "complete")

    def _responses(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "response.created":
                self.starts += 1
            case "response.output_text.delta":
                self._say(document.get("delta"))
            case "response.completed" | "response.incomplete":
                self._ended("complete")
            case "response.failed" | "error":
                self._ended("error")

    def _messages(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "message_start":
                self.starts += 1
            case "content_block_delta":
                self._say(document.get("delta", {}).get("text"))
            case "message_delta" if (document.get("delta") or {}).get("stop_reason"):
                self._ended("error" if document["delta"]["stop_reason"] == "error" else "complete")
            case "message_stop":
                self._ended("complete")
            case "error":
                self._ended("error")

    def _gemini(self, document: dict[str, Any]) -> None:
        if document.get("error"):
            self._ended("error")
        for candidate in document.get("candidates") or []:
            for part in (candidate.get("content") or {}).get("parts") or []:
                self._say(part.get("text"))
            if candidate.get("finishReason"):
                self._ended("complete")
        if (document.get("promptFeedback") or {}).get("blockReason"):
            self._ended("complete")


def _stream(dialect: str, body: bytes, answer: Answer) -> Heard:
    reader = _Reader(dialect)
    for data in events(body if answer.clean else body[: _last_frame(body)]):
        reader.take(data)
    if reader.starts > 1:
        reader.faults.append(f"{reader.starts} beginnings")
    ending = reader.end or ("silent" if answer.clean else "cut")
    return Heard("".join(reader.text), ending, reader.faults)


def _last_frame(body: bytes) -> int:
    """Where the last complete event ends."""
    ends = [found.end() for found in _BLANK.finditer(body)]
    return ends[-1] if ends else 0
