"""Refusals made here, as answers to a flow."""

import json
from typing import Any, cast

import pytest
from mitmproxy.test import tflow

from combos.core.errors import ProxyError, combo_unavailable, unknown_combo
from combos.core.facts import Dialect, Headers
from combos.mitm.refusals import refuse_with
from combos.mitm.writer import ResponseWriter


class Written:
    """Stands for a writer; `answers` holds what it was given."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[bytes, bytes], Any]] = []

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        self.answers.append((status, {name.lower(): value for name, value in headers}, json.loads(body)))


async def answer(error: ProxyError, dialect: Dialect) -> tuple[int, dict[bytes, bytes], Any]:
    written = Written()
    await refuse_with(error, dialect)(tflow.tflow(), cast(ResponseWriter, written))
    (only,) = written.answers
    return only


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (Dialect.RESPONSES, {"type": "invalid_request_error", "code": "model_not_found"}),
        (Dialect.CHAT, {"type": "invalid_request_error", "code": "model_not_found"}),
        (Dialect.MESSAGES, {"type": "not_found_error"}),
    ],
)
async def test_an_error_has_the_form_of_its_dialect(dialect: Dialect, expected: dict[str, str]) -> None:
    status, headers, document = await answer(unknown_combo("none"), dialect)
    assert (status, headers[b"content-type"]) == (404, b"application/json")
    error = document["error"]
    assert error["message"] == "Unknown combo: none"
    assert {key: error[key] for key in expected} == expected


async def test_a_wait_is_a_header() -> None:
    status, headers, _ = await answer(combo_unavailable("main", 42), Dialect.RESPONSES)
    assert (status, headers[b"retry-after"]) == (503, b"42")
