"""The answer to an xAI policy refusal: HTTP 200 with an incomplete Responses object, whole or as a stream.

Finds the refusal in bytes and builds bytes. When it may be used (Responses requests outside combos) is for the caller.
"""

from collections.abc import Iterator, Mapping

import orjson

from combos.core.facts import Headers
from combos.core.values import dataclass
from combos.core.xai_policy import policy_refusal
from combos.wire.bodies import BodyError, decode
from combos.wire.envelope import BODY_LIMIT
from combos.wire.envelope_shapes import REWRAP_PREFIX, parse_json
from combos.wire.signals import joined

STATUS = 200


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """One refusal to be told: the sentence, the model the client asked for, an id and a time (seconds since 1970)."""

    sentence: str
    model: str
    response_id: str
    created_at: int


def find_refusal(host: str, status: int, headers: Headers, body: bytes) -> str | None:
    """The refusal sentence of an upstream's answer; None when it is any other answer or cannot be read."""
    if len(body) > BODY_LIMIT:
        return None
    try:
        text = decode(joined(headers, "content-encoding"), body, BODY_LIMIT).decode("utf-8", "replace").strip()
    except BodyError:
        return None  # what cannot be read stays the error it is
    prefix = REWRAP_PREFIX.match(text)
    wrapped = text[prefix.end() :] if prefix and prefix[1] == "403" else text
    return policy_refusal(host, status, text, parse_json(wrapped))


def whole_refusal(answer: PolicyAnswer) -> tuple[Headers, bytes]:
    """Headers and body of the JSON form."""
    return _headers(b"application/json"), orjson.dumps(_response(answer, "incomplete"))


def streamed_refusal(answer: PolicyAnswer) -> tuple[Headers, bytes]:
    """Headers and body of the event stream: created, in_progress, the text, then `response.incomplete`."""
    frames = (
        b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps({"type": name, "sequence_number": number, **members}))
        for number, (name, members) in enumerate(_events(answer))
    )
    return _headers(b"text/event-stream; charset=utf-8"), b"".join(frames)


def _events(answer: PolicyAnswer) -> Iterator[tuple[str, Mapping[str, object]]]:
    started = _response(answer, "in_progress")
    item = {"output_index": 0, "item_id": _item_id(answer)}
    part = {**item, "content_index": 0}
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    yield "response.output_item.added", {"output_index": 0, "item": _item(answer, "in_progress", [])}
    yield "response.content_part.added", {**part, "part": _part("")}
    yield "response.output_text.delta", {**part, "delta": answer.sentence, "logprobs": []}
    yield "response.output_text.done", {**part, "text": answer.sentence, "logprobs": []}
    yield "response.content_part.done", {**part, "part": _part(answer.sentence)}
    done = _item(answer, "incomplete", [_part(answer.sentence)])
    yield "response.output_item.done", {"output_index": 0, "item": done}
    yield "response.incomplete", {"response": _response(answer, "incomplete")}


def _response(answer: PolicyAnswer, status: str) -> dict[str, object]:
    ended = status == "incomplete"
    return {
        "id": answer.response_id,
        "object": "response",
        "created_at": answer.created_at,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "content_filter"} if ended else None,
        "model": answer.model,
        "output": [_item(answer, "incomplete", [_part(answer.sentence)])] if ended else [],
        "usage": None,
    }


def _item(answer: PolicyAnswer, status: str, content: list[dict[str, object]]) -> dict[str, object]:
    return {"type": "message", "id": _item_id(answer), "status": status, "role": "assistant", "content": content}


def _item_id(answer: PolicyAnswer) -> str:
    return "msg_" + answer.response_id.removeprefix("resp_")


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _headers(content_type: bytes) -> Headers:
    return ((b"content-type", content_type), (b"cache-control", b"no-store"))
