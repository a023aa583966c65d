"""Which requests ask for the details of a model."""

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.test import tflow, tutils

from combos.core.facts import Dialect
from combos.mitm.model_details import asked_model, dialect_of


def asked(method: str, path: str, **headers: str) -> HTTPFlow:
    flow = tflow.tflow(req=tutils.treq(method=method.encode(), path=path.encode()))
    for name, value in headers.items():
        flow.request.headers[name.replace("_", "-")] = value
    return flow


@pytest.mark.parametrize(
    ("method", "path", "model"),
    [
        ("GET", "/v1/models/gpt-5.5", "gpt-5.5"),
        ("GET", "/v1/models/combo/main", "combo/main"),
        ("GET", "/v1/models/combo%2Fmain?beta=true", "combo/main"),
        ("GET", "/prefix/models/a/b/c:free", "a/b/c:free"),
        ("GET", "/v1/models", None),
        ("GET", "/v1/models/", None),
        ("GET", "/v1/models?after=/models/x", None),
        ("POST", "/v1/models/gpt-5.5", None),
        ("DELETE", "/v1/models/gpt-5.5", None),
        ("GET", "/v1/othermodels", None),
    ],
)
def test_the_model_is_what_follows(method: str, path: str, model: str | None) -> None:
    assert asked_model(asked(method, path)) == model


def test_the_clients_version_header_tells_its_form() -> None:
    assert dialect_of(asked("GET", "/v1/models/x", anthropic_version="2023-06-01")) is Dialect.MESSAGES
    assert dialect_of(asked("GET", "/v1/models/x")) is Dialect.RESPONSES
