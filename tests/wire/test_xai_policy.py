import gzip
import json

import pytest

from combos.core.facts import Dialect
from combos.wire.dialect import SuccessTerminal, inspector, whole_answer
from combos.wire.xai_policy import PolicyAnswer, find_refusal, streamed_refusal, whole_refusal

SAID = "I can't help with that request."
ANSWER = PolicyAnswer(SAID, "grok-9", "resp_1", 1_790_251_200)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"error":"I can\'t help with that request."}', True),
        (b"I can't help with that request.", True),
        (b'Provider error 403: {"error":{"message":"I can\'t help with that request."}}', True),
        (b'{"error":"I can\'t help with that request."', False),
        (b"", False),
        (b'{"error":"no"}', False),
        (b'{"error":"I can\'t help with that request."}' + b" " * 65_536, False),
    ],
)
def test_refusals_are_found(body: bytes, found: bool) -> None:
    assert (find_refusal("api.x.ai", 403, (), body) == SAID) is found


def test_coded_bodies() -> None:
    body = gzip.compress(json.dumps({"error": SAID}).encode())
    headers = ((b"content-encoding", b"gzip"),)
    assert find_refusal("api.x.ai", 403, headers, body) == SAID
    assert find_refusal("api.x.ai", 403, headers, b"not gzip") is None
    assert find_refusal("api.openai.com", 403, headers, body) is None


def test_the_whole_answer_is_an_incomplete_response() -> None:
    headers, body = whole_refusal(ANSWER)
    assert dict(headers) == {b"content-type": b"application/json", b"cache-control": b"no-store"}
    document = json.loads(body)
    assert document["status"] == "incomplete"
    assert document["incomplete_details"] == {"reason": "content_filter"}
    assert document["output"][0]["content"][0]["text"] == SAID
    assert (document["model"], document["id"]) == ("grok-9", "resp_1")
    assert whole_answer(Dialect.RESPONSES, body).terminal == SuccessTerminal("incomplete", "content_filter", False)


def test_the_stream_tells_the_same_in_order() -> None:
    headers, body = streamed_refusal(ANSWER)
    assert (b"cache-control", b"no-store") in headers
    frames = body.decode().removesuffix("\n\n").split("\n\n")
    events = [json.loads(frame.split("\ndata: ", 1)[1]) for frame in frames]
    assert [frame.split("\n")[0] for frame in frames] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events][:2] == ["response.created", "response.in_progress"]
    assert "".join(event.get("delta", "") for event in events) == SAID
    assert events[-1] == {
        "type": "response.incomplete",
        "sequence_number": len(events) - 1,
        "response": json.loads(whole_refusal(ANSWER)[1]),
    }


def test_the_stream_reads_as_an_answer() -> None:
    reader = inspector(Dialect.RESPONSES)
    reader.feed(streamed_refusal(ANSWER)[1])
    reader.close()
    assert reader.output
    assert isinstance(reader.terminal, SuccessTerminal)
    assert reader.terminal.kind == "incomplete"
