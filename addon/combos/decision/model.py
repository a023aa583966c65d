"""The model method: the prompt that an ordinary model gets, and what of its reply counts as a choice.

The prompt is a Responses request like any other; routing, credentials and translation are those of every request. It
carries nothing of the caller but the bounded state.
"""

import re
from collections.abc import Mapping
from dataclasses import field

import orjson

from combos.core.ladder import RUNGS
from combos.core.registry import ComboRoute, DirectRoute, Registry
from combos.core.values import dataclass
from combos.decision.gates import Closed, Gate
from combos.decision.options import Options
from combos.decision.profiles import ROUTER
from combos.decision.systemone import Answer, usage_of
from combos.wire.sse import SseFramer, parse_frame

# Functional spec, "Shared limits, state, and statistics".
OPTIONS_MAX = 64
PROMPT_MAX = 65_536
ENVELOPE_MAX = 65_536
REPLY_MAX = 65_536
TEXT_MAX = 4_096
OUTPUT_TOKENS = 1_024

PATH = "/v1/responses"

_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?(.*)```", re.DOTALL)

type _Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What came of an internal turn: a Responses answer, as an event stream or as one object."""

    status: int
    body: bytes = field(repr=False)
    streamed: bool


def check_count(options: Options) -> None:
    """Raises `Closed` when a model may not be asked to choose between so many options."""
    if len(options) > OPTIONS_MAX:
        raise Closed(Gate.INVALID)


def request_body(model: str, effort: str | None, options: Options, state: _Json) -> bytes:
    """The request of the internal turn. Raises `Closed`: `invalid` for too much text, `malformed` for the rest."""
    prompt = orjson.dumps({"state": state, "options": {key: option.description for key, option in options.items()}})
    if len(ROUTER.encode()) + len(prompt) > PROMPT_MAX:
        raise Closed(Gate.INVALID)
    message = {"role": "user", "content": [{"type": "input_text", "text": prompt.decode()}]}
    document: dict[str, object] = {
        "model": model,
        "stream": True,
        "store": False,
        "instructions": ROUTER,
        "input": [message],
        "tools": [],
        "max_output_tokens": OUTPUT_TOKENS,
    }
    if effort is not None:
        document["reasoning"] = {"effort": effort}
    body = orjson.dumps(document)
    if len(body) > ENVELOPE_MAX:
        raise Closed(Gate.MALFORMED)
    return body


def effort_for(model: str, registry: Registry) -> str | None:
    """The lowest effort that the route's ladder has; None when it is unknown, or no rung is common to a combo."""
    match registry.resolve(model) or registry.resolve_bare(model):
        case DirectRoute(target=target):
            ladders = [target.ladder]
        case ComboRoute(combo=combo):
            ladders = [target.ladder for target in combo.targets]
        case _:
            return None
    return next((rung for rung in RUNGS if all(ladder and rung in ladder for ladder in ladders)), None)


def read_reply(reply: ModelReply, options: Options) -> Answer:
    """The answer in the reply of the internal turn.

    Raises `Closed`: `http` for a failure, `malformed` for what is no whole answer or no JSON, `invalid` for no option.
    """
    if not 200 <= reply.status < 300:
        raise Closed(Gate.HTTP)
    if len(reply.body) > REPLY_MAX:
        raise Closed(Gate.MALFORMED)
    response, deltas = _read_stream(reply.body) if reply.streamed else (_object(reply.body), "")
    match response.get("status"):
        case "failed":
            raise Closed(Gate.HTTP)
        case "completed":
            choice = read_choice(_message_text(response) or deltas, options)
            return Answer(choice, usage=usage_of(response.get("usage")))
        case _:
            raise Closed(Gate.MALFORMED)


def read_choice(text: str, options: Options) -> str:
    """The option that a model's text names. No search in prose, no mending of keys. Raises `Closed`."""
    if len(text) > TEXT_MAX:
        raise Closed(Gate.MALFORMED)
    text = text.strip()
    thought = _THINK.match(text)
    if thought is not None:
        text = text[thought.end() :].strip()
    fenced = _FENCE.fullmatch(text)
    try:
        value = orjson.loads(fenced[1] if fenced else text)
    except orjson.JSONDecodeError:
        raise Closed(Gate.MALFORMED) from None
    choice = value.get("choice") if isinstance(value, dict) else value
    if not isinstance(choice, str) or choice not in options:
        raise Closed(Gate.INVALID)
    return choice


def _object(data: bytes) -> _Json:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise Closed(Gate.MALFORMED) from None
    if not isinstance(document, dict):
        raise Closed(Gate.MALFORMED)
    return document


def _read_stream(body: bytes) -> tuple[_Json, str]:
    """The response object of the first terminal event, and the text pieces before it."""
    framer = SseFramer()
    pieces: list[str] = []
    for frame in (*framer.feed(body), *framer.flush()):
        data = parse_frame(frame).data
        if data is None or data == b"[DONE]":
            continue
        event = _object(data)
        match event.get("type"):
            case "response.output_text.delta":
                pieces.append(_text(event.get("delta")))
            case "response.completed" | "response.incomplete":
                return _response(event), "".join(pieces)
            case "response.failed" | "error":
                raise Closed(Gate.HTTP)
    raise Closed(Gate.MALFORMED)


def _response(event: _Json) -> _Json:
    response = event.get("response")
    response = response if isinstance(response, Mapping) else {}
    return {**response, "status": str(event["type"]).removeprefix("response.")}


def _message_text(response: _Json) -> str:
    """The text of all messages of a response."""
    return "".join(
        _text(part.get("text"))
        for item in _objects(response.get("output"))
        if item.get("type") == "message"
        for part in _objects(item.get("content"))
        if part.get("type") == "output_text"
    )


def _objects(value: object) -> list[_Json]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
