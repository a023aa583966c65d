"""Every breakage of an exchange, brought about for real in every phase, and the fault it becomes."""

import asyncio

import pytest

from combos.core.facts import TransportFault
from combos.engine.commands import Timeouts
from combos.upstream.exchange import Answer
from combos.upstream.faults import Phase, UpstreamFault, fault_of
from combos.upstream.session import Upstream
from exchanges import PATIENT, fault_of_exchange, outbound
from rawserver import (
    Close,
    Expect,
    PauseReading,
    RawServer,
    Reset,
    Send,
    Stall,
    Step,
    chunk,
    closed_port,
    event_head,
    head,
)

HASTY = Timeouts(connect_ms=40, head_ms=40, idle_ms=40)
LENGTH_10 = [(b"Content-Length", b"10")]
CHUNKED = [(b"Transfer-Encoding", b"chunked")]


async def broken(upstream: Upstream, url: str, timeouts: Timeouts = PATIENT, **request: object) -> UpstreamFault:
    """The fault of one exchange, which must have one."""
    fault = await fault_of_exchange(upstream, outbound(url, **request), timeouts)
    assert fault is not None
    return fault


async def read_to_fault(answer: Answer, after_first: asyncio.Event) -> tuple[bytes, TransportFault | None]:
    """What arrived of a body, and the fault after it."""
    received = b""
    try:
        while data := await answer.read_some():
            received += data
            after_first.set()
    except UpstreamFault as fault:
        return received, fault.fault
    return received, None


