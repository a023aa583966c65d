"""Field cases FC-01 to FC-14: streams that fail after a 200."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rawclient import Answer
from rawserver import (
    LAST_CHUNK,
    Close,
    Reset,
    Send,
    Stall,
    Step,
    chunk,
    event_head,
    event_stream,
    head,
)
from stage import Case, stage
from wires import WIRES, C, M, R, Wire, error, sse

SLOW_MS = 60_000
BUSY = error(503, {"error": {"message": "down"}})


def first_is(answer: Answer, wire: Wire, text: str) -> bool:
    """The whole of this stub's success stream and nothing else."""
    return (answer.status, answer.body, answer.clean) == (200, b"".join(wire.ok(text)), True)


async def test_fc_01_busy_error_in_a_200_stream_before_any_output(confdir: Path) -> None:
    case = Case(R, alpha=event_stream(*R.start(), R.busy()), beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert first_is(answer, R, "beta-ok")
        assert answer.body.count(b"event: response.created") == 1
        assert case.calls == ["alpha", "beta"]
        assert on.cooling(case) == {"alpha/m1": SLOW_MS}
        assert case.record is not None
        assert case.record.attempts[0].error_code == "server_is_overloaded"
        assert [attempt.status for attempt in case.record.attempts] == [200, 200]


async def test_fc_02_the_error_is_the_third_event(confdir: Path) -> None:
    fault = {"type": "insufficient_quota", "code": "insufficient_quota", "message": "quota used up"}
    progress = sse({"type": "response.in_progress", "response": {"id": "r", "output": []}})
    stream = event_stream(*R.start(), progress, sse({"type": "error", "error": fault}))
    case = Case(R, alpha=stream, beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        assert first_is(await on.ask(case), R, "beta-ok")
        assert on.cooling(case) == {"alpha/m1": 600_000}


PINGS = b": waiting\n\n" + sse({"type": "ping"})


async def test_fc_03_comments_and_pings_are_no_output(confdir: Path) -> None:
    failing = Case(M, alpha=event_stream(PINGS, M.busy()), beta=M.answers("beta-ok"))
    ending = Case(M, alpha=event_stream(PINGS), beta=M.answers("beta-ok"))
    async with stage(confdir, failing, ending) as on:
        for answer in await on.ask_all([failing, ending]):
            assert first_is(answer, M, "beta-ok")
        assert failing.calls == ending.calls == ["alpha", "beta"]
        assert on.cooling(failing) == on.cooling(ending) == {"alpha/m1": SLOW_MS}


async def test_fc_04_overload_after_message_start(confdir: Path) -> None:
    case = Case(M, alpha=event_stream(*M.start("a"), sse({"type": "ping"}), M.busy()), beta=M.answers("beta-ok"))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert answer.body.count(b"event: message_start") == 1
        assert first_is(answer, M, "beta-ok")
        assert on.cooling(case) == {"alpha/m1": SLOW_MS}


THINKING = {
    "R": sse({"type": "response.reasoning_summary_text.delta", "delta": "Half an"}),
    "C": sse({"choices": [{"index": 0, "delta": {"reasoning_content": "Half an"}}]}),
    "M": sse({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Half an"}}),
}
TOOL = {
    "R": sse(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "function_call", "name": "f", "call_id": "c"},
        }
    ),
    "C": sse(
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]},
                }
            ]
        }
    ),
    "M": sse(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        }
    ),
}


async def test_fc_05_failure_after_visible_output(confdir: Path) -> None:
    outputs = {wire: [wire.delta("Half an"), THINKING[wire.name], TOOL[wire.name]] for wire in WIRES}
    runs = [(wire, [*wire.start(), output, wire.busy()]) for wire in WIRES for output in outputs[wire]]
    cases = [Case(wire, alpha=event_stream(*events), beta=wire.answers("beta-ok")) for wire, events in runs]
    async with stage(confdir, *cases) as on:
        answers = await on.ask_all(cases)
        for case, (_, events), answer in zip(cases, runs, answers, strict=True):
            assert answer.body == b"".join(events)
            assert answer.status == 200
            assert case.calls == ["alpha"]
            assert [json.loads(request.body)["model"] for request in case.requests] == ["m1"]
            # Clients repeat the whole request at once: it must not meet the same target.
            assert on.cooling(case) == {"alpha/m1": SLOW_MS}


