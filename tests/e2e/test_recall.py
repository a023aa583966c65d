"""Compactions with a bare model name, after a combo has answered on the same conversation."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from combos.core.recall import TTL_MS
from combos.wire.zstd import compress
from e2e.vendors import ask_vendor, listing, vendor
from rawclient import Answer, ask
from rawserver import ClientGone, Pairs, Reset, Send, Signal, chunk, event_head, event_stream
from stage import Case, Script, Stage, stage, until
from wires import WIRES, R, Wire, error, sse

DOWN = error(503, {"error": {"message": "down"}})
TRIGGER = {"type": "compaction_trigger"}
HISTORY = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]
THREAD: Pairs = ((b"thread-id", b"thread-1"), (b"session-id", b"session-1"))
MODEL = "stub"
"""What the stubs call themselves in their answers."""


def case(*, combo: dict[str, Any] | None = None, **stubs: Any) -> Case:
    return Case(R, combo=combo, **(stubs or {"alpha": R.answers("alpha-ok")}))


def called(model: str, text: str = "alpha-ok") -> bytes:
    """A success whose answer names this model."""
    name = json.dumps(model).encode()
    return event_stream(*(event.replace(b'"stub"', name) for event in R.ok(text)))


def compaction(model: str = MODEL, *, trigger: bool = True) -> dict[str, Any]:
    return R.request(model, input=[*HISTORY, *([TRIGGER] if trigger else [])])


async def compact(on: Stage, model: str = MODEL, headers: Pairs = THREAD, *, trigger: bool = True) -> Answer:
    """A compaction as Codex sends it."""
    body = json.dumps(compaction(model, trigger=trigger)).encode()
    return await ask(on.port, "POST", R.path, headers=[(b"Content-Type", b"application/json"), *headers], body=body)


def is_unknown(answer: Answer) -> bool:
    """Without recall there is nothing to which the stubs' name leads."""
    return answer.status == 404 and answer.json()["error"]["code"] == "model_not_found"


# -- what is recalled


async def test_only_a_compaction_is_recalled(confdir: Path) -> None:
    one = case()
    async with stage(confdir, one) as on:
        assert is_unknown(await compact(on))  # nothing is remembered yet
        assert (await on.ask(one, headers=THREAD)).status == 200
        assert is_unknown(await compact(on, trigger=False))
        assert is_unknown(await compact(on, "another"))
        answer = await compact(on)  # a wrong name has not cleared it
        assert (answer.status, one.calls) == (200, ["alpha", "alpha"])
        assert json.loads(one.requests[-1].body)["model"] == "m1"


async def test_the_endpoint_of_older_releases_is_recalled_too(confdir: Path) -> None:
    one = case()
    async with stage(confdir, one) as on:
        await on.ask(one, headers=THREAD)
        body = json.dumps({"model": MODEL, "input": HISTORY}).encode()
        await ask(on.port, "POST", "/v1/responses/compact", headers=THREAD, body=body)
        assert one.calls == ["alpha", "alpha"]


async def test_the_remembered_combo_chooses_and_hops_as_usual(confdir: Path) -> None:
    one = case(alpha=[R.answers("alpha-ok"), DOWN], beta=R.answers("beta-ok"))
    async with stage(confdir, one) as on:
        await on.ask(one, headers=THREAD)
        assert (await compact(on)).status == 200
        assert one.calls == ["alpha", "alpha", "beta"]
        assert on.cooling(one) == {"alpha/m1": 60_000}


@pytest.mark.parametrize("coding", ["zstd", None])
async def test_on_a_vendors_host(confdir: Path, coding: str | None) -> None:
    """Codex with a ChatGPT login compresses its bodies."""
    one = case()
    path = "/backend-api/codex/responses"
    async with vendor(listing({"from": "vendor"})) as (server, redirect), stage(confdir, one, addons=[redirect]) as on:
        await on.ask(one, headers=THREAD)
        raw = json.dumps(compaction()).encode()
        headers = [*THREAD, *([(b"Content-Encoding", b"zstd")] if coding else [])]
        sent = compress(raw) if coding else raw
        shown = b"chatgpt.com"
        answer = await ask(on.port, "POST", f"http://chatgpt.com{path}", headers=headers, body=sent, host=shown)
        assert (answer.status, one.calls) == (200, ["alpha", "alpha"])
        assert server.requests == []
        # Another conversation is the vendor's, byte for byte.
        other = [(b"thread-id", b"thread-2"), *headers[2:]]
        passed = await ask(on.port, "POST", f"http://chatgpt.com{path}", headers=other, body=sent, host=shown)
        assert (passed.json(), server.requests[0].body) == ({"from": "vendor"}, sent)


# -- whose conversation it is


