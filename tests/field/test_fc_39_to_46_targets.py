"""Field cases FC-39, 41, 42, 44 and 46: who is asked, what is sent, and when nobody is asked any more."""

import asyncio
import json
from pathlib import Path

import pytest

from rawserver import ClientGone, Send, Signal, chunk, event_head, event_stream
from stage import Case, Stage, stage, until
from wires import WIRES, C, M, R, Wire, error, sse

DOWN = error(503, {"error": {"message": "down"}})
LIMIT_S = 10


async def is_cancelled(on: Stage, case: Case, calls: list[str], cooling: dict[str, int]) -> None:
    """The turn has ended because its client went, and that has had no consequences."""
    await until(lambda: case.record is not None)
    assert case.record is not None
    assert (case.record.outcome, case.record.status) == ("cancelled", 499)
    assert case.calls == calls
    assert on.cooling(case) == cooling


async def test_fc_39_client_leaves_during_a_cooldown_wait(confdir: Path) -> None:
    limited = error(429, {"error": {"message": "slow"}}, [(b"Retry-After", b"30")])
    case = Case(R, alpha=limited, combo={"waitForCooldownMs": 600_000})
    async with stage(confdir, case) as on:
        async with on.talk(case) as client:
            await until(lambda: bool(on.cooling(case)))
            client.leave()
        await is_cancelled(on, case, ["alpha"], {"alpha/m1": 30_000})
        assert case.record is not None
        assert case.record.waits_ms == [30_000]


