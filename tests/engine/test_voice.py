"""What the client gets of a target of another dialect: streams, whole answers, errors, before and after output."""

import gzip
import json
from typing import Any

import pytest

from combos.core.facts import Dialect, Headers, TransportFault
from combos.engine.commands import Break, Commit, Reply
from combos.engine.events import ChunkReceived, Ended, Event, Failed, HeadReceived, Started
from combos.engine.record import Outcome
from combos.wire.dialect import SuccessTerminal
from mixed import PAIRS, WIRES, conversation, mixed
from oracle_answers import digest_answer, digest_error, digest_stream
from oracle_lint import lint_stream
from playbook import (
    JSON,
    PATHS,
    SSE,
    Play,
    World,
    commits,
    completed,
    created,
    delta,
    discards,
    ends,
    event,
    finishes,
    header,
    replies,
    sends,
)
from streams import read
from translations import CORPUS

DIALECTS = {name: Dialect(value) for name, value in WIRES.items()}
TRIGGER = {"type": "compaction_trigger"}


def recorded(name: str) -> bytes:
    return (CORPUS / name).read_bytes()


def asked(client: str, *wires: str, stream: bool = True, **fields: Any) -> Play:
    """A request with the tools of the corpus, whose first target is being asked."""
    world = mixed(client, *wires)
    document = {**conversation(client), **({} if client == "G" else {"stream": stream}), **fields}
    path = PATHS[client] if stream else PATHS[client].replace("streamGenerateContent?alt=sse", "generateContent")
    return (world.turn(body=json.dumps(document).encode(), path=path) >> Started()).skip()


def whole(play: Play) -> dict[str, Any]:
    reply = next(command for command in play.log if isinstance(command, Reply))
    document: dict[str, Any] = json.loads(reply.body)
    return document


def in_pieces(data: bytes, size: int, attempt: int = 0) -> list[Event]:
    return [ChunkReceived(attempt, data[at : at + size]) for at in range(0, len(data), size)]


def play_stream(play: Play, data: bytes, size: int = 100_000, headers: Headers = SSE) -> bytes:
    (play >> [HeadReceived(0, 200, headers)]).skip()
    for one in in_pieces(data, size):
        (play >> one).skip()
    (play >> Ended(0)).skip()
    return play.client_bytes


# -- streams


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_a_stream_reaches_the_client_in_its_own_format(client: str, other: str) -> None:
    raw = recorded(f"streams/{WIRES[other]}.full.sse")
    play = asked(client, other)
    said = play_stream(play, raw)
    assert lint_stream(WIRES[client], said) == []
    seen = read(DIALECTS[client], said)
    assert isinstance(seen.terminal, SuccessTerminal)
    wanted, found = digest_stream(WIRES[other], raw), digest_stream(WIRES[client], said)
    assert (found["text"], found["reasoning"]) == (wanted["text"], wanted["reasoning"])
    assert [call[1:] for call in found["calls"]] == [call[1:] for call in wanted["calls"]]
    assert play.done().outcome is Outcome.SUCCESS
    assert play.record.attempts[0].response_model == "m1"


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_a_stream_in_single_bytes_is_the_same_stream(client: str, other: str) -> None:
    raw = recorded(f"streams/{WIRES[other]}.full.sse")
    assert play_stream(asked(client, other), raw, 1) == play_stream(asked(client, other), raw)


def test_the_head_is_the_clients() -> None:
    headers: Headers = (
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"anthropic-ratelimit-requests-remaining", b"1"),
        (b"request-id", b"req_1"),
        (b"openai-model", b"x"),
        (b"content-length", b"9"),
    )
    play = asked("R", "M")
    play >> HeadReceived(0, 200, headers) >> ChunkReceived(0, recorded("streams/messages.full.sse"))
    (commit,) = [command for command in play.log if isinstance(command, Commit)]
    assert commit.headers == ((b"content-type", b"text/event-stream"), (b"x-request-id", b"req_1"))


