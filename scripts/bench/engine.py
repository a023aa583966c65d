"""What the engine takes of one request, in microseconds: the least of many batches (default 500), on one processor.

No sockets and no mitmproxy: the turn of a healthy target is fed the events of a recorded answer. `made` is the turn
itself, `sent` the step from the request to its send, `answered` all steps from the head of the answer to the end.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "addon"), str(ROOT / "tests"), str(Path(__file__).parent)]

import upstream  # noqa: E402
from combos.core.facts import Headers  # noqa: E402
from combos.engine.commands import Command, Finish  # noqa: E402
from combos.engine.events import ChunkReceived, Ended, Event, HeadReceived, Started  # noqa: E402
from combos.engine.record import Outcome  # noqa: E402
from combos.engine.request import TurnRequest, never_spent  # noqa: E402
from combos.engine.turn import Turn  # noqa: E402
from playbook import JSON, SSE, World, config  # noqa: E402

BATCH = 10
PARTS = ("made", "sent", "answered")
CLIENT: Headers = ((b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"user-agent", b"bench"))
WHOLE = (upstream.OK.partition(b"\r\n\r\n")[2],)
STREAM = tuple(piece.partition(b"\r\n")[2].removesuffix(b"\r\n") for piece in upstream.STREAM[:-1])


def one(world: World, request: TurnRequest, events: Sequence[Event]) -> tuple[int, ...]:
    """Nanoseconds of the parts of one request."""
    now = world.now
    commands: list[Command] = []
    instants = [time.perf_counter_ns()]
    turn = Turn(request, world.state, world.options)
    instants.append(time.perf_counter_ns())
    turn.handle(Started(), now)
    instants.append(time.perf_counter_ns())
    for event in events:
        commands = turn.handle(event, now)
    instants.append(time.perf_counter_ns())
    end = commands[-1]
    if not isinstance(end, Finish) or end.record.outcome is not Outcome.SUCCESS:
        raise RuntimeError(f"no healthy answer: {end}")
    return tuple(after - before for before, after in pairwise(instants))


def report(name: str, batches: int, headers: Headers, chunks: Sequence[bytes], **fields: object) -> None:
    world = World(config("alpha/m1", wire="C"), wire="C")
    asked = world.request(headers=CLIENT, messages=[{"role": "user", "content": "q" * 200}], **fields)
    request = replace(asked, spent=never_spent)
    events = [HeadReceived(0, 200, headers), *[ChunkReceived(0, data) for data in chunks], Ended(0)]
    best = [float("inf")] * len(PARTS)
    for _ in range(batches):
        rows = [one(world, request, events) for _ in range(BATCH)]
        best = [min(known, sum(part) / BATCH / 1000) for known, part in zip(best, zip(*rows, strict=True), strict=True)]
    print(f"{name:8}", *[f"{part} {least:6.1f} µs" for part, least in zip(PARTS, best, strict=True)], sep="  ")


def main() -> int:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    report("whole", batches, JSON, WHOLE, stream=False)
    report("stream", batches, SSE, STREAM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