@pytest.mark.parametrize(
    ("turn", "later", "same"),
    [
        ({"thread-id": "t"}, {"thread-id": "t"}, True),
        ({"thread-id": "t", "session-id": "s"}, {"thread-id": "t", "session-id": "other"}, True),
        ({"thread-id": "t", "session-id": "s"}, {"thread-id": "u", "session-id": "s"}, False),
        ({"session-id": "s"}, {"session_id": "s"}, True),
        ({"session-id": "s"}, {"thread-id": "s"}, True),
        (
            {"x-codex-parent-thread-id": "p", "thread-id": "a"},
            {"x-codex-parent-thread-id": "p", "thread-id": "a"},
            True,
        ),
        (
            {"x-codex-parent-thread-id": "p", "thread-id": "a"},
            {"x-codex-parent-thread-id": "p", "thread-id": "b"},
            False,
        ),
        ({"x-codex-parent-thread-id": "p", "thread-id": "a"}, {"x-codex-parent-thread-id": "p"}, False),
        ({"x-codex-parent-thread-id": "p", "thread-id": "a"}, {"thread-id": "a"}, False),
        ({}, {}, False),
        ({"x-client-request-id": "r"}, {"x-client-request-id": "r"}, False),
        ({"x-session-id": "r"}, {"x-session-id": "r"}, False),
        ({"thread-id": "x" * 4097}, {"thread-id": "x" * 4097}, False),
        ({"thread-id": "x" * 4096}, {"thread-id": "x" * 4096}, True),
    ],
)
async def test_lanes(confdir: Path, turn: dict[str, str], later: dict[str, str], same: bool) -> None:
    one = case()
    async with stage(confdir, one) as on:
        await on.ask(one, headers=[(k.encode(), v.encode()) for k, v in turn.items()])
        answer = await compact(on, headers=[(k.encode(), v.encode()) for k, v in later.items()])
        assert (answer.status == 200) is same
        assert is_unknown(answer) is not same


async def test_callers_are_kept_apart(confdir: Path) -> None:
    one = case()
    mine: Pairs = (*THREAD, (b"Authorization", b"Bearer mine-and-secret"))
    async with stage(confdir, one) as on:
        await on.ask(one, headers=mine)
        assert is_unknown(await compact(on, headers=THREAD))
        assert is_unknown(await compact(on, headers=(*THREAD, (b"Authorization", b"Bearer another"))))
        assert (await compact(on, headers=mine)).status == 200
        assert "mine-and-secret" not in repr(on.service.state.recall.items())


async def test_the_last_combo_of_a_lane_counts(confdir: Path) -> None:
    first, second = case(), case()
    async with stage(confdir, first, second) as on:
        await on.ask(first, headers=THREAD)
        await on.ask(second, headers=THREAD)
        await compact(on)
        assert (first.calls, second.calls) == (["alpha"], ["alpha", "alpha"])


# -- what goes before it


async def test_explicit_names_go_before_it(confdir: Path) -> None:
    one = case()
    aliased, other = case(combo={"alias": MODEL}), case()
    async with stage(confdir, one, aliased, other) as on:
        await on.ask(one, headers=THREAD)
        await compact(on, MODEL)
        assert (one.calls, aliased.calls) == (["alpha"], ["alpha"])
        await on.ask(one, headers=THREAD)
        await compact(on, other.model)
        assert (one.calls, other.calls) == (["alpha", "alpha"], ["alpha"])
        await on.ask(one, headers=THREAD)
        await compact(on, f"{other.provider('alpha')}/m9")
        assert (len(one.calls), json.loads(other.requests[-1].body)["model"]) == (3, "m9")


async def test_it_goes_before_native_names_and_lists_of_models(confdir: Path) -> None:
    one, native = case(alpha=called("gpt-5.5")), case()
    async with stage(confdir, one, native) as on:
        document = json.loads(on.service.config.path.read_text())
        document["providers"]["openai"] = document["providers"][native.provider("alpha")] | {"models": ["gpt-5.5"]}
        on.service.config.adopt(document)
        await compact(on, "gpt-5.5")
        assert (one.calls, native.calls) == ([], ["alpha"])
        await on.ask(one, headers=THREAD)
        await compact(on, "gpt-5.5")
        assert (one.calls, native.calls) == (["alpha", "alpha"], ["alpha"])
        # A suffix is an explicit wish.
        await compact(on, "gpt-5.5--fast")
        assert (len(one.calls), native.calls) == (2, ["alpha", "alpha"])


# -- what is remembered, and what leaves it


INCOMPLETE = sse(
    {
        "type": "response.incomplete",
        "response": {
            "id": "resp_i",
            "model": MODEL,
            "status": "incomplete",
            "output": [],
            "incomplete_details": {"reason": "max_output_tokens"},
        },
    }
)
BEGUN = [*R.start(), *R.begin_text(), R.delta("text")]