def test_a_content_coding_is_undone() -> None:
    raw = recorded("streams/messages.full.sse")
    plain = play_stream(asked("C", "M"), raw)
    coded: Headers = (*SSE, (b"content-encoding", b"gzip"))
    assert play_stream(asked("C", "M"), gzip.compress(raw), 7, coded) == plain
    play = asked("C", "M", "C") >> HeadReceived(0, 200, coded) >> ChunkReceived(0, b"not gzip at all")
    play << discards(0) << sends("beta/m2")


def test_nothing_of_a_failed_target_shows() -> None:
    play = asked("C", "M", "R")
    start = event({"type": "message_start", "message": {"id": "msg_a", "model": "a", "usage": {}}})
    busy = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    play >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, start) >> ChunkReceived(0, busy)
    play << discards(0) << sends("beta/m2") >> HeadReceived(1, 200, SSE)
    play >> ChunkReceived(1, recorded("streams/responses.full.sse"))
    play.skip() >> Ended(1)
    assert lint_stream("chat", play.client_bytes) == []
    assert b"msg_a" not in play.client_bytes
    assert play.skip().done().outcome is Outcome.SUCCESS


@pytest.mark.parametrize("client", ["R", "M"])
def test_from_another_dialect_back_to_the_clients_own(client: str) -> None:
    other = "M" if client == "R" else "R"
    play = asked(client, other, client) >> Failed(0, TransportFault.RESET) << discards(0) << sends("beta/m2")
    raw = recorded(f"streams/{WIRES[client]}.full.sse")
    play >> HeadReceived(1, 200, SSE) >> ChunkReceived(1, raw)
    assert play.client_bytes == raw
    assert json.loads(play.sends[1].request.body) == {**json.loads(play.request.facts.body), "model": "m2"}


# -- whole answers


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_a_whole_answer_reaches_the_client_in_its_own_format(client: str, other: str) -> None:
    raw = recorded(f"responses/{WIRES[other]}.full.json")
    play = asked(client, other, stream=False)
    assert "alt=sse" not in play.sends[0].request.url
    play.answer(0, 200, raw).skip()
    wanted, found = digest_answer(WIRES[other], json.loads(raw)), digest_answer(WIRES[client], whole(play))
    assert (found["text"], found["reasoning"]) == (wanted["text"], wanted["reasoning"])
    assert [call[1:] for call in found["calls"]] == [call[1:] for call in wanted["calls"]]
    assert play.done().outcome is Outcome.SUCCESS


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_a_whole_answer_in_place_of_a_stream_becomes_one(client: str, other: str) -> None:
    play = asked(client, other)
    play.answer(0, 200, recorded(f"responses/{WIRES[other]}.full.json"))
    reply = play.pending[0]
    assert isinstance(reply, Reply)
    assert header(reply, b"content-type") == b"text/event-stream"
    assert lint_stream(WIRES[client], reply.body) == []


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_a_stream_in_place_of_a_whole_answer_becomes_one(client: str, other: str) -> None:
    raw = recorded(f"streams/{WIRES[other]}.full.sse")
    play = asked(client, other, stream=False)
    play.answer(0, 200, raw, SSE)
    reply = play.pending[0]
    assert header(reply, b"content-type") == b"application/json"
    assert digest_answer(WIRES[client], whole(play))["text"] == digest_stream(WIRES[other], raw)["text"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}x"])
def test_an_answer_that_is_none_is_a_hop(body: bytes) -> None:
    play = asked("C", "M", "C", stream=False).answer(0, 200, body)
    play << discards(0) << sends("beta/m2")


# -- errors


@pytest.mark.parametrize("client", WIRES)
def test_an_error_that_stops_is_told_in_the_clients_format(client: str) -> None:
    other = "R" if client != "R" else "M"
    body = {"error": {"type": "invalid_request_error", "message": "Unsupported value", "code": "unsupported_value"}}
    play = asked(client, other, client).answer(0, 400, body)
    kind, message = digest_error(WIRES[client], whole(play))
    assert (kind, message) == ("invalid", "Unsupported value")
    play.skip()
    assert play.done().outcome is Outcome.TERMINAL


