"""mitmproxy's own features beside a responder: intercept, kill, hooks, limits, stored bodies, replay."""

import asyncio
import logging

import pytest
from mitmproxy.http import HTTPFlow, Response

from combos.mitm.claims import hold_request, respond_with
from combos.mitm.layer import answer_whole
from combos.mitm.writer import ResponseWriter
from mitm.harness import (
    LIMIT_S,
    h1_client,
    h2_client,
    origin,
    tunnel,
)
from mitm.streaming import (
    EVENT_STREAM,
    GET,
    Answering,
    Flood,
    Hooks,
    Start,
    Watched,
    body_of,
    greet,
    inner_layer,
    mid_stream,
    plain_answer,
    streams,
    whole,
)


async def test_an_intercepted_response_waits_for_the_user(start: Start) -> None:
    intercepted: asyncio.Future[HTTPFlow] = asyncio.get_running_loop().create_future()

    def intercept(flow: HTTPFlow) -> None:
        flow.intercept()
        intercepted.set_result(flow)

    watched = Watched(greet)
    proxy = await start(Answering(watched), Hooks(responseheaders=intercept))
    async with h1_client(proxy) as client:
        client.send(GET)
        flow = await asyncio.wait_for(intercepted, LIMIT_S)
        assert not watched.completed.is_set()
        flow.resume()
        await client.head()
        assert await body_of(client) == b"onetwothree"


async def test_killing_an_intercepted_response_cancels_the_responder(start: Start) -> None:
    def intercept(flow: HTTPFlow) -> None:
        flow.intercept()
        flow.kill()

    watched = Watched(greet)
    proxy = await start(Answering(watched), Hooks(responseheaders=intercept))
    async with h1_client(proxy) as client:
        client.send(GET)
        assert await client.rest() == b""
    await watched.was_cancelled()


async def test_a_kill_in_mid_stream_is_noticed_at_the_next_chunk(start: Start) -> None:
    killed = asyncio.Event()

    async def until_killed(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM)
        await writer.chunk(b"before")
        await killed.wait()
        await writer.chunk(b"after")

    watched = Watched(until_killed)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h2_client(proxy) as client:
        stream = client.request("/ours")
        await client.until(lambda: client.bodies[stream] == b"before")
        answering.flows[0].kill()
        killed.set()
        assert list(inner_layer(proxy).streams) == [stream]
        await client.until(lambda: stream in client.reset)
        assert client.bodies[stream] == b"before"
        assert inner_layer(proxy).streams == {}
    await watched.was_cancelled()


async def test_a_response_set_by_another_addon_wins(start: Start) -> None:
    watched = Watched(greet)
    proxy = await start(
        Answering(watched), Hooks(request=lambda flow: setattr(flow, "response", Response.make(418, b"tea")))
    )
    async with h1_client(proxy) as client:
        client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 418 ")
    assert not watched.entered.is_set()


async def test_response_hooks_fire_in_order_and_may_change_a_whole_body(start: Start) -> None:
    seen = []

    def response(flow: HTTPFlow) -> None:
        seen.append("response")
        flow.response.content = b"changed"

    proxy = await start(
        Answering(whole), Hooks(responseheaders=lambda flow: seen.append("responseheaders"), response=response)
    )
    async with h1_client(proxy) as client:
        client.send(GET)
        assert b"content-length: 7" in await client.head()
        assert await client.exactly(7) == b"changed"
    assert seen == ["responseheaders", "response"]


async def test_a_stream_function_of_another_addon_is_applied(start: Start) -> None:
    proxy = await start(
        Answering(greet),
        Hooks(responseheaders=lambda flow: setattr(flow.response, "stream", lambda data: data.upper())),
    )
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"ONETWOTHREE"


