"""Streams for tests: recorded ones, and small ones made of events."""

import json
from itertools import pairwise
from pathlib import Path

from combos.core.facts import Dialect
from combos.wire.dialect import StreamInspector, SuccessTerminal, Terminal, inspector

DATA = Path(__file__).parent / "data"
RECORDED = {path.name: path.read_bytes() for path in sorted((DATA / "streams").glob("*.sse"))}
R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI


def read(dialect: Dialect, stream: bytes, cuts: list[int] | None = None) -> StreamInspector:
    """The inspector after the whole stream, cut at these offsets."""
    seen = inspector(dialect)
    for start, end in pairwise([0, *sorted(cuts or []), len(stream)]):
        seen.feed(stream[start:end])
    seen.close()
    return seen


def event(payload: object, name: str = "") -> bytes:
    """One event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(payload)}\n\n".encode()


def typed(kind: str, **fields: object) -> bytes:
    """One event whose name and `type` are the same."""
    return event({"type": kind, **fields}, kind)


def facts(seen: StreamInspector) -> tuple[object, ...]:
    """All that an inspector says."""
    return seen.output, seen.terminal, seen.usage, seen.model, seen.response_id


def result(terminal: Terminal | None) -> tuple[bool, str]:
    """Success or not, and the kind."""
    assert terminal is not None
    return isinstance(terminal, SuccessTerminal), terminal.kind
