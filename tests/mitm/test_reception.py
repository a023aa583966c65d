"""What the hooks do with requests and answers that pass."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.http import HTTPFlow, Response
from mitmproxy.test import taddons, tflow, tutils

from combos.admin.live_config import LiveConfig
from combos.mitm import claims
from combos.mitm.attempt_flows import _ATTRIBUTE
from combos.mitm.options import Settings
from combos.mitm.reception import Reception
from combos.mitm.recorder import AttemptFlows
from combos.mitm.service import Service
from combos.upstream.selfloop import OwnAddresses
from configs import document

OWN = ("127.0.0.1", 8080)
VENDOR = ("api.openai.com", 443)
VENDOR_LIST = b'{"object":"list","data":[{"id":"gpt-5.5"}]}'


class Host:
    """Stands for the addon."""

    service: Service | None = None
    admin_address: tuple[str, int] | None = None

    def admin_stand_in(self, shown: str) -> str:
        return shown


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    made = Host()
    made.service = service = Service(
        LiveConfig(tmp_path / "config.json"), Settings("", None, AttemptFlows.AUTO, 65_536, 1_000, 2_000, 3_000)
    )
    service.own = OwnAddresses([OWN])
    service.config.adopt(document())
    with taddons.context():
        yield made
    await service.close()


@pytest.fixture
def reception(host: Host) -> Reception:
    return Reception(host, "machine")


def asked(method: str, path: str, place: tuple[str, int] = OWN, body: object = None, **headers: str) -> HTTPFlow:
    raw = b"" if body is None else json.dumps(body).encode()
    name, port = place
    request = tutils.treq(method=method.encode(), path=path.encode(), host=name, port=port, content=raw)
    request.headers.update(headers)
    flow = tflow.tflow(req=request)
    flow.client_conn.peername = ("127.0.0.1", 5555)
    return flow


def attempt(flow: HTTPFlow) -> HTTPFlow:
    """The flow as one of our own attempts."""
    vars(flow)[_ATTRIBUTE] = True
    return flow


async def hooked(reception: Reception, flow: HTTPFlow) -> None:
    """The request hook, as mitmproxy calls it."""
    if (waiting := reception.request(flow)) is not None:
        await waiting


def claimed(flow: HTTPFlow) -> bool:
    """Whether a responder makes the answer."""
    return claims.take_responder(flow) is not None


COMBO = {"model": "combo/main", "input": "hi"}
NATIVE = {"model": "gpt-5.5", "input": "hi"}


@pytest.mark.parametrize(
    ("place", "body", "ours"), [(OWN, COMBO, True), (VENDOR, COMBO, True), (OWN, NATIVE, True), (VENDOR, NATIVE, False)]
)
async def test_what_is_claimed(reception: Reception, place: tuple[str, int], body: dict[str, Any], ours: bool) -> None:
    flow = asked("POST", "/v1/responses", place, body)
    await hooked(reception, flow)
    assert (claimed(flow), flow.response) == (ours, None)


@pytest.mark.parametrize("path", ["/v1/models/combo/main", "/v1/models/combo/none"])
async def test_details_of_a_combo_are_claimed(reception: Reception, path: str) -> None:
    flow = asked("GET", path, VENDOR)
    await hooked(reception, flow)
    assert claimed(flow)


async def test_what_somebody_else_has_answered_is_left_alone(reception: Reception, host: Host) -> None:
    answered = asked("POST", "/v1/responses", body=COMBO)
    answered.response = Response.make(418)
    failed = asked("POST", "/v1/responses", body=COMBO)
    failed.error = tflow.terr()
    own = attempt(asked("POST", "/v1/responses", body=COMBO))
    for flow in (answered, failed, own):
        await hooked(reception, flow)
        assert not claimed(flow)
    host.service = None
    unserved = asked("POST", "/v1/responses", body=COMBO)
    await hooked(reception, unserved)
    assert (claimed(unserved), unserved.response) == (False, None)


async def test_a_replayed_request_is_answered_at_once(reception: Reception) -> None:
    flow = asked("POST", "/v1/responses", body={"model": "combo/none", "input": "hi"})
    flow.is_replay = "request"
    await hooked(reception, flow)
    assert not claimed(flow)
    assert flow.response is not None
    assert (flow.response.status_code, json.loads(flow.response.content)["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 200), ("HEAD", "/", 200), ("GET", "/v1/nothing", 404), ("GET", "/v1/models", 200)],
)
async def test_the_own_address_answers_for_itself(reception: Reception, method: str, path: str, status: int) -> None:
    flow = asked(method, path)
    await hooked(reception, flow)
    assert flow.response is not None
    assert flow.response.status_code == status
    there = asked(method, path, VENDOR)
    await hooked(reception, there)
    assert (claimed(there), there.response) == (False, None)


async def test_lists_are_for_admitted_clients(reception: Reception) -> None:
    flow = asked("GET", "/v1/models")
    flow.client_conn.peername = ("192.0.2.7", 5555)
    await hooked(reception, flow)
    assert flow.response is not None
    assert flow.response.status_code == 403


@pytest.mark.parametrize("place", [OWN, VENDOR])
async def test_upgrades_are_refused_while_combos_exist(
    reception: Reception, host: Host, place: tuple[str, int]
) -> None:
    flow = asked("GET", "/v1/responses", place, upgrade="websocket")
    await hooked(reception, flow)
    assert flow.response is not None
    assert flow.response.status_code == 426
    assert host.service is not None
    host.service.config.adopt({})
    later = asked("GET", "/v1/responses", place, upgrade="websocket")
    await hooked(reception, later)
    assert (later.response.status_code if later.response else None) == (404 if place is OWN else None)


@pytest.mark.parametrize(
    ("method", "path", "held"),
    [("POST", "/v1/responses", True), ("POST", "/v1/messages", True), ("POST", "/upload", False)],
)
def test_bodies_that_may_be_ours_are_needed_whole(reception: Reception, method: str, path: str, held: bool) -> None:
    for flow, expected in ((asked(method, path, VENDOR), held), (attempt(asked(method, path, VENDOR)), False)):
        flow.request.stream = True
        reception.requestheaders(flow)
        assert flow.request.stream is not expected


@pytest.mark.parametrize(
    ("content_type", "streamed"),
    [("text/event-stream", True), ("Text/Event-Stream; charset=utf-8", True), ("application/json", False), ("", False)],
)
def test_event_streams_of_others_are_not_held_up(reception: Reception, content_type: str, streamed: bool) -> None:
    flow = asked("POST", "/v1/responses", VENDOR)
    flow.response = Response.make(200, b"", {"content-type": content_type})
    reception.responseheaders(flow)
    assert bool(flow.response.stream) is streamed
    own = attempt(asked("POST", "/v1/responses", VENDOR))
    own.response = Response.make(200, b"", {"content-type": content_type})
    reception.responseheaders(own)
    assert not own.response.stream


async def test_only_lists_of_vendors_are_added_to(reception: Reception, host: Host) -> None:
    merged = asked("GET", "/v1/models", VENDOR)
    made_here = asked("GET", "/v1/models")
    own = attempt(asked("GET", "/v1/models", VENDOR))
    other = asked("GET", "/v1/files", VENDOR)
    for flow in (merged, made_here, own, other):
        flow.response = Response.make(200, VENDOR_LIST, {"content-type": "application/json"})
        reception.response(flow)
    assert b"combo/main" in (merged.response.content if merged.response else b"")
    for flow in (made_here, own, other):
        assert flow.response is not None
        assert flow.response.content == VENDOR_LIST
    host.service = None
    later = asked("GET", "/v1/models", VENDOR)
    later.response = Response.make(200, VENDOR_LIST)
    reception.response(later)
    assert later.response.content == VENDOR_LIST
