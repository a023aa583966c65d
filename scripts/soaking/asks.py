"""What the clients ask: one request after the other, each decided by the seed and its number alone."""

import gzip
import json
import random
from dataclasses import dataclass, field

from answers import DIALECTS
from plans import TOOL
from scene import SHAPES, Combo
from sending import Sending, sending_of

ENTRANCES = ("base", "listener", "absolute", "tunnel", "http2")
_PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_HOSTS = {
    "chat": "api.chat.test",
    "responses": "api.responses.test",
    "messages": "api.messages.test",
    "gemini": "api.gemini.test",
}
_SCHEMA = {"type": "object", "properties": {"note": {"type": "string"}, "deep": {"type": "object"}}}
_FUNCTION = {"name": TOOL, "description": "Takes a note.", "parameters": _SCHEMA}
_TOOLS = {
    "chat": {"type": "function", "function": _FUNCTION},
    "responses": {"type": "function", **_FUNCTION},
    "messages": {"name": TOOL, "description": "Takes a note.", "input_schema": _SCHEMA},
    "gemini": {"functionDeclarations": [_FUNCTION]},
}
CALLER = "canary-caller"
"""A credential of the client, which must reach no provider."""


@dataclass(frozen=True)
class Leaving:
    """When a client goes: after so many seconds, pieces of the body, or in the middle of its own request; and how."""

    after_s: float | None = None
    pieces: int | None = None
    in_request: bool = False
    how: str = "close"


@dataclass
class Ask:
    """One request. `shape`: which private combos will do; None for a shared one."""

    number: int
    dialect: str
    stream: bool
    shape: int | None
    leaving: Leaving | None
    slow_s: float
    chunked: bool
    packed: bool
    padding: int
    draw: random.Random = field(repr=False)
    sending: Sending = field(default_factory=Sending)
    combo: Combo | None = None

    @property
    def host(self) -> str:
        """The vendor that the client believes to talk to."""
        return _HOSTS[self.dialect]

    @property
    def path(self) -> str:
        """Path and query."""
        assert self.combo is not None
        if self.dialect != "gemini":
            return _PATHS[self.dialect]
        method = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
        return f"/v1beta/models/combo/{self.combo.id}:{method}"

    def body(self) -> bytes:
        """The body as it is sent."""
        assert self.combo is not None
        text = f"soak-{self.number}- 東京 " + "x" * self.padding
        message = {"role": "user", "content": text}
        made: dict[str, object] = {"model": f"combo/{self.combo.id}"}
        match self.dialect:
            case "gemini":
                made = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
            case "responses":
                made |= {"input": [message], "stream": self.stream}
            case "messages":
                made |= {"messages": [message], "max_tokens": 100, "stream": self.stream}
            case _:
                made |= {"messages": [message], "stream": self.stream}
        data = json.dumps({**made, "tools": [_TOOLS[self.dialect]]}, ensure_ascii=False).encode()
        return gzip.compress(data, 1) if self.packed else data

    def fields(self) -> list[tuple[str, str]]:
        """The header fields, without those of the framing."""
        made = [
            ("content-type", "application/json"),
            ("authorization", f"Bearer {CALLER}-{self.number}"),
            ("x-api-key", f"{CALLER}-{self.number}"),
            ("cookie", f"session={CALLER}-{self.number}"),
            ("session-id", f"lane-{self.number % 50}"),
        ]
        return [*made, ("content-encoding", "gzip")] if self.packed else made


def ask_of(seed: int, number: int, *, leave: float, longest_s: float) -> Ask:
    """The request of this number. `leave`: the share of clients that do not wait for the end."""
    rng = random.Random(f"{seed}:{number}")
    dialect, stream = rng.choice(DIALECTS), rng.random() < 0.6
    shape = rng.randrange(SHAPES) if rng.random() < 0.75 else None
    leaving = _leaving(rng, longest_s) if rng.random() < leave else None
    slow = rng.choice((0.001, 0.005, 0.02)) if rng.random() < 0.08 else 0.0
    padding = rng.choice((0, 0, 0, 10, 3_000, 120_000)) if rng.random() < 0.3 else 0
    return Ask(
        number,
        dialect,
        stream,
        shape,
        leaving,
        slow,
        chunked=rng.random() < 0.1,
        packed=rng.random() < 0.1,
        padding=padding,
        draw=rng,
        sending=sending_of(seed, number),
    )


def _leaving(rng: random.Random, longest_s: float) -> Leaving:
    how = rng.choice(("close", "reset"))
    way = rng.random()
    if way < 0.1:
        return Leaving(in_request=True, how=how)
    if way < 0.4:
        return Leaving(pieces=rng.choice((0, 1, 2, 5)), how=rng.choice((how, "half")))
    return Leaving(after_s=rng.choice((0.0, 0.002, 0.01, 0.05, 0.2, longest_s)) * rng.uniform(0.5, 1.5), how=how)


def entrance_of(seed: int, number: int, entrances: tuple[str, ...] = ENTRANCES) -> tuple[str, int, bool]:
    """How a client that begins with this request comes in, how many it sends at once, and whether it stays."""
    rng = random.Random(f"{seed}:{number}:entrance")
    count = rng.choice((2, 3, 4)) if rng.random() < 0.15 else 1
    return rng.choice(entrances), count, rng.random() < 0.7
