"""A handler that is not called would have done nothing; one that would do something is called."""

import functools
import inspect
import warnings
from pathlib import Path

import pytest
from mitmproxy.addonmanager import AddonManager
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.proxy.layers.http import HttpRequestHeadersHook, HttpRequestHook, HttpResponseHeadersHook
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import taddons, tflow

from combos.mitm.hooks import RememberedHooks
from combos.mitm.idle import Idle, idleness

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of libraries that mitmproxy's other addons import
    from mitmproxy import addons as builtin
    from mitmproxy.addons import (
        blocklist,
        disable_h2c,
        maplocal,
        mapremote,
        modifybody,
        modifyheaders,
        onboarding,
        update_alt_svc,
    )

# Addon, its hooks with a row, an option that gives it work.
WORK: list[tuple[type, tuple[str, ...], dict[str, object]]] = [
    (blocklist.BlockList, ("request",), {"block_list": [":~all:403"]}),
    (maplocal.MapLocal, ("request",), {"map_local": [f"|.*|{Path(__file__).parent}"]}),
    (mapremote.MapRemote, ("request",), {"map_remote": ["|address|example.com"]}),
    (modifybody.ModifyBody, ("request", "response"), {"modify_body": ["/content/other"]}),
    (modifyheaders.ModifyHeaders, ("requestheaders", "responseheaders"), {"modify_headers": ["/x-made/yes"]}),
    (onboarding.Onboarding, ("request",), {"onboarding_host": "address"}),
]
EACH = [(kind, hook, options) for kind, hooks, options in WORK for hook in hooks]


def row(addon: object, hook: str) -> Idle:
    found = idleness(addon, hook)
    assert found is not None
    return found.is_idle


def flow_for(hook: str) -> HTTPFlow:
    return tflow.tflow(resp=hook.startswith("response"))


async def call(addon: object, hook: str, flow: HTTPFlow) -> None:
    result = getattr(addon, hook)(flow)
    if inspect.isawaitable(result):
        await result


@pytest.mark.parametrize(("kind", "hook", "_options"), EACH)
async def test_what_is_left_out_would_have_changed_nothing(kind: type, hook: str, _options: object) -> None:
    addon = kind()
    with taddons.context(addon):
        flow = flow_for(hook)
        assert row(addon, hook)(addon, flow)
        before = flow.get_state()
        await call(addon, hook, flow)
        assert flow.get_state() == before


@pytest.mark.parametrize(("kind", "hook", "options"), EACH)
def test_what_has_work_is_called_as_soon_as_it_has(kind: type, hook: str, options: dict[str, object]) -> None:
    addon = kind()
    with taddons.context(addon) as context:
        is_idle = row(addon, hook)
        before = {name: getattr(context.options, name) for name in options}
        context.configure(addon, **options)
        assert not is_idle(addon, flow_for(hook))
        context.configure(addon, **before)
        assert is_idle(addon, flow_for(hook))


def test_every_other_handler_is_called() -> None:
    known = {(kind, hook) for kind, hooks, _ in WORK for hook in hooks}
    known.add((disable_h2c.DisableH2C, "request"))
    known.add((update_alt_svc.UpdateAltSvc, "responseheaders"))
    names = ("requestheaders", "request", "responseheaders", "response", "error", "update")
    with taddons.context():
        found = {(type(addon), name) for addon in builtin.default_addons() for name in names if idleness(addon, name)}
    assert found == known


@pytest.mark.parametrize(
    ("host", "idle"),
    [
        (b"127.0.0.1:10100", True),
        (b"mitm.example", True),
        (b"mitm.it", False),
        (b"MITM.it:80", False),
        (b"xn--mtm-1ma.example", False),
    ],
)
def test_the_onboarding_page_by_any_spelling(host: bytes, idle: bool) -> None:
    addon = onboarding.Onboarding()
    with taddons.context(addon):
        flow = tflow.tflow()
        flow.request.headers["host"] = host.decode()
        assert row(addon, "request")(addon, flow) is idle
        if idle:
            assert not addon.should_serve(flow)


def test_the_onboarding_page_by_an_authority_of_http2() -> None:
    addon = onboarding.Onboarding()
    with taddons.context(addon):
        flow = tflow.tflow()
        flow.request.http_version = "HTTP/2.0"
        flow.request.authority = "Mitm.it:443"
        assert not row(addon, "request")(addon, flow)


