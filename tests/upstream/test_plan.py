"""What is sent: the exact head of a request, its length, and to which host."""

from dataclasses import replace

import pytest

from combos.core.facts import TransportFault
from combos.upstream.session import Upstream
from exchanges import exchange, fault_of_exchange, outbound
from rawserver import (
    Again,
    Expect,
    RawServer,
    Send,
    response,
)

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]


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


@pytest.mark.parametrize("broken", [b"a\r\nY: b", b"a\nb", b"a\rb", b"a\0b", b"a\x7fb"])
async def test_a_head_with_a_control_character_is_not_sent(upstream: Upstream, broken: bytes) -> None:
    async with RawServer(SERVE) as server:
        for fields in (((b"X", broken),), ((broken, b"x"),)):
            assert await fault_of_exchange(upstream, outbound(server.url, headers=fields)) is not None
        for method in ("GET " + broken.decode(), broken.decode(), ""):
            assert await fault_of_exchange(upstream, outbound(server.url, method=method)) is not None
        await exchange(upstream, outbound(server.url, headers=((b"X", b"a\tb"),)))
    assert [request.header("x") for request in server.requests] == ["a\tb"]


async def test_what_is_remembered_of_a_url_is_its_provider_s_own(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url))
        fault = await fault_of_exchange(upstream, outbound(server.url, allow_private_network=False))
        assert fault is not None
        assert fault.fault is TransportFault.CONNECT_FAILED
        await exchange(upstream, outbound(server.url))
        assert len(server.requests) == 2


async def test_any_number_of_urls_can_be_asked_for(upstream: Upstream) -> None:
    async with RawServer(SERVE) as server:
        request = outbound(server.url)
        for number in range(1_100):
            await exchange(upstream, replace(request, url=f"{request.url}?n={number}"))
        assert server.connections == 1
        assert server.requests[-1].target == "/chat/completions?n=1099"


@pytest.mark.parametrize(("method", "body", "length"), [("GET", b"", None), ("POST", b"", "0"), ("DELETE", b"x", "1")])
async def test_lengths_of_bodies(upstream: Upstream, method: str, body: bytes, length: str | None) -> None:
    async with RawServer(SERVE) as server:
        await exchange(upstream, outbound(server.url, method=method, body=body))
    assert server.requests[0].header("content-length") == length
    assert server.requests[0].body == body


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


@pytest.mark.parametrize("path", ["/v1/x HTTP/1.1", "/v1/x?a=b c", "/v1/x?a=b HTTP/1.1", "/ "])
async def test_a_target_with_a_space_is_not_sent(upstream: Upstream, path: str) -> None:
    async with RawServer(SERVE) as server:
        assert await fault_of_exchange(upstream, outbound(server.url, path=path)) is not None
        assert server.requests == []
