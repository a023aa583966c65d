"""Messages whose framing can be read in two ways: each is refused or read once, and no second request comes out of it.

The requests are for a combo whose targets record what reaches them; hidden in every one of them is a request for
another combo, of which no target may ever hear.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ports import free_port
from rawclient import LIMIT_S, Answer, answer_of, talk
from rawserver import Request, head, response
from stage import Case, Stage, stage, until
from wires import R

ENTRANCES = ("base", "absolute", "listener")
OK = R.answers("fine", stream=False)


@asynccontextmanager
async def entrance(confdir: Path, name: str, *cases: Case) -> AsyncIterator[tuple[Stage, int]]:
    """A proxy, and the port to speak to."""
    admin = free_port()
    options = {"combos_admin_listen": f"127.0.0.1:{admin}"}
    async with stage(confdir, *cases, combos_options=options) as on:
        await until(lambda: on.combos.admin_address is not None)
        yield on, admin if name == "listener" else on.port


def start(name: str, port: int, *fields: bytes) -> bytes:
    place = f"http://127.0.0.1:{port}" if name == "absolute" else ""
    lines = [
        f"POST {place}/v1/responses HTTP/1.1".encode(),
        f"Host: 127.0.0.1:{port}".encode(),
        b"Connection: close",
        *fields,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def hidden(name: str, port: int, case: Case) -> bytes:
    """A whole request for a combo that nobody asks for."""
    body = json.dumps(R.request(case.model, stream=False)).encode()
    return start(name, port, b"Content-Length: %d" % len(body), b"X-Hidden: yes") + body


async def told(port: int, raw: bytes) -> list[Answer]:
    """Everything that is answered until the proxy closes, as it was asked to after the first answer."""
    answers: list[Answer] = []
    async with talk(port, raw) as started:
        try:
            async with asyncio.timeout(LIMIT_S):
                while True:
                    answers.append(await answer_of(started))
        except (asyncio.IncompleteReadError, ConnectionError):
            return answers


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


FRAMES: dict[str, Sequence[bytes]] = {
    "length and chunks": (b"Content-Length: {length}", b"Transfer-Encoding: chunked"),
    "chunks and length": (b"Transfer-Encoding: chunked", b"Content-Length: {length}"),
    "two lengths": (b"Content-Length: {length}", b"Content-Length: {all}"),
    "two lengths in one": (b"Content-Length: {length}, {all}",),
    "a signed length": (b"Content-Length: +{length}",),
    "a length in hex": (b"Content-Length: 0x{length}",),
    "a length with a blank": (b"Content-Length : {length}",),
    "a folded length": (b"X-A: b", b" Content-Length: {all}", b"Content-Length: {length}"),
    "an unknown coding": (b"Transfer-Encoding: xchunked", b"Content-Length: {length}"),
    "chunks not last": (b"Transfer-Encoding: chunked, identity", b"Content-Length: {length}"),
    "chunks twice": (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", b"Content-Length: {length}"),
    "a tab before chunked": (b"Transfer-Encoding:\tchunked", b"Content-Length: {length}"),
    "a vertical tab": (b"Transfer-Encoding: \x0bchunked", b"Content-Length: {length}"),
    "a bare line feed": (b"X-A: b\nTransfer-Encoding: chunked", b"Content-Length: {length}"),
    "a bare carriage return": (b"X-A: b\rTransfer-Encoding: chunked", b"Content-Length: {length}"),
    "a null": (b"X-A: b\0c", b"Content-Length: {length}"),
    "an empty name": (b": b", b"Content-Length: {length}"),
}


@pytest.mark.parametrize("name", ENTRANCES)
async def test_an_ambiguous_request_is_refused_or_read_once(name: str, confdir: Path) -> None:
    asked, never = Case(R, alpha=OK), Case(R, alpha=OK)
    async with entrance(confdir, name, asked, never) as (_, port):
        body = json.dumps(R.request(asked.model, stream=False)).encode()
        second = hidden(name, port, never)
        for frame, fields in FRAMES.items():
            for content in (body + second, chunked(body) + second, b"0\r\n\r\n" + second):
                sizes = {b"{length}": b"%d" % len(body), b"{all}": b"%d" % len(content)}
                made = [_filled(field, sizes) for field in fields]
                before = len(asked.calls)
                answers = await told(port, start(name, port, *made) + content)
                assert len(asked.calls) - before <= 1, frame
                assert len(answers) <= 1, (frame, answers)
                assert never.calls == [], (frame, answers)
                check_sent(asked.requests, body)


def _filled(field: bytes, sizes: dict[bytes, bytes]) -> bytes:
    for name, size in sizes.items():
        field = field.replace(name, size)
    return field


def check_sent(requests: list[Request], body: bytes) -> None:
    """What reached the target is one message of ours with the body that was asked for."""
    for request in requests:
        assert request.all("content-length") == [str(len(request.body))]
        assert request.all("transfer-encoding") == []
        assert request.header("x-hidden") is None
        assert json.loads(request.body)["input"] == json.loads(body)["input"]
    requests.clear()


TRAILERS = b"Authorization: Bearer trailer\r\nX-Hidden: yes\r\n"


@pytest.mark.parametrize("name", ENTRANCES)
async def test_chunk_extensions_and_trailers_stay_here(name: str, confdir: Path) -> None:
    asked = Case(R, alpha=OK)
    async with entrance(confdir, name, asked) as (_, port):
        body = json.dumps(R.request(asked.model, stream=False)).encode()
        # mitmproxy's own HTTP layer takes no trailers: the next test.
        content = b"%x;a=b\r\n%s\r\n0;c=d\r\n%s\r\n" % (len(body), body, TRAILERS if name == "listener" else b"")
        (answer,) = await told(port, start(name, port, b"Transfer-Encoding: chunked", b"Trailer: X-Hidden") + content)
        assert answer.status == 200
        check_sent(asked.requests, body)
        assert asked.calls == ["alpha"]


@pytest.mark.parametrize("name", ["base", "absolute"])
async def test_a_client_that_sends_trailers_to_a_port_of_the_proxy_is_not_kept_waiting(
    name: str, confdir: Path
) -> None:
    asked = Case(R, alpha=OK)
    async with entrance(confdir, name, asked) as (on, port):
        body = json.dumps(R.request(asked.model, stream=False)).encode()
        content = b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(body), body, TRAILERS)
        assert await told(port, start(name, port, b"Transfer-Encoding: chunked") + content) == []
        assert asked.calls == []
        assert (await on.ask(asked, stream=False)).status == 200


WORDS = ("\r\nX-Hidden: yes", "\nX-Hidden: yes", "\0", "\r\n\r\nGET / HTTP/1.1\r\n", "\u010a\u010d", "\x85", "\u2028")


@pytest.mark.parametrize("name", ENTRANCES)
async def test_no_name_or_field_breaks_its_line(name: str, confdir: Path) -> None:
    asked = Case(R, targets=["alpha/m"], alpha=OK)
    async with entrance(confdir, name, asked) as (on, port):
        direct = f"{asked.provider('alpha')}/m"
        for model in [made for word in WORDS for made in (direct + word, asked.model + word, f"{direct}{word}x")]:
            body = json.dumps(R.request(model, stream=False)).encode()
            fields = [b"Content-Length: %d" % len(body), b"x-codex-routing-hint: model=x"]
            answers = await told(port, start(name, port, *fields) + body)
            for answer in answers:
                assert answer.header("x-hidden") is None
        assert asked.requests, "names with harmless characters are served"
        for request in asked.requests:
            assert request.header("x-hidden") is None
            assert request.head.count(b"HTTP/1.1") == 1
        assert not [line for flow in on.flows for line in flow.comment.splitlines() if line.startswith("X-Hidden")]


@pytest.mark.parametrize("name", ENTRANCES)
async def test_a_query_cannot_break_the_request_line(name: str, confdir: Path) -> None:
    asked = Case(R, alpha=OK)
    async with entrance(confdir, name, asked) as (_, port):
        body = json.dumps(R.request(asked.model, stream=False)).encode()
        for query in (
            b"a=%0d%0aX-Hidden:%20yes",
            b"a=\xff\xfe",
            b"a=1%20HTTP/1.1",
            b"a=\x0b",
            b"#x",
            b"a=b#c",
            b"\\\\",
        ):
            raw = start(name, port, b"Content-Length: %d" % len(body)).replace(
                b"/v1/responses", b"/v1/responses?" + query
            )
            await told(port, raw + body)
        assert asked.requests
        for request in asked.requests:
            assert request.header("x-hidden") is None
            assert request.head.split(b"\r\n")[0].count(b" ") == 2


PLAIN = b'{"id":"resp_x","object":"response","status":"completed","output":[]}'
ANSWERS = {
    "two lengths": head(200, [(b"Content-Length", b"5"), (b"Content-Length", b"%d" % len(PLAIN))]) + PLAIN,
    "length and chunks": head(200, [(b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked")]) + chunked(PLAIN),
    "a negative length": head(200, [(b"Content-Length", b"-5")]) + PLAIN,
    "a broken chunk": head(200, [(b"Transfer-Encoding", b"chunked")]) + b"zz\r\n" + PLAIN,
    "a huge chunk": head(200, [(b"Transfer-Encoding", b"chunked")]) + b"f" * 40 + b"\r\n" + PLAIN,
    "no version": b"200 OK\r\n\r\n" + PLAIN,
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a name with a blank": head(200, [(b"Content-Length ", b"%d" % len(PLAIN))]) + PLAIN,
    "a line without a colon": b"HTTP/1.1 200 OK\r\nnothing\r\nContent-Length: 2\r\n\r\n{}",
    "a null": head(200, [(b"X-A", b"b\0c"), (b"Content-Length", b"%d" % len(PLAIN))]) + PLAIN,
    "many fields": head(200, [(b"X-%d" % i, b"x" * 100) for i in range(3000)]) + PLAIN,
    "a long field": head(200, [(b"X-A", b"x" * 2_000_000)]) + PLAIN,
    "a second answer behind it": response(200, PLAIN) + response(200, b'{"stolen": true}'),
    "an interim flood": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2000 + response(200, PLAIN),
}


@pytest.mark.parametrize("frame", ANSWERS)
async def test_an_ambiguous_answer_is_read_once_or_the_next_target_is_asked(frame: str, confdir: Path) -> None:
    asked = Case(R, alpha=ANSWERS[frame], beta=OK)
    async with stage(confdir, asked) as on:
        for _ in range(2):
            answer = await on.ask(asked, stream=False)
            assert answer.status == 200, answer
            assert answer.clean
            assert b"stolen" not in answer.body
            assert answer.body == PLAIN or b"fine" in answer.body
            lengths = [value for key, value in answer.headers if key.lower() == b"content-length"]
            assert len(lengths) <= 1
