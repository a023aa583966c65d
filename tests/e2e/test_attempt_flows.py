"""Attempts as flows: which there are, what they show, and what other addons can do with them."""

import asyncio
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import io as flow_io
from mitmproxy.http import HTTPFlow, Response

from e2e.proxyprocess import process_with
from rawserver import Reset, Send, Signal, Stall, chunk, event_head
from stage import Case, stage, until
from wires import WIRES, C, M, R, error

pytestmark = pytest.mark.usefixtures("entrance")

DOWN = error(503, {"error": {"message": "down"}})


class Watcher:
    """Notes the hooks of every flow, in order."""

    def __init__(self) -> None:
        self.hooks: dict[str, list[str]] = {}
        self.flows: dict[str, HTTPFlow] = {}

    def _note(self, name: str, flow: HTTPFlow) -> None:
        self.flows[flow.id] = flow
        self.hooks.setdefault(flow.id, []).append(name)

    def requestheaders(self, flow: HTTPFlow) -> None:
        self._note("requestheaders", flow)

    def request(self, flow: HTTPFlow) -> None:
        self._note("request", flow)

    def responseheaders(self, flow: HTTPFlow) -> None:
        self._note("responseheaders", flow)

    def response(self, flow: HTTPFlow) -> None:
        self._note("response", flow)

    def error(self, flow: HTTPFlow) -> None:
        self._note("error", flow)

    @property
    def attempts(self) -> list[HTTPFlow]:
        return [flow for flow in self.flows.values() if "attempt" in flow.metadata.get("combos", {})]


ANSWERED = ["requestheaders", "request", "responseheaders", "response"]


async def test_auto_shows_the_attempts_of_a_request_that_hopped(confdir: Path) -> None:
    straight = Case(R, alpha=R.answers("alpha-ok"))
    hopping = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    watcher = Watcher()
    async with stage(confdir, straight, hopping, addons=[watcher]) as on:
        await on.ask(straight)
        assert watcher.attempts == []
        await on.ask(hopping)
        await until(lambda: len(watcher.attempts) == 2)
        (client,) = [f for f in watcher.flows.values() if f.metadata["combos"].get("combo") == hopping.id]
        await until(lambda: all("response" in watcher.hooks[flow.id] for flow in watcher.attempts))
        for number, (flow, status) in enumerate(zip(watcher.attempts, (503, 200), strict=True), 1):
            assert watcher.hooks[flow.id] == ANSWERED
            assert flow.metadata["combos"]["attempt"] == number
            assert flow.metadata["combos"]["client_flow"] == client.id
            assert flow.response is not None
            assert flow.response.status_code == status
            assert not flow.live
            assert flow.request.headers["authorization"] == "****"
        assert client.marked == ":repeat:"
        assert re.fullmatch(
            rf"{hopping.id}: \S+-alpha/m1 503 → \S+-beta/m2 200 \(1 hop, \d+\.\d s\)",
            client.comment,
        )
        outcome = client.metadata["combos"]
        assert (outcome["outcome"], [a["status"] for a in outcome["attempts"]]) == ("success", [503, 200])
        assert watcher.hooks[client.id] == ANSWERED


@pytest.mark.parametrize(("policy", "count"), [("all", 3), ("none", 0)])
async def test_all_and_none(policy: str, count: int, confdir: Path) -> None:
    straight = Case(R, alpha=R.answers("alpha-ok"))
    hopping = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    watcher = Watcher()
    options = {"combos_attempt_flows": policy}
    async with stage(confdir, straight, hopping, addons=[watcher], combos_options=options) as on:
        await on.ask(straight)
        await on.ask(hopping)
        assert len(watcher.attempts) == count
        await until(lambda: all(watcher.hooks[flow.id] == ANSWERED for flow in watcher.attempts))
        for flow in watcher.flows.values():
            assert flow.comment


async def test_marks_by_outcome(confdir: Path) -> None:
    terminal = Case(R, alpha=error(418, {}))
    exhausted = Case(R, alpha=DOWN)
    begun = [*R.start(), *R.begin_text(), R.delta("Half an")]
    broken = Case(R, alpha=[Send(event_head() + b"".join(map(chunk, begun))), Reset()])
    async with stage(confdir, terminal, exhausted, broken) as on:
        await on.ask_all([terminal, exhausted, broken])
        await on.ask(exhausted)
        marks: dict[str, list[str]] = {}
        for flow in on.flows:
            found = flow.metadata.get("combos", {})
            if "combo" in found:
                marks.setdefault(found["combo"], []).append(flow.marked)
        assert marks == {
            terminal.id: [":no_entry:"],
            exhausted.id: [":no_entry:", ":snowflake:"],
            broken.id: [":zap:"],
        }


