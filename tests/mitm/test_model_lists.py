"""Where a model list comes from, and what is left of a vendor's."""

import gzip
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from mitmproxy.http import Headers as HttpHeaders
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow, tutils

from catalogs import CHATGPT, NATIVE_ALIAS, discovered, provider, registry, targets
from combos.core.catalog_member import DiscoveredModel
from combos.core.facts import Headers
from combos.core.registry import Provider, Registry
from combos.mitm.model_lists import ModelLists, asks_for_list
from combos.upstream.discovery import Discovery, VendorList

DOCUMENT = {"providers": {"up": provider()}, "combos": {"main": {"targets": targets("up/m1")}}}
VENDOR_BODY = b'{"object":"list","data":[{"id":"gpt-5.5","object":"model"}]}'


class Known:
    """Stands for discovery. `asked` counts refreshes, `relayed` notes for whom a vendor's list was fetched."""

    def __init__(self, vendor: VendorList | None = None) -> None:
        self.rows: Mapping[str, Sequence[DiscoveredModel]] = {}
        self.asked = 0
        self.relayed: list[tuple[str, str, Headers]] = []
        self._vendor = vendor

    def refresh(self, registry: Registry) -> None:
        self.asked += 1

    async def vendor_list(
        self, provider: Provider, query: str, client_headers: Headers, secrets: Headers
    ) -> VendorList | None:
        self.relayed.append((provider.name, query, secrets))
        return self._vendor


def lists(known: Known) -> ModelLists:
    return ModelLists(cast(Discovery, known))


def asking(path: str, method: str = "GET", host: str = "api.openai.com", **headers: str) -> HTTPFlow:
    flow = tflow.tflow(req=tutils.treq(method=method.encode(), path=path.encode(), host=host))
    for name, value in headers.items():
        flow.request.headers[name.replace("_", "-")] = value
    return flow


def answered(body: bytes = VENDOR_BODY, status: int = 200, path: str = "/v1/models", **fields: str) -> HTTPFlow:
    flow = asking(path, host=fields.pop("host", "api.openai.com"))
    headers = HttpHeaders([(b"content-length", b"%d" % len(body))])
    for name, value in fields.items():
        headers[name.replace("_", "-")] = value
    flow.response = tutils.tresp(status_code=status, content=body, headers=headers)
    return flow


def ids(body: bytes) -> list[str]:
    document: dict[str, Any] = json.loads(body)
    return [row.get("slug") or row["id"] for row in document.get("models") or document["data"]]


@pytest.mark.parametrize(
    ("method", "path", "is_list"),
    [
        ("GET", "/v1/models", True),
        ("GET", "/backend-api/codex/models?client_version=1", True),
        ("GET", "/v1/models/gpt-5.5", False),
        ("POST", "/v1/models", False),
        ("GET", "/v1/responses", False),
    ],
)
def test_what_asks_for_a_list(method: str, path: str, is_list: bool) -> None:
    assert asks_for_list(asking(path, method)) is is_list


# -- on the proxy's own address


async def test_the_whole_list() -> None:
    answer = await lists(Known()).answer(asking("/v1/models"), registry(DOCUMENT), lambda _provider: ())
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert ids(answer.content) == ["combo/main"]


CHATGPT_TOO = {**DOCUMENT, "providers": {"up": provider(), "openai": CHATGPT}}
CODEX = "/v1/models?client_version=0.171.0"
CODEX_LIST = VendorList(b'{"models":[{"slug":"gpt-5.5","priority":1}]}', 'W/"abc"')
LOGIN: Headers = ((b"authorization", b"Bearer login"),)


async def test_codex_with_a_chatgpt_login_keeps_its_native_models() -> None:
    known = Known(CODEX_LIST)
    answer = await lists(known).answer(asking(CODEX), registry(CHATGPT_TOO), lambda _provider: LOGIN)
    assert known.relayed == [("openai", "client_version=0.171.0", LOGIN)]
    assert ids(answer.content) == ["gpt-5.5", "combo/main"]
    assert answer.headers["etag"] == 'W/"abc"'


@pytest.mark.parametrize(
    ("path", "login", "document"),
    [(CODEX, (), CHATGPT_TOO), ("/v1/models", LOGIN, CHATGPT_TOO), (CODEX, LOGIN, DOCUMENT)],
)
async def test_nobody_else_is_asked(path: str, login: Headers, document: dict[str, Any]) -> None:
    known = Known(CODEX_LIST)
    answer = await lists(known).answer(asking(path), registry(document), lambda _provider: login)
    assert known.relayed == []
    assert "combo/main" in ids(answer.content)
    assert "etag" not in answer.headers