@pytest.mark.parametrize(("client", "status"), [("R", 503), ("C", 503), ("M", 529), ("G", 503)])
def test_an_exhausted_combo_gives_the_failure_with_its_delay(client: str, status: int) -> None:
    other = "M" if client != "M" else "R"
    body = recorded("errors/messages.529.json") if other == "M" else _overloaded()
    headers: Headers = (*JSON, (b"retry-after", b"17"), (b"anthropic-ratelimit-tokens", b"1"), (b"request-id", b"q"))
    play = asked(client, other).answer(0, 529 if other == "M" else 503, body, headers)
    reply = play.pending[0]
    play << replies(status) << discards(0) << finishes(Outcome.EXHAUSTED)
    assert header(reply, b"retry-after") == b"17"
    assert header(reply, b"anthropic-ratelimit-tokens") is None
    assert digest_error(WIRES[client], whole(play))[0] == "overloaded"


def _overloaded() -> bytes:
    return json.dumps({"error": {"type": "server_error", "code": "server_is_overloaded", "message": "busy"}}).encode()


def test_a_delay_in_the_body_becomes_a_header() -> None:
    play = asked("C", "G").answer(0, 429, recorded("errors/gemini.429.json"))
    assert header(play.pending[0], b"retry-after") == b"12"


def test_a_failure_in_the_stream_before_output_is_an_http_error() -> None:
    raw = recorded("streams/responses.failed.sse")
    play = asked("M", "R") >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, raw)
    reply = play.pending[0]
    assert isinstance(reply, Reply)
    assert reply.status >= 400
    assert header(reply, b"content-type") == b"application/json"
    assert whole(play)["type"] == "error"


def test_a_large_error_body_is_not_passed_through() -> None:
    play = asked("C", "M") >> HeadReceived(0, 503, JSON) >> ChunkReceived(0, b"x" * 100_000)
    play << replies(503, code="upstream_error") << discards(0) << finishes(Outcome.EXHAUSTED)


@pytest.mark.parametrize("client", ["R", "C", "G"])
def test_a_failure_after_output_is_told_in_the_stream(client: str) -> None:
    play = asked(client, "M")
    said = play_stream(play, recorded("streams/messages.overloaded.sse"))
    assert not isinstance(read(DIALECTS[client], said).terminal, SuccessTerminal)
    assert b"Overloaded" in said
    assert play.done().outcome is Outcome.CUT
    assert play.world.cooling()


@pytest.mark.parametrize(("client", "other"), PAIRS)
def test_a_stream_that_is_cut_never_ends_well(client: str, other: str) -> None:
    raw = recorded(f"streams/{WIRES[other]}.full.sse")
    for cut in (len(raw) // 3, len(raw) // 2):
        play = asked(client, other) >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, raw[:cut])
        if play.turn.record.committed_ms is None:
            continue
        play.skip() >> Failed(0, TransportFault.RESET)
        broken = play.pending[0]
        assert isinstance(broken, Break)
        said = play.client_bytes + broken.tail
        assert broken.tail
        assert not isinstance(read(DIALECTS[client], said).terminal, SuccessTerminal)
        assert play.skip().done().outcome is Outcome.CUT


def test_garbage_after_output_ends_the_answer_at_once() -> None:
    play = asked("C", "M") >> HeadReceived(0, 200, SSE)
    raw = recorded("streams/messages.full.sse")
    play >> ChunkReceived(0, raw[: len(raw) // 2])
    play.skip() >> ChunkReceived(0, b'\n\nevent: content_block_delta\ndata: {"type":\n\n')
    assert b'"error"' in play.client_bytes
    play.pending.pop(0)
    play << ends() << discards(0) << finishes(Outcome.CUT)
    play.done()


# -- tools that were not declared


def call(name: str) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"tool_calls": [_call(name)]}}]})


