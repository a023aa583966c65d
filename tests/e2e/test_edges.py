"""Unusual but legal traffic: framings, encodings, names, intercepted and replayed flows, mitmproxy's own options."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import brotli
import pytest
from mitmproxy.http import HTTPFlow, Response

from combos.wire import zstd
from rawclient import answer_of, ask, request_bytes, talk
from rawserver import LAST_CHUNK, Again, Expect, RawServer, Send, Stall, chunk, event_head, head, response
from stage import Case, stage, until
from wires import WIRES, C, M, R, Wire, error

pytestmark = pytest.mark.usefixtures("entrance")

DOWN = error(503, {"error": {"message": "down"}})


def hopping(wire: Wire, *, stream: bool = True) -> Case:
    return Case(wire, alpha=DOWN, beta=wire.answers("beta-ok", stream=stream))


# -- requests


async def test_many_requests_on_one_connection_ours_and_theirs(confdir: Path) -> None:
    """The next request on a connection is not bound to where the last one went."""
    made = [
        Case(R, alpha=R.answers("ok-1")),
        Case(C, alpha=DOWN, beta=C.answers("ok-2")),
        Case(M, alpha=M.answers("ok-3")),
    ]
    async with RawServer([Again([Expect(), Send(response(200, b"theirs"))])]) as vendor, stage(confdir, *made) as on:
        host = vendor.url.removeprefix("http://").encode()
        on.port = on.proxy.port  # only a proxy goes to other hosts
        async with talk(on.port, b"") as raw:
            for _ in range(2):
                for case, text in zip(made, (b"ok-1", b"ok-2", b"ok-3"), strict=True):
                    raw.writer.write(on.request(case))
                    assert text in (await answer_of(raw)).body
                    target = f"{vendor.url}/v1/responses"
                    raw.writer.write(request_bytes("POST", target, [(b"Host", host)], b'{"model":"theirs"}'))
                    assert (await answer_of(raw)).body == b"theirs"
        assert len(vendor.requests) == 6


async def test_a_chunked_request_body(confdir: Path) -> None:
    case = hopping(R)
    async with stage(confdir, case) as on:
        body = json.dumps(R.request(case.model)).encode()
        fields = [b"Host: 127.0.0.1:%d" % on.port, b"Transfer-Encoding: chunked"]
        start = b"\r\n".join([b"POST /v1/responses HTTP/1.1", *fields]) + b"\r\n\r\n"
        async with talk(on.port, start + chunk(body[:7]) + chunk(body[7:]) + LAST_CHUNK) as raw:
            assert b"beta-ok" in (await answer_of(raw)).body
        for request, model in zip(case.requests, ("m1", "m2"), strict=True):
            assert json.loads(request.body) == R.request(model)
            assert request.all("content-length") == [str(len(request.body))]
            assert request.header("transfer-encoding") is None


async def test_expect_continue(confdir: Path) -> None:
    case = hopping(R)
    async with stage(confdir, case) as on:
        whole = on.request(case, headers=[(b"Expect", b"100-continue")])
        start, _, body = whole.partition(b"\r\n\r\n")
        async with talk(on.port, start + b"\r\n\r\n") as raw:
            assert (await raw.head())[0] == 100
            raw.writer.write(body)
            assert b"beta-ok" in (await answer_of(raw)).body
        assert case.requests[0].header("expect") is None


async def test_an_http10_client_gets_a_stream_that_ends_with_the_connection(confdir: Path) -> None:
    case = hopping(R)
    async with stage(confdir, case) as on:
        request = on.request(case).replace(b" HTTP/1.1", b" HTTP/1.0", 1)
        async with talk(on.port, request) as raw:
            answer = await answer_of(raw)
        assert answer.header("transfer-encoding") is None
        assert answer.body == b"".join(R.ok("beta-ok"))


@pytest.mark.parametrize("limit", ["1", "100k"])
async def test_large_bodies_are_streamed_by_option_and_ours_are_still_whole(limit: str, confdir: Path) -> None:
    made = [Case(wire, alpha=DOWN, beta=wire.answers("beta-ok")) for wire in WIRES]
    async with stage(confdir, *made, stream_large_bodies=limit) as on:
        for case in made:
            assert b"beta-ok" in (await on.ask(case, pad="x" * 300_000)).body
            assert [len(request.body) > 300_000 for request in case.requests] == [True, True]


SPELLINGS = {
    "escaped": rb'"combo\/%s"',
    "by code point": rb'"\u0063ombo/%s"',
}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_model_name_written_with_escapes(spelling: str, confdir: Path) -> None:
    case = hopping(R)
    async with stage(confdir, case) as on:
        name = SPELLINGS[spelling] % case.id.encode()
        body = b'{"stream":true,"input":"hi","deep":{"model":"combo/none"},"model": ' + name + b"}"
        assert b"beta-ok" in (await on.ask(case, body)).body
        for request, model in zip(case.requests, (b"m1", b"m2"), strict=True):
            assert request.body == body.replace(name, b'"' + model + b'"')


async def test_a_model_member_given_twice(confdir: Path) -> None:
    """Parsers take the last one; no target may see the name that was asked for."""
    case = hopping(R)
    async with stage(confdir, case) as on:
        body = json.dumps(R.request("first"))[:-1].encode() + b',"model":' + json.dumps(case.model).encode() + b"}"
        answer = await on.ask(case, body)
        assert answer.status in (200, 400)
        for request in case.requests:
            assert json.loads(request.body)["model"] in ("m1", "m2")
            assert case.model.encode() not in request.body


async def test_a_model_id_cannot_break_out_of_its_line_or_path(confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok", headers=[(b"openai-model", b"other")]))
    gemini = Case(R, alpha=DOWN, providers={"alpha": {"adapter": "google"}})
    async with stage(confdir, case, gemini) as on:
        hint = [(b"x-codex-routing-hint", b"model=abc")]
        for evil in ("m\r\nx-evil: 1", "m\n", "m\0"):
            refused = await on.ask(case, headers=hint, model=f"{case.provider('alpha')}/{evil}")
            assert (refused.status, refused.json()["error"]["type"]) == (400, "invalid_request_error")
        assert case.calls == []
        named = f"{case.provider('alpha')}/日本"
        assert (await on.ask(case, headers=hint, model=named)).status == 200
        await on.ask(gemini, model=f"{gemini.provider('alpha')}/m?key=x#y z")
        path = gemini.requests[0].target
        assert path.endswith("/models/m%3Fkey%3Dx%23y%20z:streamGenerateContent?alt=sse")


async def test_the_query_goes_along(confdir: Path) -> None:
    case = Case(M, alpha=DOWN, beta=M.answers("beta-ok"))
    async with stage(confdir, case) as on:
        body = json.dumps(M.request(case.model)).encode()
        answer = await ask(on.port, "POST", "/v1/messages?beta=true", body=body)
        assert b"beta-ok" in answer.body
        assert [request.target.partition("?")[2] for request in case.requests] == ["beta=true", "beta=true"]


# -- answers


CODINGS: dict[str, Any] = {
    "gzip": (gzip.compress, gzip.decompress),
    "br": (brotli.compress, brotli.decompress),
    "zstd": (zstd.compress, lambda data: zstd.ZstdDecompressor().decompress(data)),
}


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_compressed_stream_is_understood_and_stays_readable(coding: str, confdir: Path) -> None:
    """Targets are asked for plain answers; some compress all the same."""
    compress, decompress = CODINGS[coding]
    fields = [
        (b"Content-Type", b"text/event-stream"),
        (b"Content-Encoding", coding.encode()),
        (b"Transfer-Encoding", b"chunked"),
    ]

    def packed(events: list[bytes]) -> bytes:
        return head(200, fields) + chunk(compress(b"".join(events))) + LAST_CHUNK

    made = [Case(wire, alpha=packed([*wire.start(), wire.busy()]), beta=packed(wire.ok("beta-ok"))) for wire in WIRES]
    async with stage(confdir, *made) as on:
        for case, answer in zip(made, await on.ask_all(made), strict=True):
            assert case.calls == ["alpha", "beta"]
            body = decompress(answer.body) if answer.header("content-encoding") else answer.body
            assert body == b"".join(case.wire.ok("beta-ok"))
            assert answer.clean


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_compressed_whole_answer(coding: str, confdir: Path) -> None:
    compress, decompress = CODINGS[coding]
    fields = [(b"Content-Type", b"application/json"), (b"Content-Encoding", coding.encode())]
    made = [
        Case(wire, alpha=DOWN, beta=response(200, compress(json.dumps(wire.whole("beta-ok")).encode()), fields))
        for wire in WIRES
    ]
    async with stage(confdir, *made) as on:
        for case, answer in zip(made, await on.ask_all(made, stream=False), strict=True):
            body = decompress(answer.body) if answer.header("content-encoding") else answer.body
            assert json.loads(body) == case.wire.whole("beta-ok")


async def test_interim_answers_of_a_target_are_passed_over(confdir: Path) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    case = Case(R, alpha=early + DOWN, beta=early + R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert answer.status == 200
        assert b"beta-ok" in answer.body


async def test_a_redirect_is_no_answer_and_is_not_followed(confdir: Path) -> None:
    async with RawServer([Expect(), Send(response(200, b"{}"))]) as other:
        moved = response(307, b"", [(b"Location", f"{other.url}/v1/responses".encode())])
        case = Case(R, alpha=moved, beta=R.answers("beta-ok"))
        async with stage(confdir, case) as on:
            assert (await on.ask(case)).status == 307
            assert case.calls == ["alpha"]
            assert other.requests == []


HEADERS_OF_TARGETS = [
    (b"Connection", b"close, x-hop"),
    (b"X-Hop", b"1"),
    (b"Keep-Alive", b"timeout=5"),
    (b"Set-Cookie", b"a=b"),
    (b"Alt-Svc", b"h3"),
    (b"Strict-Transport-Security", b"max-age=1"),
    (b"X-Kept", b"yes"),
]


async def test_headers_of_one_connection_stay_on_it(confdir: Path) -> None:
    streamed = Case(R, alpha=R.answers("alpha-ok", headers=HEADERS_OF_TARGETS))
    failed = Case(R, alpha=error(418, {}, HEADERS_OF_TARGETS))
    async with stage(confdir, streamed, failed) as on:
        for answer in await on.ask_all([streamed, failed]):
            assert answer.header("x-kept") == "yes"
            for name in ("x-hop", "keep-alive", "set-cookie", "alt-svc", "strict-transport-security"):
                assert answer.header(name) is None


# -- mitmproxy's own tools


class Intercepting:
    """Intercepts the client's flows in `request`."""

    def __init__(self) -> None:
        self.caught: list[HTTPFlow] = []

    def request(self, flow: HTTPFlow) -> None:
        if "attempt" not in flow.metadata.get("combos", {}):
            flow.intercept()
            self.caught.append(flow)


