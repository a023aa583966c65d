"""Whoever leaves, the client or the addon, ends the answer at once."""

import asyncio
import gc

import pytest
from mitmproxy.http import HTTPFlow

from combos.mitm.internals import HttpStream
from combos.mitm.layer import (
    StreamedHttpLayer,
    StreamedResponses,
    ToStream,
)
from combos.mitm.writer import Responder, ResponseWriter
from mitm.harness import (
    LIMIT_S,
    h1_client,
    h2_client,
    settle,
)
from mitm.streaming import (
    CANCEL,
    GET,
    Answering,
    Flood,
    Pausing,
    Start,
    Watched,
    body_of,
    flooding,
    forever,
    greet,
    inner_layer,
    mid_stream,
    responders,
    stalled,
)

# --- the client leaves


@pytest.mark.parametrize(("name", "body"), [("before the head", forever), ("mid-stream", mid_stream)])
async def test_a_disconnect_cancels_at_once(start: Start, name: str, body: Responder) -> None:
    watched = Watched(body)
    proxy = await start(Answering(watched))
    async with h1_client(proxy) as client:
        client.send(GET)
        await asyncio.wait_for(watched.entered.wait(), LIMIT_S)
        if name == "mid-stream":
            await client.head()
            assert await client.chunk() == b"first"
    await watched.was_cancelled()


@pytest.mark.parametrize("sent", [b"G", b"GET http://models.test/ours HTTP/1.1\r\n\r\n"])
async def test_a_connection_that_is_given_up_while_it_waits_for_its_turn_is_closed(start: Start, sent: bytes) -> None:
    proxy = await start(Answering(Watched(forever)))
    gc.disable()  # which closes what nobody refers to, in its own time
    try:
        async with h1_client(proxy) as client:
            await settle(lambda: bool(proxy.handlers))
            (handler,) = proxy.handlers
            async with handler._server_event_lock:
                client.send(sent)
                await settle(lambda: bool(handler._server_event_lock._waiters))
                handler.close_connection(handler.client)
                await settle(lambda: not proxy.handlers)
            assert await asyncio.wait_for(client.reader.read(), LIMIT_S) == b""
    finally:
        gc.enable()


async def test_a_disconnect_cancels_a_writer_that_waits_for_the_socket(start: Start) -> None:
    flood = Flood(2**26)
    watched = Watched(flood)
    proxy = await start(Answering(watched))
    async with h1_client(proxy, read_limit=2**12) as client:
        client.send(GET)
        await stalled(flood)
    await watched.was_cancelled()


@pytest.mark.parametrize("hook", ["responseheaders", "response"])
async def test_a_disconnect_cancels_while_a_hook_holds_the_stream(start: Start, hook: str) -> None:
    watched, pausing = Watched(greet), Pausing(hook)
    proxy = await start(Answering(watched), pausing)
    async with h1_client(proxy) as client:
        client.send(GET)
        await asyncio.wait_for(pausing.entered.wait(), LIMIT_S)
    await watched.was_cancelled()
    assert responders() == []
    pausing.release.set()