async def test_fc_06_error_in_a_chunk_without_choices(confdir: Path) -> None:
    fault = {"code": 502, "message": "worker limit reached"}
    event = sse({"id": "c1", "object": "chat.completion.chunk", "choices": [], "error": fault})
    early = Case(C, alpha=event_stream(event), beta=C.answers("beta-ok"))
    late = Case(C, alpha=event_stream(C.delta("half"), event), beta=C.answers("beta-ok"))
    async with stage(confdir, early, late) as on:
        first, second = await on.ask_all([early, late])
        assert first_is(first, C, "beta-ok")
        assert on.cooling(early) == {"alpha/m1": SLOW_MS}
        assert second.body == C.delta("half") + event
        assert late.calls == ["alpha"]


async def test_fc_07_stream_ends_without_terminal_and_output(confdir: Path) -> None:
    events = b"".join([*R.start(), sse({"type": "response.in_progress", "response": {"id": "r", "output": []}})])
    open_end = head(200, [(b"Content-Type", b"text/event-stream")])
    endings: dict[str, tuple[Sequence[Step], str]] = {
        "clean": ([Send(event_stream(events))], "stream ended early"),
        "until close": ([Send(open_end + events), Close()], "stream ended early"),
        "cut": ([Send(event_head() + chunk(events)), Close()], "truncated_body"),
        "reset": ([Send(event_head() + chunk(events)), Reset()], "connection_reset"),
    }
    cases = [Case(R, alpha=script, beta=R.answers("beta-ok")) for script, _ in endings.values()]
    async with stage(confdir, *cases) as on:
        for name, case, answer in zip(endings, cases, await on.ask_all(cases), strict=True):
            assert first_is(answer, R, "beta-ok"), name
            assert on.cooling(case) == {"alpha/m1": SLOW_MS}, name
            assert case.record is not None
            assert case.record.attempts[0].result == endings[name][1], name


async def test_fc_08_nothing_is_put_into_the_models_mouth(confdir: Path) -> None:
    backed = [Case(wire, alpha=event_stream(), beta=BUSY) for wire in WIRES]
    alone = [Case(wire, alpha=event_stream()) for wire in WIRES]
    async with stage(confdir, *backed, *alone) as on:
        for case, answer in zip(backed, await on.ask_all(backed), strict=True):
            assert case.calls == ["alpha", "beta"]
            assert (answer.status, answer.body) == (503, b'{"error": {"message": "down"}}')
        for answer in await on.ask_all(alone):
            assert answer.status == 502
            assert set(answer.json()) <= {"error", "type", "request_id"}
            assert b"assistant" not in answer.body
            assert b"stop_reason" not in answer.body
        for answer in await on.ask_all(alone):
            assert answer.status == 503
            assert set(answer.json()) <= {"error", "type", "request_id"}


def shapes(events: Sequence[bytes]) -> Iterator[tuple[str, bytes, list[Step]]]:
    """The same stream in several shapes on the wire: its name, its bytes, and the steps that send it."""
    data = b"".join(events)
    crlf = data.replace(b"\n", b"\r\n")
    tight = data.replace(b"data: ", b"data:")
    cut = data.find("東".encode()) + 1
    gap = data.find(b"\n\n") + 1
    yield "one byte per write", data, [*(Send(chunk(data[i : i + 1])) for i in range(len(data)))]
    yield "CRLF", crlf, [Send(chunk(crlf))]
    yield "no space", tight, [Send(chunk(tight))]
    yield "single write", data, [Send(chunk(data))]
    yield "between two newlines", data, [Send(chunk(data[:gap])), Send(chunk(data[gap:]))]
    if cut:
        yield "inside a character", data, [Send(chunk(data[:cut])), Send(chunk(data[cut:]))]


@pytest.mark.parametrize("wire", [R, M], ids=["R", "M"])
async def test_fc_09_framing_across_network_chunks(wire: Wire, confdir: Path) -> None:
    failing = list(shapes([*wire.start(), sse({"type": "ping", "text": "東"}), wire.busy()]))
    good = list(shapes(wire.ok("ok ✓ 東京")))
    ends: list[Step] = [Send(LAST_CHUNK)]
    cases = [
        Case(wire, alpha=[Send(event_head()), *bad, *ends], beta=[Send(event_head()), *fine, *ends])
        for (_, _, bad), (_, _, fine) in zip(failing, good, strict=True)
    ]
    async with stage(confdir, *cases) as on:
        for case, (name, data, _), answer in zip(cases, good, await on.ask_all(cases), strict=True):
            assert case.calls == ["alpha", "beta"], name
            assert on.cooling(case) == {"alpha/m1": SLOW_MS}, name
            assert answer.body == data, name


