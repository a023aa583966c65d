"""The shared case file on the wire: one failed attempt each, through a real proxy, and what came of it.

All cases run in one proxy, each with a combo of its own: the failing target `alpha/m1`, a healthy `beta/m2`, and
`alpha/m3`, a sibling that is cooled with it when the failure is the whole provider's.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import stage as entrances
from rawclient import Answer
from rawserver import (
    ClientGone,
    Close,
    ExpectHead,
    RawServer,
    Reset,
    Send,
    Step,
    chunk,
    closed_port,
    event_head,
    event_stream,
    head,
    response,
)
from stage import Case, Script, stage
from wires import C, M, R, Wire

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "classification-cases.json").read_text())

NOT_ON_THE_WIRE = {
    "pool-429-cooled": "the cooldown of one account of a login pool is not in the answer",
    "pool-429-codex-cooled": "as above",
    "rs-undeclared": "tool catalogs of in-process adapters: this product relays bytes",
    "rs-undeclared-chat": "as above, and inbound chat",
    "tr-client-abort": "the client goes: test_cancellation",
}
"""Cases that one upstream answer cannot show, with the reason."""

BREAKS_LATE = frozenset({"rs-err-after-text", "rs-declared", "rs-undeclared-late", "an-tool"})
"""Committed streams that then fail or end early. They are cooled, because clients repeat the whole request at once."""

PLAYED = [case for case in CASES if case["id"] not in NOT_ON_THE_WIRE]
BATCH = 60
"""Cases that run at the same time."""

WIRES = {"openai-chat": C, "anthropic": M}


@dataclass
class Played:
    """What came of one case."""

    calls: list[str]
    cooling: dict[str, int]
    answer: Answer
    sent: bytes
    ok: bytes


def body_of(case: Mapping[str, Any]) -> bytes:
    """The body that the target sends."""
    for kind in ("body", "sse"):
        if kind in case:
            return str(case[kind]).encode()
    template = (
        case.get("body_template") or case.get("sse_template") or {"prefix": "", "fill": "", "count": 0, "suffix": ""}
    )
    return str(template["prefix"] + template["fill"] * template["count"] + template["suffix"]).encode()


def is_stream(case: Mapping[str, Any]) -> bool:
    return "sse" in case or "sse_template" in case or "stream" in case.get("transport", {}).get("phase", "")


def answer_script(case: Mapping[str, Any]) -> Script:
    """The target's answer as the case describes it."""
    fields = [(name.encode(), value.encode()) for name, value in case["headers"].items()]
    body = body_of(case)
    if not is_stream(case):
        return response(case["status"], body, fields)
    chunked = [*fields, (b"Transfer-Encoding", b"chunked")]
    return head(case["status"], chunked) + event_stream(body).partition(b"\r\n\r\n")[2]


def broken_script(error: str, phase: str) -> Script:
    """A target that breaks the exchange after it was reached."""
    created = b'data: {"type":"response.created","response":{"id":"r","output":[]}}\n\n'
    begun = created + (R.delta("Half an") if phase == "stream_committed" else b"")
    before: list[Step] = [Send(event_head() + chunk(begun))] if phase.startswith("stream") else []
    ends: Mapping[str, Step] = {
        "connection_reset": Reset(),
        "connection_closed": Close(),
        "idle_timeout": ClientGone(),
        "response_header_timeout": ClientGone(),
    }
    return [*before, ends[error]]


@contextmanager
def unreachable() -> Iterator[dict[str, str]]:
    """Addresses at which no exchange can begin, by the name of the fault."""
    with closed_port() as port:
        yield {
            "connection_refused": f"http://127.0.0.1:{port}/v1",
            "name_resolution_failed": "http://no-such-host.invalid/v1",
        }


@asynccontextmanager
async def without_tls() -> AsyncIterator[dict[str, str]]:
    """Servers with which no TLS can be agreed: one answers plainly, one never does."""
    async with (
        RawServer([ExpectHead(), Send(b"HTTP/1.1 400 Plain\r\n\r\n")]) as plain,
        RawServer([ClientGone()]) as mute,
    ):
        plain.scripts = ([Send(b"this is not TLS, is it?\r\n\r\n"), Close()],)
        yield {
            "tls_handshake_failed": plain.url.replace("http:", "https:") + "/v1",
            "connect_timeout": mute.url.replace("http:", "https:") + "/v1",
        }


SHORT = {
    "connect_timeout": "connectTimeoutMs",
    "response_header_timeout": "headTimeoutMs",
    "idle_timeout": "idleTimeoutMs",
}