@pytest.mark.parametrize(("name", "body"), [("before", forever), ("mid-stream", mid_stream), ("window", flooding)])
async def test_a_stream_reset_cancels_that_stream_alone(start: Start, name: str, body: Responder) -> None:
    watched = Watched(body)

    async def choose(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await (greet if flow.request.path == "/ours/good" else watched)(flow, writer)

    proxy = await start(Answering(choose))
    async with h2_client(proxy, grant=False) as client:
        doomed = client.request("/ours/doomed")
        await asyncio.wait_for(watched.entered.wait(), LIMIT_S)
        if name == "mid-stream":
            await client.until(lambda: client.bodies[doomed] == b"first")
        if name == "window":
            await client.until(lambda: len(client.bodies[doomed]) == 65535)
        client.conn.reset_stream(doomed, CANCEL)
        client.conn.increment_flow_control_window(2**16)
        client.flush()
        await watched.was_cancelled()
        good = client.request("/ours/good")
        await client.until(lambda: good in client.ended)
        assert client.bodies[good] == b"onetwothree"


async def test_a_request_reset_in_the_same_breath_starts_nothing(start: Start) -> None:
    watched = Watched(forever)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h2_client(proxy) as client:
        await client.until(lambda: bool(client.conn.remote_settings.max_concurrent_streams))
        client.conn.send_headers(
            1, [(":method", "GET"), (":scheme", "https"), (":authority", "models.test"), (":path", "/ours")], True
        )
        client.conn.reset_stream(1, CANCEL)
        client.flush()
        await settle(lambda: bool(answering.flows) and answering.flows[0].error is not None)
    assert not watched.entered.is_set()


async def test_a_client_that_left_during_the_request_hook_starts_nothing(start: Start) -> None:
    watched = Watched(forever)
    answering, pausing = Answering(watched), Pausing("request")
    proxy = await start(answering, pausing)
    async with h1_client(proxy) as client:
        client.send(GET)
        await asyncio.wait_for(pausing.entered.wait(), LIMIT_S)
    await settle(lambda: not proxy.handlers)
    pausing.release.set()
    await settle(lambda: answering.flows[0].error is not None)
    assert not watched.entered.is_set()


async def test_a_client_whose_streams_were_not_told_is_cancelled_by_the_disconnect_hook(start: Start) -> None:
    watched = Watched(mid_stream)
    proxy = await start(Answering(watched))
    async with h2_client(proxy) as client:
        stream = client.request("/ours")
        await client.until(lambda: client.bodies[stream] == b"first")
        # As if the protocol layer had forgotten the stream.
        inner = inner_layer(proxy)
        inner.connections[inner.context.client].streams.clear()
    await watched.was_cancelled()


async def test_a_lost_http2_connection_cancels_all_its_streams(start: Start) -> None:
    entered = []
    cancelled = []

    async def wait(flow: HTTPFlow, writer: ResponseWriter) -> None:
        entered.append(flow)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(flow)

    proxy = await start(Answering(wait))
    async with h2_client(proxy) as client:
        for _ in range(20):
            client.request("/ours")
        await settle(lambda: len(entered) == 20)
    await settle(lambda: len(cancelled) == 20)


async def test_any_task_that_writes_learns_that_the_client_is_gone(start: Start) -> None:
    outcome: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    gone = asyncio.Event()

    async def child(writer: ResponseWriter) -> None:
        await gone.wait()
        try:
            await writer.chunk(b"late")
        except asyncio.CancelledError as error:
            outcome.set_result(error)

    late: list[asyncio.Task[None]] = []

    async def delegating(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ())
        late.append(asyncio.create_task(child(writer)))
        await asyncio.Event().wait()

    watched = Watched(delegating)
    proxy = await start(Answering(watched))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
    await watched.was_cancelled()
    gone.set()
    assert isinstance(await asyncio.wait_for(outcome, LIMIT_S), asyncio.CancelledError)
    await late[0]


async def test_work_after_the_end_outlives_the_client(start: Start) -> None:
    left, written_down = asyncio.Event(), asyncio.Event()

    async def recording(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await greet(flow, writer)
        await left.wait()
        written_down.set()

    proxy = await start(Answering(recording))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    await settle(lambda: not proxy.handlers)
    left.set()
    await asyncio.wait_for(written_down.wait(), LIMIT_S)


async def test_pieces_for_a_stream_that_is_gone_are_acknowledged(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
        handler = proxy.handlers[0]
        layer = next(layer for layer in handler.layer.context.layers if isinstance(layer, StreamedHttpLayer))
        stale = layer.context.fork()
        event = ToStream(HttpStream(stale, 1), ())  # type: ignore[arg-type]
        await handler.server_event(event)
        assert event.handled


# --- the addon goes


async def test_cancel_all_ends_every_answer(start: Start) -> None:
    watched = [Watched(forever), Watched(mid_stream)]

    async def choose(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await watched[int(flow.request.path[-1])](flow, writer)

    proxy = await start(Answering(choose))
    async with h2_client(proxy) as client:
        waiting, streaming = client.request("/ours/0"), client.request("/ours/1")
        await client.until(lambda: client.bodies[streaming] == b"first")
        assert StreamedResponses().cancel_all() == 2
        await client.until(lambda: waiting in client.ended and streaming in client.reset)
        assert client.heads[waiting][":status"] == "502"
    for one in watched:
        await one.was_cancelled()
    assert responders() == []


async def test_removing_the_addon_ends_every_answer(start: Start) -> None:
    watched = Watched(mid_stream)
    proxy = await start(Answering(watched))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await client.chunk()
        proxy.master.addons.remove(proxy.master.addons.get("streamedresponses"))
        assert await client.rest() == b""
    await watched.was_cancelled()


async def test_cancel_all_lets_a_finished_answer_out(start: Start) -> None:
    pausing = Pausing("response")
    proxy = await start(Answering(greet), pausing)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await asyncio.wait_for(pausing.entered.wait(), LIMIT_S)
        StreamedResponses().cancel_all()
        pausing.release.set()
        assert await body_of(client) == b"onetwothree"


async def test_a_reloaded_addon_serves_connections_that_are_already_open(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            await client.head()
            assert await body_of(client) == b"onetwothree"
            proxy.master.addons.remove(proxy.master.addons.get("streamedresponses"))
            proxy.master.addons.add(StreamedResponses())
