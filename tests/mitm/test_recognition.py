"""Which requests are ours, and what they ask for."""

import gzip
import json
from typing import Any
from urllib.parse import quote

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow, tutils

from combos.core.facts import Dialect
from combos.core.limits import INBOUND_HEAD_MAX
from combos.core.registry import ComboRoute, DirectRoute, Registry, Route, UnknownCombo, build_registry
from combos.mitm.recognition import (
    Recognised,
    Refusal,
    is_base_url,
    is_responses_upgrade,
    recognise,
    turn_surface,
)
from combos.upstream.selfloop import OwnAddresses
from combos.wire.fields import Fields
from configs import config, document, provider

LIMIT = 10_000
PROVIDERS = {"alpha": provider(models=["bare-model"]), "beta": provider()}
REGISTRY = build_registry(config(document(providers=PROVIDERS, maxInboundBodyBytes=LIMIT)), 1)


def asked(path: str, body: bytes | dict[str, Any] = b"", method: str = "POST", **headers: str) -> HTTPFlow:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = tutils.treq(method=method.encode(), path=path.encode(), content=data)
    for name, value in headers.items():
        request.headers[name.replace("_", "-")] = value
    return tflow.tflow(req=request)


def found(
    flow: HTTPFlow, *, base_url: bool = True, registry: Registry = REGISTRY, recalled: Route | None = None
) -> Recognised | Refusal | None:
    fields = Fields(flow.request.headers.fields)
    return recognise(flow, fields, registry, lambda _path, _fields, _body: recalled, base_url=base_url)


@pytest.mark.parametrize(
    ("method", "path", "dialect"),
    [
        ("POST", "/v1/responses", Dialect.RESPONSES),
        ("POST", "/v1/responses/compact", Dialect.RESPONSES),
        ("POST", "/backend-api/codex/responses", Dialect.RESPONSES),
        ("POST", "/v1/chat/completions?x=1", Dialect.CHAT),
        ("POST", "/v1/messages?beta=true", Dialect.MESSAGES),
        ("GET", "/v1/responses", None),
        ("POST", "/v1/embeddings", None),
        ("POST", "/v1/responses/resp_1/cancel", None),
        ("GET", "/v1/models", None),
        ("POST", "/v1beta/models/combo/main:generateContent", Dialect.GEMINI),
        ("GET", "/v1beta/models/combo/main:generateContent", None),
    ],
)
def test_surfaces(method: str, path: str, dialect: Dialect | None) -> None:
    assert turn_surface(asked(path, method=method)) is dialect


@pytest.mark.parametrize("base_url", [True, False])
def test_a_combo_is_ours_wherever_it_is_asked_for(base_url: bool) -> None:
    got = found(asked("/v1/responses", {"model": "combo/main", "stream": True}), base_url=base_url)
    assert isinstance(got, Recognised)
    assert isinstance(got.route, ComboRoute)
    assert (got.facts.model, got.facts.stream, got.facts.dialect) == ("combo/main", True, Dialect.RESPONSES)


@pytest.mark.parametrize("base_url", [True, False])
def test_other_explicit_names(base_url: bool) -> None:
    unknown = found(asked("/v1/messages", {"model": "combo/none"}), base_url=base_url)
    assert isinstance(unknown, Recognised)
    assert unknown.route == UnknownCombo("none")
    direct = found(asked("/v1/messages", {"model": "alpha/m"}), base_url=base_url)
    assert isinstance(direct, Recognised)
    assert isinstance(direct.route, DirectRoute)


def test_a_bare_model_is_ours_as_a_base_url_only() -> None:
    flow = asked("/v1/chat/completions", {"model": "bare-model"})
    assert found(flow, base_url=False) is None
    got = found(flow)
    assert isinstance(got, Recognised)
    assert isinstance(got.route, DirectRoute)
    assert got.route.target.key == "alpha/bare-model"


def test_an_unknown_model_is_refused_as_a_base_url_and_passed_elsewhere() -> None:
    flow = asked("/v1/chat/completions", {"model": "no-such"})
    assert found(flow, base_url=False) is None
    got = found(flow)
    assert isinstance(got, Refusal)
    assert (got.error.status, got.dialect) == (404, Dialect.CHAT)


