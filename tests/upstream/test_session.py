"""Sending: what goes over the wire, what comes back, which connections are kept and which are replaced."""

import asyncio

import pytest

from combos.core.facts import TransportFault
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream, UpstreamSettings
from exchanges import PATIENT, body_of, exchange, fault_of_exchange, outbound
from rawserver import (
    Again,
    ClientGone,
    Close,
    Expect,
    RawServer,
    Reset,
    Send,
    Signal,
    Stall,
    Step,
    chunk,
    event_head,
    event_stream,
    head,
    response,
)

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]


async def test_an_exchange_as_it_is(upstream: Upstream) -> None:
    async with (
        RawServer([Again([Expect(), Send(response(201, b'{"ok": 1}'))])]) as server,
        upstream.open(outbound(server.url, body=b'{"model": "a"}'), PATIENT) as answer,
    ):
        assert answer.status == 201
        assert answer.peername == ("127.0.0.1", server.port)
        assert answer.headers == ((b"Content-Type", b"application/json"), (b"Content-Length", b"9"))
        assert await body_of(answer) == b'{"ok": 1}'
        assert await answer.read_some() == b""
    assert server.requests[0].body == b'{"model": "a"}'


async def test_the_request_head_is_ours_and_nothing_more(upstream: Upstream) -> None:
    headers = (
        (b"X-Twice", b"1"),
        (b"Host", b"elsewhere.example"),
        (b"content-type", b"application/json"),
        (b"X-Twice", b"2"),
        (b"Accept-Encoding", b"br"),
        (b"Connection", b"close"),
        (b"Expect", b"100-continue"),
        (b"Content-Length", b"999"),
        (b"Transfer-Encoding", b"chunked"),
        (b"authorization", b"Bearer of-the-caller"),
        (b"X-Utf8", "gr\u00fcn".encode()),
        (b"X-Latin1", b"gr\xfcn"),
    )
    async with RawServer(SERVE) as server:
        request = outbound(server.url, path="/v1/a%2Fb?x=%20y&z", headers=headers, body=b"12345")
        await exchange(upstream, request, ((b"Authorization", b"Bearer ours"),))
        sent = server.requests[0]
    assert (sent.method, sent.target, sent.version) == ("POST", "/v1/a%2Fb?x=%20y&z", "HTTP/1.1")
    assert sent.headers == [
        (b"Host", f"127.0.0.1:{server.port}".encode()),
        (b"X-Twice", b"1"),
        (b"content-type", b"application/json"),
        (b"X-Twice", b"2"),
        (b"X-Utf8", "gr\u00fcn".encode()),
        (b"X-Latin1", "gr\u00fcn".encode()),
        (b"Authorization", b"Bearer ours"),
        (b"Accept-Encoding", b"identity"),
        (b"Content-Length", b"5"),
    ]


@pytest.mark.parametrize(("method", "body", "length"), [("GET", b"", None), ("POST", b"", "0"), ("DELETE", b"x", "1")])
async def test_lengths_of_bodies(upstream: Upstream, method: str, body: bytes, length: str | None) -> None:
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url, method=method, body=body))
    assert server.requests[0].header("content-length") == length
    assert server.requests[0].body == body


async def test_a_header_with_a_line_break_is_not_sent(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        fault = await fault_of_exchange(upstream, outbound(server.url, headers=((b"X", b"a\r\nY: b"),)))
    assert fault is not None
    assert server.requests == []


async def test_a_large_body_arrives_whole(upstream: Upstream) -> None:
    body = bytes(range(256)) * 12_000
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url, body=body))
    assert server.requests[0].body == body


