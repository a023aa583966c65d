"""Requests for models at the addon's own listener: flows as at a port of the proxy, and the wire to the client."""

import asyncio
import base64
import difflib
import json
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.connection import ConnectionState
from mitmproxy.http import HTTPFlow, Response

import stage as entrances
from combos.admin.usage_record import usage_document
from rawclient import Answer, answer_of, request_bytes, talk
from rawserver import LAST_CHUNK, Close, Pairs, Send, Signal, Stall, chunk, event_head
from stage import Case, Stage, stage, until
from wires import WIRES, C, M, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})
UPGRADE = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13")]
HOOKS = ("requestheaders", "request", "responseheaders", "response", "error")


@pytest.fixture(autouse=True)
def at_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrances, "at_listener", True)


class Hooks:
    """An addon made of functions by the name of their hook; notes which flow fired which hook."""

    def __init__(self, **handlers: Callable[[HTTPFlow], None]) -> None:
        self.fired: list[tuple[str, HTTPFlow]] = []
        for name in HOOKS:
            setattr(self, name, self._noting(name, handlers.get(name)))

    def _noting(self, name: str, handler: Callable[[HTTPFlow], None] | None) -> Callable[[HTTPFlow], None]:
        def hook(flow: HTTPFlow) -> None:
            self.fired.append((name, flow))
            if handler is not None:
                handler(flow)

        return hook

    def of(self, flow: HTTPFlow) -> list[str]:
        return [name for name, fired in self.fired if fired is flow]


async def asked(on: Stage, method: str, path: str, fields: Pairs = (), body: bytes = b"") -> Answer:
    host = (b"Host", b"127.0.0.1:%d" % on.port)
    async with talk(on.port, request_bytes(method, path, [host, *fields], body)) as started:
        return await answer_of(started, bodiless=method == "HEAD")


# -- flows


def shown(flow: HTTPFlow, case: Case, ports: Mapping[int, str], numbers: dict[str, str]) -> list[str]:
    """Everything that is recorded of a flow; what differs from run to run is named alike, a time is there or not."""
    state: dict[str, Any] = dict(flow.get_state())
    numbers.setdefault(state["id"], f"flow {len(numbers)}")
    for side in ("client_conn", "server_conn"):
        kept = {name: state[side][name] for name in state[side].keys() - {"timestamp_end"}}  # the client may be gone
        state[side] = kept | {name: bool(kept[name]) for name in ("id", "peername", "sockname")}
    text = json.dumps(_timeless(state), default=repr, sort_keys=True, indent=1)
    for number, name in numbers.items():
        text = text.replace(number, name).replace(number[:8], name)
    text = re.sub(r"combos-[0-9a-f]{12}", "MARK", text)
    text = re.sub(r"b'\d+'", "LENGTH", text)
    for port, name in ports.items():
        text = text.replace(str(port), name)
    return re.sub(r", \d+\.\d s\)", ", TIME)", text.replace(case.id, "CASE")).splitlines()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: bool(part) if "timestamp" in key else _timeless(part) for key, part in value.items()}
    return value