@pytest.mark.parametrize(
    "ended",
    [
        event_stream(*BEGUN, INCOMPLETE),
        event_stream(*BEGUN, R.busy()),
        event_stream(*BEGUN),
        [Send(event_head() + b"".join(map(chunk, BEGUN))), Reset()],
        error(400, {"error": {"message": "no", "type": "invalid_request_error"}}),
        DOWN,
        called("x" * 1025),
        called("  "),
    ],
    ids=["incomplete", "failed", "early-end", "cut", "refused", "down", "oversize", "blank"],
)
async def test_what_did_not_complete_leaves_it(confdir: Path, ended: Script) -> None:
    first, second = case(), case(alpha=ended)
    async with stage(confdir, first, second) as on:
        await on.ask(first, headers=THREAD)
        await on.ask(second, headers=THREAD)
        assert (await compact(on)).status == 200
        assert (first.calls, second.calls) == (["alpha", "alpha"], ["alpha"])


async def test_a_cancelled_turn_leaves_it(confdir: Path) -> None:
    gone = asyncio.Event()
    begun = asyncio.Event()
    head = event_head() + b"".join(map(chunk, BEGUN))
    first, second = case(), case(alpha=[Send(head), Signal(begun), ClientGone(gone)])
    async with stage(confdir, first, second) as on:
        await on.ask(first, headers=THREAD)
        async with on.talk(second, headers=THREAD) as client:
            await client.head()
            await client.until(b"text")
            client.leave()
            await asyncio.wait_for(gone.wait(), 10)
        await until(lambda: len(second.records) == 1)
        await compact(on)
        assert (first.calls, second.calls) == (["alpha", "alpha"], ["alpha"])


async def test_direct_requests_neither_write_nor_clear(confdir: Path) -> None:
    one, other = case(), case(alpha=called("another"))
    async with stage(confdir, one, other) as on:
        await on.ask(one, headers=THREAD)
        assert (await on.ask(one, model=f"{other.provider('alpha')}/m1", headers=THREAD)).status == 200
        assert is_unknown(await compact(on, "another"))
        assert (await compact(on)).status == 200


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("stream", [True, False])
async def test_every_dialect_is_remembered(confdir: Path, wire: Wire, stream: bool) -> None:
    one = Case(wire, alpha=wire.answers("ok", stream=stream))
    async with stage(confdir, one) as on:
        await on.ask(one, headers=THREAD, stream=stream)
        ((_, selection),) = on.service.state.recall.items()
        assert (selection.combo, selection.model, selection.response_model) == (one.id, "m1", MODEL)


@pytest.mark.parametrize(("age_ms", "recalled"), [(TTL_MS - 1, True), (TTL_MS, False)])
async def test_it_lasts_thirty_minutes(confdir: Path, age_ms: int, recalled: bool) -> None:
    one = case()
    async with stage(confdir, one) as on:
        await on.ask(one, headers=THREAD)
        on.clock.advance(age_ms)
        assert is_unknown(await compact(on)) is not recalled
        assert len(on.service.state.recall) == int(recalled)


async def test_256_conversations_are_kept(confdir: Path) -> None:
    one = case()
    lanes: list[Pairs] = [((b"thread-id", b"%d" % number),) for number in range(257)]
    async with stage(confdir, one) as on:
        await on.ask(one, headers=lanes[0])
        for start in range(1, 257, 32):
            await asyncio.gather(*(on.ask(one, headers=lane) for lane in lanes[start : start + 32]))
        assert is_unknown(await compact(on, headers=lanes[0]))
        assert (await compact(on, headers=lanes[1])).status == 200


@pytest.mark.parametrize("gone", ["combo", "target", "provider"])
async def test_what_the_configuration_no_longer_has_is_forgotten(confdir: Path, gone: str) -> None:
    one, other = case(), case()
    async with stage(confdir, one, other) as on:
        await on.ask(one, headers=THREAD)
        whole = json.loads(on.service.config.path.read_text())
        changed = json.loads(json.dumps(whole))
        if gone == "combo":
            del changed["combos"][one.id]
        elif gone == "target":
            changed["combos"][one.id]["targets"] = changed["combos"][other.id]["targets"]
        else:
            changed["providers"][one.provider("alpha")]["disabled"] = True
        on.service.config.adopt(changed)
        assert is_unknown(await compact(on))
        on.service.config.adopt(whole)
        assert is_unknown(await compact(on))  # deleted, not hidden
        assert one.calls == ["alpha"]


async def test_a_body_that_is_no_request_is_the_vendors_business(confdir: Path) -> None:
    one = case()
    async with vendor(listing({"from": "vendor"})) as (_, redirect), stage(confdir, one, addons=[redirect]) as on:
        await on.ask(one, headers=THREAD)
        passed = await ask_vendor(
            on.port, "POST", "api.openai.com", R.path, headers=THREAD, body={"model": "", "input": [TRIGGER]}
        )
        assert passed.json() == {"from": "vendor"}
        refused = await ask(on.port, "POST", R.path, headers=THREAD, body=b'{"model": "", "input": []}')
        assert refused.status == 400
