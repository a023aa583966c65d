"""The oracle of the soak: what clients understand of answers, and that what is mixed, lost or left out is found."""

import asyncio
import random
import ssl
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

SOAKING = Path(__file__).parents[2] / "scripts" / "soaking"
_OWN = [path.stem for path in SOAKING.glob("*.py")]
DIALECTS = ("chat", "responses", "messages", "gemini")


@pytest.fixture
def soaking() -> Iterator[Any]:
    """Imports the soak's modules as its script does, and leaves none behind: others have modules of the same names."""
    others = {name: sys.modules.pop(name) for name in _OWN if name in sys.modules}
    sys.path.insert(0, str(SOAKING))
    try:
        yield __import__
    finally:
        sys.path.remove(str(SOAKING))
        for name in _OWN:
            sys.modules.pop(name, None)
        sys.modules.update(others)


def speech(soaking: Any, dialect: str, request: int = 7, target: str = "chat-a/m1") -> Any:
    """An answer with thoughts, text and two calls at least."""
    plans = soaking("plans")
    asked = plans.Asked(dialect, True, "m1", request, f"r{request}.0.{target}.0", 1.0)
    for seed in range(1000):
        made = plans.speech(random.Random(seed), asked)
        if made.thinks and made.pieces and len(made.calls) > 1:
            return made
    raise AssertionError("no such answer")


def answer(soaking: Any, body: bytes, kind: str, *, clean: bool = True) -> Any:
    return soaking("heard").Answer(200, {"content-type": kind}, bytearray(body), clean=clean, sent=True)


def streamed(soaking: Any, *parts: list[bytes], clean: bool = True) -> Any:
    return answer(soaking, b"".join(piece for part in parts for piece in part), "text/event-stream", clean=clean)


def judged(soaking: Any, dialect: str, given: Any, said: Any, fate: str = "OK") -> list[str]:
    """What the oracle says of an answer to a client of a combo with one target that said this."""
    asks, oracle, plans, provider, scene = map(soaking, ("asks", "oracle", "plans", "provider", "scene"))
    ask = asks.ask_of(1, 7, leave=0, longest_s=1)
    ask.dialect, ask.combo = dialect, scene.Combo("own", (scene.Target("chat-a", "m1"),))
    plan = plans.Plan("healthy", plans.Fate[fate], [], said=said)
    send = provider.Send(7, "chat-a/m1", "canary-key-chat-a-0", plan, 0.0, 0.1)
    found: list[str] = oracle.judge(oracle.Case(ask, given, [send], 60.0, 0.1))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_understands_all_of_a_stream_and_all_of_a_whole_answer(soaking: Any, dialect: str) -> None:
    said = speech(soaking, dialect)
    stream = streamed(soaking, said.start(), said.output(), said.finish())
    whole = answer(soaking, said.whole(), "application/json")
    for given in (stream, whole):
        understood = soaking("heard").heard(dialect, given)
        assert (understood.ending, understood.faults) == ("complete", [])
        assert (understood.said.text, understood.said.thoughts) == (said.text, said.thoughts)
        assert [name for name, _ in understood.said.calls] == [call.name for call in said.calls]
        assert judged(soaking, dialect, given, said) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_of_a_second_target_are_found_wherever_they_stand(soaking: Any, dialect: str) -> None:
    said, other = speech(soaking, dialect), speech(soaking, dialect, target="chat-b/m1")
    mixtures = [
        replace(said, thinks=(*said.thinks, *other.thinks)),
        replace(said, pieces=(*said.pieces, *other.pieces)),
        replace(said, calls=(said.calls[0], other.calls[1])),
    ]
    for mixed in mixtures:
        for given in (
            streamed(soaking, mixed.start(), mixed.output(), mixed.finish()),
            answer(soaking, mixed.whole(), "application/json"),
        ):
            (fault,) = judged(soaking, dialect, given, said)
            assert fault.startswith("words of several")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_of_another_request_are_found(soaking: Any, dialect: str) -> None:
    said, other = speech(soaking, dialect), speech(soaking, dialect, request=8)
    for part in ("thinks", "pieces", "calls"):
        nothing = replace(said, thinks=(), pieces=(), calls=())
        mixed = replace(nothing, **{part: getattr(other, part)})
        (fault,) = judged(soaking, dialect, answer(soaking, mixed.whole(), "application/json"), said)
        assert fault.startswith("words of another request")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_left_out_or_changed_is_found(soaking: Any, dialect: str) -> None:
    said = speech(soaking, dialect)
    first = said.calls[0]
    lesser = [
        replace(said, thinks=said.thinks[:-1]),
        replace(said, pieces=said.pieces[:-1]),
        replace(said, calls=said.calls[:-1]),
        replace(said, calls=(replace(first, name="another"), *said.calls[1:])),
        replace(said, calls=(replace(first, pieces=('{"note":"else"}',)), *said.calls[1:])),
    ]
    for made in lesser:
        assert judged(soaking, dialect, streamed(soaking, made.start(), made.output(), made.finish()), said)
        assert judged(soaking, dialect, answer(soaking, made.whole(), "application/json"), said)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_stops_short_must_show_it(soaking: Any, dialect: str) -> None:
    said = speech(soaking, dialect)
    visible = streamed(soaking, said.start(), said.output()[:-2], clean=False)
    silent = streamed(soaking, said.start(), said.output()[:-2])
    assert judged(soaking, dialect, visible, said, "CUT") == []
    assert judged(soaking, dialect, silent, said, "CUT") == ["the answer ends as if it were complete, and is not"]