async def test_answers_are_raw(upstream: Upstream) -> None:
    headers = [
        (b"Set-Cookie", b"a=1"),
        (b"x-odd", b"\xff\xfe"),
        (b"Set-Cookie", b"b=2"),
        (b"Content-Encoding", b"gzip"),
    ]
    async with RawServer([Again([Expect(), Send(response(200, b"not gzip", headers))])]) as server:
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            assert answer.headers == (*headers, (b"Content-Length", b"8"))
            assert await body_of(answer) == b"not gzip"
        await exchange(upstream, outbound(server.url))
    assert server.requests[1].header("cookie") is None


@pytest.mark.parametrize("status", [204, 304, 302, 429, 503])
async def test_statuses_are_answers_and_redirects_are_not_followed(upstream: Upstream, status: int) -> None:
    body = b"" if status in (204, 304) else b"{}"
    script = [Again([Expect(), Send(response(status, body, [(b"Location", b"http://127.0.0.1:1/")]))])]
    async with RawServer(script) as server:
        assert await exchange(upstream, outbound(server.url)) == (status, body)
        assert await exchange(upstream, outbound(server.url)) == (status, body)
        assert server.connections == 1


async def test_interim_answers_are_skipped(upstream: Upstream) -> None:
    async with RawServer([Expect(), Send(head(100) + head(103) + response(200, b"{}"))]) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")


async def test_bytes_are_handed_out_as_they_arrive(upstream: Upstream) -> None:
    second = asyncio.Event()
    script = [
        Expect(),
        Send(event_head() + chunk(b"data: 1\n\n")),
        Stall(second),
        Send(chunk(b"data: 2\n\n") + b"0\r\n\r\n"),
    ]
    async with RawServer(script) as server, upstream.open(outbound(server.url), PATIENT) as answer:
        assert await answer.read_some() == b"data: 1\n\n"
        second.set()
        assert await body_of(answer) == b"data: 2\n\n"


@pytest.mark.parametrize("split", [1, 2, 7])
async def test_pieces_of_any_size_make_the_same_answer(upstream: Upstream, split: int) -> None:
    data = event_stream(b"data: 1\n\n", b"data: 2\n\n")
    async with RawServer([Expect(), Send(data, split)]) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"data: 1\n\ndata: 2\n\n")


async def test_a_body_may_last_until_the_connection_closes(upstream: Upstream) -> None:
    async with RawServer([Expect(), Send(head(200) + b"12345"), Close()]) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"12345")


