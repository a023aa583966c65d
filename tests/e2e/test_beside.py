"""mitmproxy's own options and other addons beside ours: what they still do to requests for combos, and what not."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.addons.intercept import Intercept
from mitmproxy.http import HTTPFlow, Response
from mitmproxy.io import FlowReader

from rawclient import ask
from rawserver import Again, Expect, RawServer, Send, response
from stage import Case, Stage, stage, until
from wires import WIRES, R, Wire, error

DOWN = error(503, {"error": {"message": "down"}})


def hopping(wire: Wire = R, *, stream: bool = True) -> Case:
    return Case(wire, alpha=DOWN, beta=wire.answers("beta-ok", stream=stream))


async def hops(on: Stage, case: Case, **more: Any) -> bool:
    """Both targets were asked, and the client has the second one's whole answer."""
    answer = await on.ask(case, **more)
    return (case.calls, answer.status, answer.body) == (["alpha", "beta"], 200, b"".join(case.wire.ok("beta-ok")))


def client_flow(on: Stage, case: Case) -> HTTPFlow:
    """The client's own flow; attempts are flows too."""
    found = [flow for flow in on.flows if flow.metadata.get("combos", {}).get("combo") == case.id]
    return next(flow for flow in found if "attempt" not in flow.metadata["combos"])


# -- options of mitmproxy

HARMLESS: dict[str, dict[str, Any]] = {
    "anticache": {"anticache": True},
    "anticomp": {"anticomp": True},
    "block_global": {"block_global": True, "block_private": False},
    "store_streamed_bodies": {"store_streamed_bodies": True},
    "stickycookie": {"stickycookie": "~all"},
    "websocket off": {"websocket": False},
    "http2 off": {"http2": False},
    "validate_inbound_headers off": {"validate_inbound_headers": False},
    "keep_host_header": {"keep_host_header": True},
    "connection_strategy eager": {"connection_strategy": "eager"},
    "showhost": {"showhost": True},
}


@pytest.mark.parametrize("name", HARMLESS)
async def test_options_that_change_nothing_for_combos(name: str, confdir: Path) -> None:
    cases = [hopping(wire) for wire in WIRES]
    async with stage(confdir, *cases, **HARMLESS[name]) as on:
        for case in cases:
            assert await hops(on, case, headers=[(b"If-None-Match", b"x"), (b"Accept-Encoding", b"gzip")])


async def test_proxyauth_asks_for_a_login(confdir: Path) -> None:
    case = hopping()
    async with stage(confdir, case, proxyauth="user:pass") as on:
        refused = await on.ask(case)
        assert (refused.status, case.calls) == (407, [])
        login = b"Basic " + base64.b64encode(b"user:pass")
        assert await hops(on, case, headers=[(b"Proxy-Authorization", login)])
        assert b"Basic" not in b"".join(request.head for request in case.requests)


async def test_block_list_answers_in_our_place(confdir: Path) -> None:
    case = hopping()
    async with stage(confdir, case, block_list=[":~u /v1/responses:451"]) as on:
        assert ((await on.ask(case)).status, case.calls) == (451, [])


async def test_modify_headers_changes_requests_and_answers(confdir: Path) -> None:
    case = hopping()
    rows = ["/~q/x-asked/1", "/~s/x-answered/2", "/~q/x-removed/"]
    async with stage(confdir, case, modify_headers=rows) as on:
        answer = await on.ask(case, headers=[(b"x-removed", b"0")])
        assert answer.header("x-answered") == "2"
        assert [request.header("x-asked") for request in case.requests] == ["1", "1"]
        assert [request.header("x-removed") for request in case.requests] == [None, None]


async def test_modify_body_changes_requests_and_no_streamed_answer(confdir: Path) -> None:
    case, other = hopping(), hopping()
    async with stage(confdir, case, other) as on:
        on.proxy.master.options.update(
            modify_body=[f"|~q & ~u 127.0.0.1:{on.port}|{other.model}|{case.model}", "/~s/beta-ok/changed"]
        )
        answer = await on.ask(other)
        assert (other.calls, case.calls) == ([], ["alpha", "beta"])
        assert answer.body == b"".join(R.ok("beta-ok"))


