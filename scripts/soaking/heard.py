"""What a client got, byte for byte, and what it understands of it in its own dialect."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from codings import CodingError, unpacked
from reading import Reader, Said, whole

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\n\n|\n\r\n")


@dataclass
class Answer:
    """Bytes and framing. `clean`: the framing said that it is complete; `left`: the client did not wait for that;
    `errands`: so many others were answered in front of it, and `faults` is what was wrong with these."""

    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    clean: bool = False
    left: bool = False
    hung: bool = False
    sent: bool = False
    reason: str = ""
    errands: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Heard:
    """`ending`: `complete`, `error`, `cut` (the framing shows it), `silent` (nothing shows it), `none`."""

    said: Said = field(default_factory=Said)
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
    said = whole(dialect, document)
    failed = not said.everything and (document.get("error") or document.get("status") == "failed")
    return Heard(said, "error" if failed else "complete")


def _events(body: bytes) -> Iterator[bytes]:
    """The data of each event."""
    for frame in _BLANK.split(body):
        lines = [line for line in frame.splitlines() if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def _stream(dialect: str, body: bytes, answer: Answer) -> Heard:
    reader = Reader(dialect)
    for data in _events(body if answer.clean else body[: _last_frame(body)]):
        reader.take(data)
    if reader.starts > 1:
        reader.faults.append(f"{reader.starts} beginnings")
    ending = reader.end or ("silent" if answer.clean else "cut")
    return Heard(reader.said, ending, reader.faults)


def _last_frame(body: bytes) -> int:
    """Where the last complete event ends."""
    ends = [found.end() for found in _BLANK.finditer(body)]
    return ends[-1] if ends else 0