@pytest.mark.parametrize(
    ("field", "method", "idle"),
    [("x-any", "POST", True), ("Upgrade", "GET", False), ("upgrade", "GET", False), ("x-any", "PRI", False)],
)
def test_upgrades_to_http2(field: str, method: str, idle: bool) -> None:
    addon, flow = disable_h2c.DisableH2C(), tflow.tflow()
    flow.request.headers[field] = "h2c"
    flow.request.method = method
    assert row(addon, "request")(addon, flow) is idle
    before = flow.get_state()
    addon.request(flow)
    assert (flow.get_state() == before) is (idle or method == "PRI")


@pytest.mark.parametrize(("mode", "idle"), [("regular", True), ("reverse:http://x", False)])
def test_alternative_services_of_a_reverse_proxy(mode: str, idle: bool) -> None:
    addon = update_alt_svc.UpdateAltSvc()
    flow = tflow.tflow(resp=True)
    flow.client_conn.proxy_mode = ProxyMode.parse(mode)
    assert row(addon, "responseheaders")(addon, flow) is idle


def test_a_relative_or_a_replaced_handler_is_called() -> None:
    class MapLocal(maplocal.MapLocal):
        pass

    replaced = maplocal.MapLocal()
    replaced.request = lambda flow: None  # type: ignore[method-assign]
    assert idleness(MapLocal(), "request") is None
    assert idleness(replaced, "request") is None


@pytest.mark.parametrize("version", ["12.2.9", "12.30.0", "12.4.0", "13.0.0"])
def test_with_another_mitmproxy_every_handler_is_called(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    addon = maplocal.MapLocal()
    assert idleness(addon, "request")
    monkeypatch.setattr("mitmproxy.version.VERSION", version)
    assert idleness(addon, "request") is None


@pytest.mark.parametrize("is_before", [True, False])
async def test_a_handler_replaced_on_the_class_is_called(is_before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    original = maplocal.MapLocal.request
    seen: list[str] = []

    @functools.wraps(original)
    def patched(addon: maplocal.MapLocal, flow: HTTPFlow) -> None:
        seen.append("patched")
        original(addon, flow)

    with taddons.context(maplocal.MapLocal()) as context:
        manager: AddonManager = context.master.addons
        if is_before:
            monkeypatch.setattr(maplocal.MapLocal, "request", patched)
        remembered = RememberedHooks(manager)
        remembered.install()
        await manager.handle_lifecycle(HttpRequestHook(tflow.tflow()))
        monkeypatch.setattr(maplocal.MapLocal, "request", patched)
        await manager.handle_lifecycle(HttpRequestHook(tflow.tflow()))
        remembered.remove()
    assert seen == ["patched"] * (2 if is_before else 1)


async def test_the_hooks_leave_out_and_call(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    # What the handlers call themselves: a handler that is replaced is not left out.
    monkeypatch.setattr(Request, "pretty_url", property(lambda _: seen.append("MapLocal") or "http://other"))
    monkeypatch.setattr(modifyheaders.ModifyHeaders, "run", lambda *_: seen.append("ModifyHeaders"))
    local, headers = maplocal.MapLocal(), modifyheaders.ModifyHeaders()
    with taddons.context(local, headers) as context:
        manager: AddonManager = context.master.addons
        remembered = RememberedHooks(manager)
        remembered.install()
        flow = tflow.tflow(resp=True)
        flow.response, answer = None, flow.response
        await manager.handle_lifecycle(HttpRequestHook(flow))
        flow.response = answer
        for event in (HttpRequestHeadersHook(flow), HttpResponseHeadersHook(flow)):
            await manager.handle_lifecycle(event)
        assert not seen
        context.configure(local, map_local=[f"|x|{Path(__file__).parent}"])
        context.configure(headers, modify_headers=["/x-made/yes"])
        await manager.handle_lifecycle(HttpResponseHeadersHook(flow))
        flow.response = None
        await manager.handle_lifecycle(HttpRequestHook(flow))
        remembered.remove()
    assert seen == ["ModifyHeaders", "MapLocal"]
