"""What a provider does with one request: a plan of bytes, pauses and endings, and what has to become of the request."""

import enum
import json
import random
from dataclasses import dataclass, field
from typing import Literal

from answers import Call, Speech

type Step = bytes | float | Literal["close", "reset", "half", "stall"]
"""Bytes to send, seconds to pause, or what to do to the connection."""


class Fate(enum.Enum):
    """What the plan obliges the proxy to do."""

    OK = "the answer goes to the client, whole"
    CUT = "output began and the answer broke: the client gets what came, and is told"
    HOP = "the next target is asked; the last one's failure goes to the client"
    STOP = "the failure goes to the client and nobody else is asked"
    ANY = "either of these, coherently"


@dataclass(frozen=True)
class Asked:
    """What the provider is asked for. `number` is that of the request, `ident` marks request, target and attempt;
    `patience_s` is its time limit."""

    dialect: str
    stream: bool
    model: str
    number: int
    ident: str
    patience_s: float


@dataclass
class Plan:
    """`said` is all that the client may get to see; `rests` says that the target will be cooled for long."""

    name: str
    fate: Fate
    steps: list[Step]
    status: int = 200
    said: Speech | None = None
    rests: bool = False
    raw: bytes | None = None
    keeps: bool = True
    repeats: bool = False
    notes: list[str] = field(default_factory=list)


_FILLER = ("", " ", "\n", "é", "東京", "✓ ", "naïve ", '"quoted" ', "\\n ", "🙂", "‎", "data: ", "[DONE]")


TOOL = "soak_tool"
"""The tool that every request offers."""


def speech(rng: random.Random, asked: Asked, *, least: int = 1, most: int = 8) -> Speech:
    """What nobody else says: every piece of text, thought and arguments names request, target and attempt."""
    pieces = _marked(rng, asked, "", rng.randint(least, most))
    thinks = _marked(rng, asked, "t", rng.randint(1, 4)) if pieces and rng.random() < 0.3 else ()
    calls = tuple(_call(rng, asked, number) for number in range(_calls(rng))) if pieces else ()
    if calls and least == 1 and rng.random() < 0.4:
        pieces = ()
    return Speech(asked.dialect, asked.ident, asked.model, pieces, thinks, calls)


def _marked(rng: random.Random, asked: Asked, kind: str, count: int) -> tuple[str, ...]:
    return tuple(f"<{asked.ident}:{kind}{number}>{rng.choice(_FILLER)}" for number in range(count))


def _calls(rng: random.Random) -> int:
    return rng.choice((1, 1, 2, 3)) if rng.random() < 0.35 else 0


def _call(rng: random.Random, asked: Asked, number: int) -> Call:
    """One call; its arguments are cut anywhere."""
    (note,) = _marked(rng, asked, f"c{number}-", 1)
    whole = json.dumps(
        {"note": note, "deep": {"list": [number, None, True]}}, ensure_ascii=False, separators=(",", ":")
    )
    cuts = sorted(rng.sample(range(1, len(whole)), rng.randint(0, 4)))
    pieces = tuple(whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True))
    return Call(f"call_{asked.number}_{number}", TOOL, pieces)


def head(status: int, fields: list[tuple[str, str]], reason: str = "Reason") -> bytes:
    """A response head with exactly these fields."""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"


def scattered(rng: random.Random, data: bytes) -> list[Step]:
    """The bytes in pieces that respect nothing: frames, chunks, characters, line ends."""
    way = rng.random()
    if way < 0.45 or len(data) > 200_000:
        return [data]
    if way < 0.55 and len(data) < 700:
        return _alternating([data[at : at + 1] for at in range(len(data))], 0.0)
    cuts = sorted(rng.sample(range(1, len(data)), min(len(data) - 1, rng.randint(1, 6)))) if len(data) > 2 else []
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return _alternating(pieces, rng.choice((0.0, 0.0, 0.001, 0.01)))


def _alternating(pieces: list[bytes], pause: float) -> list[Step]:
    steps: list[Step] = []
    for piece in pieces:
        steps += [piece, pause]
    return steps


def whole(
    rng: random.Random, status: int, body: bytes, fields: list[tuple[str, str]]
) -> tuple[bytes, list[Step], bool]:
    """Head and body, framed in one of the ways of HTTP/1.1; the last says whether the connection can go on."""
    match rng.choice(("length", "length", "length", "chunked", "close")):
        case "length":
            return head(status, [*fields, ("content-length", str(len(body)))]), scattered(rng, body), True
        case "chunked":
            framed = (chunk(body) if body else b"") + LAST
            return head(status, [*fields, ("transfer-encoding", "chunked")]), scattered(rng, framed), True
        case _:
            return head(status, [*fields, ("connection", "close")]), [*scattered(rng, body), "close"], False


def answered(rng: random.Random, plan: Plan, body: bytes, fields: list[tuple[str, str]]) -> Plan:
    """The plan with a whole answer for its steps."""
    first, rest, plan.keeps = whole(rng, plan.status, body, fields)
    begun = rest[0] if rest else None
    plan.steps += [first + begun, *rest[1:]] if isinstance(begun, bytes) and rng.random() < 0.5 else [first, *rest]
    plan.raw = body
    return plan


_LONG = 50
JSON = ("content-type", "application/json")
EVENTS = ("content-type", "text/event-stream; charset=utf-8")


def streamed(rng: random.Random, plan: Plan, events: list[bytes], *, ends: bool = True, fields: object = None) -> Plan:
    """The plan with a chunked event stream for its steps; without its end when `ends` is false."""
    kept: list[tuple[str, str]] = [EVENTS] if fields is None else list(fields)  # type: ignore[call-overload]
    if rng.random() < 0.15:
        events = [item.replace(b"\n", b"\r\n") for item in events]
    if rng.random() < 0.1:
        events = [item for pair in zip([b": keep-alive\n\n"] * len(events), events, strict=True) for item in pair]
    plan.steps.append(head(200, [*kept, ("transfer-encoding", "chunked")]))
    if rng.random() < 0.5:
        plan.steps += scattered(rng, b"".join(map(chunk, events)) + (LAST if ends else b""))
        return plan
    is_long = len(events) > _LONG
    pause = 0.0 if is_long else rng.choice((0.0, 0.001, 0.005, 0.02))
    for item in events:
        plan.steps += [*([chunk(item)] if is_long else scattered(rng, chunk(item))), pause]
    if ends:
        plan.steps.append(LAST)
    return plan
