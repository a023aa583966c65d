"""Field case FC-50: unknown usage is not zero. Through the proxy, into the ledger, and out of it as it is shown."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from combos.admin.usage_query import Filters, reading, records
from combos.admin.usage_view import Wanted, usage
from combos.core.usage_windows import Range, Window
from rawserver import event_stream, response
from stage import Case, Stage, stage
from wires import WIRES, C, M, R, sse


def started(**counts: int) -> bytes:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "stub", "content": [], "usage": counts}
    return sse({"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}})


def spoken(text: str = "hi") -> list[bytes]:
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return [sse(block), sse(delta), sse({"type": "content_block_stop", "index": 0})]


def ended(**counts: int) -> list[bytes]:
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": counts}
    return [sse(delta), sse({"type": "message_stop"})]


def of_responses(kind: str, **members: Any) -> bytes:
    made = {"id": "resp_1", "object": "response", "status": kind.rpartition(".")[2], "output": [], **members}
    return sse({"type": kind, "response": made})


async def recorded(on: Stage, case: Case) -> dict[str, Any]:
    assert await asyncio.to_thread(on.service.books.ledger.flush)
    with reading(on.service.books.ledger.path) as ledger:
        ((_, row),) = records(ledger, 5, combo=case.id)
    return row


async def shown(on: Stage, case: Case) -> dict[str, Any]:
    with reading(on.service.books.ledger.path) as ledger:
        wanted = Wanted(Range.ALL, Window(None), Filters(combo=case.id), on.clock.epoch_ms)
        return usage(ledger, wanted)


async def test_fc_50_counts_that_come_in_parts(confdir: Path) -> None:
    stream = event_stream(started(input_tokens=25, output_tokens=1), *spoken(), *ended(output_tokens=7))
    case = Case(M, alpha=stream)
    async with stage(confdir, case) as on:
        await on.ask(case)
        row = await recorded(on, case)
        assert (row["usage"]["inputTokens"], row["usage"]["outputTokens"]) == (25, 7)
        assert row["usageStatus"] == "reported"
        summary = (await shown(on, case))["summary"]
        assert (summary["inputTokens"], summary["outputTokens"], summary["measuredAttempts"]) == (25, 7, 1)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_fc_50_no_usage_anywhere_is_unknown(wire: Any, confdir: Path) -> None:
    bare = {
        "R": response(200, b'{"object":"response","status":"completed","output":[{"type":"message"}]}'),
        "C": response(200, b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}'),
        "M": response(200, b'{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}]}'),
    }
    case = Case(wire, alpha=bare[wire.name])
    async with stage(confdir, case) as on:
        answer = await on.ask(case, stream=False)
        assert answer.status == 200
        row = await recorded(on, case)
        assert (row["usage"], row["usageStatus"], row["attempts"][0]["usage"]) == (None, "unreported", None)
        summary = (await shown(on, case))["summary"]
        assert (summary["attempts"], summary["measuredAttempts"], summary["inputTokens"]) == (1, 0, None)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (R, b'{"object":"response","status":"completed","output":[{"type":"message"}],'
            b'"usage":{"input_tokens":11,"output_tokens":4,"total_tokens":15}}'),
        (C, b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}],'
            b'"usage":{"prompt_tokens":11,"completion_tokens":4,"total_tokens":15}}'),
        (M, b'{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],'
            b'"usage":{"input_tokens":11,"output_tokens":4}}'),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
async def test_fc_50_plain_json_as_given(wire: Any, body: bytes, confdir: Path) -> None:
    case = Case(wire, alpha=response(200, body))
    async with stage(confdir, case) as on:
        await on.ask(case, stream=False)
        row = await recorded(on, case)
        assert (row["usage"]["inputTokens"], row["usage"]["outputTokens"], row["usage"]["totalTokens"]) == (11, 4, 15)


async def test_fc_50_a_failed_attempt_has_its_own_usage_and_the_total_is_the_sum(confdir: Path) -> None:
    failed = of_responses(
        "response.failed",
        error={"code": "server_is_overloaded", "message": "busy"},
        usage={"input_tokens": 10},
    )
    text = sse({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": "hi"})
    completed = of_responses("response.completed", usage={"input_tokens": 12, "output_tokens": 3})
    case = Case(R, alpha=event_stream(of_responses("response.created"), failed), beta=event_stream(text, completed))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert b"response.completed" in answer.body
        row = await recorded(on, case)
        first, second = row["attempts"]
        assert (first["usage"]["inputTokens"], first["usage"]["outputTokens"]) == (10, None)
        assert (second["usage"]["inputTokens"], second["usage"]["outputTokens"]) == (12, 3)
        assert (row["usage"]["inputTokens"], row["usage"]["outputTokens"]) == (22, 3)
        rows = {one["provider"]: one for one in (await shown(on, case))["models"]}
        assert rows[case.provider("alpha")]["inputTokens"] == 10
        assert rows[case.provider("beta")]["inputTokens"] == 12


async def test_fc_50_usage_of_a_stream_is_read_without_holding_it_back(confdir: Path) -> None:
    """The bytes that reach the client are those that were sent, and they come before the stream has ended."""
    stream = [started(input_tokens=5, output_tokens=1), *spoken("x" * 50_000), *ended(output_tokens=9)]
    case = Case(M, alpha=event_stream(*stream))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert answer.body == b"".join(stream)
        row = await recorded(on, case)
        assert row["usage"]["outputTokens"] == 9
        assert row["firstOutputMs"] is not None
