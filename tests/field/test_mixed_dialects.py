"""Field cases FC-01 to FC-14 and FC-43 over combos whose targets speak other formats than the client.

`mix` names three wires: what the client speaks, what the first target speaks, what the second one speaks.
"""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rawclient import Answer
from rawserver import LAST_CHUNK, Close, Reset, Send, Stall, Step, chunk, event_head, event_stream, head
from stage import Case, stage
from wires import WIRES, C, M, R, Wire, error, sse

SLOW_MS = 60_000
BUSY = error(503, {"error": {"message": "down"}})
PINGS = b": waiting\n\n" + sse({"type": "ping"})
type Mix = tuple[Wire, Wire, Wire]
MIXES: list[Mix] = [mix for mix in itertools.product(WIRES, repeat=3) if len(set(mix)) > 1]
PAIRS = [(client, target) for client in WIRES for target in WIRES if client is not target]
ENDS = {"R": b"response.completed", "C": b"data:[DONE]", "M": b"event: message_stop"}
STARTS = {"R": b"event: response.created", "C": b'"role":"assistant"', "M": b"event: message_start"}


def over(mix: Mix, *, alpha: Any, beta: Any = None, **fields: Any) -> Case:
    """A combo of two targets; a missing second script is that target's success."""
    client, *targets = mix
    rows = {name: {"adapter": wire.adapter} for name, wire in zip(("alpha", "beta"), targets, strict=True)}
    second = mix[2].answers("beta-ok") if beta is None else beta
    return Case(client, providers=rows, alpha=alpha, beta=second, **fields)


def starting_with(*wires: Wire) -> list[Mix]:
    """The mixes whose first target speaks one of these."""
    return [mix for mix in MIXES if mix[1] in wires]


def events_of(answer: Answer) -> Iterator[dict[str, Any]]:
    for line in answer.body.decode().splitlines():
        if line.startswith(("data: {", "data:{")):
            yield json.loads(line.partition(":")[2])


def text_of(wire: Wire, answer: Answer) -> str:
    """The text that a client of this wire reads; error events hold none."""
    found: list[str] = []
    for event in events_of(answer):
        match wire.name:
            case "R":
                found.append(event["delta"] if event["type"] == "response.output_text.delta" else "")
            case "C":
                found += [choice["delta"].get("content") or "" for choice in event.get("choices", [])]
            case _:
                found.append(event["delta"].get("text", "") if event["type"] == "content_block_delta" else "")
    return "".join(found)


def tight(answer: Answer) -> bytes:
    """The body without the spaces that only some writers make."""
    return re.sub(rb'(data:|"role":) ', rb"\1", answer.body)


def is_beta(answer: Answer, wire: Wire, text: str = "beta-ok") -> bool:
    """One answer in the client's format from its beginning to its end, and nothing of the target before it."""
    body = tight(answer)
    whole = text_of(wire, answer) == text and ENDS[wire.name] in body
    once = wire is R or body.count(STARTS[wire.name]) == 1
    failed = b'"error"' in body.replace(b'"error":null', b"")
    return (answer.status, answer.clean) == (200, True) and whole and once and not failed


async def hopped(confdir: Path, runs: Sequence[tuple[Mix, Any]], cooling: int = SLOW_MS) -> list[Case]:
    """Every first target is left for the second one, which answers."""
    cases = [over(mix, alpha=alpha) for mix, alpha in runs]
    async with stage(confdir, *cases) as on:
        for (mix, _), case, answer in zip(runs, cases, await on.ask_all(cases), strict=True):
            names = "".join(wire.name for wire in mix)
            assert is_beta(answer, mix[0]), (names, answer.body)
            assert case.calls == ["alpha", "beta"], names
            assert on.cooling(case) == {"alpha/m1": cooling}, names
    return cases


async def test_fc_01_mixed_busy_error_before_any_output(confdir: Path) -> None:
    runs = [(mix, event_stream(*mix[1].start(), mix[1].busy())) for mix in MIXES]
    for case in await hopped(confdir, runs):
        assert case.record is not None
        assert [attempt.status for attempt in case.record.attempts] == [200, 200]
        assert case.record.attempts[0].error_message