BAD: dict[str, tuple[bytes, dict[str, str], int]] = {
    "no JSON": (b"{", {}, 400),
    "no object": (b"[]", {}, 400),
    "no model": (b"{}", {}, 400),
    "model is no text": (b'{"model": 1}', {}, 400),
    "empty": (b"", {}, 400),
    "coding broken": (b"x", {"content_encoding": "gzip"}, 400),
    "coding unknown": (b"x", {"content_encoding": "snappy"}, 400),
    "too large": (b" " * (LIMIT + 1), {}, 413),
    "too large when decoded": (gzip.compress(b" " * (LIMIT + 1)), {"content_encoding": "gzip"}, 413),
}


@pytest.mark.parametrize("name", BAD)
def test_a_body_that_cannot_be_read(name: str) -> None:
    body, headers, status = BAD[name]
    flow = asked("/v1/responses", body, **headers)
    assert found(flow, base_url=False) is None
    got = found(flow)
    assert isinstance(got, Refusal)
    assert got.error.status == status


@pytest.mark.parametrize("fields", [[("x-long", "y" * INBOUND_HEAD_MAX)], [(f"x-{n}", "y" * 100) for n in range(2000)]])
def test_a_flood_of_header_fields_is_refused_before_a_target_is_asked(fields: list[tuple[str, str]]) -> None:
    flow = asked("/v1/responses", {"model": "bare-model"})
    assert isinstance(found(flow), Recognised)
    for name, value in fields:
        flow.request.headers.add(name, value)
    got = found(flow)
    assert isinstance(got, Refusal)
    assert got.error.status == 431


def test_a_compressed_body_is_read_and_kept_decoded() -> None:
    body = json.dumps({"model": "combo/main"}).encode()
    got = found(asked("/v1/responses", gzip.compress(body), content_encoding="gzip"), base_url=False)
    assert isinstance(got, Recognised)
    assert got.facts.body == body


@pytest.mark.parametrize(
    ("host", "port", "ours"),
    [
        ("127.0.0.1", 8080, True),
        ("localhost", 8080, True),
        ("::1", 8080, False),
        ("my-machine", 8080, True),
        ("My-Machine.local.", 8080, True),
        ("my-machine", 80, False),
        ("127.0.0.1", 8081, False),
        ("api.openai.com", 8080, False),
    ],
)
def test_the_proxys_own_address(host: str, port: int, ours: bool) -> None:
    flow = asked("/v1/responses")
    flow.request.host, flow.request.port = host, port
    assert is_base_url(flow, OwnAddresses((("127.0.0.1", 8080),)), "my-machine") is ours


@pytest.mark.parametrize(
    ("path", "upgrade", "refused"),
    [
        ("/v1/responses", "websocket", True),
        ("/backend-api/codex/responses", "WebSocket", True),
        ("/v1/responses", "h2c", False),
        ("/v1/realtime", "websocket", False),
        ("/v1/responses/compact", "websocket", False),
    ],
)
def test_upgrades(path: str, upgrade: str, refused: bool) -> None:
    assert is_responses_upgrade(asked(path, method="GET", upgrade=upgrade)) is refused


def test_a_remembered_combo_serves_a_bare_name() -> None:
    remembered = REGISTRY.resolve("combo/main")
    flow = asked("/v1/responses", {"model": "gpt-5.5", "input": [{"type": "compaction_trigger"}]})
    got = found(flow, base_url=False, recalled=remembered)
    assert isinstance(got, Recognised)
    assert got.route is remembered


def test_an_explicit_name_is_not_looked_up_in_memory() -> None:
    def never(_path: str, _fields: Fields, _body: bytes) -> None:
        raise AssertionError("asked")

    assert recognise(asked("/v1/responses", {"model": "combo/main"}), Fields(()), REGISTRY, never, base_url=True)


def test_names_shown_to_claude_code_are_understood() -> None:
    got = found(asked("/v1/messages", {"model": "claude-ocx-combo--main", "messages": []}))
    assert isinstance(got, Recognised)
    assert isinstance(got.route, ComboRoute)
    assert got.route.combo.id == "main"


@pytest.mark.parametrize("model", ["alpha/m\r\nx-evil: 1", "alpha/m\0", "combo/main\n", "alpha/\x85"])
def test_a_model_id_with_control_characters_is_nobodys(model: str) -> None:
    """It would go into header lines, paths and logs."""
    flow = asked("/v1/responses", {"model": model})
    assert found(flow, base_url=False) is None
    got = found(flow)
    assert isinstance(got, Refusal)
    assert got.error.status == 400


