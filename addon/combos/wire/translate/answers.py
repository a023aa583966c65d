"""The hub for answers: streams and whole bodies of a target in the client's dialect."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from combos.core.errors import ProxyError
from combos.core.facts import Dialect
from combos.wire.errors import stream_tail
from combos.wire.sse import SseFramer, parse_frame
from combos.wire.translate import (
    chat_stream_in,
    chat_stream_out,
    compaction_out,
    gemini_stream_in,
    gemini_stream_out,
    messages_stream_in,
    messages_stream_out,
    responses_stream_in,
    responses_stream_out,
)
from combos.wire.translate.compaction import Compaction
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import Event, Failure
from combos.wire.translate.shape import Json, as_dict, dicts, dump, load, load_object
from combos.wire.translate.stage import AnswerError, Budget, Stage, collect

_DONE = b"[DONE]"
_CUT_OFF = Failure("server_error", "server_error", "The upstream connection ended before the answer was complete.")
_MALFORMED = Failure("server_error", "server_error", "The target sent bytes that are not in its dialect.")


class Reader(Protocol):
    """Turns a target's payloads into events."""

    def feed(self, name: str, payload: Json, /) -> list[Event]: ...

    def end(self) -> list[Event]: ...

    def whole(self, document: Json) -> list[Event]: ...


class Writer(Protocol):
    """Turns events into a client's bytes."""

    def on(self, event: Event) -> bytes: ...


READERS: Mapping[Dialect, Callable[[], Reader]] = {
    Dialect.RESPONSES: responses_stream_in.Reader,
    Dialect.CHAT: chat_stream_in.Reader,
    Dialect.MESSAGES: messages_stream_in.Reader,
    Dialect.GEMINI: gemini_stream_in.Reader,
}


def _writer(context: Context, mint: Mint, budget: Budget) -> Writer:
    if context.compaction is Compaction.TRIGGER:
        return compaction_out.Writer(context, mint)
    match context.client:
        case Dialect.RESPONSES:
            return responses_stream_out.Writer(context, mint)
        case Dialect.CHAT:
            return chat_stream_out.Writer(context, mint)
        case Dialect.MESSAGES:
            return messages_stream_out.Writer(context, mint, budget)
        case Dialect.GEMINI:
            return gemini_stream_out.Writer(context, mint, budget)


class _Source:
    """A target's bytes as events, however they are cut."""

    def __init__(self, target: Dialect) -> None:
        self._framer = SseFramer()
        self._reader = READERS[target]()
        self._is_chat = target is Dialect.CHAT

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that `data` completes."""
        for frame in self._framer.feed(data):
            yield from self._events(frame)

    def end(self) -> Iterator[Event]:
        """What the end of the stream completes."""
        for frame in self._framer.flush():
            yield from self._events(frame)
        yield from self._reader.end()

    def _events(self, frame: bytes) -> Iterator[Event]:
        event = parse_frame(frame)
        if event.data is None:
            return
        if event.data.strip() == _DONE:
            if self._is_chat:
                yield from self._reader.end()
            return
        try:
            payload = load(event.data)
        except ValueError:
            yield _MALFORMED
            return
        if isinstance(payload, list) and payload:
            payload = payload[0]
        if isinstance(payload, dict):
            yield from self._reader.feed(event.name, payload)


class StreamTranslator:
    """A target's stream as the client's. The output depends on the bytes alone, not on how they were cut.

    `feed` and `finish` never raise: what cannot be translated ends the stream with the client's error form. Nothing
    is written after the end, whether it was a success or a failure.
    """

    def __init__(self, client: Dialect, target: Dialect, context: Context) -> None:
        self._client = client
        self._passes = client is target and context.compaction is None
        self._source = _Source(target)
        mint, budget = Mint(context.seed), Budget()
        self._stage = Stage(context, mint, budget)
        self._writer = _writer(context, mint, budget)
        self._target = target
        self.fault: Failure | None = None
        """The failure that the client's stream ended with."""

    @property
    def ended(self) -> bool:
        """Whether the client's stream is whole, with success or failure. Always false for a stream passed through."""
        return self._stage.finished

    @property
    def response(self) -> Json | None:
        """The final object that a Responses client was given; None before the end and for other clients."""
        writer = self._writer
        return writer.response or None if isinstance(writer, responses_stream_out.Writer) else None

    def feed(self, data: bytes) -> bytes:
        """The client's bytes that `data` completes."""
        return data if self._passes else self._write(self._source.feed(data))

    def finish(self) -> bytes:
        """The target's stream ended: what was held, or the error form when no terminal came."""
        if self._passes:
            return b""
        out = self._write(self._source.end())
        return out if self._stage.finished else out + self._write(iter((_CUT_OFF,)))

    def whole(self, body: bytes) -> bytes:
        """The client's stream for an answer that is complete, JSON or a stream. Raises AnswerError when it failed."""
        out = self._write(iter(_whole_events(body, self._target))) + self.finish()
        if self.fault is not None:
            raise AnswerError(self.fault)
        return out

    def failure(self, error: ProxyError) -> bytes:
        """The client's error form for an answer that broke; nothing when it had already ended."""
        if self._passes:
            return stream_tail(error, self._client)
        return self._write(iter((Failure(error.code, error.type, error.message, error.status),)))

    def _write(self, events: Iterator[Event]) -> bytes:
        out: list[bytes] = []
        try:
            for event in self._stage.passing(events):
                if isinstance(event, Failure):
                    self.fault = event
                out += (self._writer.on(event),)
        except AnswerError as error:
            out.append(self._writer.on(error.failure))
            self._stage.finished, self.fault = True, error.failure
        return b"".join(out)


