"""JSON with halves of surrogate pairs: read as U+FFFD, told from what only looks like one."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.facts import Dialect
from combos.wire.dialect import SuccessTerminal, inspector, whole_answer
from combos.wire.json_text import loads
from combos.wire.request import peek_model, request_facts
from combos.wire.translate.shape import load, load_object


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"a\ud83d"', "a\ufffd"),
        (rb'"\uDE00b"', "\ufffdb"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83dA\n\\ud83d"', "\ufffdA\n\\ud83d"),
        (rb'{"\ud83d":1}', {"\ufffd": 1}),
        (rb'"\ud83d\ude00 \\ud83d"', "\U0001f600 \\ud83d"),
    ],
)
def test_halves_of_pairs(text: bytes, value: object) -> None:
    assert loads(text) == value
    assert load(text) == load(text.decode()) == value


@pytest.mark.parametrize(
    "text", [b"", b'"', rb'"\ud83d', rb'{"a":\ud83d}', rb'"\ud83"', b'"\xff"', rb'"\\ud83d', b"NaN"]
)
def test_what_is_no_json_stays_none(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)
    assert load_object(text) is None


@given(st.text(st.characters(exclude_categories=())))
def test_every_text_of_javascript(text: str) -> None:
    halves = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert loads(json.dumps(text).encode()).count("\ufffd") == halves.count("\ufffd")


HALF = rb"\ud83d"
STREAMS = {
    Dialect.RESPONSES: [
        b'{"type":"response.output_text.delta","delta":"' + HALF + b'"}',
        b'{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"text":"' + HALF + b'"}]}}',
    ],
    Dialect.CHAT: [b'{"choices":[{"delta":{"content":"' + HALF + b'"},"finish_reason":"stop"}]}', b"[DONE]"],
    Dialect.MESSAGES: [
        b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"' + HALF + b'"}}',
        b'{"type":"message_stop"}',
    ],
}


@pytest.mark.parametrize(("dialect", "events"), STREAMS.items())
def test_a_stream_with_half_a_pair_is_an_answer(dialect: Dialect, events: list[bytes]) -> None:
    seen = inspector(dialect)
    for event in events:
        seen.feed(b"data: " + event + b"\n\n")
    seen.close()
    assert seen.output
    assert isinstance(seen.terminal, SuccessTerminal)
    assert not seen.terminal.empty


def test_an_answer_and_a_request_with_half_a_pair() -> None:
    answer = b'{"choices":[{"message":{"content":"' + HALF + b'"},"finish_reason":"stop"}]}'
    assert whole_answer(Dialect.CHAT, answer).ok
    body = b'{"model":"combo/main","messages":[{"role":"user","content":"' + HALF + b'"}]}'
    facts = request_facts("/v1/chat/completions", body)
    assert (facts.model, facts.body, peek_model(body).model) == ("combo/main", body, "combo/main")
    assert json.dumps(facts.document, ensure_ascii=False).encode()
