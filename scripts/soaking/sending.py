"""How clients of HTTP/1.1 hand their requests over: in which pieces, when the body comes, what else they ask."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

type Step = bytes | float | Literal["go on"]
"""Bytes to send, seconds to pause, or to wait until the proxy wants the body."""

GO_ON: Literal["go on"] = "go on"
TOKEN = "{token}"
"""Stands for the token of the management in the fields of an errand."""


@dataclass(frozen=True)
class Errand:
    """Something small that is asked on a connection in front of a request for a model, and how it is answered."""

    method: str
    target: str
    status: int
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def message(self, host: str, token: str) -> bytes:
        """As it is sent."""
        fields = {"host": host, **dict(self.fields)}
        if self.body:
            fields["content-length"] = str(len(self.body))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return "\r\n".join([*lines, "", ""]).replace(TOKEN, token).encode() + self.body


_ADMIN = (("authorization", f"Bearer {TOKEN}"),)
_PAGE = (("origin", "http://localhost:3000"), ("access-control-request-method", "POST"))
ERRANDS = (
    Errand("GET", "/healthz", 200),
    Errand("HEAD", "/", 200),
    Errand("GET", "/api/combos/state", 200, _ADMIN),
    Errand("GET", "/api/config", 200, _ADMIN),
    Errand("GET", "/api/logs", 200, _ADMIN),
    Errand("GET", "/api/providers", 401),
    Errand("PUT", "/api/combos", 400, (*_ADMIN, ("content-type", "application/json")), b'{"id": "none"' * 2_000),
    Errand("GET", "/nowhere", 404, _ADMIN),
    Errand("GET", "/v1/models", 200),
    Errand("OPTIONS", "/v1/responses", 204, _PAGE),
    Errand("POST", "/v1/messages", 403, (("host", "rebound.test"),), b"{}"),
    Errand("POST", "/v1/responses", 403, (("host", "rebound.test"),), b" " * 100_000),
)
"""Those of the management and those for models."""


@dataclass(frozen=True)
class Sending:
    """How one request is sent. `cuts`: so many more pieces, cut anywhere, with `pause_s` between them; `later_s`: so
    long the body stays behind its head; `expects`: whether the client waits for a 100, or says that it would;
    `closes`: it wants nothing else of the connection; `old`: it speaks HTTP/1.0; `errands` come first. The last two
    are for the listener alone."""

    cuts: int = 0
    pause_s: float = 0.0
    later_s: float | None = None
    expects: Literal["", "waits", "hurries"] = ""
    closes: bool = False
    old: bool = False
    errands: tuple[Errand, ...] = ()

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Header fields that it takes."""
        made = [("expect", "100-continue")] if self.expects else []
        return [*made, ("connection", "close")] if self.closes and not self.old else made


def sending_of(seed: int, number: int) -> Sending:
    """How the request of this number is sent."""
    rng = random.Random(f"{seed}:{number}:sending")
    way, kept = rng.random(), rng.random()
    pause_s = rng.choice((0.0, 0.001, 0.01))
    expects: Literal["", "waits", "hurries"] = ""
    if 0.3 < way < 0.4:
        expects = rng.choice(("waits", "waits", "hurries"))
    return Sending(
        cuts=rng.choice((1, 2, 5, 40)) if way < 0.3 else 0,
        pause_s=pause_s,
        later_s=rng.choice((0.0, 0.002, 0.05, 0.3)) if 0.2 < way < 0.3 else None,
        expects=expects,
        closes=kept < 0.06,
        old=kept < 0.02 and not expects,
        errands=_errands(rng),
    )


def _errands(rng: random.Random) -> tuple[Errand, ...]:
    """Mostly none, sometimes more than may wait on one connection."""
    if rng.random() < 0.75:
        return ()
    return tuple(rng.choices(ERRANDS, k=rng.choice((1, 1, 2, 3, 70)) if rng.random() < 0.1 else 1))


def script(messages: Iterable[tuple[bytes, bytes, Sending]]) -> list[Step]:
    """What is written for these heads and bodies, one behind the other."""
    steps: list[Step] = []
    for head, body, sending in messages:
        between: list[Step] = []
        if sending.expects == "waits":
            between = [GO_ON]
        elif sending.later_s is not None:
            between = [sending.later_s]
        for step in (*_cut(head, sending), *between, *_cut(body, sending)):
            _add(steps, step)
    return steps


def _add(steps: list[Step], step: Step) -> None:
    """What may go out together is one write."""
    last = steps[-1] if steps else None
    if isinstance(step, bytes) and isinstance(last, bytes):
        steps[-1] = last + step
    else:
        steps.append(step)


def _cut(data: bytes, sending: Sending) -> list[Step]:
    """In pieces that respect nothing."""
    if not sending.cuts or len(data) < 2:
        return [data]
    rng = random.Random(data)
    cuts = sorted(rng.sample(range(1, len(data)), min(len(data) - 1, sending.cuts)))
    steps: list[Step] = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        steps += [data[start:end], sending.pause_s]
    return steps