def made(case: Mapping[str, Any], addresses: Mapping[str, str]) -> Case:
    """The case as a combo."""
    wire = WIRES.get(case["dialect"], R)
    stubs: dict[str, Any] = {"beta": wire.answers("beta-ok", stream=is_stream(case))}
    more: dict[str, Any] = {}
    if "transport" not in case:
        stubs["alpha"] = answer_script(case)
    else:
        error = case["transport"]["error"]
        if error in addresses:
            more["urls"] = {"alpha": addresses[error]}
        else:
            stubs["alpha"] = broken_script(error, case["transport"]["phase"])
        if error in SHORT:
            more["providers"] = {"alpha": {SHORT[error]: 100}}
    targets = ["alpha/m1", "beta/m2", "alpha/m3"]
    return Case(wire, targets=targets, combo=case.get("combo"), **stubs, **more)


async def play_all(confdir: Path) -> dict[str, Played]:
    """Put every case on the wire."""
    moments = {case.get("now", "2026-09-24T12:00:00Z") for case in PLAYED}
    assert len(moments) == 1
    with unreachable() as nowhere:
        async with without_tls() as silent:
            pairs = [(case, made(case, {**nowhere, **silent})) for case in PLAYED]
            async with stage(confdir, *(combo for _, combo in pairs)) as on:
                on.clock.epoch_ms = round(datetime.fromisoformat(moments.pop()).timestamp() * 1000)
                asked = [on.ask(combo, stream=is_stream(case)) for case, combo in pairs]
                answers: list[Answer] = []
                for begin in range(0, len(asked), BATCH):
                    answers += await asyncio.gather(*asked[begin : begin + BATCH])
                return {
                    case["id"]: Played(combo.calls, on.cooling(combo), answer, body_of(case), ok_of(case, combo.wire))
                    for (case, combo), answer in zip(pairs, answers, strict=True)
                }


def ok_of(case: Mapping[str, Any], wire: Wire) -> bytes:
    """The body of the healthy target."""
    if is_stream(case):
        return b"".join(wire.ok("beta-ok"))
    return json.dumps(wire.whole("beta-ok")).encode()


@pytest.fixture(scope="module", params=["proxy", "listener"])
def played(request: pytest.FixtureRequest, confdir: Path) -> Iterator[dict[str, Played]]:
    """Everything at a port of the proxy, and everything at the addon's own listener."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entrances, "at_listener", request.param == "listener")
        yield asyncio.run(play_all(confdir))


def test_every_case_is_played_or_named() -> None:
    assert len(CASES) == 308
    assert NOT_ON_THE_WIRE.keys() <= {case["id"] for case in CASES}
    assert len(PLAYED) == len(CASES) - len(NOT_ON_THE_WIRE)


def allowed(case: Mapping[str, Any], member: str) -> Sequence[object]:
    expected = case["expected"]
    return [expected[member], *expected.get("accept", {}).get(member, [])]


def verdict_of(result: Played) -> str:
    """What the client saw: the second target's answer is a hop; the first one's, a stop or a commitment."""
    if result.answer.body == result.ok:
        assert result.calls.count("beta") == 1
        return "hop"
    assert "beta" not in result.calls
    return "stop or commit"


def scope_of(result: Played) -> str:
    """Whether the failing target alone was cooled, or its sibling too."""
    assert "beta/m2" not in result.cooling
    if "alpha/m3" in result.cooling:
        assert result.cooling["alpha/m3"] == result.cooling["alpha/m1"]
        return "provider"
    return "target" if result.cooling else "none"


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case["id"])
def test_case(case: Mapping[str, Any], played: Mapping[str, Played]) -> None:
    result = played[case["id"]]
    verdicts = {"hop" if verdict == "hop" else "stop or commit" for verdict in map(str, allowed(case, "verdict"))}
    why = case.get("contested", case["expected"]["why"])
    verdict = verdict_of(result)
    assert verdict in verdicts, why
    if case["id"] in BREAKS_LATE:
        assert result.cooling == {"alpha/m1": 60_000}
        return
    assert scope_of(result) in allowed(case, "scope"), why
    assert result.cooling.get("alpha/m1") in allowed(case, "cooldown_ms"), why
    if verdict != "hop" and "transport" not in case:
        assert (result.answer.status, result.answer.body) == (case["status"], result.sent)


def test_a_reset_after_output_is_never_a_clean_end(played: Mapping[str, Played]) -> None:
    answer = played["tr-reset-after-output"].answer
    assert not answer.clean
    assert b"Half an" in answer.body
