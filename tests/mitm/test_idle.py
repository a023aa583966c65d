"""A handler that is not called would have done nothing; one that would do something is called."""

import functools
import inspect
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from mitmproxy.addonmanager import AddonManager, Loader
from mitmproxy.http import HTTPFlow, Request
from mitmproxy.io import FlowReader
from mitmproxy.proxy.layers.http import HttpRequestHeadersHook, HttpRequestHook, HttpResponseHeadersHook
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import taddons, tflow

from combos.mitm.hooks import RememberedHooks
from combos.mitm.idle import Idlers, Left, idleness

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of libraries that mitmproxy's other addons import
    from mitmproxy import addons as builtin
    from mitmproxy.addons import (
        anticache,
        anticomp,
        blocklist,
        disable_h2c,
        dumper,
        maplocal,
        mapremote,
        modifybody,
        modifyheaders,
        onboarding,
        proxyauth,
        save,
        savehar,
        serverplayback,
        stickyauth,
        stickycookie,
        tlsconfig,
        update_alt_svc,
        upstream_auth,
    )

# Addon, its hooks with a row, an option that gives it work.
WORK: list[tuple[type, tuple[str, ...], dict[str, object]]] = [
    (anticache.AntiCache, ("request",), {"anticache": True}),
    (anticomp.AntiComp, ("request",), {"anticomp": True}),
    (blocklist.BlockList, ("request",), {"block_list": [":~all:403"]}),
    (maplocal.MapLocal, ("request",), {"map_local": [f"|.*|{Path(__file__).parent}"]}),
    (mapremote.MapRemote, ("request",), {"map_remote": ["|address|example.com"]}),
    (modifybody.ModifyBody, ("request", "response"), {"modify_body": ["/content/other"]}),
    (modifyheaders.ModifyHeaders, ("requestheaders", "responseheaders"), {"modify_headers": ["/x-made/yes"]}),
    (onboarding.Onboarding, ("request",), {"onboarding_host": "address"}),
    (proxyauth.ProxyAuth, ("requestheaders",), {"proxyauth": "name:word"}),
    (savehar.SaveHar, ("response",), {"hardump": "-"}),
    (stickyauth.StickyAuth, ("request",), {"stickyauth": "~all"}),
    (stickycookie.StickyCookie, ("request", "response"), {"stickycookie": "~all"}),
    (upstream_auth.UpstreamAuth, ("requestheaders",), {"upstream_auth": "name:word"}),
]
# Their work needs more than an option: each has a test of its own.
OTHERS = {
    (disable_h2c.DisableH2C, "request"),
    (dumper.Dumper, "response"),
    (save.Save, "request"),
    (save.Save, "response"),
    (serverplayback.ServerPlayback, "request"),
    (tlsconfig.TlsConfig, "request"),
    (update_alt_svc.UpdateAltSvc, "responseheaders"),
}
EACH = [(kind, hook, options) for kind, hooks, options in WORK for hook in hooks]


def row(addon: object, hook: str) -> Left:
    found = idleness(addon, hook)
    assert found is not None
    return found


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
        assert row(addon, hook).is_idle(flow)
        before = flow.get_state()
        await call(addon, hook, flow)
        assert flow.get_state() == before


@pytest.mark.parametrize(("kind", "hook", "options"), EACH)
def test_what_has_work_is_called_as_soon_as_it_has(kind: type, hook: str, options: dict[str, object]) -> None:
    addon = kind()
    with taddons.context(addon) as context:
        is_idle = row(addon, hook).is_idle
        before = {name: getattr(context.options, name) for name in options}
        context.configure(addon, **options)
        assert not is_idle(flow_for(hook))
        context.configure(addon, **before)
        assert is_idle(flow_for(hook))


def test_every_other_handler_is_called() -> None:
    known = {(kind, hook) for kind, hooks, _ in WORK for hook in hooks} | OTHERS
    names = ("requestheaders", "request", "responseheaders", "response", "error", "update")
    with taddons.context():
        every = [*builtin.default_addons(), dumper.Dumper()]
        found = {(type(addon), name) for addon in every for name in names if idleness(addon, name)}
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
        assert row(addon, "request").is_idle(flow) is idle
        if idle:
            assert not addon.should_serve(flow)


def test_the_onboarding_page_by_an_authority_of_http2() -> None:
    addon = onboarding.Onboarding()
    with taddons.context(addon):
        flow = tflow.tflow()
        flow.request.http_version = "HTTP/2.0"
        flow.request.authority = "Mitm.it:443"
        assert not row(addon, "request").is_idle(flow)


@pytest.mark.parametrize(
    ("field", "method", "idle"),
    [
        ("x-any", "POST", True),
        ("Upgrade", "GET", False),
        ("upgrade", "GET", False),
        ("x-any", "PRI", False),
        ("x-any", "Pri", False),
    ],
)
def test_upgrades_to_http2(field: str, method: str, idle: bool) -> None:
    addon, flow = disable_h2c.DisableH2C(), tflow.tflow()
    flow.request.headers[field] = "h2c"
    flow.request.method = method
    flow.request.path, flow.request.http_version = "*", "HTTP/2.0"
    assert row(addon, "request").is_idle(flow) is idle
    before = flow.get_state()
    addon.request(flow)
    assert (flow.get_state() == before) is idle