async def test_a_vendor_that_does_not_answer_is_done_without() -> None:
    answer = await lists(Known(None)).answer(asking(CODEX), registry(CHATGPT_TOO), lambda _provider: LOGIN)
    assert "combo/main" in ids(answer.content)


# -- a vendor's list


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_combos_are_added(coding: str) -> None:
    flow = answered(gzip.compress(VENDOR_BODY), content_encoding="gzip", etag='"e"') if coding else answered(etag='"e"')
    lists(Known()).merge(flow, registry(DOCUMENT))
    assert flow.response is not None
    body = flow.response.raw_content or b""
    assert ids(body) == ["gpt-5.5", "combo/main"]
    assert flow.response.headers["content-length"] == str(len(body))
    assert flow.response.headers["etag"] == '"e"'
    assert "content-encoding" not in flow.response.headers


def test_a_chunked_answer_gets_no_length() -> None:
    flow = answered(transfer_encoding="chunked")
    assert flow.response is not None
    del flow.response.headers["content-length"]
    lists(Known()).merge(flow, registry(DOCUMENT))
    assert ids(flow.response.raw_content or b"") == ["gpt-5.5", "combo/main"]
    assert "content-length" not in flow.response.headers


@pytest.mark.parametrize(
    ("flow", "document"),
    [
        (answered(status=404), DOCUMENT),
        (answered(host="registry.test"), DOCUMENT),
        (answered(path="/v1/models/x"), DOCUMENT),
        (answered(b"no json"), DOCUMENT),
        (answered(VENDOR_BODY, content_encoding="gzip"), DOCUMENT),
        (answered(VENDOR_BODY, content_encoding="unknown"), DOCUMENT),
        (answered(), {}),
        (tflow.tflow(req=tutils.treq(path=b"/v1/models", host="api.openai.com")), DOCUMENT),
    ],
    ids=["status", "host", "path", "no-json", "broken-coding", "coding", "no-combos", "no-answer"],
)
def test_everything_else_stays(flow: HTTPFlow, document: dict[str, Any]) -> None:
    before = flow.response.get_state() if flow.response else None
    lists(Known()).merge(flow, registry(document))
    assert (flow.response.get_state() if flow.response else None) == before


def test_a_streamed_answer_is_past_changing() -> None:
    flow = answered()
    assert flow.response is not None
    flow.response.stream = True
    lists(Known()).merge(flow, registry(DOCUMENT))
    assert flow.response.raw_content == VENDOR_BODY


def test_hosts_of_configured_providers_are_vendors_too() -> None:
    flow = answered(host="up.example")
    lists(Known()).merge(flow, registry(DOCUMENT))
    assert flow.response is not None
    assert ids(flow.response.raw_content or b"") == ["gpt-5.5", "combo/main"]


# -- the catalog


def test_a_catalog_is_built_again_only_when_something_changed() -> None:
    known = Known()
    made = lists(known)
    same = registry(DOCUMENT)
    first = made.catalog(same)
    assert made.catalog(same) is first
    known.rows = {"up": [discovered("m1", context=5000)]}
    second = made.catalog(same)
    assert second is not first
    assert second.combos[0].can.context == 5000
    assert made.catalog(same) is second
    assert known.asked == 4


def test_why_a_combo_is_not_listed_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    gone = {"providers": {"up": provider(disabled=True)}, "combos": {"main": {"targets": targets("up/m1")}}}
    known = Known()
    made = lists(known)
    with caplog.at_level(logging.WARNING):
        for rows in ({}, {"other": [discovered("x")]}):
            known.rows = rows
            assert made.catalog(registry(gone)).combos == ()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("combos: combo/main is not listed: ")
    assert line.endswith("; it still serves requests")


def test_a_native_alias_takes_the_vendors_place() -> None:
    document = {**DOCUMENT, "combos": {"main": {"targets": targets("up/m1"), **NATIVE_ALIAS}}}
    flow = answered(b'{"data":[{"id":"gpt-5.6-sol"},{"id":"gpt-5.5"}]}')
    lists(Known()).merge(flow, registry(document))
    assert flow.response is not None
    assert ids(flow.response.raw_content or b"") == ["gpt-5.6-sol", "gpt-5.5"]
    assert json.loads(flow.response.raw_content or b"")["data"][0]["is_combo"] is True
