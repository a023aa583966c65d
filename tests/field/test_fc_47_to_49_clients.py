"""Field cases FC-47 and FC-49: compressed request bodies, and requests that wait beside those that do not."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest

from combos.wire import zstd
from rawclient import ask
from rawserver import Again, Expect, RawServer, Send, Stall, response
from stage import Case, stage, until
from wires import WIRES, R, error

CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstd.compress,
    "gzip": gzip.compress,
    "br": brotli.compress,
    "deflate": zlib.compress,
}


@pytest.mark.parametrize("coding", CODINGS)
async def test_fc_47_compressed_request_body(coding: str, confdir: Path) -> None:
    cases = [Case(wire, alpha=error(503, {}), beta=wire.answers("beta-ok")) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case in cases:
            document = case.wire.request(case.model)
            packed = CODINGS[coding](json.dumps(document).encode())
            answer = await on.ask(case, packed, [(b"Content-Encoding", coding.encode())])
            assert b"beta-ok" in answer.body
            assert case.calls == ["alpha", "beta"]
            for sent, model in zip(case.requests, ("m1", "m2"), strict=True):
                assert sent.header("content-encoding") is None
                assert json.loads(sent.body) == {**document, "model": model}


BROKEN = {
    "zstd": b"(\xb5/\xfd\x04not zstd",
    "gzip": gzip.compress(b"x" * 100)[:-20],
    "br": b"\xff\xff\xff not brotli",
    "deflate": b"\x78\x9c not deflate",
    "zstd, gzip": gzip.compress(b"not zstd inside"),
    "compress": b"\x1f\x9d",
}


async def test_fc_47_a_body_that_does_not_decode(confdir: Path) -> None:
    cases = [Case(wire, alpha=wire.answers("alpha-ok")) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case in cases:
            for coding, body in BROKEN.items():
                answer = await on.ask(case, body, [(b"Content-Encoding", coding.encode())])
                assert 400 <= answer.status < 500, coding
                assert answer.json()["error"]["message"]
            assert case.calls == []
            assert b"alpha-ok" in (await on.ask(case)).body


async def test_fc_47_a_body_that_decodes_to_more_than_the_limit(confdir: Path) -> None:
    cases = [Case(wire, alpha=wire.answers("alpha-ok")) for wire in WIRES]
    async with stage(confdir, *cases, document={"maxInboundBodyBytes": 100_000}) as on:
        for case in cases:
            for coding, compress in CODINGS.items():
                bomb = compress(json.dumps(case.wire.request(case.model, pad="x" * 2_000_000)).encode())
                answer = await on.ask(case, bomb, [(b"Content-Encoding", coding.encode())])
                assert answer.status == 413, coding
                assert answer.json()["error"]["message"]
            plain = await on.ask(case, pad="x" * 200_000)
            assert plain.status == 413
            assert case.calls == []
            assert b"alpha-ok" in (await on.ask(case)).body


async def test_fc_49_a_request_that_waits_holds_nobody_else(confdir: Path) -> None:
    """Ten requests wait for their targets at the same time; fifty plain ones pass while they do."""
    released = asyncio.Event()
    cases = [Case(R, alpha=[Stall(released), Send(error(503, {}))], beta=R.answers("beta-ok")) for _ in range(10)]
    other = [Again([Expect(), Send(response(200, b'{"model":"plain"}'))])]
    async with RawServer(other) as plain, stage(confdir, *cases) as on:
        waiting = [asyncio.create_task(on.ask(case)) for case in cases]
        await until(lambda: all(case.calls for case in cases))
        body = json.dumps(R.request("another-model")).encode()
        host = plain.url.removeprefix("http://").encode()
        passed = await asyncio.gather(
            *(ask(on.proxy.port, "POST", f"{plain.url}/v1/responses", body=body, host=host) for _ in range(50))
        )
        assert [answer.body for answer in passed] == [b'{"model":"plain"}'] * 50
        # Every plain request is over, and no combo request is: it waits for a target and for nothing else.
        assert [task.done() for task in waiting] == [False] * 10
        assert [case.calls for case in cases] == [["alpha"]] * 10
        released.set()
        assert all(b"beta-ok" in answer.body for answer in await asyncio.gather(*waiting))