@pytest.mark.parametrize(("mode", "idle"), [("regular", True), ("reverse:http://x", False)])
def test_alternative_services_of_a_reverse_proxy(mode: str, idle: bool) -> None:
    addon = update_alt_svc.UpdateAltSvc()
    flow = tflow.tflow(resp=True)
    flow.client_conn.proxy_mode = ProxyMode.parse(mode)
    assert row(addon, "responseheaders").is_idle(flow) is idle


@pytest.mark.parametrize(("detail", "idle"), [(0, True), (1, False), (4, False)])
def test_flows_that_are_printed(detail: int, idle: bool, capsys: pytest.CaptureFixture[str]) -> None:
    addon = dumper.Dumper()
    with taddons.context(addon) as context:
        context.configure(addon, flow_detail=detail)
        flow = tflow.tflow(resp=True)
        assert row(addon, "response").is_idle(flow) is idle
        addon.response(flow)
    assert (capsys.readouterr().out == "") is idle


def test_flows_that_are_written(tmp_path: Path) -> None:
    addon, path = save.Save(), tmp_path / "flows"
    with taddons.context(addon) as context:
        for chosen, is_idle in ((None, True), (str(path), False), (None, True)):
            context.configure(addon, save_stream_file=chosen)
            flow = tflow.tflow(resp=True)
            assert row(addon, "request").is_idle(flow) is row(addon, "response").is_idle(flow) is is_idle
            addon.request(flow)
            assert (flow in addon.active_flows) is not is_idle
            addon.response(flow)
    with path.open("rb") as written:
        assert len(list(FlowReader(written).stream())) == 1


def test_flows_that_are_played_back() -> None:
    addon, flow = serverplayback.ServerPlayback(), tflow.tflow()
    with taddons.context(addon):
        assert row(addon, "request").is_idle(flow)
        addon.request(flow)
        assert flow.response is None
        addon.load_flows([tflow.tflow(resp=True)])
        assert not row(addon, "request").is_idle(flow)
        addon.request(flow)
        assert flow.response is not None


@pytest.mark.parametrize(
    ("path", "option", "idle"),
    [
        ("/v1/models", None, True),
        ("/mitmproxy-7.crl", None, False),
        ("/v1/models", "emudhra", False),
        ("/v1/models", "emudhra_old", False),
    ],
)
def test_lists_of_revoked_certificates(path: str, option: str | None, idle: bool) -> None:
    addon = tlsconfig.TlsConfig()
    addon.certstore = SimpleNamespace(default_ca=SimpleNamespace(serial=7), default_crl=b"none")  # type: ignore[assignment]
    with taddons.context() as context:
        addon.load(Loader(context.master))
        if option is not None:
            context.options.update(**{option: True})
        flow = tflow.tflow()
        flow.request.path = path
        assert row(addon, "request").is_idle(flow) is idle
        if idle:
            before = flow.get_state()
            addon.request(flow)
            assert flow.get_state() == before


def test_without_its_option_an_addon_is_called() -> None:
    with taddons.context():
        assert not row(anticache.AntiCache(), "request").is_idle(tflow.tflow())


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


PLAYERS: list[tuple[type, str, object]] = [
    (blocklist.BlockList, "items", [1]),
    (maplocal.MapLocal, "replacements", [1]),
    (stickyauth.StickyAuth, "flt", print),
    (anticache.AntiCache, "", None),
    (disable_h2c.DisableH2C, "", None),
    (onboarding.Onboarding, "host", "address"),
]


@pytest.mark.parametrize("busy", range(2 ** len(PLAYERS)))
def test_neighbours_are_idle_when_each_of_them_is(busy: int) -> None:
    addons = [kind() for kind, _, _ in PLAYERS]
    with taddons.context(*addons) as context:
        members = [row(addon, "request") for addon in addons]
        idlers, flow = Idlers("request", members), tflow.tflow()
        context.options.update(anticache=bool(busy >> 3 & 1))
        for number, (addon, (_, name, value)) in enumerate(zip(addons, PLAYERS, strict=True)):
            if busy >> number & 1 and name:
                setattr(addon, name, value)
        if busy >> 4 & 1:
            flow.request.headers["upgrade"] = "h2c"
        each = [member.is_idle(flow) for member in members]
        assert each == [not busy >> number & 1 for number in range(len(PLAYERS))]
        assert idlers.are_idle(flow) is all(each)


def test_neighbours_are_not_idle_when_a_class_has_another_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    with taddons.context():
        idlers = Idlers("request", [row(maplocal.MapLocal(), "request"), row(stickyauth.StickyAuth(), "request")])
        assert idlers.are_idle(tflow.tflow())
        with monkeypatch.context() as patched:
            patched.setattr(stickyauth.StickyAuth, "request", print)
            assert not idlers.are_idle(tflow.tflow())
        with monkeypatch.context() as patched:
            patched.delattr(maplocal.MapLocal, "request")
            assert not idlers.are_idle(tflow.tflow())
        assert idlers.are_idle(tflow.tflow())
