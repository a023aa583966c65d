"""Requests that the listener cannot read, and what it says of them."""

import logging
from pathlib import Path

import pytest

from admin.test_entrance import Echo, listening
from combos.core.limits import INBOUND_HEAD_MAX
from rawclient import answer_of, talk

CANARY = b"canary-5d02c7e1b6"
LONG = b"x" * (INBOUND_HEAD_MAX + 1)

UNREADABLE = {
    "value": (b"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer " + CANARY + LONG + b"\r\n\r\n", 431),
    "name": (b"GET /v1/models HTTP/1.1\r\n" + CANARY + LONG + b": 1\r\n\r\n", 431),
    "line": (b"GET /v1/models?key=" + CANARY + LONG + b" HTTP/1.1\r\n\r\n", 431),
    "no field": (b"GET /v1/models HTTP/1.1\r\nAuthorization Bearer " + CANARY + b"\r\n\r\n", 400),
    "control": (b"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer " + CANARY + b"\0\r\n\r\n", 400),
    "length": (b"POST /v1/messages HTTP/1.1\r\nContent-Length: " + CANARY + b"\r\n\r\n", 400),
    "two lengths": (b"POST /v1/messages HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" + CANARY, 400),
    "version": (b"GET /v1/models/" + CANARY + b" HTTP/9.9\r\n\r\n", 400),
    "address": (b"GET http://[::1]:" + CANARY + b"@/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "another address": (b"GET http://[" + CANARY + b"/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "no request": (CANARY + b"\r\n\r\n", 400),
    "many fields": (b"GET /v1/models HTTP/1.1\r\n" + b"".join(b"x-%d: 1\r\n" % n for n in range(2_000)) + b"\r\n", 400),
}


@pytest.mark.parametrize(("sent", "status"), UNREADABLE.values(), ids=UNREADABLE)
async def test_what_cannot_be_read_is_refused_in_json_and_not_quoted(
    tmp_path: Path, sent: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening(tmp_path, Echo()) as (_, port), talk(port, sent) as started:
        answer = await answer_of(started)
        assert await started.reader.read() == b""
    assert answer.status == status
    assert answer.header("content-type") == "application/json"
    assert answer.header("server") == "combos"
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    shown = b"".join(b"%b %b" % field for field in answer.headers) + answer.body + caplog.text.encode()
    assert CANARY not in shown
    assert CANARY[:12] not in shown
    assert b"aiohttp" not in answer.body


async def test_a_field_below_the_limit_is_read(tmp_path: Path) -> None:
    field = b"Authorization: Bearer " + b"x" * (INBOUND_HEAD_MAX - 100)
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + field + b"\r\n\r\n"
    async with listening(tmp_path, Echo()) as (_, port), talk(port, head) as started:
        assert (await answer_of(started)).status == 200


class Failing(Echo):
    async def serve(self, *_arguments: object) -> None:
        raise LookupError(CANARY.decode())


async def test_a_failure_of_ours_is_told_in_json(tmp_path: Path) -> None:
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with listening(tmp_path, Failing()) as (_, port), talk(port, head) as started:
        answer = await answer_of(started)
    assert (answer.status, answer.json()["error"]["code"]) == (500, "internal_error")
    assert CANARY not in answer.body
