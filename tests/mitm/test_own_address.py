"""What the proxy answers at its own address when no surface claims the request."""

import json

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow, tutils

from combos.mitm.own_address import answer, upgrade_required


def asked(method: str, path: str) -> HTTPFlow:
    return tflow.tflow(req=tutils.treq(method=method.encode(), path=path.encode()))


@pytest.mark.parametrize("path", ["/", "/?from=browser"])
def test_the_page(path: str) -> None:
    page = answer(asked("GET", path))
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "/v1/responses" in page.text
    head = answer(asked("HEAD", path))
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("GET", "/v1/x?key=secret"), ("DELETE", "/v1/responses")])
def test_everything_else_is_a_clear_404(method: str, path: str) -> None:
    missing = answer(asked(method, path))
    assert missing.status_code == 404
    error = json.loads(missing.content)["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "not_found")
    assert error["message"] == f"Nothing is served at {method} {path.partition('?')[0]}"


@pytest.mark.parametrize(
    ("method", "path"), [(b"GET", b"/\xff"), (b"F\x80O", b"/v1/x"), (b"GET", b"/" + b"x" * 60_000)]
)
def test_paths_and_methods_of_any_bytes(method: bytes, path: bytes) -> None:
    missing = answer(tflow.tflow(req=tutils.treq(method=method, path=path)))
    assert missing.status_code == 404
    assert json.loads(missing.content)["error"]["code"] == "not_found"
    assert len(missing.content) < 2_000


def test_the_upgrade_answer_names_what_to_use() -> None:
    refused = upgrade_required()
    assert (refused.status_code, refused.headers["upgrade"]) == (426, "HTTP/1.1")
    assert json.loads(refused.content)["error"]["code"] == "upgrade_required"