async def test_an_intercepted_request_is_served_when_it_is_resumed(confdir: Path) -> None:
    case, tool = hopping(R), Intercepting()
    async with stage(confdir, case, addons=[tool]) as on:
        asked = asyncio.create_task(on.ask(case))
        await until(lambda: bool(tool.caught))
        assert case.calls == []
        tool.caught[0].resume()
        assert b"beta-ok" in (await asked).body


async def test_an_intercepted_request_that_is_killed_is_not_served(confdir: Path) -> None:
    case, tool = hopping(R), Intercepting()
    async with stage(confdir, case, addons=[tool]) as on, on.talk(case) as raw:
        await until(lambda: bool(tool.caught))
        tool.caught[0].resume()
        tool.caught[0].kill()
        assert await asyncio.wait_for(raw.reader.read(), 10) == b""
        assert case.calls == []


async def test_a_replayed_flow_is_served_again(confdir: Path) -> None:
    case = hopping(R)
    async with stage(confdir, case) as on:
        await on.ask(case)
        (flow,) = [flow for flow in on.flows if flow.metadata.get("combos", {}).get("combo") == case.id]
        on.proxy.master.commands.call("replay.client", [flow])
        await until(lambda: len(case.records) == 2)
        await until(lambda: flow.response is not None and bool(flow.response.raw_content))
        assert flow.response is not None
        assert flow.response.raw_content == b"".join(R.ok("beta-ok"))
        assert case.calls == ["alpha", "beta", "beta"]


