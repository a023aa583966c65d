"""Who may use the combos."""

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import tflow

from combos.core.recall import caller_digest
from combos.mitm.access import caller_of, holds_key, is_admitted, is_foreign_page, is_loopback, presented_keys
from combos.wire.fields import Fields

TRUSTED = ("https://trusted.example",)
KEYS = ["first-key", "second-key-ü"]


def flow_from(host: str, mode: str = "regular", **headers: str) -> HTTPFlow:
    flow = tflow.tflow()
    flow.client_conn.peername = (host, 50_000)
    flow.client_conn.proxy_mode = ProxyMode.parse(mode)
    for name, value in headers.items():
        flow.request.headers[name.replace("_", "-")] = value
    return flow


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "::1%lo", "0:0:0:0:0:0:0:1"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)
    assert is_admitted(flow_from(host), [])


@pytest.mark.parametrize(
    "host", ["192.168.1.2", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "8.8.8.8", "", "localhost"]
)
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)
    assert not is_admitted(flow_from(host), KEYS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorization", "Bearer first-key"),
        ("authorization", "bearer  first-key "),
        ("x_api_key", "first-key"),
        ("x_goog_api_key", "first-key"),
        ("api_key", "first-key"),
        ("x_api_key", "second-key-ü"),
    ],
)
def test_holders_of_a_configured_key(name: str, value: str) -> None:
    assert is_admitted(flow_from("192.168.1.2", **{name: value}), KEYS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorization", "Bearer first-ke"),
        ("authorization", "Bearer first-key2"),
        ("authorization", "Basic first-key"),
        ("authorization", "first-key"),
        ("authorization", "Bearer "),
        ("x_api_key", ""),
        ("x_other", "first-key"),
    ],
)
def test_anything_else_is_no_key(name: str, value: str) -> None:
    assert not is_admitted(flow_from("192.168.1.2", **{name: value}), KEYS)


def test_without_configured_keys_nobody_holds_one() -> None:
    assert not is_admitted(flow_from("192.168.1.2", x_api_key=""), [])
    assert not holds_key([""], [])
    assert not holds_key([], ["key"])


def test_one_right_key_among_several_is_enough() -> None:
    flow = flow_from("192.168.1.2", authorization="Bearer theirs", x_api_key="second-key-ü")
    assert presented_keys(Fields(flow.request.headers.fields)) == ["second-key-ü", "theirs"]
    assert is_admitted(flow, KEYS)


def test_a_key_of_undecodable_bytes_is_compared_and_refused() -> None:
    flow = flow_from("192.168.1.2")
    flow.request.headers.fields = (*flow.request.headers.fields, (b"x-api-key", b"\xff\xfe"))
    assert not is_admitted(flow, KEYS)


def test_whom_mitmproxy_has_admitted() -> None:
    flow = flow_from("192.168.1.2")
    flow.metadata["proxyauth"] = ("user", "password")
    assert is_admitted(flow, [])


@pytest.mark.parametrize(("mode", "admitted"), [("local:curl", True), ("wireguard", True), ("transparent", False)])
def test_modes_that_admit_by_themselves(mode: str, admitted: bool) -> None:
    assert is_admitted(flow_from("10.0.0.1", mode), []) is admitted


@pytest.mark.parametrize(
    ("origin", "foreign"),
    [
        (None, False),
        ("http://localhost:3000", False),
        ("http://127.0.0.1:8080", False),
        ("http://[::1]:8080", False),
        ("https://trusted.example", False),
        ("vscode-webview://0a1b", False),
        ("app://codex", False),
        ("https://evil.example", True),
        ("http://127.0.0.1.evil.example", True),
        ("http://trusted.example", True),
        ("null", True),
        ("", True),
        ("http://", True),
        ("http://[bad", True),
        ("http://[127.0.0.1]", True),
        ("https://\xff", True),
    ],
)
def test_pages_of_other_sites(origin: str | None, foreign: bool) -> None:
    fields = () if origin is None else ((b"Origin", origin.encode("utf-8", "surrogateescape")),)
    assert is_foreign_page(Fields(fields), TRUSTED) is foreign


def test_a_second_origin_is_not_overlooked() -> None:
    for origins in ([TRUSTED[0], "https://evil.example"], ["https://evil.example", TRUSTED[0]], [TRUSTED[0]] * 2):
        fields = Fields(tuple((b"origin", origin.encode()) for origin in origins))
        assert is_foreign_page(fields, TRUSTED)


def test_a_name_for_whoever_shows_the_same_keys() -> None:
    nobody = caller_of(Fields(((b"accept", b"x"), (b"authorization", b"Basic x"))))
    assert nobody == caller_of(Fields(())) == caller_digest(b"")
    mine = caller_of(Fields(((b"Authorization", b"Bearer mine"),)))
    assert mine == caller_of(Fields(((b"x-other", b"1"), (b"X-Api-Key", b"mine")))) == caller_digest(b"mine")
    both = caller_of(Fields(((b"x-api-key", b"mine"), (b"accept", b"x"), (b"x-api-key", b"too"))))
    assert both == caller_digest(b"mine, too")