def _call(name: str) -> dict[str, Any]:
    return {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}


def thought() -> bytes:
    return event({"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]})


@pytest.mark.parametrize("client", ["R", "M"])
def test_a_first_call_of_an_undeclared_tool(client: str) -> None:
    play = asked(client, "C", client) >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, call("rm_rf"))
    if client == "R":
        play << discards(0) << sends("beta/m2")
        assert play.record.attempts[0].result == "undeclared_tool_call"
        assert play.world.cooling() == {"alpha/m1": 60_000}
        first, second = (json.loads(send.request.body)["tools"] for send in play.sends)
        assert [tool["function"]["name"] for tool in first] == [tool["name"] for tool in second]
    else:
        play << commits(0)


def test_a_declared_first_call_is_an_answer() -> None:
    play = asked("R", "C", "R") >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, call("tide_table"))
    play << commits(0)


def test_an_undeclared_call_after_output_is_final() -> None:
    play = asked("R", "C", "R") >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, thought()) << commits(0)
    play.skip() >> ChunkReceived(0, call("rm_rf"))
    assert b"rm_rf" not in play.client_bytes
    assert b"undeclared_tool_call" in play.client_bytes
    assert play.skip().done().outcome is Outcome.CUT


def test_an_undeclared_call_in_a_whole_answer_is_a_hop() -> None:
    body = {"choices": [{"index": 0, "message": {"tool_calls": [_call("x")]}, "finish_reason": "tool_calls"}]}
    asked("R", "C", "R", stream=False).answer(0, 200, body) << discards(0) << sends("beta/m2")


# -- compaction


def summary(text: str, finish: str = "stop") -> bytes:
    pieces = [{"delta": {"role": "assistant", "content": text}}, {"delta": {}, "finish_reason": finish}]
    return b"".join(event({"choices": [{"index": 0, **piece}]}) for piece in pieces) + b"data: [DONE]\n\n"


def compacting(*wires: str, **fields: Any) -> Play:
    world = mixed("R", *wires)
    play = world.turn(input=[{"role": "user", "content": "Depth?"}, TRIGGER], lane="l", **fields)
    play.rewrites = True
    return (play >> Started()).skip()


def test_a_compaction_is_one_item() -> None:
    play = compacting("C") >> HeadReceived(0, 200, SSE)
    play >> ChunkReceived(0, summary("Six metres.")) >> Ended(0)
    reply = play.pending[0]
    assert isinstance(reply, Reply)
    assert header(reply, b"content-type") == b"text/event-stream"
    assert lint_stream("responses", reply.body) == []
    assert reply.body.count(b'"type":"response.output_item.done"') == 1
    assert b'"type":"compaction"' in reply.body
    assert b"output_text" not in reply.body
    assert play.skip().done().outcome is Outcome.SUCCESS


@pytest.mark.parametrize("body", [summary(""), summary("Six", "length"), summary("Six metres.")[:40]])
def test_a_compaction_that_fails_is_a_hop(body: bytes) -> None:
    play = compacting("C", "R") >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, body) >> Ended(0)
    play << discards(0) << sends("beta/m2") >> HeadReceived(1, 200, SSE)
    done = [event({"type": "response.output_item.done", "output_index": 0, "item": _message("Six.")})]
    play >> ChunkReceived(1, b"".join([created(), _added(), delta("Six."), *done, completed()])) >> Ended(1)
    assert isinstance(play.pending[0], Reply)
    assert b'"type":"compaction"' in play.pending[0].body


def _added() -> bytes:
    return event({"type": "response.output_item.added", "output_index": 0, "item": {**_message(""), "content": []}})


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_a_compaction_that_nobody_can_make_is_an_error() -> None:
    play = compacting("C") >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, summary("")) >> Ended(0)
    play << replies(502) << discards(0) << finishes(Outcome.EXHAUSTED)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/compact"])