@pytest.mark.parametrize("size", [1, 300_000], ids=["small", "large"])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_fc_10_tokens_arrive_as_they_are_made(wire: Wire, size: int, confdir: Path) -> None:
    """Each delta is sent only when the client has the one before: a proxy that holds anything back never ends."""
    gates = [asyncio.Event() for _ in range(5)]
    texts = [f"<{n}>" * size for n in range(5)]
    script: list[Step] = [Send(event_head()), *(Send(chunk(event)) for event in [*wire.start(), *wire.begin_text()])]
    for text, gate in zip(texts, gates, strict=True):
        script += [Send(chunk(wire.delta(text))), Stall(gate)]
    script += [Send(chunk(event)) for event in wire.finish("".join(texts))]
    case = Case(wire, beta=[*script, Send(LAST_CHUNK)])
    async with stage(confdir, case, stream_large_bodies="100k", body_size_limit="50m") as on, on.talk(case) as client:
        await client.head()
        for text, gate in zip(texts, gates, strict=True):
            await client.until(f"{text[-3:]}".encode() if size > 1 else text.encode())
            gate.set()
        while await client.piece():
            pass
        assert case.calls == ["beta"]


async def test_fc_11_error_outside_response(confdir: Path) -> None:
    fault = {"type": "server_error", "code": "upstream_error", "message": "provider error"}
    failed = {"id": "r", "status": "failed", "error": None, "output": []}
    stream = event_stream(sse({"type": "response.failed", "response": failed, "error": fault}))
    case = Case(R, alpha=stream, beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        assert first_is(await on.ask(case), R, "beta-ok")
        assert on.cooling(case) == {"alpha/m1": SLOW_MS}
        assert case.record is not None
        assert case.record.attempts[0].error_code == "upstream_error"


async def test_fc_12_prefix_grows_past_the_cap(confdir: Path) -> None:
    filler = sse({"type": "response.in_progress", "response": {"id": "r", "output": [], "pad": "x" * 65_536}})
    fillers = [filler] * (4 * 1024 * 1024 // len(filler) + 2)
    released, written = asyncio.Event(), b"".join([*R.start(), *fillers, R.busy()])
    script = [
        Send(event_head()),
        *(Send(chunk(event)) for event in [*R.start(), *fillers]),
        Stall(released),
        Send(chunk(R.busy()) + LAST_CHUNK),
    ]
    case = Case(R, alpha=script, beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on, on.talk(case) as client:
        status, fields = await client.head()  # comes before alpha has said how it ends
        released.set()
        body, clean = await client.rest(fields)
        assert (status, clean) == (200, True)
        assert body == written
        assert case.calls == ["alpha"]


async def test_fc_13_headers_are_those_of_the_target_that_answers(confdir: Path) -> None:
    def headers(name: bytes, left: bytes) -> list[tuple[bytes, bytes]]:
        return [(b"request-id", b"req-" + name), (b"x-ratelimit-remaining-tokens", left)]

    overload = error(529, {"error": {"message": "busy"}}, headers(b"alpha", b"0"))
    cases = [
        Case(wire, alpha=overload, beta=wire.answers("beta-ok", headers=headers(b"beta", b"900"))) for wire in (R, M)
    ]
    async with stage(confdir, *cases) as on:
        for answer in await on.ask_all(cases):
            got = [(name.lower(), value) for name, value in answer.headers]
            assert [value for name, value in got if name == b"request-id"] == [b"req-beta"]
            assert [value for name, value in got if name.startswith(b"x-ratelimit")] == [b"900"]


async def test_fc_14_context_overflow_in_a_200_stream(confdir: Path) -> None:
    message = "The input (140000 tokens) is longer than the model's context length (131072 tokens)."
    fault = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": message}
    events = [sse({"error": fault}), sse({"type": "error", "error": fault})]
    cases = [Case(wire, alpha=event_stream(event), beta=BUSY) for wire, event in zip((C, R), events, strict=True)]
    async with stage(confdir, *cases) as on:
        for case, event, answer in zip(cases, events, await on.ask_all(cases), strict=True):
            assert (answer.status, answer.body) == (200, event)
            assert case.calls == ["alpha"]
            assert on.cooling(case) == {}