async def test_connections_are_kept_for_everybody(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        for name in ("one", "two"):
            await exchange(upstream, outbound(server.url, name=name))
        assert server.connections == 1


async def test_a_body_that_arrived_whole_keeps_its_connection_unread(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            assert answer.status == 200
        await exchange(upstream, outbound(server.url))
        assert server.connections == 1


async def test_an_unfinished_answer_is_closed_at_once(upstream: Upstream) -> None:
    gone = asyncio.Event()
    async with RawServer([Expect(), Send(event_head() + chunk(b"x")), ClientGone(gone)], SERVE) as server:
        async with upstream.open(outbound(server.url), PATIENT) as answer:
            assert await answer.read_some() == b"x"
        await asyncio.wait_for(gone.wait(), 5)
        await exchange(upstream, outbound(server.url))
        assert server.connections == 2


async def stale_pool(upstream: Upstream, server: RawServer, release: asyncio.Event, size: int = 1) -> None:
    """Fill the pool with connections whose other ends will act as soon as they get a second request."""
    answers = [await upstream.send(outbound(server.url), PATIENT) for _ in range(size)]
    release.set()
    for answer in answers:
        await body_of(answer)
    assert server.connections == size


@pytest.mark.parametrize("end", [Close(), Reset()], ids=["close", "reset"])
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_dead_pooled_connection_is_replaced(upstream: Upstream, end: Step, method: str) -> None:
    release = asyncio.Event()
    once = [Expect(), Send(head(200, [(b"Content-Length", b"2")])), Stall(release), Send(b"{}"), Expect(), end]
    async with RawServer(once, once, once, once, once, SERVE) as server:
        await stale_pool(upstream, server, release, size=5)
        assert await exchange(upstream, outbound(server.url, method=method)) == (200, b"{}")
        assert server.connections == 6, "one dead connection is enough to distrust the others"
        assert len(server.requests) == 7


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_the_replacement_is_not_replaced(upstream: Upstream, method: str) -> None:
    release = asyncio.Event()
    once = [Expect(), Send(head(200, [(b"Content-Length", b"2")])), Stall(release), Send(b"{}"), Expect(), Close()]
    async with RawServer(once, [Expect(), Close()]) as server:
        await stale_pool(upstream, server, release)
        fault = await fault_of_exchange(upstream, outbound(server.url, method=method))
        assert fault is not None
        assert fault.fault is TransportFault.CLOSED
        assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_fresh_connection_is_never_replaced(upstream: Upstream, method: str) -> None:
    async with RawServer([Expect(), Close()]) as server:
        fault = await fault_of_exchange(upstream, outbound(server.url, method=method))
        assert fault is not None
        assert fault.fault is TransportFault.CLOSED
        assert server.connections == 1


async def test_a_pooled_connection_that_began_to_answer_is_not_replaced(upstream: Upstream) -> None:
    release = asyncio.Event()
    release.set()
    once = [Expect(), Send(response(200, b"{}")), Expect(), Send(b"HTTP/1.1 200 OK\r\nConte"), Close()]
    async with RawServer(once, SERVE) as server:
        await exchange(upstream, outbound(server.url))
        fault = await fault_of_exchange(upstream, outbound(server.url))
        assert fault is not None
        assert fault.fault is TransportFault.CLOSED
        assert server.connections == 1


async def test_an_answer_that_nobody_asked_for_is_never_taken(upstream: Upstream) -> None:
    spoken = asyncio.Event()
    unasked = response(200, b"stale")
    script = [
        Expect(),
        Send(response(200, b"{}")),
        Stall(spoken),
        Send(unasked),
        Signal(told := asyncio.Event()),
        ClientGone(),
    ]
    async with RawServer(script, SERVE) as server:
        await exchange(upstream, outbound(server.url))
        spoken.set()
        await told.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        assert server.connections == 2


async def test_credentials_go_to_the_host_of_their_provider_only(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server, RawServer(SERVE) as other:
        request = outbound(server.url)
        for url in (
            other.url + "/x",
            server.url.replace("http:", "https:"),
            server.url.replace("//", "//u:p@"),
            "nonsense",
        ):
            moved = type(request)("POST", url, (), b"", request.provider)
            fault = await fault_of_exchange(upstream, moved)
            assert fault is not None
            assert fault.fault is TransportFault.CONNECT_FAILED
        assert server.requests == other.requests == []


async def test_after_close_nothing_is_sent() -> None:
    upstream = Upstream()
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url))
        await upstream.close()
        fault = await fault_of_exchange(upstream, outbound(server.url))
        assert fault is not None
        assert len(server.requests) == 1
        await upstream.close()


async def test_close_ends_running_exchanges() -> None:
    upstream = Upstream()
    async with RawServer([Expect(), Send(event_head() + chunk(b"x")), Stall()]) as server:
        answer = await upstream.send(outbound(server.url), PATIENT)
        assert await answer.read_some() == b"x"
        reading = asyncio.ensure_future(answer.read_some())
        await asyncio.sleep(0)
        await upstream.close()
        with pytest.raises(UpstreamFault) as caught:
            await asyncio.wait_for(reading, 5)
        assert caught.value.fault is TransportFault.CLOSED


async def test_the_local_address_is_used() -> None:
    upstream = Upstream(UpstreamSettings(local_address="127.0.0.9"))
    peers: list[object] = []

    async def note(connection) -> None:
        peers.append(connection.writer.get_extra_info("peername")[0])

    async with RawServer([note, *SERVE]) as server:
        await exchange(upstream, outbound(server.url))
        await upstream.close()
    assert peers == ["127.0.0.9"]