def test_a_compaction_that_its_own_dialect_failed_is_an_http_error(path: str) -> None:
    world = mixed("R", "R")
    play = world.turn(path=path, input=[{"role": "user", "content": "Depth?"}, TRIGGER])
    play.rewrites = True
    fault = {"code": "server_is_overloaded", "message": "busy"}
    raw = event({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": fault}})
    (play >> Started()).skip().answer(0, 200, raw, SSE)
    reply = play.pending[0]
    assert whole(play) == {"error": fault}
    assert header(reply, b"content-type") == b"application/json"
    play << replies(503) << discards(0) << finishes(Outcome.EXHAUSTED)


def test_the_compact_endpoint_answers_with_a_history() -> None:
    world = mixed("R", "M", "R")
    body = {"input": [{"role": "user", "content": "Depth?"}]}
    play = world.turn(path="/v1/responses/compact", **body) >> Started() << sends("alpha/m1")
    play.answer(0, 200, {"type": "message", "content": [{"type": "text", "text": "Six."}], "stop_reason": "end_turn"})
    output = whole(play)["output"]
    assert [item["role"] for item in output] == ["user", "user"]
    assert "Six." in json.dumps(output[-1])


def test_what_was_compacted_is_read_by_every_target() -> None:
    play = compacting("C") >> HeadReceived(0, 200, SSE) >> ChunkReceived(0, summary("Six metres.")) >> Ended(0)
    body = play.pending[0].body  # type: ignore[union-attr]
    done = next(line for line in body.split(b"\n") if line.startswith(b"data: ") and b"output_item.done" in line)
    item = json.loads(done[6:])["item"]
    for wire in WIRES:
        world: World = mixed("R", wire)
        later = world.turn(input=[item, {"role": "user", "content": "go on"}])
        later.rewrites = True
        assert b"Six metres." in (later >> Started()).sends[0].request.body


# -- recall


def test_recall_keeps_the_name_that_the_client_saw() -> None:
    world = mixed("R", "M")
    play = world.turn(lane="l") >> Started() << sends("alpha/m1")
    said = play_stream(play, recorded("streams/messages.full.sse"))
    assert json.loads(said.split(b"data: ")[1].split(b"\n")[0])["response"]["model"] == "m1"
    assert play.record.attempts[0].response_model == "m1"


# -- reasoning state on its way through the client


def items_of(said: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in said.split(b"\n") if line.startswith(b"data: ") and b"output_item.done" in line]
    return [json.loads(line)["item"] for line in lines]


def test_reasoning_goes_back_to_its_maker_and_to_nobody_else() -> None:
    world = mixed("R", "M", "R", "C")
    play = world.turn(lane="l") >> Started() << sends("alpha/m1")
    said = play_stream(play, recorded("streams/messages.full.sse"))
    items = items_of(said)
    (state,) = [item["encrypted_content"] for item in items if item["type"] == "reasoning"]
    (signature,) = digest_stream("messages", recorded("streams/messages.full.sse"))["opaque"]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": call_id, "output": "x"} for call_id in calls]
    assert state.startswith("cmb1.")
    later = world.turn(lane="l", input=[{"role": "user", "content": "hi"}, *items, *results])
    later.rewrites = True
    later >> Started() << sends("alpha/m1") >> Failed(0, TransportFault.RESET) << discards(0) << sends("beta/m2")
    later >> Failed(1, TransportFault.RESET) << discards(1) << sends("gamma/m3")
    maker, native, chat = (send.request.body.decode() for send in later.sends)
    assert signature in maker
    assert "cmb1." not in maker + native + chat
    assert signature not in native + chat
    kinds = [(item.get("type"), "id" in item) for item in json.loads(native)["input"]]
    assert ("reasoning", True) not in kinds
    assert ("function_call", False) in kinds
    assert all("tide_table" in body for body in (maker, native, chat))