class Answering:
    """Answers every request itself, before the addon is asked."""

    def requestheaders(self, flow: HTTPFlow) -> None:
        flow.response = Response.make(200, b"by another addon")


async def test_a_request_that_another_addon_has_answered_is_left_alone(confdir: Path) -> None:
    case = hopping(R)
    async with stage(confdir, case, addons=[Answering()]) as on:
        assert (await on.ask(case)).body == b"by another addon"
        assert case.calls == []


async def test_streams_of_ours_are_kept_for_inspection_within_the_limit(confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, combos_options={"combos_body_limit": 40}) as on:
        await on.ask(case)
        (flow,) = [flow for flow in on.flows if flow.metadata.get("combos", {}).get("combo") == case.id]
        assert flow.response is not None
        assert flow.response.raw_content == b"".join(R.ok("alpha-ok"))[:40]


async def test_a_slow_client_does_not_make_the_proxy_read_on(confdir: Path) -> None:
    """The target is read only as fast as the client takes it: what it can send meanwhile is bounded."""
    gate = asyncio.Event()
    piece = R.delta("x" * 65_536)
    sent: list[int] = []

    async def pour(connection: Any) -> None:
        for number in range(2_000):
            connection.writer.write(chunk(piece))
            await connection.writer.drain()
            sent.append(number)

    case = Case(R, alpha=[Send(event_head()), pour, Stall(gate)])
    async with stage(confdir, case) as on, on.talk(case) as raw:
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: len(sent) > 3)
        quiet = -1
        while quiet != len(sent):  # nothing announces that nothing more is sent
            quiet = len(sent)
            await asyncio.sleep(0.3)
        assert len(sent) < 1_000
        raw.leave()
        gate.set()


async def test_a_request_that_comes_back_through_another_proxy_ends_here(confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case) as on:
        assert (await on.ask(case)).status == 200
        (sent,) = on.server.requests
        mark = sent.header("cdn-loop")
        assert mark
        back = await on.ask(case, headers=[(b"CDN-Loop", b"other-proxy"), (b"CDN-Loop", mark.encode())])
        assert back.status == 508
        assert back.json()["error"]["code"] == "loop_detected"
        other = await on.ask(case, headers=[(b"CDN-Loop", b"other-proxy")])
        assert other.status == 200
        assert on.server.requests[-1].all("cdn-loop") == [f"other-proxy, {mark}"]