def answer_events(body: bytes, dialect: Dialect) -> list[Event]:
    """The events of an answer, whole or streamed, however it ended. Raises AnswerError when it makes no sense."""
    return _whole_events(body, dialect)


def _whole_events(body: bytes, target: Dialect) -> list[Event]:
    """The events of a body: JSON, or a stream that a target sent although none was asked for."""
    try:
        document = load(body)
    except ValueError:
        source = _Source(target)
        return [*source.feed(body), *source.end()]
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        raise AnswerError(_MALFORMED)
    return READERS[target]().whole(document)


def translate_response(body: bytes, client: Dialect, target: Dialect, context: Context) -> bytes:
    """A whole 2xx answer of the target as the client's. Raises AnswerError for one that failed or makes no sense.

    Bytes pass unchanged when both speak the same dialect and no compaction was asked for.
    """
    if client is target and context.compaction is None:
        return body
    if context.compaction is Compaction.COMPACT and (made := _native_compaction(body, context)) is not None:
        return dump(made)
    mint = Mint(context.seed)
    stage = Stage(context, mint, Budget())
    return dump(_whole(list(stage.passing(_whole_events(body, target))), context, mint))


def _native_compaction(body: bytes, context: Context) -> Json | None:
    return compaction_out.native([*_output_items(body)], context)


def _output_items(body: bytes) -> Iterator[Json]:
    """The finished items of a Responses answer, whole or streamed."""
    document = load_object(body)
    if document is not None:
        yield from (item for _index, item in dicts(document.get("output")))
        return
    framer = SseFramer()
    for frame in [*framer.feed(body), *framer.flush()]:
        payload = load_object(parse_frame(frame).data or b"") or {}
        if payload.get("type") == "response.output_item.done":
            yield as_dict(payload.get("item"))


def _whole(events: list[Event], context: Context, mint: Mint) -> Json:
    blocks, finish = collect(events)
    if context.compaction is Compaction.COMPACT:
        return compaction_out.whole(blocks, finish, context)
    match context.client:
        case Dialect.RESPONSES:
            return _responses(events, context, mint)
        case Dialect.CHAT:
            return chat_stream_out.whole(blocks, finish, context, mint)
        case Dialect.MESSAGES:
            return messages_stream_out.whole(blocks, finish, context, mint)
        case Dialect.GEMINI:
            return gemini_stream_out.whole(blocks, finish, context, mint)


def _responses(events: list[Event], context: Context, mint: Mint) -> Json:
    """The response object that the same answer's stream would end with."""
    trigger = context.compaction is Compaction.TRIGGER
    writer = compaction_out.Writer(context, mint) if trigger else responses_stream_out.Writer(context, mint)
    for event in events:
        writer.on(event)
    if writer.response["status"] == "failed":
        error = writer.response["error"]
        raise AnswerError(Failure(error["code"], "server_error", error["message"]))
    return writer.response
