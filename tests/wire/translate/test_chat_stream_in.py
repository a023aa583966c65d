"""Answers of Chat Completions servers that differ from OpenAI's: nothing said is lost, no two calls become one."""

import json
from itertools import product
from typing import Any

import pytest

from combos.wire.translate import AnswerError, translate_response
from combos.wire.translate.chat_stream_in import Reader
from combos.wire.translate.ir import Close, Delta, Event, Failure, Finish, Kind, Open
from oracle_answers import digest_answer
from oracle_lint import lint_stream
from translations import DIALECTS, C, Json, context, stream

CLIENTS = [client for client in DIALECTS if client is not C]


def chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


def call(index: int | None = 0, ident: str | None = None, **function: Any) -> Json:
    made: Json = {"function": function}
    if index is not None:
        made["index"] = index
    return chunk({"tool_calls": [made if ident is None else {**made, "id": ident}]})


def blocks(events: list[Event]) -> list[tuple[Kind, str, str, str]]:
    """Kind, id, name and text of every block in order of opening; every one is closed once."""
    opened = {event.key: event for event in events if isinstance(event, Open)}
    texts = {key: "".join(e.text for e in events if isinstance(e, Delta) and e.key == key) for key in opened}
    assert sorted(map(str, opened)) == sorted(str(event.key) for event in events if isinstance(event, Close))
    meta = {key: (event.call.id, event.call.name) if event.call else ("", "") for key, event in opened.items()}
    return [(event.kind, *meta[key], texts[key]) for key, event in opened.items()]


def read(*chunks: Json) -> list[tuple[Kind, str, str, str]]:
    reader = Reader()
    events = [event for one in chunks for event in reader.feed("", one)]
    events += reader.end()
    assert isinstance(events[-1], Finish)
    return blocks(events)


END = chunk({}, "tool_calls")
A, B = (Kind.CALL, "a", "f", '{"x":1}'), (Kind.CALL, "b", "g", '{"y":2}')

CALLS: dict[str, tuple[list[Json], list[Any]]] = {
    "every call is number 0": (
        [call(0, "a", name="f", arguments='{"x":1}'), call(0, "b", name="g", arguments='{"y":2}')],
        [A, B],
    ),
    "calls without numbers": (
        [call(None, "a", name="f", arguments='{"x":1}'), call(None, "b", name="g", arguments='{"y":2}')],
        [A, B],
    ),
    "number 0 for two of one tool, in pieces": (
        [
            call(0, "a", name="f", arguments='{"x"'),
            call(0, arguments=":1}"),
            call(0, "b", name="f", arguments=""),
            call(0, "b", arguments='{"y":2}'),
        ],
        [A, (Kind.CALL, "b", "f", '{"y":2}')],
    ),
    "id and name in every piece": (
        [call(0, "a", name="f", arguments='{"x"'), call(0, "a", name="f", arguments=":1}")],
        [A],
    ),
    "another id without a name in every piece": (
        [call(0, "a", name="f", arguments='{"x"'), call(0, "zz", name=None, arguments=":1}")],
        [A],
    ),
    "an empty id in later pieces": (
        [call(0, "a", name="f", arguments='{"x"'), call(0, "", name="", arguments=":1}")],
        [A],
    ),
    "interleaved": (
        [
            call(0, "a", name="f", arguments='{"x"'),
            call(1, "b", name="g", arguments='{"y"'),
            call(0, arguments=":1}"),
            call(1, arguments=":2}"),
        ],
        [A, B],
    ),
    "the name after the id": ([call(0, "a", arguments=""), call(0, name="f"), call(0, arguments='{"x":1}')], [A]),
    "the name after arguments": ([call(0, "a", arguments='{"x"'), call(0, name="f", arguments=":1}")], [A]),
    "the id after the name": ([call(0, name="f", arguments='{"x":1}'), END], [(Kind.CALL, "", "f", '{"x":1}')]),
    "arguments as an object": ([call(0, "a", name="f", arguments={"x": 1})], [A]),
    "no arguments": ([call(0, "a", name="f", arguments=None)], [(Kind.CALL, "a", "f", "")]),
    "never a name": ([call(0, "a", arguments="{}")], [(Kind.CALL, "a", "", "{}")]),
}


@pytest.mark.parametrize(("chunks", "found"), CALLS.values(), ids=CALLS)
def test_calls_stay_what_they_are(chunks: list[Json], found: list[Any]) -> None:
    assert read(*chunks, END) == found


@pytest.mark.parametrize(
    ("client", "name"), list(product(CLIENTS, [name for name in CALLS if name != "never a name"])), ids=str
)
def test_every_client_gets_them_in_order(client: Any, name: str) -> None:
    raw = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in (*CALLS[name][0], END)) + b"data: [DONE]\n\n"
    out = stream(raw, client, C)
    assert lint_stream(client.value, out) == []
    assert out == stream(raw, client, C, cuts=list(range(1, len(raw))))


PARTS: dict[str, tuple[Json, list[tuple[Kind, str]]]] = {
    "text": ({"content": [{"type": "text", "text": "ab"}]}, [(Kind.TEXT, "ab")]),
    "texts": ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, [(Kind.TEXT, "ab")]),
    "thoughts": (
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "a"},
            ]
        },
        [(Kind.REASONING, "hm"), (Kind.TEXT, "a")],
    ),
    "other parts": ({"content": [{"type": "reference", "reference_ids": [1]}, "x", {"type": "text"}]}, []),
    "nothing": ({"content": []}, []),
    "refusal": ({"content": None, "refusal": "no"}, [(Kind.REFUSAL, "no")]),
}


@pytest.mark.parametrize(("message", "found"), PARTS.values(), ids=PARTS)
def test_content_may_be_a_list_of_parts(message: Json, found: list[tuple[Kind, str]]) -> None:
    assert [(kind, text) for kind, _, _, text in read(chunk(message), chunk({}, "stop"))] == found
    whole = Reader().whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert [(kind, text) for kind, _, _, text in blocks(whole)] == found


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_whole_answer_with_parts_reaches_every_client(client: Any) -> None:
    message = {"role": "assistant", **PARTS["thoughts"][0]}
    document = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    made = translate_response(json.dumps(document).encode(), client, C, context(client, C))
    digest = digest_answer(client.value, json.loads(made))
    assert (digest["text"], digest["reasoning"]) == ("a", "hm")


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_the_finish_reason_error_is_no_success(client: Any) -> None:
    reader = Reader()
    events = [*reader.feed("", chunk({"content": "a"})), *reader.feed("", chunk({}, "error")), *reader.end()]
    assert isinstance(events[-1], Failure)
    document = {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "error"}]}
    with pytest.raises(AnswerError):
        translate_response(json.dumps(document).encode(), client, C, context(client, C))
