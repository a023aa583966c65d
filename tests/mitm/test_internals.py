"""What is relied upon of mitmproxy, by behaviour, as far as the tests of the layer do not show it."""

import asyncio
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import exceptions
from mitmproxy.addons.anticache import AntiCache
from mitmproxy.addons.dumper import Dumper
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.addons.stickyauth import StickyAuth
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.proxy.server import TimeoutWatchdog
from mitmproxy.test import taddons, tflow

from combos.mitm.internals import (
    connection_handler,
    is_switched_off,
    keep_client_open,
    made_flow,
    made_headers,
    made_request,
    made_response,
)
from combos.mitm.writer import ResponseWriter
from mitm.harness import (
    h1_client,
)
from mitm.streaming import GET, Answering, Start, body_of, greet


async def test_the_watchdog_leaves_a_silent_answer_alone() -> None:
    closed: list[bool] = []

    async def close() -> None:
        closed.append(True)

    async def silence(*, guarded: bool) -> bool:
        closed.clear()
        watchdog = TimeoutWatchdog(1, close)
        watchdog.timeout = 0.1  # type: ignore[assignment]
        watching = asyncio.create_task(watchdog.watch())
        with watchdog.disarm():  # a slow hook, over the first check
            await asyncio.sleep(0.12)
        with keep_client_open(watchdog) if guarded else watchdog.disarm():
            await asyncio.sleep(0.15)
        watching.cancel()
        return bool(closed)

    assert await silence(guarded=False)  # the reason why `disarm` alone is not relied upon
    assert not await silence(guarded=True)


async def test_the_handler_of_a_client_is_found_by_its_id(start: Start) -> None:
    found = []

    async def look(flow: HTTPFlow, writer: ResponseWriter) -> None:
        found.append(connection_handler(flow.client_conn))
        await greet(flow, writer)

    proxy = await start(Answering(look))
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        assert found == proxy.handlers
        await body_of(client)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("anticache", (True, False)),
        ("flow_detail", (0, 3)),
        ("hardump", ("flows.har", "")),
        ("stickyauth", ("~all", None)),
    ],
)
def test_an_option_is_switched_off_when_it_is_empty(name: str, values: tuple[object, ...]) -> None:
    with taddons.context(AntiCache(), Dumper(), SaveHar(), StickyAuth()) as context:
        options = context.options
        assert is_switched_off(name) is (not getattr(options, name))
        for value in values:
            options.update(**{name: value})
            assert is_switched_off(name) is (not getattr(options, name))
        options.reset()
        assert is_switched_off(name) is (not getattr(options, name))
        assert not is_switched_off("no_such_option")


async def test_a_flow_can_be_killed_only_while_it_is_live(start: Start) -> None:
    answering = Answering(greet)
    proxy = await start(answering)
    async with h1_client(proxy) as client:
        client.send(GET)
        await client.head()
        await body_of(client)
    with pytest.raises(exceptions.ControlException):
        answering.flows[0].kill()


def test_flows_made_without_a_question_to_the_system_are_the_same_as_those_made_with_one() -> None:
    flow = tflow.tflow()
    full = HTTPFlow(flow.client_conn, flow.server_conn, live=True)
    lean = made_flow(full.client_conn, full.server_conn, "0" * 32, full.timestamp_created)
    full.id = lean.id
    assert vars(lean) == vars(full)
    full.request = lean.request = flow.request
    assert lean.get_state() == full.get_state()
    assert HTTPFlow.from_state(lean.get_state()).get_state() == full.get_state()


@given(st.binary(min_size=16, max_size=16))
def test_a_flow_has_an_identifier_of_the_usual_form(drawn: bytes) -> None:
    flow = tflow.tflow()
    lean = made_flow(flow.client_conn, flow.server_conn, drawn.hex(), 3.5)
    assert lean.id == str(uuid.UUID(bytes=drawn, version=4))


def test_messages_made_without_checks_are_the_same_as_those_made_with_them() -> None:
    fields = ((b"Host", b"h"), (b"x-a", b"1"), (b"x-a", b"2"))
    lean = made_request("h", 80, b"POST", b"/v1?q", b"HTTP/1.1", made_headers(fields), b"body", 3.5)
    full = Request("h", 80, b"POST", b"http", b"", b"/v1?q", b"HTTP/1.1", Headers(fields), b"body", None, 3.5, 3.5)
    assert vars(lean).keys() == vars(full).keys()
    assert vars(lean.data) == vars(full.data)
    assert (lean.headers.get_all("X-A"), lean.pretty_url, lean.stream) == (["1", "2"], "http://h/v1?q", full.stream)
    lean.headers["x-b"] = "3"
    assert Request.from_state(lean.get_state()).headers == lean.headers


def test_responses_made_without_checks_are_the_same_as_those_made_with_them() -> None:
    lean = made_response(201, made_headers([(b"x-a", b"1")]), 3.5)
    full = Response(b"HTTP/1.1", 201, b"Created", Headers([(b"x-a", b"1")]), None, None, 3.5, None)
    assert vars(lean).keys() == vars(full).keys()
    assert vars(lean.data) == vars(full.data)
    lean.content = b"hello"
    assert Response.from_state(lean.get_state()).content == b"hello"
