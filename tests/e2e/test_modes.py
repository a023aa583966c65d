"""The ways in which clients reach the proxy, and targets are reached by it."""

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from authority import Authority
from mitm.harness import h2_client, tunnel
from rawclient import Answer, Talk, answer_of, ask, request_bytes, talk
from rawserver import Again, Expect, RawServer, Send, Stall, chunk, closed_port, event_head, response
from stage import Case, stage
from wires import WIRES, C, M, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
VENDORS = {"R": "api.openai.test", "C": "api.openai.test", "M": "api.anthropic.test"}


def hopping(wire: Wire, **more: Any) -> Case:
    return Case(wire, alpha=DOWN, beta=wire.answers("beta-ok"), **more)


def served(case: Case, answer: Answer) -> bool:
    """The hop was made and the client has the second target's whole stream."""
    expected = (["alpha", "beta"], 200, b"".join(case.wire.ok("beta-ok")), True)
    return (case.calls, answer.status, answer.body, answer.clean) == expected


# -- how the client comes in


async def test_absolute_form_of_a_forward_proxy(confdir: Path) -> None:
    cases = [hopping(wire) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case in cases:
            host = VENDORS[case.wire.name]
            body = json.dumps(case.wire.request(case.model)).encode()
            answer = await ask(on.port, "POST", f"http://{host}{case.wire.path}", body=body, host=host.encode())
            assert served(case, answer)


async def test_connect_and_tls_with_an_http1_client(confdir: Path) -> None:
    """The vendors' hosts do not exist: neither CONNECT nor the request may depend on them."""
    cases = [hopping(wire) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case in cases:
            host = VENDORS[case.wire.name]
            body = json.dumps(case.wire.request(case.model)).encode()
            async with tunnel(on.proxy, host) as raw:
                raw.send(request_bytes("POST", case.wire.path, [(b"Host", host.encode())], body))
                assert served(case, await answer_of(Talk(raw.reader, raw.writer)))


async def test_connect_and_tls_with_an_http2_client(confdir: Path) -> None:
    cases = [hopping(wire) for wire in WIRES]
    async with stage(confdir, *cases) as on, h2_client(on.proxy, "api.openai.test") as client:
        asked = {
            client.request(case.wire.path, "POST", json.dumps(case.wire.request(case.model)).encode()): case
            for case in cases
        }
        await client.until(lambda: client.ended == set(asked))
        for stream, case in asked.items():
            assert case.calls == ["alpha", "beta"]
            assert client.heads[stream][":status"] == "200"
            assert client.bodies[stream] == b"".join(case.wire.ok("beta-ok"))
            assert "transfer-encoding" not in client.heads[stream]


async def test_connect_to_a_host_that_nobody_can_reach(confdir: Path) -> None:
    """A request that is not ours fails there as without the addon: with an error, after the CONNECT has succeeded."""
    case = hopping(R)
    with closed_port() as port:
        async with stage(confdir, case) as on, talk(on.port, b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port) as raw:
            assert (await raw.head())[0] == 200
            await raw.writer.start_tls(on.proxy.client_tls("http/1.1"), server_hostname="127.0.0.1")
            host = [(b"Host", b"127.0.0.1:%d" % port)]
            raw.writer.write(request_bytes("POST", R.path, host, json.dumps(R.request(case.model)).encode()))
            assert served(case, await answer_of(raw))
            raw.writer.write(request_bytes("GET", "/", host, b""))
            assert (await answer_of(raw)).status == 502


async def test_reverse_mode(confdir: Path) -> None:
    case = hopping(R)
    vendor = [Again([Expect(), Send(response(200, b'{"from":"vendor"}'))])]
    async with RawServer(vendor) as origin, stage(confdir, case, mode=[f"reverse:{origin.url}"]) as on:
        # Both, the name the client was given and the vendor's, are a reverse proxy's own.
        assert served(case, await on.ask(case))
        passed = await on.ask(case, model="another-model")
        assert (passed.status, passed.body) == (200, b'{"from":"vendor"}')
        assert [json.loads(request.body)["model"] for request in origin.requests] == ["another-model"]


async def test_upstream_mode_sends_targets_through_the_proxy(confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"), urls={"alpha": "http://models.test/v1"})
    proxied = [Again([Expect(), Send(DOWN)])]
    async with RawServer(proxied) as corporate:
        mode = [f"upstream:{corporate.url}"]
        async with stage(confdir, case, mode=mode, upstream_auth="user:pass") as on:
            # A target on this machine is not the corporate proxy's business.
            assert b"beta-ok" in (await on.ask(case)).body
            assert case.calls == ["beta"]
            asked = [request.target for request in corporate.requests]
            assert asked == ["http://models.test/v1/responses"]
            assert corporate.requests[0].header("proxy-authorization") == "Basic dXNlcjpwYXNz"
            assert corporate.requests[0].header("host") == "models.test"


async def test_socks5_mode(confdir: Path) -> None:
    """Vendors' names go to the proxy unresolved, in plain HTTP and in TLS."""
    cases = [hopping(R), hopping(M)]
    async with stage(confdir, *cases, mode=["socks5"]) as on:
        for case, is_tls in zip(cases, (False, True), strict=True):
            host = VENDORS[case.wire.name]
            async with socks(on.port, host, 443 if is_tls else 80) as raw:
                if is_tls:
                    await raw.writer.start_tls(on.proxy.client_tls("http/1.1"), server_hostname=host)
                body = json.dumps(case.wire.request(case.model)).encode()
                raw.writer.write(request_bytes("POST", case.wire.path, [(b"Host", host.encode())], body))
                assert served(case, await answer_of(raw))


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


@asynccontextmanager
async def socks(port: int, host: str, to: int) -> AsyncIterator[Talk]:
    """A connection through a SOCKS5 proxy, without a login."""
    async with talk(port, b"\x05\x01\x00") as raw:
        assert await raw.reader.readexactly(2) == b"\x05\x00"
        name = host.encode()
        raw.writer.write(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + to.to_bytes(2))
        assert (await raw.reader.readexactly(10))[:2] == b"\x05\x00"
        yield raw


async def test_transparent_mode(confdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packet filter of the system says where a connection was going to; here a stand-in does."""
    monkeypatch.setattr("mitmproxy.platform.original_addr", lambda _socket: ("192.0.2.9", 80))
    case = hopping(R)
    async with stage(confdir, case, mode=["transparent"]) as on:
        body = json.dumps(R.request(case.model)).encode()
        assert served(case, await ask(on.port, "POST", R.path, body=body, host=b"api.openai.test"))


async def test_several_modes_at_once(confdir: Path) -> None:
    """Each port serves combos, and each is the proxy's own address."""
    case, direct, mapped = hopping(R), hopping(R), hopping(R)
    async with RawServer([Again([Expect(), Send(response(200, b"vendor"))])]) as vendor:
        first, second, third = free_ports(3)
        modes = [f"regular@127.0.0.1:{first}", f"reverse:{vendor.url}@127.0.0.1:{second}", f"socks5@127.0.0.1:{third}"]
        async with stage(confdir, case, direct, mapped, mode=modes):
            for one, port in ((case, first), (direct, second)):
                body = json.dumps(R.request(one.model)).encode()
                assert served(one, await ask(port, "POST", R.path, body=body, host=b"127.0.0.1:%d" % port))
            async with socks(third, "api.openai.test", 80) as raw:
                body = json.dumps(R.request(mapped.model)).encode()
                raw.writer.write(request_bytes("POST", R.path, [(b"Host", b"api.openai.test")], body))
                assert served(mapped, await answer_of(raw))
            assert vendor.requests == []


# -- how targets are reached


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def over_tls(confdir: Path, tls: ssl.SSLContext, **options: Any) -> AsyncIterator[tuple[Any, Case]]:
    """A combo whose first target speaks TLS and whose second does not."""
    async with RawServer([Again([Expect(), Send(R.answers("alpha-ok"))])], tls=tls) as secure:
        case = Case(R, urls={"alpha": f"{secure.url}/v1"}, beta=R.answers("beta-ok"))
        async with stage(confdir, case, **options) as on:
            yield on, case


async def test_a_tls_target_with_an_authority_of_its_own(confdir: Path, authority: Authority) -> None:
    trusted = str(authority.ca_file)
    async with over_tls(confdir, authority.server("127.0.0.1"), ssl_verify_upstream_trusted_ca=trusted) as (on, case):
        assert b"alpha-ok" in (await on.ask(case)).body
        assert on.cooling(case) == {}


async def test_an_untrusted_tls_target_is_hopped_over(confdir: Path, authority: Authority) -> None:
    async with over_tls(confdir, authority.server("127.0.0.1")) as (on, case):
        assert b"beta-ok" in (await on.ask(case)).body
        assert on.cooling(case) == {"alpha/m1": 60_000}
        assert case.record.attempts[0].result == "tls_handshake_failed"


async def test_a_certificate_for_another_name_is_hopped_over(confdir: Path, authority: Authority) -> None:
    trusted = str(authority.ca_file)
    async with over_tls(confdir, authority.server("other.test"), ssl_verify_upstream_trusted_ca=trusted) as (on, case):
        assert b"beta-ok" in (await on.ask(case)).body


async def test_ssl_insecure_is_honoured_and_can_be_changed(confdir: Path, authority: Authority) -> None:
    async with over_tls(confdir, authority.server("127.0.0.1"), ssl_insecure=True) as (on, case):
        assert b"alpha-ok" in (await on.ask(case)).body
        on.proxy.master.options.update(ssl_insecure=False)
        assert b"beta-ok" in (await on.ask(case)).body


# -- what is none of the addon's business


async def test_other_traffic_passes_untouched(confdir: Path) -> None:
    """Byte for byte, both ways: a model of somebody else, on the surfaces and beside them."""
    sent = b'{"model": "gpt-5.5",\n  "input" : "hi" , "stream":false}'
    answer = response(200, b'{"odd"  :1}', [(b"X-Twice", b"1"), (b"x-TWICE", b"2"), (b"openai-model", b"theirs")])
    async with RawServer([Again([Expect(), Send(answer)])]) as vendor, stage(confdir, hopping(R)) as on:
        host = vendor.url.removeprefix("http://").encode()
        fields = [(b"X-Odd", b"a"), (b"Authorization", b"Bearer theirs"), (b"x-codex-turn-state", b"s")]
        for path in (*(wire.path for wire in WIRES), "/v1/embeddings", "/backend-api/codex/responses"):
            vendor.requests.clear()
            got = await ask(on.port, "POST", f"{vendor.url}{path}", headers=fields, body=sent, host=host)
            (request,) = vendor.requests
            assert (request.target, request.body) == (path, sent)
            expected = [(b"Host", host), *fields, (b"Content-Length", str(len(sent)).encode())]
            assert request.headers == expected
            assert (got.status, got.body) == (200, b'{"odd"  :1}')
            named = [(b"X-Twice", b"1"), (b"x-TWICE", b"2"), (b"openai-model", b"theirs")]
            assert got.headers == [*named, (b"Content-Length", b"11")]


async def test_a_body_of_others_that_does_not_decode_passes_untouched(confdir: Path) -> None:
    async with RawServer([Again([Expect(), Send(response(200, b"{}"))])]) as vendor, stage(confdir, hopping(R)) as on:
        host = vendor.url.removeprefix("http://").encode()
        for coding, body in ((b"zstd", b"broken"), (b"gzip", b"\x1f\x8bbroken"), (b"unknown", b"?")):
            headers = [(b"Content-Encoding", coding)]
            got = await ask(on.port, "POST", f"{vendor.url}/v1/responses", headers=headers, body=body, host=host)
            assert got.status == 200
            assert vendor.requests[-1].body == body
            assert vendor.requests[-1].header("content-encoding") == coding.decode()


async def test_event_streams_of_others_are_not_held_up(confdir: Path) -> None:
    gate = asyncio.Event()
    script = [
        Expect(),
        Send(event_head() + chunk(b"data: 1\n\n")),
        Stall(gate),
        Send(chunk(b"data: 2\n\n") + b"0\r\n\r\n"),
    ]
    async with RawServer(script) as vendor, stage(confdir, hopping(R)) as on:
        host = [(b"Host", vendor.url.removeprefix("http://").encode())]
        body = json.dumps(R.request("gpt-5.5")).encode()
        async with talk(on.port, request_bytes("POST", f"{vendor.url}/v1/responses", host, body)) as client:
            await client.head()
            assert await client.piece() == b"data: 1\n\n"
            gate.set()
            assert await client.piece() == b"data: 2\n\n"
            assert await client.piece() == b""


UPGRADE = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13")]


async def test_a_responses_websocket_is_refused_while_there_are_combos(confdir: Path) -> None:
    accept = b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    key = (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ==")
    case = hopping(R)
    async with RawServer([Expect(), Send(accept), Stall()]) as vendor, stage(confdir, case) as on:
        host = vendor.url.removeprefix("http://").encode()

        async def upgraded(path: str) -> int:
            fields = [(b"Host", host), *UPGRADE, key]
            async with talk(on.port, request_bytes("GET", f"{vendor.url}{path}", fields, b"")) as client:
                return (await client.head())[0]

        for path in ("/v1/responses", "/backend-api/codex/responses"):
            assert await upgraded(path) == 426
        assert vendor.requests == []
        assert await upgraded("/v1/realtime") == 101
        own = await ask(on.port, "GET", "/v1/responses", headers=[*UPGRADE, key])
        assert own.status == 426
        on.service.config.adopt({})
        assert await upgraded("/v1/responses") == 101
        assert [request.target for request in vendor.requests] == ["/v1/realtime", "/v1/responses"]


# -- routes beside combos


async def test_a_direct_route_is_one_attempt(confdir: Path) -> None:
    cases = [Case(wire, alpha=DOWN, beta=wire.answers("beta-ok")) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        for case in cases:
            failed = await on.ask(case, model=f"{case.provider('alpha')}/any-model")
            assert (failed.status, failed.json()) == (503, {"error": {"message": "down"}})
            assert case.calls == ["alpha"]
            assert json.loads(case.requests[0].body)["model"] == "any-model"
            assert on.cooling(case) == {}
            assert b"beta-ok" in (await on.ask(case, model=f"{case.provider('beta')}/m")).body
            assert case.calls == ["alpha", "beta"]


# -- headers with a meaning


async def test_openai_model_is_the_requested_one(confdir: Path) -> None:
    theirs = [(b"openai-model", b"secretly-another")]
    streamed = Case(R, alpha=R.answers("alpha-ok", headers=theirs))
    whole = Case(R, alpha=R.answers("alpha-ok", stream=False, headers=theirs))
    plain = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, streamed, whole, plain) as on:
        assert (await on.ask(streamed)).header("openai-model") in (None, streamed.model)
        assert (await on.ask(whole, stream=False)).header("openai-model") in (None, whole.model)
        assert (await on.ask(plain)).header("openai-model") is None


async def test_turn_state_goes_only_to_its_issuer(confdir: Path) -> None:
    state = [(b"x-codex-turn-state", b"issued-by-alpha")]
    case = Case(R, alpha=[R.answers("alpha-ok", headers=state), R.answers("again"), DOWN], beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        first = await on.ask(case)
        assert first.header("x-codex-turn-state") == "issued-by-alpha"
        assert b"again" in (await on.ask(case, headers=state)).body
        assert b"beta-ok" in (await on.ask(case, headers=state)).body
        seen = [
            (name, request.header("x-codex-turn-state"))
            for name, request in zip(case.calls, case.requests, strict=True)
        ]
        assert seen == [("alpha", None), ("alpha", "issued-by-alpha"), ("alpha", "issued-by-alpha"), ("beta", None)]


async def test_the_callers_login_goes_to_nobody_else(confdir: Path) -> None:
    mine = [
        (b"Authorization", b"Bearer caller-secret"),
        (b"x-api-key", b"caller-secret"),
        (b"x-goog-api-key", b"caller-secret"),
        (b"api-key", b"caller-secret"),
        (b"Cookie", b"session=caller-secret"),
        (b"chatgpt-account-id", b"caller-secret"),
        (b"OpenAI-Organization", b"caller-secret"),
        (b"OpenAI-Project", b"caller-secret"),
        (b"Proxy-Authorization", b"Basic caller-secret"),
    ]
    cases = [hopping(wire) for wire in (R, C, M)]
    async with stage(confdir, *cases) as on:
        for case in cases:
            answer = await on.ask(case, headers=mine)
            assert served(case, answer)
            for request, key in zip(case.requests, (b"alpha-key", b"beta-key"), strict=True):
                assert b"caller-secret" not in request.head + request.body
                assert key in request.head
            assert b"-key" not in answer.body
            assert not [value for _, value in answer.headers if b"-key" in value]


async def test_a_forwarded_login_goes_to_the_host_the_client_addressed(confdir: Path) -> None:
    case = Case(
        R,
        alpha=R.answers("alpha-ok"),
        beta=R.answers("beta-ok"),
        providers={"alpha": {"authMode": "forward", "apiKey": None}},
    )
    mine = [(b"Authorization", b"Bearer caller-secret"), (b"chatgpt-account-id", b"acct")]
    async with stage(confdir, case) as on:
        body = json.dumps(R.request(case.model)).encode()
        # Another vendor's login is none of alpha's business: it is passed over.
        other = await ask(
            on.port, "POST", "http://vendor.test/v1/responses", headers=mine, body=body, host=b"vendor.test"
        )
        assert b"beta-ok" in other.body
        same = f"{on.server.url}/v1/responses"
        theirs = on.server.url.removeprefix("http://").encode()
        assert b"alpha-ok" in (await ask(on.port, "POST", same, headers=mine, body=body, host=theirs)).body
        assert b"alpha-ok" in (await on.ask(case, headers=mine)).body
        assert case.calls == ["beta", "alpha", "alpha"]
        assert [request.header("authorization") for request in case.requests] == [
            "Bearer beta-key",
            "Bearer caller-secret",
            "Bearer caller-secret",
        ]
        # Without a login there is nothing to forward.
        assert b"beta-ok" in (await on.ask(case)).body


async def test_a_target_that_is_the_proxy_itself_is_refused(confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"), beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        document = json.loads(on.service.config.path.read_text())
        for host in ("127.0.0.1", "localhost"):
            document["providers"][case.provider("alpha")]["baseUrl"] = f"http://{host}:{on.port}/v1"
            on.service.config.adopt(document)
            assert b"beta-ok" in (await on.ask(case)).body
        assert case.calls == ["beta", "beta"]
