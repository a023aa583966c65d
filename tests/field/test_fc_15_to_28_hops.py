"""Field cases FC-15 to FC-28: which failures are tried elsewhere, and which are the answer."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brotli
import pytest

from combos.wire import zstd
from rawclient import Answer
from rawserver import event_stream, response
from stage import Case, Stage, stage
from wires import WIRES, C, R, Wire, error, sse

MINUTE_MS = 60_000
HOLD_MS = 600_000


def each(alpha: bytes, beta: str = "beta-ok", *, stream: bool = True, wires: tuple[Wire, ...] = WIRES) -> list[Case]:
    """One case for every wire with this failure and a healthy second target."""
    return [Case(wire, alpha=alpha, beta=wire.answers(beta, stream=stream)) for wire in wires]


async def all_hop(on: Stage, cases: list[Case], cooling: dict[str, int], *, stream: bool = True) -> None:
    for case, answer in zip(cases, await on.ask_all(cases, stream=stream), strict=True):
        what = case.record.attempts if case.record else None
        assert case.calls == ["alpha", "beta"], what
        assert answer.status == 200
        assert b"beta-ok" in answer.body
        assert on.cooling(case) == cooling, what


async def all_stop(on: Stage, cases: list[Case]) -> list[Answer]:
    answers = await on.ask_all(cases)
    for case in cases:
        assert case.calls == ["alpha"], case.record
        assert on.cooling(case) == {}
    return answers


def is_intact(answer: Answer, status: int, document: object) -> bool:
    kind = answer.header("content-type")
    return (answer.status, answer.json(), kind, answer.clean) == (status, document, "application/json", True)


@pytest.mark.parametrize("stream", [True, False], ids=["streaming", "plain"])
async def test_fc_15_rejected_key_on_the_primary(stream: bool, confdir: Path) -> None:
    rejected = {"error": {"type": "authentication_error", "code": "invalid_api_key", "message": "bad key"}}
    unauthorized = each(error(401, rejected), stream=stream)
    forbidden = each(error(403, {"error": {"message": "forbidden"}}), stream=stream)
    async with stage(confdir, *unauthorized, *forbidden) as on:
        await all_hop(on, unauthorized, {"alpha/m1": HOLD_MS}, stream=stream)
        await all_hop(on, forbidden, {"alpha/m1": MINUTE_MS}, stream=stream)


async def test_fc_16_server_errors_outside_the_classic_four(confdir: Path) -> None:
    statuses = (500, 501, 502, 503, 504, 507, 520, 522, 524, 529, 599)
    cases = [case for status in statuses for case in each(response(status))]
    async with stage(confdir, *cases) as on:
        await all_hop(on, cases, {"alpha/m1": MINUTE_MS})


async def test_fc_17_client_errors_that_are_not_in_the_table(confdir: Path) -> None:
    no = {"error": {"message": "no"}}
    statuses = (405, 406, 409, 411, 413, 415, 418, 422, 451)
    stops = {status: each(error(status, no)) for status in statuses}
    hops = [*each(error(404, no)), *each(error(408, no))]
    async with stage(confdir, *hops, *(case for cases in stops.values() for case in cases)) as on:
        for status, cases in stops.items():
            for answer in await all_stop(on, cases):
                assert is_intact(answer, status, no)
        await all_hop(on, hops, {"alpha/m1": MINUTE_MS})


GONE: list[tuple[dict[str, str], bool]] = [
    ({"message": "Model m1 reached end of life in September"}, True),
    ({"code": "model_retired", "message": "gone"}, True),
    ({"message": "This model is no longer available"}, True),
    ({"message": "This conversation has expired"}, False),
    ({"message": "This endpoint was deprecated"}, False),
]


async def test_fc_18_410_is_read_not_counted(confdir: Path) -> None:
    runs = [(fault, hops, each(error(410, {"error": fault}))) for fault, hops in GONE]
    async with stage(confdir, *(case for _, _, cases in runs for case in cases)) as on:
        for fault, hops, cases in runs:
            if hops:
                await all_hop(on, cases, {"alpha/m1": MINUTE_MS})
            else:
                for answer in await all_stop(on, cases):
                    assert is_intact(answer, 410, {"error": fault})


async def test_fc_19_account_cannot_use_that_one_model(confdir: Path) -> None:
    refusal = {"detail": "The 'm1' model is not supported when using Codex with a ChatGPT account."}
    case = Case(
        R,
        targets=["alpha/m1", "alpha/m3", "beta/m2"],
        alpha=[error(400, refusal), R.answers("alpha-ok")],
        beta=R.answers("beta-ok"),
    )
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert b"alpha-ok" in answer.body
        assert [json.loads(request.body)["model"] for request in case.requests] == ["m1", "m3"]
        assert on.cooling(case) == {"alpha/m1": MINUTE_MS}


UNFIT: list[dict[str, Any]] = [
    {"message": "Unsupported parameter: user", "param": "user"},
    {
        "code": "unsupported_value",
        "param": "reasoning.effort",
        "message": "Unsupported value: 'xhigh' is not supported with this model.",
    },
    {"param": "input", "message": "Model 'm1' does not support image inputs."},
]


@pytest.mark.parametrize("fault", UNFIT, ids=["user", "effort", "image"])
async def test_fc_20_the_request_does_not_fit_this_target(fault: dict[str, Any], confdir: Path) -> None:
    document = {"error": {"type": "invalid_request_error", **fault}}
    case = Case(R, alpha=[error(400, document), R.answers("alpha-ok")], beta=R.answers("beta-ok"))
    alone = Case(R, alpha=error(400, document))
    async with stage(confdir, case, alone) as on:
        assert b"beta-ok" in (await on.ask(case, user="u")).body
        assert on.cooling(case) == {}
        assert b"alpha-ok" in (await on.ask(case)).body
        assert case.calls == ["alpha", "beta", "alpha"]
        assert is_intact(await on.ask(alone), 400, document)


async def test_fc_21_403_around_a_400_looking_body(confdir: Path) -> None:
    fault = {"type": "server_error", "message": "[400] model is unavailable"}
    cases = each(error(403, {"error": fault}), wires=(C,))
    async with stage(confdir, *cases) as on:
        await all_hop(on, cases, {"alpha/m1": MINUTE_MS})


async def test_fc_22_soft_authentication_error_in_a_200_stream(confdir: Path) -> None:
    fault = {"type": "authentication_error", "message": "model call unauthorized"}
    cases = each(event_stream(sse({"type": "error", "error": fault})), wires=(R,))
    async with stage(confdir, *cases) as on:
        await all_hop(on, cases, {"alpha/m1": HOLD_MS})


async def test_fc_23_the_backups_own_verdict_is_the_answer(confdir: Path) -> None:
    slow = {"error": {"message": "slow down"}}
    long = {"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "too long"}}
    cases = [Case(wire, alpha=error(429, slow), beta=error(400, long)) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case, answer in zip(cases, await on.ask_all(cases), strict=True):
            assert case.calls == ["alpha", "beta"]
            assert is_intact(answer, 400, long)
            assert on.cooling(case) == {"alpha/m1": MINUTE_MS}


REFUSALS: list[tuple[int, dict[str, str]]] = [
    (400, {"type": "invalid_request", "code": "cyber_policy", "message": "flagged"}),
    (403, {"code": "cyber_policy", "message": "flagged"}),
    (400, {"type": "invalid_request_error", "code": "content_policy_violation", "message": "rejected"}),
    (403, {"code": "origin_rejected", "message": "origin"}),
]


async def test_fc_24_a_refusal_is_not_an_outage(confdir: Path) -> None:
    runs = [(status, {"error": fault}, each(error(status, {"error": fault}))) for status, fault in REFUSALS]
    flagged = {"id": "r", "status": "failed", "error": {"code": "cyber_policy", "message": "flagged"}}
    events = [*R.start(), sse({"type": "response.failed", "response": flagged})]
    streamed = each(event_stream(*events), wires=(R,))
    async with stage(confdir, *streamed, *(case for _, _, cases in runs for case in cases)) as on:
        for status, document, cases in runs:
            for answer in await all_stop(on, cases):
                assert is_intact(answer, status, document)
        (answer,) = await all_stop(on, streamed)
        assert (answer.status, answer.body) == (200, b"".join(events))


async def test_fc_25_broken_tool_call_arguments_in_the_history(confdir: Path) -> None:
    message = "messages[3].tool_calls[0].function.arguments is not valid JSON"
    document = {"error": {"type": "invalid_request_error", "message": message}}
    cases = each(error(400, document), wires=(C,))
    async with stage(confdir, *cases) as on:
        (answer,) = await all_stop(on, cases)
        assert is_intact(answer, 400, document)


async def test_fc_26_a_backup_that_dislikes_a_foreign_call_id(confdir: Path) -> None:
    call = "call_" + "x" * 89
    history = [
        {"type": "function_call", "call_id": call, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call, "output": "done"},
    ]
    fault = {
        "type": "invalid_request_error",
        "code": "string_above_max_length",
        "param": "input[1].call_id",
        "message": "Invalid 'input[1].call_id': string too long.",
    }
    case = Case(R, alpha=error(503, {"error": {"message": "down"}}), beta=error(400, {"error": fault}))
    async with stage(confdir, case) as on:
        answer = await on.ask(case, input=history)
        assert is_intact(answer, 400, {"error": fault})
        assert on.cooling(case) == {"alpha/m1": MINUTE_MS}
        (sent,) = case.requests_of("beta")
        assert json.loads(sent.body)["input"] == history


CODINGS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (gzip.compress, gzip.decompress),
    "br": (brotli.compress, brotli.decompress),
    "deflate": (zlib.compress, zlib.decompress),
    "zstd": (zstd.compress, lambda data: zstd.ZstdDecompressor().decompress(data)),
}


@pytest.mark.parametrize("coding", CODINGS)
async def test_fc_27_compressed_error_body(coding: str, confdir: Path) -> None:
    fault = {"type": "invalid_request_error", "param": "user", "message": "Unsupported parameter: user"}
    plain = json.dumps({"error": fault}).encode()
    compress, decompress = CODINGS[coding]
    headers = [(b"Content-Type", b"application/json"), (b"Content-Encoding", coding.encode())]
    packed = response(400, compress(plain), headers)
    cases = each(packed)
    alone = [Case(wire, alpha=packed) for wire in WIRES]
    async with stage(confdir, *cases, *alone) as on:
        await all_hop(on, cases, {})
        for answer in await on.ask_all(alone):
            assert answer.status == 400
            body = decompress(answer.body) if answer.header("content-encoding") == coding else answer.body
            assert body == plain
            assert answer.clean


async def test_fc_28_html_from_an_edge(confdir: Path, caplog: pytest.LogCaptureFixture) -> None:
    page = b"<html><head><title>502 Bad Gateway</title></head><body><hr>edge</body></html>"
    edge = response(502, page, [(b"Content-Type", b"text/html")])
    cases = each(edge)
    alone = [Case(wire, alpha=edge) for wire in WIRES]
    async with stage(confdir, *cases, *alone) as on:
        await all_hop(on, cases, {"alpha/m1": MINUTE_MS})
        for answer in await on.ask_all(alone):
            assert (answer.status, answer.body, answer.header("content-type")) == (502, page, "text/html")
    assert not [record for record in caplog.records if "pars" in record.getMessage().lower()]