async def test_an_answer_that_does_not_go_on_is_named_with_what_both_ends_hold(soaking: Any) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await reader.read()
        writer.close()

    async def look(port: int) -> str:
        return f"holds port {port}"

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = soaking("oneone").Client(server.sockets[0].getsockname()[1], "base", ssl.create_default_context(), look)
    ask = soaking("asks").ask_of(1, 7, leave=0, longest_s=1)
    ask.combo = soaking("scene").Combo("own", ())
    (given,) = await client.ask([ask], 0.05)
    assert given.hung
    here, proxy = given.reason.split("; the proxy: ")
    assert here.startswith("4 bytes came, 0 unread, reading True, all sent True, errands 0; the kernel: [")
    assert proxy.startswith("holds port ")
    assert not client.usable
    server.close()
    await server.wait_closed()


def looks(soaking: Any, traced: dict[str, Any], pooled: int = 0) -> list[Any]:
    """What a proxy held at the start, after the warm-up, in the middle and at the end."""
    held: dict[str, Any] = {"tasks": {}, "clients": 0, "sockets": 5, "registries": 1, "bodies": 0, "rss_kib": 100_000}
    nothing = {"total": 0.0, "lines": [], "kept": {}}
    made = [soaking("report").Snapshot(number * 1_000, {**held, "state": {}}, nothing) for number in range(3)]
    return [*made, soaking("report").Snapshot(5_000, {**held, "state": {"upstream.idle": pooled}}, traced)]


@pytest.mark.parametrize(
    ("traced", "words"),
    [
        ({"total": 9_000.0, "lines": [("a.py:1", 5.0, 7)], "kept": {}}, "all lines together hold 9000 KiB more"),
        ({"total": 1_900.0, "lines": [("a.py:1", 1_800.0, 7)], "kept": {}}, "a.py:1 holds 1800 KiB more, in +7 blocks"),
        ({"total": 1.0, "lines": [], "kept": {"state._makers": 3}}, "state._makers keeps 3 entries for ever"),
    ],
)
def test_what_grows_without_end_is_found(soaking: Any, traced: dict[str, Any], words: str) -> None:
    (wrong,) = soaking("report").leftovers(looks(soaking, traced), 5_000)
    assert wrong.startswith(words)


def test_a_little_more_is_no_growth_nor_are_buffers_of_pooled_connections(soaking: Any) -> None:
    little = {"total": 900.0, "lines": [("a.py:1", 800.0, 7)], "kept": {}}
    buffers = {"total": 4_000.0, "lines": [("sslproto.py:1", 2_560.0, 10)], "kept": {}}
    assert soaking("report").leftovers(looks(soaking, little), 5_000) == []
    assert soaking("report").leftovers(looks(soaking, buffers, pooled=10), 5_000) == []
