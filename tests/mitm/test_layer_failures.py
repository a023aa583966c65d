"""What the client and the log see when a responder fails."""

import asyncio
import logging

import pytest
from mitmproxy.http import HTTPFlow

from combos.mitm.writer import Responder, ResponseWriter
from mitm.harness import (
    LIMIT_S,
    h1_client,
    h2_client,
)
from mitm.streaming import EVENT_STREAM, GET, Answering, Start, Watched


async def broken_before(flow: HTTPFlow, writer: ResponseWriter) -> None:
    raise ValueError("sk-secret")


async def broken_after(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.head(200, EVENT_STREAM)
    await writer.chunk(b"part")
    raise ValueError("sk-secret")


async def unfinished_before(flow: HTTPFlow, writer: ResponseWriter) -> None:
    return


async def unfinished_after(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.head(200, EVENT_STREAM)
    await writer.chunk(b"part")


async def bad_header(flow: HTTPFlow, writer: ResponseWriter) -> None:
    await writer.respond(200, ((b"x-a", b"1\r\nx-b: 2"),), b"")


@pytest.mark.parametrize("body", [broken_before, unfinished_before, bad_header])
async def test_a_failure_before_the_head_is_a_502(start: Start, body: Responder) -> None:
    proxy = await start(Answering(body))
    async with h1_client(proxy) as client:
        client.send(GET)
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"secret" not in answer
        assert b"x-b" not in answer
    async with h2_client(proxy) as second:
        stream = second.request("/ours")
        await second.until(lambda: stream in second.ended)
        assert second.heads[stream][":status"] == "502"


@pytest.mark.parametrize("body", [broken_after, unfinished_after])
async def test_a_failure_after_the_head_shows_no_end(start: Start, body: Responder) -> None:
    proxy = await start(Answering(body))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b"4\r\npart\r\n"
    async with h2_client(proxy) as second:
        stream = second.request("/ours")
        await second.until(lambda: stream in second.reset)
        assert second.bodies[stream] == b"part"
        assert stream not in second.ended


async def test_a_failure_is_logged_once_and_quotes_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    proxy = await start(Answering(broken_before))
    caplog.clear()
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.rest()
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "ValueError" in errors[0]
    assert "broken_before" in errors[0]
    assert "secret" not in caplog.text


async def test_the_responder_goes_on_after_its_own_error(start: Start) -> None:
    async def own_error(flow: HTTPFlow, writer: ResponseWriter) -> None:
        await writer.head(200, EVENT_STREAM)
        await writer.error("the target broke off")
        await asyncio.sleep(0)

    watched = Watched(own_error)
    answering = Answering(watched)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b""
    await asyncio.wait_for(watched.completed.wait(), LIMIT_S)
    assert answering.flows[0].error is not None
    assert answering.flows[0].error.msg == "the target broke off"