async def test_map_remote_changes_where_a_client_asks(confdir: Path) -> None:
    case = hopping()
    async with RawServer([Again([Expect(), Send(response(200, b"moved"))])]) as elsewhere, stage(confdir, case) as on:
        on.proxy.master.options.update(map_remote=[f"|http://vendor.test/|{elsewhere.url}/"])
        for model, expected in ((case.model, b"".join(R.ok("beta-ok"))), ("theirs", b"moved")):
            body = json.dumps(R.request(model)).encode()
            answer = await ask(on.port, "POST", "http://vendor.test/v1/responses", body=body, host=b"vendor.test")
            assert answer.body == expected
        assert case.calls == ["alpha", "beta"]
        assert len(elsewhere.requests) == 1


async def test_map_remote_cannot_send_a_targets_key_elsewhere(confdir: Path) -> None:
    case = hopping()
    attempts = {"combos_attempt_flows": "all"}
    async with (
        RawServer([Again([Expect(), Send(response(200, b"moved"))])]) as elsewhere,
        stage(confdir, case, combos_options=attempts) as on,
    ):
        on.proxy.master.options.update(map_remote=[f"|{on.server.url}/|{elsewhere.url}/"])
        answer = await on.ask(case)
        assert (answer.status, answer.json()["error"]["code"]) == (502, "connect_failed")
        assert (case.calls, elsewhere.requests) == ([], [])


async def test_intercept_holds_a_request_until_it_is_resumed(confdir: Path) -> None:
    case = hopping()
    async with stage(confdir, case, addons=[Intercept()]) as on:
        on.proxy.master.options.update(intercept=f"~q & ~u 127.0.0.1:{on.port}/v1/responses")
        asked = asyncio.create_task(on.ask(case))
        await until(lambda: any(flow.intercepted for flow in on.flows))
        assert case.calls == []
        on.flows[0].resume()
        assert (await asked).body == b"".join(R.ok("beta-ok"))


async def test_intercept_holds_an_attempt_too(confdir: Path) -> None:
    case = hopping()
    async with stage(confdir, case, addons=[Intercept()], combos_options={"combos_attempt_flows": "all"}) as on:
        on.proxy.master.options.update(intercept=f"~q & ~u {case.id}/beta")
        asked = asyncio.create_task(on.ask(case))
        await until(lambda: any(flow.intercepted for flow in on.flows))
        assert case.calls == ["alpha"]
        next(flow for flow in on.flows if flow.intercepted).resume()
        assert (await asked).body == b"".join(R.ok("beta-ok"))


def recorded(path: Path) -> list[HTTPFlow]:
    with path.open("rb") as file:
        return [flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow)]


async def test_save_stream_file_holds_the_request_its_attempts_and_no_key(tmp_path: Path, confdir: Path) -> None:
    case, path = hopping(), tmp_path / "flows.mitm"
    async with stage(confdir, case, save_stream_file=str(path)) as on:
        assert await hops(on, case, headers=[(b"Authorization", b"Bearer caller-secret")])
    flows = recorded(path)
    assert sorted("attempt" in flow.metadata["combos"] for flow in flows) == [False, True, True]
    assert all(flow.response and flow.response.raw_content for flow in flows)
    assert b"alpha-key" not in path.read_bytes()
    assert b"beta-key" not in path.read_bytes()


async def test_client_replay_sends_recorded_requests_through_the_combos(tmp_path: Path, confdir: Path) -> None:
    case, path = hopping(), tmp_path / "flows.mitm"
    async with stage(confdir, case, save_stream_file=str(path), combos_options={"combos_attempt_flows": "none"}) as on:
        assert await hops(on, case)
        on.proxy.master.options.update(save_stream_file=None)
        on.proxy.master.options.update(client_replay=[str(path)])
        await until(lambda: len(case.records) == 2)
        assert case.calls == ["alpha", "beta", "beta"]


async def test_server_replay_answers_in_our_place(tmp_path: Path, confdir: Path) -> None:
    case, path = hopping(), tmp_path / "flows.mitm"
    options = {"combos_attempt_flows": "none"}
    async with stage(confdir, case, save_stream_file=str(path), combos_options=options) as on:
        assert await hops(on, case)
        on.proxy.master.options.update(save_stream_file=None)
        on.proxy.master.options.update(server_replay=[str(path)], server_replay_reuse=True)
        again = await on.ask(case)
        assert (again.status, again.body) == (200, b"".join(R.ok("beta-ok")))
        assert case.calls == ["alpha", "beta"], "from the record, not from a target"


# -- other addons