async def test_fc_02_mixed_the_error_is_the_third_event(confdir: Path) -> None:
    fault = {"type": "insufficient_quota", "code": "insufficient_quota", "message": "quota used up"}
    progress = sse({"type": "response.in_progress", "response": {"id": "r", "output": []}})
    stream = event_stream(*R.start(), progress, sse({"type": "error", "error": fault}))
    await hopped(confdir, [(mix, stream) for mix in starting_with(R)], cooling=600_000)


async def test_fc_03_mixed_comments_and_pings_are_no_output(confdir: Path) -> None:
    streams = (event_stream(PINGS, M.busy()), event_stream(PINGS))
    await hopped(confdir, [(mix, stream) for mix in starting_with(M) for stream in streams])


async def test_fc_04_mixed_overload_after_message_start(confdir: Path) -> None:
    stream = event_stream(*M.start("a"), sse({"type": "ping"}), M.busy())
    await hopped(confdir, [(mix, stream) for mix in starting_with(M)])


THINKING = {
    "R": [
        sse({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs"}}),
        sse({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Half"}),
    ],
    "C": [sse({"choices": [{"index": 0, "delta": {"reasoning_content": "Half"}}]})],
    "M": [
        sse({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Half"}}),
    ],
}


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=lambda wire: wire.name)
async def test_fc_05_mixed_failure_after_visible_output(client: Wire, target: Wire, confdir: Path) -> None:
    mix = (client, target, client)
    text = over(mix, alpha=event_stream(*target.start(), *target.begin_text(), target.delta("Half an"), target.busy()))
    thought = over(mix, alpha=event_stream(*target.start(), *THINKING[target.name], target.busy()))
    async with stage(confdir, text, thought) as on:
        for case, answer in zip((text, thought), await on.ask_all([text, thought]), strict=True):
            assert answer.status == 200
            assert case.calls == ["alpha"], "nothing is sent again once the client has seen something"
            assert ENDS[client.name] not in tight(answer)
            assert b"error" in answer.body
            assert on.cooling(case) == {"alpha/m1": SLOW_MS}
            assert text_of(client, answer) == ("Half an" if case is text else "")


async def test_fc_06_mixed_error_in_a_chunk_without_choices(confdir: Path) -> None:
    fault = {"code": 502, "message": "worker limit reached"}
    event = sse({"id": "c1", "object": "chat.completion.chunk", "choices": [], "error": fault})
    await hopped(confdir, [(mix, event_stream(event)) for mix in starting_with(C)])
    late = [over((client, C, client), alpha=event_stream(C.delta("half"), event)) for client in (R, M)]
    async with stage(confdir, *late) as on:
        for case, answer in zip(late, await on.ask_all(late), strict=True):
            assert text_of(case.wire, answer) == "half"
            assert b"worker limit reached" in answer.body
            assert case.calls == ["alpha"]


async def test_fc_07_mixed_stream_ends_without_terminal_and_output(confdir: Path) -> None:
    open_end = head(200, [(b"Content-Type", b"text/event-stream")])
    runs: list[tuple[Mix, Any]] = []
    for mix in MIXES:
        events = b"".join(mix[1].start())
        runs += [
            (mix, event_stream(events)),
            (mix, [Send(open_end + events), Close()]),
            (mix, [Send(event_head() + chunk(events)), Close()]),
            (mix, [Send(event_head() + chunk(events)), Reset()]),
        ]
    await hopped(confdir, runs)


async def test_fc_08_mixed_nothing_is_put_into_the_models_mouth(confdir: Path) -> None:
    backed = [over(mix, alpha=event_stream(), beta=BUSY) for mix in MIXES]
    alone = [over((client, target, target), alpha=event_stream(), targets=["alpha/m1"]) for client, target in PAIRS]
    async with stage(confdir, *backed, *alone) as on:
        for mix, case, answer in zip(MIXES, backed, await on.ask_all(backed), strict=True):
            assert case.calls == ["alpha", "beta"]
            # What other APIs say with 503, Messages says with 529.
            status = 529 if case.wire is M and mix[2] is not M else 503
            assert (answer.status, answer.json()["error"]["message"]) == (status, "down")
            assert set(answer.json()) <= {"error", "type", "request_id"}
        for status in (502, 503):
            for answer in await on.ask_all(alone):
                assert answer.status == status
                assert set(answer.json()) <= {"error", "type", "request_id"}
                assert b"assistant" not in answer.body
                assert b"stop_reason" not in answer.body


def shapes(events: Sequence[bytes]) -> Iterator[tuple[str, list[Step]]]:
    """The same stream in several shapes on the wire."""
    data = b"".join(events)
    crlf = data.replace(b"\n", b"\r\n")
    tight = data.replace(b"data: ", b"data:")
    cut = data.find("東".encode()) + 1
    gap = data.find(b"\n\n") + 1
    yield "one byte per write", [*(Send(chunk(data[i : i + 1])) for i in range(len(data)))]
    yield "CRLF", [Send(chunk(crlf))]
    yield "no space", [Send(chunk(tight))]
    yield "single write", [Send(chunk(data))]
    yield "between two newlines", [Send(chunk(data[:gap])), Send(chunk(data[gap:]))]
    yield "inside a character", [Send(chunk(data[:cut])), Send(chunk(data[cut:]))]


QUIET = {name: sse({"type": "ping", "text": "東"}) for name in "RM"} | {"C": ": 東\n\n".encode()}


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=lambda wire: wire.name)
async def test_fc_09_mixed_framing_across_network_chunks(client: Wire, target: Wire, confdir: Path) -> None:
    """The same decisions and the same text in every shape, whichever of the two targets speaks another format."""
    ends: list[Step] = [Send(LAST_CHUNK)]
    runs: list[tuple[str, Case]] = []
    for first, second in ((target, target), (target, client), (client, target)):
        failing = shapes([*first.start(), QUIET[first.name], first.busy()])
        for (name, bad), (_, fine) in zip(failing, shapes(second.ok("ok ✓ 東京")), strict=True):
            alpha, beta = ([Send(event_head()), *steps, *ends] for steps in (bad, fine))
            runs.append((name, over((client, first, second), alpha=alpha, beta=beta)))
    cases = [case for _, case in runs]
    async with stage(confdir, *cases) as on:
        for (name, case), answer in zip(runs, await on.ask_all(cases), strict=True):
            assert case.calls == ["alpha", "beta"], name
            assert is_beta(answer, client, "ok ✓ 東京"), (name, answer.body)
            assert on.cooling(case) == {"alpha/m1": SLOW_MS}, name


@pytest.mark.parametrize(("client", "target"), PAIRS, ids=lambda wire: wire.name)
async def test_fc_10_mixed_tokens_arrive_as_they_are_made(client: Wire, target: Wire, confdir: Path) -> None:
    """Each piece is sent only when the client has the one before: a proxy that holds anything back never ends."""
    gates = [asyncio.Event() for _ in range(5)]
    texts = [f"<{n}>" for n in range(5)]
    script: list[Step] = [
        Send(event_head()),
        *(Send(chunk(event)) for event in [*target.start(), *target.begin_text()]),
    ]
    for text, gate in zip(texts, gates, strict=True):
        script += [Send(chunk(target.delta(text))), Stall(gate)]
    script += [Send(chunk(event)) for event in target.finish("".join(texts))]
    case = over((client, client, target), alpha=BUSY, beta=[*script, Send(LAST_CHUNK)])
    async with stage(confdir, case) as on, on.talk(case) as talk:
        await talk.head()
        for text, gate in zip(texts, gates, strict=True):
            await talk.until(text.encode())
            gate.set()
        while await talk.piece():
            pass
        assert case.calls == ["alpha", "beta"]


async def test_fc_11_mixed_error_outside_response(confdir: Path) -> None:
    fault = {"type": "server_error", "code": "upstream_error", "message": "provider error"}
    failed = {"id": "r", "status": "failed", "error": None, "output": []}
    stream = event_stream(sse({"type": "response.failed", "response": failed, "error": fault}))
    for case in await hopped(confdir, [(mix, stream) for mix in starting_with(R)]):
        assert case.record is not None
        assert case.record.attempts[0].error_code == "upstream_error"


async def test_fc_12_mixed_what_is_nothing_for_the_client_fills_no_prefix(confdir: Path) -> None:
    """The cap bounds what is held for the client. Progress of another format is nothing to it: there still is a hop."""
    filler = sse({"type": "response.in_progress", "response": {"id": "r", "output": [], "pad": "x" * 65_536}})
    fillers = [filler] * (4 * 1024 * 1024 // len(filler) + 2)
    stream = event_stream(*R.start(), *fillers, R.busy())
    await hopped(confdir, [((client, R, client), stream) for client in (C, M)])


async def test_fc_13_mixed_headers_are_those_of_the_target_that_answers(confdir: Path) -> None:
    overload = error(529, {"error": {"message": "busy"}}, [(b"request-id", b"req-alpha"), (b"x-ratelimit-left", b"0")])
    named = [(b"request-id", b"req-beta"), (b"x-ratelimit-left", b"900")]
    cases = [over(mix, alpha=overload, beta=mix[2].answers("beta-ok", headers=named)) for mix in MIXES]
    async with stage(confdir, *cases) as on:
        for mix, case, answer in zip(MIXES, cases, await on.ask_all(cases), strict=True):
            got = [(name.lower(), value) for name, value in answer.headers]
            ids = {value for name, value in got if name in (b"request-id", b"x-request-id")}
            assert ids == {b"req-beta"}, case.calls
            # Limits of another vendor mean nothing to the client's library.
            left = [value for name, value in got if name.startswith(b"x-ratelimit")]
            assert left == ([b"900"] if mix[0] is mix[2] else [])


async def test_fc_14_mixed_context_overflow_in_a_200_stream(confdir: Path) -> None:
    message = "The input (140000 tokens) is longer than the model's context length (131072 tokens)."
    fault = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": message}
    events = {"C": sse({"error": fault}), "R": sse({"type": "error", "error": fault})}
    mixes = [mix for mix in starting_with(C, R) if mix[0] is not mix[1]]
    cases = [over(mix, alpha=event_stream(events[mix[1].name]), beta=BUSY) for mix in mixes]
    async with stage(confdir, *cases) as on:
        for case, answer in zip(cases, await on.ask_all(cases), strict=True):
            # An HTTP error of the client's own format: nothing had been given yet.
            assert answer.status == 400
            assert message in answer.json()["error"]["message"]
            assert case.calls == ["alpha"]
            assert on.cooling(case) == {}


LADDERS = {"alpha": ["low", "medium", "high", "xhigh"], "beta": ["low", "medium"], "gamma": []}
ASKS: dict[str, dict[str, Any]] = {
    "R": {"reasoning": {"effort": "xhigh", "summary": "auto"}},
    "C": {"reasoning_effort": "xhigh"},
    "M": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
}


def effort_of(wire: Wire, body: dict[str, Any]) -> str | None:
    """The effort that a target of this wire was asked for."""
    match wire.name:
        case "R":
            found = body.get("reasoning", {}).get("effort")
        case "C":
            found = body.get("reasoning_effort")
        case _:
            found = body.get("output_config", {}).get("effort")
    return None if found is None else str(found)


@pytest.mark.parametrize("targets", list(itertools.permutations(WIRES)), ids=lambda ws: "".join(w.name for w in ws))
@pytest.mark.parametrize("client", WIRES, ids=lambda wire: wire.name)
async def test_fc_43_mixed_effort_is_taken_from_the_caller_each_time(
    client: Wire, targets: Sequence[Wire], confdir: Path
) -> None:
    wires = dict(zip(LADDERS, targets, strict=True))
    rows = {name: {"adapter": wire.adapter, "reasoningEfforts": LADDERS[name]} for name, wire in wires.items()}
    case = Case(client, providers=rows, alpha=BUSY, beta=BUSY, gamma=wires["gamma"].answers("gamma-ok"))
    async with stage(confdir, case) as on:
        answer = await on.ask(case, **ASKS[client.name])
        assert case.calls == ["alpha", "beta", "gamma"]
        assert text_of(client, answer) == "gamma-ok"
        sent = {name: json.loads(request.body) for name, request in zip(case.calls, case.requests, strict=True)}
        efforts = {name: effort_of(wires[name], body) for name, body in sent.items()}
        assert efforts == {"alpha": "xhigh", "beta": "medium", "gamma": None}