class Changer(Watcher):
    """Does something with attempts in their `request` hook."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self._change = change

    async def request(self, flow: HTTPFlow) -> None:
        super().request(flow)
        if "attempt" in flow.metadata.get("combos", {}):
            await self._change(flow)


async def test_other_addons_change_attempts(confdir: Path) -> None:
    """With `auto` from the second attempt on, with `all` every one."""

    async def change(flow: HTTPFlow) -> None:
        flow.request.headers["x-added"] = "yes"
        flow.request.headers["authorization"] = "Bearer of-another-addon"

    for policy, expected in (("auto", [None, "yes"]), ("all", ["yes", "yes"])):
        case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
        options = {"combos_attempt_flows": policy}
        async with stage(confdir, case, addons=[Changer(change)], combos_options=options) as on:
            assert b"beta-ok" in (await on.ask(case)).body
            assert [request.header("x-added") for request in case.requests] == expected
            # The masked credential is ours: what is put there by others is not sent.
            assert [r.header("authorization") for r in case.requests] == ["Bearer alpha-key", "Bearer beta-key"]


async def test_modify_headers_applies_to_attempts(confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    rule = ["/~q & ~m POST/x-modified/yes"]
    async with stage(confdir, case, modify_headers=rule, combos_options={"combos_attempt_flows": "all"}) as on:
        await on.ask(case)
        assert [request.header("x-modified") for request in case.requests] == ["yes", "yes"]


async def test_an_attempt_killed_by_an_addon_is_hopped_over(confdir: Path) -> None:
    async def kill(flow: HTTPFlow) -> None:
        if "alpha" in flow.metadata["combos"]["target"]:
            flow.kill()

    case = Case(R, alpha=R.answers("alpha-ok"), beta=R.answers("beta-ok"))
    changer = Changer(kill)
    async with stage(confdir, case, addons=[changer], combos_options={"combos_attempt_flows": "all"}) as on:
        assert b"beta-ok" in (await on.ask(case)).body
        assert case.calls == ["beta"]
        await until(lambda: all(not flow.live for flow in changer.attempts))
        ends = [[hook for hook in changer.hooks[f.id] if hook in ("response", "error")] for f in changer.attempts]
        assert ends == [["error"], ["response"]]


@pytest.mark.parametrize(("status", "hops"), [(200, False), (503, True), (418, False)])
async def test_an_attempt_answered_by_an_addon(status: int, hops: bool, confdir: Path) -> None:
    body = json.dumps(R.whole("canned")).encode()

    async def answer(flow: HTTPFlow) -> None:
        if "alpha" in flow.metadata["combos"]["target"]:
            flow.response = Response.make(status, body, {"content-type": "application/json"})

    case = Case(R, alpha=R.answers("alpha-ok"), beta=R.answers("beta-ok", stream=False))
    changer = Changer(answer)
    async with stage(confdir, case, addons=[changer], combos_options={"combos_attempt_flows": "all"}) as on:
        got = await on.ask(case, stream=False)
        assert case.calls == (["beta"] if hops else [])
        assert (got.status, b"beta-ok" in got.body) == (200 if hops else status, hops)
        for flow in changer.attempts:
            assert [hook for hook in changer.hooks[flow.id] if hook in ("response", "error")] == ["response"]


async def test_an_intercepted_attempt_waits_until_it_is_resumed(confdir: Path) -> None:
    caught: list[HTTPFlow] = []

    async def intercept(flow: HTTPFlow) -> None:
        flow.intercept()
        caught.append(flow)

    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with stage(confdir, case, addons=[Changer(intercept)]) as on:
        asked = asyncio.create_task(on.ask(case))
        await until(lambda: bool(caught))
        assert case.calls == ["alpha"]
        while not asked.done():
            for flow in caught:
                flow.resume()
            await asyncio.sleep(0.005)
        assert b"beta-ok" in asked.result().body
        assert len(caught) == 2


async def test_a_client_that_leaves_ends_an_intercepted_attempt(confdir: Path) -> None:
    caught: list[HTTPFlow] = []

    async def intercept(flow: HTTPFlow) -> None:
        flow.intercept()
        caught.append(flow)

    case = Case(R, alpha=R.answers("alpha-ok"))
    options = {"combos_attempt_flows": "all"}
    async with stage(confdir, case, addons=[Changer(intercept)], combos_options=options) as on, on.talk(case) as client:
        await until(lambda: bool(caught))
        client.leave()
        await until(lambda: case.record is not None)
        assert case.calls == []
        await until(lambda: not caught[0].intercepted and not caught[0].live)


async def test_proxyauth_does_not_answer_attempts(confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    options = {"combos_attempt_flows": "all"}
    async with stage(confdir, case, proxyauth="user:pass", combos_options=options) as on:
        auth = [(b"Proxy-Authorization", b"Basic dXNlcjpwYXNz")]
        assert b"beta-ok" in (await on.ask(case, headers=auth)).body
        assert case.calls == ["alpha", "beta"]


SECRETS = ("alpha-key", "beta-key", "header-canary", "caller-secret")
CALLER = [(b"Authorization", b"Bearer caller-secret"), (b"Cookie", b"id=caller-secret")]


def read_flows(path: Path) -> list[HTTPFlow]:
    with io.BytesIO(path.read_bytes()) as file:
        return [flow for flow in flow_io.FlowReader(file).stream() if isinstance(flow, HTTPFlow)]


@pytest.mark.parametrize("policy", ["auto", "all"])
async def test_a_flow_file_holds_the_attempts_and_no_providers_secret(
    policy: str, tmp_path: Path, confdir: Path
) -> None:
    extra = {"headers": {"x-team-token": "header-canary"}}
    cases = [
        Case(wire, alpha=DOWN, beta=wire.answers("beta-ok"), providers={"alpha": extra, "beta": extra})
        for wire in (R, C, M)
    ]
    saved = tmp_path / "flows"
    arguments = ["-w", str(saved), "--set", f"combos_attempt_flows={policy}", "--set", "flow_detail=2", "-v"]
    async with process_with(tmp_path / "home", confdir, cases, *arguments) as (proxy, _):
        for case in cases:
            assert b"beta-ok" in (await proxy.ask(case, headers=CALLER)).body
            assert {request.header("x-team-token") for request in case.requests} == {"header-canary"}
            await proxy.line(f"{case.id}: .*1 hop")
    flows = read_flows(saved)
    for case in cases:
        (client,) = [f for f in flows if f.metadata["combos"].get("combo") == case.id]
        attempts = [f for f in flows if f.metadata["combos"].get("client_flow") == client.id]
        assert [flow.metadata["combos"]["attempt"] for flow in attempts] == [1, 2]
        assert client.marked == ":repeat:"
        assert client.comment.startswith(f"{case.id}: ")
        assert all(flow.comment and flow.response for flow in attempts)
        for flow in attempts:
            assert_no_secrets(flow.get_state(), SECRETS)
            assert flow.request.headers["x-team-token"] == "****"
    # Nor is any of it in what the addon writes beside its configuration file.
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.name != "config.json"]
    for path in written:
        assert not [secret for secret in SECRETS if secret.encode() in path.read_bytes()], path
    # The caller's own login is in the caller's own flow and nowhere else.
    for secret in SECRETS[:3]:
        assert secret not in proxy.log
        assert secret.encode() not in saved.read_bytes()


def assert_no_secrets(state: object, secrets: Sequence[str]) -> None:
    text = repr(state)
    for secret in secrets:
        assert secret not in text


async def test_no_secret_reaches_log_metadata_or_comment_when_everything_fails(
    confdir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also with the most verbose log of the addon, and with targets that answer with the very keys they got."""
    echo = error(401, {"error": {"message": "Incorrect API key provided: alpha-key"}})
    cases = [Case(wire, alpha=echo, urls={"beta": "http://no-such-host.invalid/v1"}) for wire in WIRES]
    caplog.set_level("DEBUG", logger="combos")
    async with stage(confdir, *cases, combos_options={"combos_attempt_flows": "all"}) as on:
        await asyncio.gather(*(on.ask(case, headers=CALLER) for case in cases))
        await on.ask_all(cases)
        kept = [(flow.comment, flow.marked, flow.metadata) for flow in on.flows]
    for secret in ("alpha-key", "beta-key", "caller-secret"):
        assert secret not in repr(kept)
        assert secret not in caplog.text


async def test_an_attempt_in_flight_is_abandoned_with_its_client(confdir: Path) -> None:
    asked = asyncio.Event()
    case = Case(R, alpha=[Signal(asked), Stall()])
    watcher = Watcher()
    options = {"combos_attempt_flows": "all"}
    async with stage(confdir, case, addons=[watcher], combos_options=options) as on, on.talk(case) as client:
        await asyncio.wait_for(asked.wait(), 10)
        client.leave()
        await until(lambda: case.record is not None)
        (flow,) = watcher.attempts
        await until(lambda: not flow.live)
        assert flow.error is not None
