"""Streamed responses in a real proxy with real sockets: arrival, framing, modes."""

import asyncio

import aiohttp
import pytest
from mitmproxy.http import HTTPFlow

from combos.mitm.writer import Responder, ResponseWriter
from mitm.harness import (
    h1_client,
    h2_client,
    origin,
    tunnel,
)
from mitm.streaming import EVENT_STREAM, GET, Answering, Hooks, Start, body_of, greet, plain_answer, whole

# --- arrival and framing


async def test_chunks_arrive_as_they_are_produced(start: Start) -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def stepwise(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM)
        for number, step in enumerate(steps):
            await step.wait()
            await writer.chunk(b"%d" % number)
        await writer.end()

    proxy = await start(Answering(stepwise))
    async with h1_client(proxy) as client:
        client.send(GET)
        head = await client.head()
        assert head == b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        for number, step in enumerate(steps):
            step.set()
            assert await client.chunk() == b"%d" % number
        assert await client.chunk() == b""


async def test_one_connection_carries_ours_and_ordinary_requests_in_turn(start: Start) -> None:
    async with origin(plain_answer) as port:
        proxy = await start(Answering(greet))
        async with h1_client(proxy) as client:
            for _ in range(3):
                client.send(GET)
                await client.head()
                assert await body_of(client) == b"onetwothree"
                client.send(b"GET http://127.0.0.1:%d/theirs HTTP/1.1\r\nhost: x\r\n\r\n" % port)
                assert await client.head() == b"HTTP/1.1 200 Fine\r\nX-From: origin\r\ncontent-length: 5\r\n\r\n"
                assert await client.exactly(5) == b"plain"


async def test_an_event_stream_of_a_server_passes_unchanged(start: Start) -> None:
    raw = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\ndata:\r\n0\r\n\r\n"
    )
    async with origin(lambda request: raw) as port:
        proxy = await start(
            Answering(greet), Hooks(responseheaders=lambda flow: setattr(flow.response, "stream", True))
        )
        async with h1_client(proxy) as client:
            client.send(b"GET http://127.0.0.1:%d/theirs HTTP/1.1\r\nhost: x\r\n\r\n" % port)
            assert await client.exactly(len(raw)) == raw


async def test_a_whole_response_keeps_the_connection(start: Start) -> None:
    proxy = await start(Answering(whole))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            assert (
                await client.head() == b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 7\r\n\r\n"
            )
            assert await client.exactly(7) == b'{"a":1}'


async def test_an_announced_length_is_kept(start: Start) -> None:
    async def announced(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ((b"Content-Length", b"6"),))
        await writer.chunk(b"abc")
        await writer.chunk(b"def")
        await writer.end()

    proxy = await start(Answering(announced))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            assert await client.head() == b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
            assert await client.exactly(6) == b"abcdef"


async def test_first_and_last_pieces_may_go_with_head_and_end(start: Start) -> None:
    async def short(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM, b"one")
        await writer.chunk(b"two")
        await writer.end(b"three")

    proxy = await start(Answering(short))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(GET)
            await client.head()
            assert [await client.chunk() for _ in range(4)] == [b"one", b"two", b"three", b""]


async def test_an_http10_client_reads_until_close(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        client.send(b"GET http://models.test/ours HTTP/1.0\r\n\r\n")
        assert await client.rest() == b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nonetwothree"


@pytest.mark.parametrize("responder", [greet, whole])
async def test_head_gets_no_body_and_keeps_the_connection(start: Start, responder: Responder) -> None:
    proxy = await start(Answering(responder))
    async with h1_client(proxy) as client:
        for _ in range(2):
            client.send(b"HEAD http://models.test/ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\nContent-Type: ")
        client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_aiohttp_reads_it_and_reuses_the_connection(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get("http://models.test/ours", proxy=f"http://127.0.0.1:{proxy.port}") as answer:
                assert await answer.read() == b"onetwothree"
        assert len(proxy.handlers) == 1


# --- where it works


async def test_inside_connect_and_tls(start: Start) -> None:
    proxy = await start(Answering(greet))
    async with tunnel(proxy, "models.test", "http/1.1") as client:
        for _ in range(2):
            client.send(b"GET /ours HTTP/1.1\r\nhost: models.test\r\n\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\n")
            assert await body_of(client) == b"onetwothree"


async def test_one_http2_connection_carries_ours_and_ordinary_streams(start: Start) -> None:
    async with origin(plain_answer) as port:

        def redirect(flow: HTTPFlow) -> None:
            if flow.request.path == "/theirs":
                flow.request.scheme, flow.request.host, flow.request.port = "http", "127.0.0.1", port

        proxy = await start(Answering(greet), Hooks(request=redirect))
        async with h2_client(proxy) as client:
            streams = [client.request(path) for path in ("/ours", "/theirs", "/ours", "/theirs", "/ours")]
            await client.until(lambda: client.ended >= set(streams))
            assert [client.bodies[stream] for stream in streams] == [b"onetwothree", b"plain"] * 2 + [b"onetwothree"]
            assert client.heads[streams[0]] == {":status": "200", "content-type": "text/event-stream"}


async def test_many_streams_at_once(start: Start) -> None:
    everybody = asyncio.Barrier(60)

    async def together(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, ())
        await everybody.wait()
        for _ in range(5):
            await writer.chunk(flow.request.path.encode())
        await writer.end()

    proxy = await start(Answering(together))
    async with h2_client(proxy) as client:
        streams = {client.request(f"/ours/{number}"): number for number in range(60)}
        await client.until(lambda: client.ended >= set(streams))
        for stream, number in streams.items():
            assert client.bodies[stream] == f"/ours/{number}".encode() * 5


async def test_reverse_mode(start: Start) -> None:
    async with origin(plain_answer) as port:
        proxy = await start(Answering(greet), mode=[f"reverse:http://127.0.0.1:{port}"])
        async with h1_client(proxy) as client:
            client.send(b"GET /ours HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.head()
            assert await body_of(client) == b"onetwothree"
            client.send(b"GET /theirs HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.head()
            assert await client.exactly(5) == b"plain"


async def test_upstream_mode_needs_no_upstream_proxy(start: Start) -> None:
    proxy = await start(Answering(greet), mode=["upstream:http://127.0.0.1:1"])
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await body_of(client) == b"onetwothree"
    async with h2_client(proxy) as second:
        stream = second.request("/ours")
        await second.until(lambda: stream in second.ended)
        assert second.bodies[stream] == b"onetwothree"


async def test_origin_form_on_the_proxy_port(start: Start) -> None:
    proxy = await start(Answering(whole))
    async with h1_client(proxy) as client:
        client.send(b"GET /ours HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % proxy.port)
        assert (await client.head()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_an_eager_connection_to_the_server_changes_nothing(start: Start) -> None:
    async with origin(plain_answer) as port:
        proxy = await start(Answering(greet), connection_strategy="eager")
        async with h1_client(proxy) as client:
            client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            await client.head()
            client.send(b"GET /ours HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.head()
            assert await body_of(client) == b"onetwothree"
            client.send(b"GET /theirs HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.head()
            assert await client.exactly(5) == b"plain"


async def test_a_client_that_speaks_no_http_is_left_alone(start: Start) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = await start(Answering(greet))
    async with h1_client(proxy) as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        await client.head()
        client.send(b"\0\1\2\3")
        assert await client.rest() == b"\0\1\2\3"
    server.close()
    await server.wait_closed()
