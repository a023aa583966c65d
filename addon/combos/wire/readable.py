"""A model's turn as people read it: joined text, tool calls, usage and end, from any dialect, streamed or whole.

Reads what there is: a body that was kept only in part gives its beginning. Decides nothing about the turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.translate.answers import answer_events
from combos.wire.translate.ir import (
    Call,
    Delta,
    Failure,
    Finish,
    Kind,
    Media,
    Message,
    Open,
    Part,
    Reasoning,
    Refusal,
    Request,
    Result,
    Start,
    Text,
    Usage,
)
from combos.wire.translate.requests import PARSERS
from combos.wire.translate.shape import load_object
from combos.wire.translate.stage import AnswerError


@dataclass(slots=True)
class Passage:
    """One piece of a turn: text, reasoning, a refusal, or a tool call with its arguments as text."""

    kind: Kind
    text: str = ""
    name: str = ""
    call_id: str = ""


@dataclass(slots=True)
class Turn:
    """An answer. `end` is why it ended well, None when it failed or its end is not there; `failure` what it said."""

    passages: list[Passage] = field(default_factory=list)
    end: str | None = None
    failure: Failure | None = None
    usage: Usage | None = None


def read_answer(dialect: Dialect, body: bytes) -> Turn:
    """The turn in a decoded body. Raises `ValueError` when nothing in it is one."""
    turn = Turn()
    try:
        events = answer_events(body, dialect)
    except AnswerError as error:
        return Turn(failure=error.failure)
    passages: dict[object, Passage] = {}
    for event in events:
        match event:
            case Open(key=key, kind=kind, call=call):
                passages[key] = Passage(kind, name=call.name if call else "", call_id=call.id if call else "")
            case Delta(key=key, text=text):
                passages[key].text += text
            case Start(usage=usage) if usage is not None:
                turn.usage = usage
            case Finish(reason=reason, usage=usage):
                turn.end, turn.usage = reason.value, usage or turn.usage
            case Failure():
                turn.failure = event
    turn.passages = list(passages.values())
    if not turn.passages and turn.end is None and turn.failure is None:
        raise ValueError("no turn of a model")
    return turn


def answer_lines(turn: Turn) -> Iterator[str]:
    """The turn as lines: how it ended, then every piece."""
    yield f"status: {_status(turn)}"
    if turn.usage is not None:
        yield f"usage: {_usage(turn.usage)}"
    for passage in turn.passages:
        yield from ("", *_heading(passage))
        yield passage.text


def read_request(dialect: Dialect, body: bytes) -> Request:
    """The request in a decoded body. Raises `ValueError` and `ProxyError` when it is none."""
    document = load_object(body)
    if document is None:
        raise ValueError("not a JSON object")
    return PARSERS[dialect](document)


def request_lines(request: Request) -> Iterator[str]:
    """The request as lines: what is asked for, then the conversation."""
    if request.effort is not None:
        yield f"effort: {request.effort}"
    if request.tools:
        yield f"tools: {', '.join(tool.name for tool in request.tools)}"
    for text in request.system:
        yield from ("", "── system", text)
    for message in request.messages:
        yield from _message(message)


def _status(turn: Turn) -> str:
    if turn.failure is not None:
        kinds = dict.fromkeys(word for word in (turn.failure.type, turn.failure.code) if word)
        return f"failed ({', '.join(kinds)}): {turn.failure.message}"
    return f"completed ({turn.end})" if turn.end else "no end: cut off, or not kept whole"


def _usage(usage: Usage) -> str:
    parts = [f"{usage.input} in", f"{usage.output} out"]
    parts += [f"{usage.cached} cached"] if usage.cached else []
    parts += [f"{usage.cache_write} written to the cache"] if usage.cache_write else []
    parts += [f"{usage.reasoning} reasoning"] if usage.reasoning else []
    return ", ".join(parts)


def _heading(passage: Passage) -> list[str]:
    match passage.kind:
        case Kind.TEXT:
            return []
        case Kind.CALL:
            return [f"── tool call {passage.name} ({passage.call_id})"]
        case _:
            return [f"── {passage.kind.value}"]


def _message(message: Message) -> Iterator[str]:
    yield from ("", f"── {message.role.value}")
    yield from (_part(part) for part in message.parts)


def _part(part: Part) -> str:
    match part:
        case Text(text) | Refusal(text):
            return text
        case Media(image=image):
            return f"[{'image' if image else 'file'} {part.media_type or part.url or part.where}]"
        case Reasoning(text):
            return f"[reasoning] {text}"
        case Call(name=name, arguments=arguments):
            return f"[calls {name}] {arguments}"
        case Result(call_id=call_id, parts=parts):
            return f"[result of {call_id}] {' '.join(_part(one) for one in parts)}"