HEAD_FAULTS = {
    "close": ([Expect(), Close()], TransportFault.CLOSED),
    "close in the head": ([Expect(), Send(b"HTTP/1.1 200 OK\r\nContent-"), Close()], TransportFault.CLOSED),
    "reset": ([Expect(), Reset()], TransportFault.RESET),
    "reset in the head": ([Expect(), Send(b"HTTP/1.1 200 OK\r\n"), Reset()], TransportFault.RESET),
    "no HTTP": ([Expect(), Send(b"SSH-2.0-OpenSSH_9.7\r\n\r\n")], TransportFault.MALFORMED),
    "status line without number": ([Expect(), Send(b"HTTP/1.1 abc OK\r\n\r\n")], TransportFault.MALFORMED),
    "header without colon": ([Expect(), Send(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n")], TransportFault.MALFORMED),
    "contradicting lengths": (
        [Expect(), Send(head(200, [(b"Content-Length", b"3"), (b"Content-Length", b"4")]))],
        TransportFault.MALFORMED,
    ),
    "a header line without end": ([Expect(), Send(head(200, [(b"X", b"x" * 100_000)]))], TransportFault.TOO_LARGE),
    "a thousand headers": (
        [Expect(), Send(head(200, [(b"X-%d" % n, b"x") for n in range(1000)]))],
        TransportFault.TOO_LARGE,
    ),
    "a status line without end": ([Expect(), Send(b"HTTP/1.1 200 " + b"O" * 100_000)], TransportFault.TOO_LARGE),
    "switching protocols": (
        [Expect(), Send(head(101, [(b"Upgrade", b"websocket"), (b"Connection", b"upgrade")])), Stall()],
        TransportFault.MALFORMED,
    ),
}


@pytest.mark.parametrize(("script", "fault"), HEAD_FAULTS.values(), ids=HEAD_FAULTS)
async def test_breakages_before_the_head(upstream: Upstream, script: list[Step], fault: TransportFault) -> None:
    async with RawServer(script) as server:
        caught = await broken(upstream, server.url)
    assert caught.fault is fault
    assert server.connections == 1, "a fresh connection is never tried twice"


BODY_FAULTS = {
    "length not reached, close": ([Send(head(200, LENGTH_10) + b"12345"), Close()], TransportFault.TRUNCATED),
    "length not reached, reset": ([Send(head(200, LENGTH_10) + b"12345"), Reset()], TransportFault.RESET),
    "chunked without end, close": ([Send(head(200, CHUNKED) + chunk(b"12345")), Close()], TransportFault.TRUNCATED),
    "chunked without end, reset": ([Send(head(200, CHUNKED) + chunk(b"12345")), Reset()], TransportFault.RESET),
    "inside a chunk, close": ([Send(head(200, CHUNKED) + b"a\r\n12345"), Close()], TransportFault.TRUNCATED),
    "bad chunk size": ([Send(head(200, CHUNKED) + chunk(b"12345")), Send(b"zz\r\n")], TransportFault.MALFORMED),
    "until close, reset": ([Send(head(200) + b"12345"), Reset()], TransportFault.RESET),
}


@pytest.mark.parametrize(("steps", "fault"), BODY_FAULTS.values(), ids=BODY_FAULTS)
async def test_breakages_of_the_body(upstream: Upstream, steps: list[Step], fault: TransportFault) -> None:
    read = asyncio.Event()
    first, *rest = steps
    async with (
        RawServer([Expect(), first, Stall(read), *rest]) as server,
        upstream.open(outbound(server.url), PATIENT) as answer,
    ):
        assert await read_to_fault(answer, read) == (b"12345", fault)
        assert await answer.read_some() == b"", "an answer that broke is over"


async def test_bytes_before_a_breakage_are_handed_out_first(upstream: Upstream) -> None:
    async with (
        RawServer([Expect(), Send(event_head() + chunk(b"data: 1\n\n")), Close()]) as server,
        upstream.open(outbound(server.url), PATIENT) as answer,
    ):
        await asyncio.gather(*server.live)  # the script is over
        for _ in range(20):
            await asyncio.sleep(0)  # and the client's side has noticed
        assert await read_to_fault(answer, asyncio.Event()) == (b"data: 1\n\n", TransportFault.TRUNCATED)


async def test_refused(upstream: Upstream) -> None:
    with closed_port() as port:
        caught = await broken(upstream, f"http://127.0.0.1:{port}")
    assert caught.fault is TransportFault.REFUSED
    assert caught.detail.startswith(f"127.0.0.1 port {port}: the connection was refused")


async def test_unknown_name(upstream: Upstream) -> None:
    caught = await broken(upstream, "http://combos-test.invalid")
    assert caught.fault is TransportFault.DNS


async def test_connect_limit_covers_the_tls_handshake(upstream: Upstream) -> None:
    async with RawServer([Stall()]) as server:
        caught = await broken(upstream, server.url.replace("http:", "https:"), HASTY)
    assert caught.fault is TransportFault.CONNECT_TIMEOUT


@pytest.mark.parametrize(
    ("steps", "fault"),
    {
        "nothing": ([Stall()], TransportFault.HEAD_TIMEOUT),
        "half a head": ([Send(b"HTTP/1.1 200 OK\r\n"), Stall()], TransportFault.HEAD_TIMEOUT),
        "only interim answers": ([Send(head(103)), Stall()], TransportFault.HEAD_TIMEOUT),
        "no body": ([Send(head(200, LENGTH_10)), Stall()], TransportFault.IDLE_TIMEOUT),
        "half a body": ([Send(head(200, LENGTH_10) + b"12345"), Stall()], TransportFault.IDLE_TIMEOUT),
        "half a chunk": ([Send(event_head() + b"a\r\n123"), Stall()], TransportFault.IDLE_TIMEOUT),
    }.values(),
)
async def test_time_limits(upstream: Upstream, steps: list[Step], fault: TransportFault) -> None:
    # A busy machine may need longer for what is to arrive.
    timeouts = Timeouts(5_000, head_ms=40 if fault is TransportFault.HEAD_TIMEOUT else 5_000, idle_ms=40)
    async with RawServer([Expect(), *steps]) as server:
        assert (await broken(upstream, server.url, timeouts)).fault is fault


async def test_an_upload_that_nobody_takes_ends_by_the_head_limit(upstream: Upstream) -> None:
    async with RawServer([PauseReading(), Stall(asyncio.Event())]) as server:
        timeouts = Timeouts(connect_ms=5_000, head_ms=60, idle_ms=5_000)
        caught = await broken(upstream, server.url, timeouts, body=b"x" * 30_000_000)
    assert caught.fault is TransportFault.HEAD_TIMEOUT


async def test_a_server_that_speaks_plain_http_is_a_tls_fault(upstream: Upstream) -> None:
    async with RawServer([Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close()]) as server:
        caught = await broken(upstream, server.url.replace("http:", "https:"))
    assert caught.fault is TransportFault.TLS


@pytest.mark.parametrize("end", [Close(), Reset()])
async def test_a_handshake_that_breaks_off_is_a_tls_fault(upstream: Upstream, end: Step) -> None:
    async with RawServer([end]) as server:
        caught = await broken(upstream, server.url.replace("http:", "https:"))
    assert caught.fault is TransportFault.TLS


@pytest.mark.parametrize("phase", Phase)
def test_no_exception_is_unknown_at_the_border(phase: Phase) -> None:
    fault = fault_of(RuntimeError("a text with https://secret.example/?key=1"), phase, "a.example port 443")
    assert fault.fault in (TransportFault.CONNECT_FAILED, TransportFault.CLOSED)
    assert "secret" not in str(fault)


def test_a_fault_passes_the_border_unchanged() -> None:
    fault = UpstreamFault(TransportFault.SELF_LOOP, "x")
    assert fault_of(fault, Phase.BODY, "y") is fault