async def recorded(
    confdir: Path, entrance: str, patch: pytest.MonkeyPatch, made: Case, **fields: Any
) -> list[tuple[list[str], list[str]]]:
    patch.setattr(entrances, "at_listener", entrance == "listener")
    hooks, numbers = Hooks(), dict[str, str]()
    async with stage(confdir, made, addons=[hooks]) as on:
        await on.ask(made, **fields)
        ports = {on.port: "PORT", on.server.port: "STUBS"}
        await until(lambda: all(not flow.live for flow in on.flows))
        flows = [flow for flow in on.flows if flow.request.port == on.port]
        attempts = [flow for flow in on.flows if flow not in flows]
        assert len(flows) == 1
        assert made.record is not None
        row = usage_document(replace(made.record, id=""), on.service.config.registry, 0)
        rows = json.dumps(row, indent=1).replace(made.id, "CASE").splitlines()
        return [(shown(flow, made, ports, numbers), hooks.of(flow)) for flow in (*flows, *attempts)] + [(rows, [])]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_request_is_recorded_as_at_a_port_of_the_proxy(
    wire: Wire, stream: bool, confdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> Case:
        return Case(wire, alpha=DOWN, beta=wire.answers("beta-ok", stream=stream))

    there = await recorded(confdir, "proxy", monkeypatch, made(), stream=stream)
    here = await recorded(confdir, "listener", monkeypatch, made(), stream=stream)
    assert len(here) == 4, "the request, its two attempts, its row in the ledger"
    assert here[0][1] == ["requestheaders", "request", "responseheaders", "response"]
    for (mine, fired), (theirs, fired_there) in zip(here, there, strict=True):
        assert fired == fired_there
        assert [line for line in difflib.ndiff(theirs, mine) if not line.startswith(" ")] == []


async def test_a_client_that_leaves_is_an_error_of_its_flow(confdir: Path) -> None:
    reached, hooks = asyncio.Event(), Hooks()
    case = Case(R, alpha=[Send(event_head() + b"".join(map(chunk, R.start()))), Signal(reached), Stall()])
    async with stage(confdir, case, addons=[hooks]) as on:
        async with on.talk(case) as client:
            await reached.wait()
            client.leave()
        await until(lambda: bool(on.flows) and not on.flows[0].live)
        (flow,) = on.flows
        assert flow.error is not None
        assert flow.error.msg == "Client disconnected."
        assert hooks.of(flow) == ["requestheaders", "request", "error"]
        assert flow.client_conn.state is ConnectionState.CLOSED
        assert flow.client_conn.timestamp_end is not None
        assert case.record is not None
        assert case.record.outcome == "cancelled"


# -- other addons


async def test_another_addon_changes_what_is_asked(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok", stream=False))

    def rename(flow: HTTPFlow) -> None:
        flow.request.text = (flow.request.text or "").replace("some-model", case.model)

    async with stage(confdir, case, before=[Hooks(request=rename)]) as on:
        assert b"alpha-ok" in (await on.ask(case, model="some-model", stream=False)).body


@pytest.mark.parametrize("hook", ["requestheaders", "request"])
async def test_another_addon_answers_first(hook: str, confdir: Path) -> None:
    def answer(flow: HTTPFlow) -> None:
        flow.response = Response.make(418, b"mine", {"x-mine": "yes"})

    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, before=[hooks := Hooks(**{hook: answer})]) as on:
        answered = await on.ask(case)
        assert (answered.status, answered.body, answered.header("x-mine")) == (418, b"mine", "yes")
        assert case.calls == []
        assert hooks.of(on.flows[0]) == ["requestheaders", "request", "responseheaders", "response"]


@pytest.mark.parametrize(
    ("hook", "last"), [("requestheaders", "error"), ("request", "error"), ("response", "response")]
)
async def test_a_killed_flow_gets_no_answer(hook: str, last: str, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok", stream=False))
    async with stage(confdir, case, addons=[hooks := Hooks(**{hook: HTTPFlow.kill})]) as on:
        async with on.talk(case, stream=False) as client:
            assert await client.reader.read() == b""
        assert len(case.calls) == (hook == "response")
        assert hooks.of(on.flows[0])[-1] == ("response" if hook == "response" else "error")
        assert not on.flows[0].live


async def test_another_addon_changes_a_whole_answer(confdir: Path) -> None:
    def change(flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.text = "changed"
        flow.response.headers["x-changed"] = "yes"

    case = Case(R, alpha=R.answers("alpha-ok", stream=False))
    async with stage(confdir, case, addons=[Hooks(response=change)]) as on:
        answered = await on.ask(case, stream=False)
        assert (answered.body, answered.header("x-changed"), answered.clean) == (b"changed", "yes", True)


async def test_another_addon_changes_a_stream_piece_by_piece(confdir: Path) -> None:
    def louder(flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.stream = lambda data: [data.upper(), b""] if data else b"END"

    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, addons=[Hooks(responseheaders=louder)]) as on:
        answered = await on.ask(case)
        assert (answered.body, answered.clean) == (b"".join(R.ok("alpha-ok")).upper() + b"END", True)


async def test_another_addon_wants_a_stream_whole(confdir: Path) -> None:
    def whole(flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.stream = False

    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, addons=[Hooks(responseheaders=whole)]) as on:
        answered = await on.ask(case)
        assert (answered.body, answered.clean) == (b"".join(R.ok("alpha-ok")), True)


@pytest.mark.parametrize("stream", [True, False])
async def test_another_addon_replaces_an_answer_at_its_head(stream: bool, confdir: Path) -> None:
    """The body that comes stays the body, as on a port of the proxy; the head says how long it is."""

    def replace_it(flow: HTTPFlow) -> None:
        flow.response = Response.make(403, b"no", {"x-mine": "yes"})

    case = Case(C, alpha=C.answers("alpha-ok", stream=stream))
    addons = [Hooks(responseheaders=replace_it)]
    async with stage(confdir, case, addons=addons) as on, on.talk(case, stream=stream) as client:
        for _ in range(2):
            answered = await answer_of(client)
            assert (answered.status, answered.header("x-mine"), answered.clean) == (403, "yes", True)
            assert b"alpha-ok" in answered.body
            assert answered.header("content-length") == str(len(answered.body))
            client.writer.write(on.request(case, stream=stream))


async def test_an_answer_of_another_addon_is_replaced_at_its_head(confdir: Path) -> None:
    def answer(flow: HTTPFlow) -> None:
        flow.response = Response.make(418, b"first")

    def replace_it(flow: HTTPFlow) -> None:
        flow.response = Response.make(403, b"another")

    case = Case(C, alpha=C.answers("alpha-ok"))
    async with stage(confdir, case, before=[Hooks(request=answer, responseheaders=replace_it)]) as on:
        answered = await on.ask(case)
        assert (answered.status, answered.body, answered.clean) == (403, b"another", True)


@pytest.mark.parametrize(("option", "kept"), [({"store_streamed_bodies": True}, None), ({}, 10)])
async def test_what_is_kept_of_a_stream(option: dict[str, Any], kept: int | None, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, combos_options={"combos_body_limit": 10}, **option) as on:
        answered = await on.ask(case)
        await until(lambda: not on.flows[0].live)
        assert on.flows[0].response is not None
        assert on.flows[0].response.raw_content == answered.body[:kept]


async def test_proxyauth_asks_here_as_well(confdir: Path) -> None:
    """Otherwise the listener would be the way around the password, for every other user of the machine."""
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stage(confdir, case, proxyauth="user:pass") as on:
        assert ((await on.ask(case)).status, case.calls) == (407, [])
        login = b"Basic " + base64.b64encode(b"user:pass")
        assert (await on.ask(case, headers=[(b"Proxy-Authorization", login)])).status == 200
        assert b"Basic" not in b"".join(request.head for request in case.requests)


async def test_a_recorded_flow_is_asked_again(confdir: Path) -> None:
    """Through mitmproxy's replay, where it still counts as a request to the addon itself."""
    case = Case(R, alpha=R.answers("alpha-ok", stream=False))
    async with stage(confdir, case) as on:
        await on.ask(case, model="unknown", stream=False)
        flow = on.flows[0].copy()
        on.proxy.master.commands.call("replay.client", [flow])
        await until(lambda: flow.response is not None and not flow.live)
        assert flow.response is not None
        assert json.loads(flow.response.content or b"")["error"]["code"] == "model_not_found"
        assert len(on.flows) == 2, "not sent to the listener as to a server"


# -- the wire


async def test_requests_without_a_pause_between_them(confdir: Path) -> None:
    cases = [Case(wire, alpha=wire.answers(f"{wire.name}-ok")) for wire in WIRES]
    async with stage(confdir, *cases) as on:
        every = b"".join(on.request(case) for case in cases) + request_bytes(
            "GET", "/healthz", [(b"Host", b"127.0.0.1:%d" % on.port)], b""
        )
        async with talk(on.port, every) as client:
            for case in cases:
                assert (await answer_of(client)).body == b"".join(case.wire.ok(f"{case.wire.name}-ok"))
            assert (await answer_of(client)).json()["service"] == "combos"
        assert len({flow.client_conn.id for flow in on.flows}) == 1


@pytest.mark.parametrize(("asks", "keeps"), [([], False), ([(b"Connection", b"keep-alive")], True)])
async def test_http10(asks: Pairs, keeps: bool, confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok", stream=False))
    async with stage(confdir, case) as on:
        old = on.request(case, headers=asks, stream=False).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        async with talk(on.port, old) as client:
            first = await answer_of(client)
            assert first.header("connection") == ("keep-alive" if keeps else "close")
            client.writer.write(old)
            if keeps:
                assert (await answer_of(client)).body == first.body
            else:
                assert await client.reader.read() == b""


async def test_a_client_that_wants_no_other_answer(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok"))
    async with stage(confdir, case) as on, on.talk(case, headers=[(b"Connection", b"close")]) as client:
        answered = await answer_of(client)
        assert (answered.header("connection"), answered.clean) == ("close", True)
        assert await client.reader.read() == b""


async def test_a_stream_that_breaks_ends_without_its_end(confdir: Path) -> None:
    begun = event_head() + b"".join(map(chunk, [*R.start(), *R.begin_text(), R.delta("Half an")]))
    case = Case(R, alpha=[Send(begun), Close()])
    async with stage(confdir, case) as on, on.talk(case) as client:
        answered = await answer_of(client)
        assert b"Half an" in answered.body
        assert b"event: error" in answered.body or b"response.failed" in answered.body
        assert not answered.clean
        assert on.flows[0].error is not None


async def test_a_stream_to_an_old_client_that_breaks_is_a_reset(confdir: Path) -> None:
    begun = event_head() + b"".join(map(chunk, [*R.start(), *R.begin_text(), R.delta("Half an")]))
    case = Case(R, alpha=[Send(begun), Close()])
    async with stage(confdir, case) as on, asyncio.timeout(10):
        loop, got, is_reset = asyncio.get_running_loop(), b"", False
        with socket.socket() as client:  # a stream of asyncio forgets what it has when the reset comes
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", on.port))
            await loop.sock_sendall(client, on.request(case).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
            try:
                while piece := await loop.sock_recv(client, 65536):
                    got += piece
            except ConnectionResetError:
                is_reset = True
        assert b"Half an" in got
        assert is_reset


@pytest.mark.parametrize("framing", [b"Content-Length: 2000\r\nExpect: 100-continue", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_body_over_the_limit(wire: Wire, framing: bytes, confdir: Path) -> None:
    """Refused before it is read to its end; a client that asks first is not told to send it."""
    case = Case(wire, alpha=wire.answers("alpha-ok"))
    async with stage(confdir, case, document={"maxInboundBodyBytes": 1000}) as on:
        start = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n" % (wire.path.encode(), framing)
        async with talk(on.port, start + (chunk(b"x" * 2000) if b"chunked" in framing else b"")) as client:
            answered = await answer_of(client)
            assert (answered.status, answered.header("connection")) == (413, "close")
            assert ("type" in answered.json()) == (wire is M)
        assert case.calls == []


async def test_expectations(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok", stream=False))
    async with stage(confdir, case) as on:
        head, _, body = on.request(case, headers=[(b"Expect", b"100-continue")], stream=False).partition(b"\r\n\r\n")
        async with talk(on.port, head + b"\r\n\r\n") as client:
            assert await client.head() == (100, [])
            client.writer.write(body)
            assert b"alpha-ok" in (await answer_of(client)).body
        async with talk(on.port, head.replace(b"100-continue", b"tea") + b"\r\n\r\n") as client:
            assert (await answer_of(client)).status == 417


async def test_a_body_that_is_no_chunks(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok", stream=False))
    async with stage(confdir, case) as on:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with talk(on.port, head + chunk(b"{") + b"zz\r\n") as client:
            answered = await answer_of(client)
            assert answered.status == 400
            assert await client.reader.read() == b""
        assert case.calls == []


# -- what is served


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("POST", "/v1/models", 404, "not_found"),
        ("GET", "/v1/chat/completions", 404, "not_found"),
        ("DELETE", "/v1/messages", 404, "not_found"),
        ("GET", "/v1/models/nobody/knows", 404, "model_not_found"),
    ],
)
async def test_what_is_not_served(method: str, path: str, status: int, code: str, confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok"))
    async with stage(confdir, case) as on:
        answered = await asked(on, method, path)
        assert (answered.status, answered.json()["error"]["code"]) == (status, code)
        assert answered.header("content-type") == "application/json"


async def test_lists_of_models_and_upgrades(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok"))
    async with stage(confdir, case) as on:
        listed = await asked(on, "GET", "/v1/models")
        assert case.model in [row["id"] for row in listed.json()["data"]]
        head = await asked(on, "HEAD", "/v1/models")
        assert (head.status, head.body) == (200, b"")
        assert (await asked(on, "GET", "/v1/responses", UPGRADE)).status == 426


async def test_the_management_is_not_moved(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok"))
    async with stage(confdir, case) as on:
        for path in ("/api/models", "/api/v1/chat/completions", "/metrics", "/elsewhere"):
            assert (await asked(on, "GET", path)).status == 401, path
        assert on.flows == []


async def test_turned_off_and_on_again(confdir: Path) -> None:
    case = Case(C, alpha=C.answers("alpha-ok"))
    async with stage(confdir, case) as on:
        options = on.proxy.master.options
        options.update(combos_admin_listen="")
        await until(lambda: on.combos.admin_address is None)
        with pytest.raises(ConnectionError):
            await on.ask(case)
        options.update(combos_admin_listen=f"127.0.0.1:{on.port}")
        await until(lambda: on.combos.admin_address is not None)
        assert (await on.ask(case)).status == 200


async def test_a_stream_in_the_making_ends_when_the_listener_is_turned_off(confdir: Path) -> None:
    begun = event_head() + b"".join(map(chunk, [*R.start(), *R.begin_text(), R.delta("Half an")]))
    case = Case(R, alpha=[Send(begun), Stall()])
    async with stage(confdir, case) as on, on.talk(case) as client:
        await client.head()
        await client.until(b"Half an")
        on.proxy.master.options.update(combos_admin_listen="")
        rest = await asyncio.wait_for(client.reader.read(), 10)
        assert not rest.endswith(LAST_CHUNK)
        await until(lambda: not on.server.live)


async def test_ocx_local_serves_models_too(confdir: Path) -> None:
    """Through the proxy, the name of the management leads to the listener: it serves the same there."""
    case = Case(C, alpha=C.answers("alpha-ok", stream=False))
    async with stage(confdir, case) as on:
        body = json.dumps(C.request(case.model, stream=False)).encode()
        message = request_bytes("POST", "http://ocx.local/v1/chat/completions", [(b"Host", b"ocx.local")], body)
        async with talk(on.proxy.port, message) as client:
            assert b"alpha-ok" in (await answer_of(client)).body
        assert case.calls == ["alpha"]