class Beside:
    """An addon that does one thing at one hook, to clients' requests only."""

    def __init__(self, hook: str, act: Callable[[HTTPFlow], None]) -> None:
        self.seen = 0
        setattr(self, hook, lambda flow: self._act(flow, act))

    def _act(self, flow: HTTPFlow, act: Callable[[HTTPFlow], None]) -> None:
        if "attempt" not in flow.metadata.get("combos", {}):
            self.seen += 1
            act(flow)


def asking_for(model: Callable[[], str]) -> Callable[[HTTPFlow], None]:
    def act(flow: HTTPFlow) -> None:
        flow.request.text = json.dumps(R.request(model()))

    return act


async def test_an_addon_before_ours_may_change_the_model_and_one_after_it_comes_too_late(confdir: Path) -> None:
    for is_before in (True, False):
        case, other = hopping(), hopping()
        changing = Beside("request", asking_for(lambda other=other: other.model))
        placed: dict[str, Any] = {"before" if is_before else "addons": [changing]}
        async with stage(confdir, case, other, **placed) as on:
            answer = await on.ask(case)
            assert answer.body == b"".join(R.ok("beta-ok"))
            assert (case.calls, other.calls) == (([], ["alpha", "beta"]) if is_before else (["alpha", "beta"], []))
            assert changing.seen == 1


def answer_it(flow: HTTPFlow) -> None:
    flow.response = Response.make(200, b"by another addon")


@pytest.mark.parametrize("hook", ["requestheaders", "request"])
@pytest.mark.parametrize("place", ["before", "addons"])
async def test_an_addon_that_answers_is_the_one_that_is_heard(hook: str, place: str, confdir: Path) -> None:
    case = hopping()
    placed: dict[str, Any] = {place: [Beside(hook, answer_it)]}
    async with stage(confdir, case, **placed) as on:
        assert (await on.ask(case)).body == b"by another addon"
        assert case.calls == []


def stream_request(flow: HTTPFlow) -> None:
    flow.request.stream = True


def stream_answer(flow: HTTPFlow) -> None:
    assert flow.response is not None
    flow.response.stream = True


@pytest.mark.parametrize(("hook", "act"), [("requestheaders", stream_request), ("responseheaders", stream_answer)])
@pytest.mark.parametrize("place", ["before", "addons"])
async def test_an_addon_that_streams_everything_costs_no_combo(
    hook: str, act: Callable[[HTTPFlow], None], place: str, confdir: Path
) -> None:
    cases = [hopping(wire) for wire in WIRES]
    placed: dict[str, Any] = {place: [Beside(hook, act)]}
    async with stage(confdir, *cases, **placed) as on:
        for case in cases:
            assert await hops(on, case)


def upper(data: bytes) -> bytes:
    return data.replace(b"beta-ok", b"BETA-OK")


def change_stream(flow: HTTPFlow) -> None:
    assert flow.response is not None
    flow.response.stream = upper


async def test_an_addon_may_change_a_stream_as_it_passes(confdir: Path) -> None:
    case = hopping()
    async with stage(confdir, case, addons=[Beside("responseheaders", change_stream)]) as on:
        answer = await on.ask(case)
        assert answer.body == upper(b"".join(R.ok("beta-ok")))


def fail(flow: HTTPFlow) -> None:
    raise LookupError("not our addon")


@pytest.mark.parametrize("hook", ["requestheaders", "request", "responseheaders", "response"])
@pytest.mark.parametrize("place", ["before", "addons"])
async def test_an_addon_that_raises_is_logged_and_the_combo_is_served(hook: str, place: str, confdir: Path) -> None:
    case = hopping()
    failing = Beside(hook, fail)
    placed: dict[str, Any] = {place: [failing]}

    async def run() -> None:
        async with stage(confdir, case, **placed) as on:
            assert await hops(on, case)
            await until(lambda: failing.seen == 1)

    with pytest.raises(AssertionError, match="not our addon"):  # what the stage finds in the log
        await run()


def kill_it(flow: HTTPFlow) -> None:
    flow.kill()


@pytest.mark.parametrize("place", ["before", "addons"])
async def test_an_addon_that_kills_a_request_ends_it(place: str, confdir: Path) -> None:
    case = hopping()
    placed: dict[str, Any] = {place: [Beside("request", kill_it)]}
    async with stage(confdir, case, **placed) as on, on.talk(case) as raw:
        assert await asyncio.wait_for(raw.reader.read(), 10) == b""
        assert case.calls == []