async def test_a_broken_stream_function_of_another_addon_breaks_the_answer_off(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(data: bytes) -> bytes:
        raise KeyError("sk-secret")

    proxy = await start(Answering(greet), Hooks(responseheaders=streams(broken)))
    caplog.clear()
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b""
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "KeyError" in errors[0]
    assert "broken" in errors[0]


async def test_no_log_line_names_a_server_that_was_not_asked(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    assert "client connect" in caplog.text
    assert "Streaming response" not in caplog.text


async def test_debugging_of_the_proxy_core_shows_no_bodies_of_ours(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    proxy = await start(Answering(greet), proxy_debug=True)
    async with tunnel(proxy, "models.test", "http/1.1") as client:
        client.send(b"GET /ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
        await client.head()
        assert await body_of(client) == b"onetwothree"
    assert ">> ToStream({})" in caplog.text


async def test_the_first_bytes_of_a_streamed_body_stay_in_the_flow(start: Start) -> None:
    async def capturing(flow: HTTPFlow, writer: ResponseWriter) -> None:
        writer.capture_limit = 5
        await greet(flow, writer)
        assert not writer.captured_all

    answering = Answering(capturing)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    assert answering.flows[0].response.raw_content == b"onetw"


async def test_what_was_captured_stays_when_the_client_leaves(start: Start) -> None:
    async def capturing(flow: HTTPFlow, writer: ResponseWriter) -> None:
        writer.capture_limit = 100
        await mid_stream(flow, writer)

    watched = Watched(capturing)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await client.chunk()
    await watched.was_cancelled()
    assert answering.flows[0].response.raw_content == b"first"


async def test_store_streamed_bodies_keeps_all_of_it(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering, store_streamed_bodies=True)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    assert answering.flows[0].response.raw_content == b"onetwothree"


async def test_a_response_over_the_size_limit_is_refused(start: Start) -> None:
    watched = Watched(Flood(2**20))
    proxy = await start(Answering(watched), body_size_limit="1k")
    async with h1_client(proxy) as client:
        client.send(GET)
        assert (await client.rest()).startswith(b"HTTP/1.1 502 ")
    await watched.was_cancelled()


BIG = b"x" * 3000
WITH_LENGTH = b"POST http://models.test/ours HTTP/1.1\r\nhost: models.test\r\ncontent-length: 3000\r\n\r\n" + BIG
CHUNKED = (
    b"POST http://models.test/ours HTTP/1.1\r\nhost: models.test\r\ntransfer-encoding: chunked\r\n\r\n"
    b"5dc\r\n" + BIG[:1500] + b"\r\n5dc\r\n" + BIG[1500:] + b"\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("request_bytes", [WITH_LENGTH, CHUNKED])
async def test_a_held_request_is_collected_despite_stream_large_bodies(start: Start, request_bytes: bytes) -> None:
    async def echo(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.respond(200, (), flow.request.raw_content or b"")

    proxy = await start(Answering(echo), Hooks(requestheaders=hold_request), stream_large_bodies="1k")
    async with h1_client(proxy) as client:
        client.send(request_bytes)
        assert b"content-length: 3000" in await client.head()
        assert await client.exactly(3000) == BIG


async def test_a_held_request_over_the_size_limit_is_refused(start: Start) -> None:
    proxy = await start(Answering(greet), Hooks(requestheaders=hold_request), body_size_limit="1k")
    async with h1_client(proxy) as client:
        client.send(CHUNKED)
        assert (await client.rest()).startswith(b"HTTP/1.1 413 ")


async def test_a_request_that_was_streamed_upstream_gets_no_responder(start: Start) -> None:
    raised: list[RuntimeError] = []

    def late(flow: HTTPFlow) -> None:
        try:
            respond_with(flow, greet)
        except RuntimeError as error:
            raised.append(error)

    async with origin(plain_answer) as port:
        proxy = await start(Hooks(request=late), stream_large_bodies="1k")
        async with h1_client(proxy) as client:
            client.send(WITH_LENGTH.replace(b"models.test/", b"127.0.0.1:%d/" % port))
            await client.head()
            assert await client.exactly(5) == b"plain"
    assert len(raised) == 1


async def test_a_replayed_flow_is_answered_whole(start: Start) -> None:
    replayed: asyncio.Future[HTTPFlow] = asyncio.get_running_loop().create_future()

    async def request(flow: HTTPFlow) -> None:
        if flow.is_replay == "request":
            await answer_whole(flow, greet)
        else:
            respond_with(flow, greet)

    def response(flow: HTTPFlow) -> None:
        if flow.is_replay == "request":
            replayed.set_result(flow)

    answering = Hooks(request=request, response=response)
    flows: list[HTTPFlow] = []
    proxy = await start(answering, Hooks(response=flows.append))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    proxy.master.commands.call("replay.client", [flows[0].copy()])
    flow = await asyncio.wait_for(replayed, LIMIT_S)
    assert flow.response.raw_content == b"onetwothree"
    assert flow.response.headers["content-length"] == "11"
    proxy.master.commands.call("replay.client.stop")


async def test_a_flow_does_not_keep_its_responder(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    assert greet not in vars(answering.flows[0]).values()
