"""What a stream has shown so far: output, its terminal, usage, model. Decides no verdict; the dialects are subclasses.

The bytes themselves pass by: an inspector keeps at most one incomplete frame.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import orjson

from combos.core.facts import Dialect
from combos.wire.json_text import loads
from combos.wire.sse import MAX_FRAME_BYTES, SseEvent, SseFramer, parse_frame
from combos.wire.terminal import FailureTerminal, Terminal
from combos.wire.usage import flat_usage, merge_usage

_TYPE_WINDOW = 512
_DONE = b"[DONE]"

type Payload = Mapping[str, object]


def as_mapping(value: object) -> Payload:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


class StreamInspector(ABC):
    """Reads the decoded bytes of one answer.

    `output`: an output event was seen before any terminal. `terminal`: the first one, which decides. `usage` has the
    names of `wire.usage`; None as long as none was reported. Hostile bytes never raise.
    """

    dialect: Dialect

    def __init__(self, frame_limit: int = MAX_FRAME_BYTES) -> None:
        self.output = False
        self.terminal: Terminal | None = None
        self.usage: dict[str, int] | None = None
        self.model: str | None = None
        self.response_id: str | None = None
        self.response: Payload | None = None
        """The finished object of a Responses stream that ended well; it can be gone on from by its id."""
        self._settled = False
        self._framer = SseFramer(frame_limit)

    def feed(self, data: bytes) -> None:
        """Look at the next bytes of the stream, as many or few as arrived."""
        if not self._settled:
            self._look(self._framer.feed(data))

    def close(self) -> None:
        """End of the stream: the last frame counts if it is whole, and a stream without a terminal has failed."""
        if not self._settled:
            self._look([frame for frame in self._framer.flush() if self._is_whole(frame)])
        if self.terminal is None:
            self.terminal = FailureTerminal(self.dialect, "eof")
        self._settled = True

    def _is_whole(self, frame: bytes) -> bool:
        """Whether a frame that no blank line ended is all there: one that was cut says nothing, not even by name."""
        event = parse_frame(frame)
        return event.cut or (event.data is not None and (event.data == _DONE or self._parse(event.data) is not None))

    def _look(self, frames: list[bytes]) -> None:
        for frame in frames:
            if self._settled:
                return
            if (self.output or self.terminal is not None) and not self._matters(frame):
                continue
            self._read(parse_frame(frame))

    def _read(self, event: SseEvent) -> None:
        if event.data is None:
            return
        if event.cut:
            self._on_cut(leading_type(event))
        else:
            payload = self._parse(event.data)
            if payload is None:
                self._on_garbled(event)
            else:
                self._on_payload(event.name, payload)

    def _parse(self, data: bytes) -> Payload | None:
        try:
            payload = loads(data)
        except orjson.JSONDecodeError:
            return None
        return payload if isinstance(payload, dict) else None

    def _fail(self, event: Payload, name: str = "", *, malformed: bool = False) -> None:
        if self.terminal is None:
            self.terminal = FailureTerminal(self.dialect, "malformed" if malformed else "error", event, name)
            self._settled = True

    def _note_usage(self, usage: object) -> None:
        self.usage = merge_usage(self.usage, flat_usage(self.dialect, usage))

    def _note_identity(self, model: object, response_id: object) -> None:
        if isinstance(model, str) and model:
            self.model = model
        if isinstance(response_id, str) and response_id and self.response_id is None:
            self.response_id = response_id

    @abstractmethod
    def _matters(self, frame: bytes) -> bool:
        """Whether a frame after the first output can hold a terminal or usage. Cheap, as it runs for every frame:
        `find` takes a third of the time that `in` takes for bytes."""

    @abstractmethod
    def _on_payload(self, name: str, payload: Payload) -> None:
        """An event with a JSON object as its data."""

    @abstractmethod
    def _on_garbled(self, event: SseEvent) -> None:
        """An event whose data is not a JSON object."""

    @abstractmethod
    def _on_cut(self, kind: str) -> None:
        """An event too large to keep; `kind` is its type or name as far as it could be read."""


def leading_type(event: SseEvent) -> str:
    """The `type` of a cut event, read from the beginning of its data; else the name of its `event:` line."""
    head = (event.data or b"")[:_TYPE_WINDOW]
    before, found, after = head.partition(b'"type"')
    value = after.lstrip(b" \t\n:").split(b'"')
    if found and before.strip() == b"{" and len(value) > 2:
        return value[1].decode(errors="replace")
    return event.name