@pytest.mark.parametrize("base_url", [True, False])
@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_the_model_of_a_gemini_request_is_in_its_path(version: str, base_url: bool) -> None:
    path = f"/{version}/models/combo/main:streamGenerateContent?alt=sse&key=k"
    got = found(asked(path, {"contents": [], "model": "combo/none"}), base_url=base_url)
    assert isinstance(got, Recognised)
    assert isinstance(got.route, ComboRoute)
    assert (got.facts.model, got.facts.stream) == ("combo/main", True)


def test_other_gemini_requests_pass() -> None:
    assert found(asked("/v1beta/models/gemini-3-pro:generateContent", {"contents": []}), base_url=False) is None
    assert isinstance(found(asked("/v1beta/models/combo%0Amain:generateContent", {})), Refusal)


@pytest.mark.parametrize(("length", "served"), [(2_048, True), (2_049, False), (9_000, False)])
@pytest.mark.parametrize("prefix", ["alpha/", "combo/", "bare-"])
def test_the_length_of_a_model_id(prefix: str, length: int, served: bool) -> None:
    flow = asked("/v1/responses", {"model": prefix.ljust(length, "x"), "input": "hi"})
    given = found(flow)
    assert (isinstance(given, Refusal) and given.error.status == 400) is not served
    assert served or found(flow, base_url=False) is None


def test_a_path_of_any_bytes_names_no_model() -> None:
    flow = asked("/", {"contents": []})
    flow.request.data.path = b"/v1beta/models/alpha%2f\xff:generateContent"
    given = found(flow)
    assert isinstance(given, Refusal)
    assert given.error.status == 400


@pytest.mark.parametrize(
    "model",
    ["alpha/../../x", "..", "alpha/..", "alpha/a/./b", "alpha/..--fast", "alpha/..\\x", "claude-ocx-alpha--.."],
)
def test_a_model_id_cannot_lead_to_another_address(model: str) -> None:
    refused = found(asked("/v1/responses", {"model": model}))
    assert isinstance(refused, Refusal)
    assert refused.error.status == 400
    path = f"/v1beta/models/{quote(model, safe='')}:generateContent"
    assert isinstance(found(asked(path, {"contents": []})), Refusal)


def test_dots_in_a_model_id_are_harmless() -> None:
    for model in ("alpha/gpt-5.5", "alpha/...", "alpha/.hidden", "alpha/a..b"):
        assert isinstance(found(asked("/v1/responses", {"model": model})), Recognised)


COMBO = {"alias": "team/main", "targets": [{"provider": "alpha", "model": "m1"}]}
EXEMPT = build_registry(
    config(document(providers=PROVIDERS, combos={"main": COMBO}, selectorExemptHosts=["openrouter.test"])), 1
)


@pytest.mark.parametrize("host", ["openrouter.test", "OpenRouter.test", "openrouter.test."])
@pytest.mark.parametrize(
    ("model", "is_ours"),
    [("alpha/m1", False), ("combo/main", True), ("team/main", True), ("combo/none", True), ("nobody/m1", False)],
)
def test_an_exempt_host_keeps_its_own_names(host: str, model: str, is_ours: bool) -> None:
    flow = asked("/v1/chat/completions", {"model": model, "messages": []})
    flow.request.host = host
    made = found(flow, base_url=False, registry=EXEMPT)
    assert (made is not None) is is_ours


@pytest.mark.parametrize(
    ("host", "base_url"), [("api.openai.test", False), ("eu.openrouter.test", False), ("openrouter.test", True)]
)
def test_names_are_served_on_every_other_host_and_on_the_proxys_own_address(host: str, base_url: bool) -> None:
    flow = asked("/v1/chat/completions", {"model": "alpha/m1", "messages": []})
    flow.request.host = host
    made = found(flow, base_url=base_url, registry=EXEMPT)
    assert isinstance(made, Recognised)
    assert isinstance(made.route, DirectRoute)


def test_an_exempt_host_is_known_by_the_name_that_the_client_uses() -> None:
    """A captured connection shows the address of the server only."""
    flow = asked("/v1/chat/completions", {"model": "alpha/m1", "messages": []})
    flow.request.host = "192.0.2.1"
    flow.request.host_header = "openrouter.test"
    assert found(flow, base_url=False, registry=EXEMPT) is None
