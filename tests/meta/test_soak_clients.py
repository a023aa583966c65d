"""The clients of the soak: what they send is whole however it is cut, and what is asked beside it is looked at."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from authority import Authority
from meta.test_soak_oracle import soaking as soaking
from stage import until

HEAD = b"POST /v1/responses HTTP/1.1\r\ncontent-length: 40\r\n\r\n"
BODY = b"{" + b" " * 38 + b"}"
MANNERS = [
    {},
    {"cuts": 1},
    {"cuts": 500, "pause_s": 0.0},
    {"later_s": 0.0},
    {"cuts": 3, "later_s": 0.1, "pause_s": 0.1},
    {"expects": "waits"},
    {"expects": "waits", "cuts": 2},
    {"expects": "hurries"},
]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_a_request_in_pieces_is_the_same_request(soaking: Any, manner: dict[str, Any]) -> None:
    sending = soaking("sending")
    plain, asked = sending.Sending(), sending.Sending(**manner)
    steps = sending.script([(HEAD, BODY, asked), (HEAD, BODY, plain)])
    assert b"".join(step for step in steps if isinstance(step, bytes)) == (HEAD + BODY) * 2
    assert (len(steps) == 1) is (manner.get("expects", "hurries") == "hurries" and not {"cuts", "later_s"} & {*manner})


@pytest.mark.parametrize("manner", [{"expects": "waits"}, {"expects": "waits", "cuts": 9}, {"later_s": 0.1}], ids=str)
def test_a_body_that_comes_later_is_not_there_before(soaking: Any, manner: dict[str, Any]) -> None:
    sending = soaking("sending")
    steps = sending.script([(HEAD, BODY, sending.Sending(**manner))])
    waits = steps.index(sending.GO_ON if "expects" in manner else manner["later_s"])
    assert b"".join(step for step in steps[:waits] if isinstance(step, bytes)) == HEAD


def test_the_seed_brings_every_manner(soaking: Any) -> None:
    sending = soaking("sending")
    found = [sending.sending_of(1, number) for number in range(3_000)]
    assert {made.expects for made in found} == {"", "waits", "hurries"}
    assert {errand for made in found for errand in made.errands} == set(sending.ERRANDS)
    assert {len(made.errands) for made in found} >= {0, 1, 2, 70}
    for name in ("cuts", "later_s", "closes", "old"):
        assert {bool(getattr(made, name)) for made in found} == {True, False}, name


class Listener:
    """Answers whatever comes as it is told to, in the order of the requests; `got` is what came."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.got: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in self.answers:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"expect:" in head and b" 4" not in answer.split(b"\r\n")[0]:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            self.got.append(head + (await reader.readexactly(length) if b" 4" not in answer[:14] else b""))
            writer.write(answer)
        await reader.read()
        writer.close()


def _answer(status: int, body: bytes = b"{}", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d X\r\n%bcontent-length: %d\r\n\r\n%b" % (status, more, len(body), body)


async def exchanged(soaking: Any, answers: list[bytes], **manner: Any) -> tuple[Any, Listener, Any]:
    """The answer, what the listener saw, and the client."""
    asks, oneone, scene, sending = map(soaking, ("asks", "oneone", "scene", "sending"))
    ask = asks.ask_of(1, 7, leave=0, longest_s=1)
    ask.dialect, ask.combo, ask.chunked, ask.packed, ask.slow_s = "chat", scene.Combo("own", ()), False, False, 0.0
    ask.sending = sending.Sending(**manner)
    listener = Listener(answers)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)

    async def look(_port: int) -> object:
        return None

    port = server.sockets[0].getsockname()[1]
    client = oneone.Client(port, "listener", ssl.create_default_context(), look, "token-of-the-management")
    (answer,) = await client.ask([ask], 30.0)
    usable = client.usable
    client.close()
    server.close()
    return answer, listener, usable


@pytest.fixture
def state(soaking: Any) -> Iterator[Any]:
    """An errand that needs the token."""
    return next(errand for errand in soaking("sending").ERRANDS if errand.target == "/api/combos/state")


async def test_errands_are_asked_in_front_and_their_answers_read(soaking: Any, state: Any) -> None:
    answer, listener, usable = await exchanged(
        soaking, [_answer(200), _answer(200), _answer(200, b"{1}")], errands=(state, state), cuts=30
    )
    assert (answer.status, bytes(answer.body), answer.errands, answer.faults) == (200, b"{1}", 2, [])
    assert usable
    assert b"Bearer token-of-the-management" in listener.got[0]
    assert b"token-of-the-management" not in listener.got[2]


@pytest.mark.parametrize(
    "wrong",
    [
        _answer(503),
        _answer(200, b"canary-key-chat-a-0"),
        _answer(200, more=b"connection: close\r\n"),
    ],
)
async def test_an_errand_that_goes_wrong_is_a_fault(soaking: Any, state: Any, wrong: bytes) -> None:
    answer, *_ = await exchanged(soaking, [wrong, _answer(200)], errands=(state,))
    assert len(answer.faults) == 1
    assert answer.errands == 1


async def test_a_client_that_expects_sends_its_body_when_it_is_wanted(soaking: Any) -> None:
    answer, listener, usable = await exchanged(soaking, [_answer(200)], expects="waits")
    assert answer.status == 200
    assert usable
    assert b"soak-7-" in listener.got[0]


async def test_a_connection_whose_body_was_not_wanted_is_not_used_again(soaking: Any) -> None:
    answer, listener, usable = await exchanged(soaking, [_answer(417)], expects="waits")
    assert answer.status == 417
    assert not usable
    assert b"soak-7-" not in listener.got[0]


@pytest.mark.parametrize("how", ["close", "half", "reset"])
async def test_a_tunnel_that_was_lost_meanwhile_can_be_left(soaking: Any, how: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served = authority.server("localhost")
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Established\r\n\r\n")
        await writer.start_tls(served)
        await gone.wait()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    trusting = ssl.create_default_context(cafile=authority.ca_file)
    client = soaking("oneone").Client(server.sockets[0].getsockname()[1], "tunnel", trusting, None)
    reader, writer = await client.connect("localhost")
    gone.set()
    assert await reader.read() == b""
    await until(lambda: writer.get_extra_info("socket") is None)
    answer = soaking("heard").Answer()
    client._leave(answer, how)
    assert answer.left
    assert not client.usable
    server.close()