async def test_fc_39_client_leaves_before_a_target_has_answered(confdir: Path) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()
    case = Case(R, alpha=[Signal(asked), ClientGone(closed), Send(DOWN)], beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        async with on.talk(case) as client:
            await asyncio.wait_for(asked.wait(), LIMIT_S)
            client.leave()
            await asyncio.wait_for(closed.wait(), LIMIT_S)
        await is_cancelled(on, case, ["alpha"], {})


async def test_fc_39_client_leaves_in_the_middle_of_the_prefix(confdir: Path) -> None:
    closed = asyncio.Event()
    start = b"".join(chunk(event) for event in R.start())
    case = Case(R, alpha=[Send(event_head() + start), ClientGone(closed)], beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        async with on.talk(case) as client:
            await until(lambda: bool(case.calls))
            client.leave()
            await asyncio.wait_for(closed.wait(), LIMIT_S)
        await is_cancelled(on, case, ["alpha"], {})


STRATEGIES = ("failover", "round-robin", "random", "least-used")


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_fc_41_never_the_same_one_twice_never_a_disabled_one(strategy: str, confdir: Path) -> None:
    alpha = error(500, {"error": {"message": "alpha"}})
    gamma = error(500, {"error": {"message": "gamma"}})
    cases = [
        Case(
            wire,
            alpha=alpha,
            beta=DOWN,
            gamma=gamma,
            combo={"strategy": strategy},
            weights=weights,
            providers={"beta": {"disabled": True}},
        )
        for wire in WIRES
        for weights in ((1, 1, 1), (10_000, 10_000, 1))
    ]
    async with stage(confdir, *cases) as on:
        for case, answer in zip(cases, await on.ask_all(cases), strict=True):
            assert sorted(case.calls) == ["alpha", "gamma"]
            if strategy in ("failover", "round-robin"):
                assert case.calls == ["alpha", "gamma"]
            assert (answer.status, answer.json()) == (500, {"error": {"message": case.calls[-1]}})


BIG = 12_345_678_901_234_567_890_123


async def test_fc_42_the_whole_address_moves(confdir: Path) -> None:
    body = (
        b'{"model":"MODEL","input":[{"b":1,"a":2},"z"],"stream":true, "big":%d,"x_unknown":{"z":[3,1,2],"e":1.50},'
        b'"metadata":{"note":"kept"}}' % BIG
    )
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        beta = f"{on.server.url}/{case.id}/beta/other/prefix/v1"
        document = json.loads(on.service.config.path.read_text())
        document["providers"][case.provider("beta")]["baseUrl"] = beta
        on.service.config.adopt(document)
        sent_body = body.replace(b"MODEL", case.model.encode())
        answer = await on.ask(case, sent_body, [(b"Authorization", b"Bearer client-token")])
        assert b"beta-ok" in answer.body
        (sent,) = case.requests_of("beta")
        assert sent.target == f"/{case.id}/beta/other/prefix/v1/responses"
        assert sent.header("host") == on.server.url.removeprefix("http://")
        assert sent.all("content-length") == [str(len(sent.body))]
        assert sent.all("authorization") == ["Bearer beta-key"]
        assert sent.body == sent_body.replace(case.model.encode(), b"m2")
        for secret in (case.model.encode(), b'"m1"', b"alpha-key", b"client-token"):
            assert secret not in sent.head + sent.body


async def test_fc_44_an_alias_is_the_combo(confdir: Path) -> None:
    alias = {"alias": "team/daily"}
    busy = event_stream(*R.start(), R.busy())
    case = Case(R, alpha=[busy, R.answers("alpha-again")], beta=[R.answers("beta-ok"), DOWN], combo=alias)
    async with stage(confdir, case) as on:
        assert b"beta-ok" in (await on.ask(case, model="team/daily")).body
        assert on.cooling(case) == {"alpha/m1": 60_000}
        # The cooldowns are those of the combo: under its own name it starts at beta.
        assert (await on.ask(case)).status == 503
        assert case.calls == ["alpha", "beta", "beta"]
        refused = await on.ask(case, model="team/daily")
        assert (refused.status, refused.header("retry-after")) == (503, "60")
        assert refused.json()["error"]["code"] == "combo_unavailable"
        on.clock.advance(60_000)
        assert b"alpha-again" in (await on.ask(case, model="team/daily")).body


async def test_fc_44_rejected_key_and_unfit_request_under_an_alias(confdir: Path) -> None:
    rejected = error(401, {"error": {"type": "authentication_error", "code": "invalid_api_key", "message": "bad key"}})
    fault = {"type": "invalid_request_error", "message": "Unsupported parameter: user", "param": "user"}
    runs = {"a/key": (rejected, {"alpha/m1": 600_000}), "a/user": (error(400, {"error": fault}), {})}
    cases = [
        Case(R, alpha=script, beta=R.answers("beta-ok"), combo={"alias": name}) for name, (script, _) in runs.items()
    ]
    async with stage(confdir, *cases) as on:
        for case, (name, (_, cooling)) in zip(cases, runs.items(), strict=True):
            assert b"beta-ok" in (await on.ask(case, model=name)).body
            assert on.cooling(case) == cooling


async def test_fc_44_an_alias_shares_the_rotation(confdir: Path) -> None:
    case = Case(
        R,
        alpha=R.answers("alpha-ok"),
        beta=R.answers("beta-ok"),
        combo={"alias": "team/turns", "strategy": "round-robin"},
    )
    async with stage(confdir, case) as on:
        for name in (case.model, "team/turns", case.model, "team/turns"):
            await on.ask(case, model=name)
        assert case.calls == ["alpha", "beta", "alpha", "beta"]


def tool_call(wire: Wire) -> bytes:
    """The event with which a call of a tool begins."""
    match wire.name:
        case "R":
            item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": ""}
            return sse({"type": "response.output_item.added", "output_index": 0, "item": item})
        case "C":
            call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
            return sse({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        case _:
            block = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
            return sse({"type": "content_block_start", "index": 0, "content_block": block})


async def test_fc_46_a_tool_call_that_has_begun(confdir: Path) -> None:
    streams = {wire.name: [*wire.start(), tool_call(wire), wire.busy()] for wire in (R, C, M)}
    cases = [Case(wire, alpha=event_stream(*streams[wire.name]), beta=wire.answers("beta-ok")) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case, answer in zip(cases, await on.ask_all(cases), strict=True):
            assert answer.body == b"".join(streams[case.wire.name])
            assert case.calls == ["alpha"]
