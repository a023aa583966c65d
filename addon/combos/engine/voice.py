"""One target's answer in the client's wire format: head, stream, whole answers, errors.

Made for attempts whose answer the client could not read as it comes: targets of another dialect, and summaries that
stand for a compaction. Takes bytes without a content coding. Whether an answer is given at all is decided elsewhere.
"""

from collections.abc import Mapping
from dataclasses import replace

from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Headers
from combos.wire import headers as wire_headers
from combos.wire.terminal import FailureTerminal
from combos.wire.translate import (
    AnswerError,
    Context,
    StreamTranslator,
    retry_after_s,
    translate_error,
    translate_response,
)
from combos.wire.translate.ir import Failure
from combos.wire.translate.shape import dump, load_object

_SERVER = "server_error"
_MESSAGES = Dialect.MESSAGES
_MS_DIGITS = 12
"""Of a delay in milliseconds; longer ones are no delays."""


class Voice:
    """The answer of one attempt. `streams`: the client asked for a stream."""

    def __init__(self, context: Context, *, streams: bool) -> None:
        crosses = context.client is not context.target
        checks = crosses and context.client is Dialect.RESPONSES and context.compaction is None
        self._context = replace(context, declared_only=checks)
        self._streams = streams
        self._translator = StreamTranslator(context.client, context.target, self._context)
        self._whole: bytes | None = None

    @property
    def model(self) -> str:
        """The model that the answer names."""
        return self._context.model

    @property
    def crosses(self) -> bool:
        """Whether client and target speak different dialects."""
        return self._context.client is not self._context.target

    @property
    def relays(self) -> bool:
        """Whether the answer can be given as it arrives. A summary cannot: it counts only when it is complete."""
        return self._streams and self._context.compaction is None

    @property
    def fault(self) -> ProxyError | None:
        """The error that the client's stream ended with."""
        fault = self._translator.fault
        return None if fault is None else _error_of(fault)

    @property
    def response(self) -> Mapping[str, object] | None:
        """The final object that a Responses client was given, once it has been; None for other clients."""
        if self._whole is None:
            return self._translator.response
        return load_object(self._whole) if self._context.client is Dialect.RESPONSES else None

    # -- streams

    def feed(self, data: bytes) -> bytes:
        """The client's bytes that `data` completes."""
        return self._translator.feed(data)

    def finish(self) -> bytes:
        """What the client still has to get when the target's stream has ended."""
        return self._translator.finish()

    def failure(self, error: ProxyError) -> bytes:
        """The end of a stream that broke; empty when the client has already been told how it ended."""
        return self._translator.failure(error)

    # -- whole answers

    def whole(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        """A complete answer, JSON or a stream, as the client wants it. Raises `ProxyError` when it is none."""
        context = self._context
        said = b""
        try:
            if not self._streams or context.compaction is not None:
                said = translate_response(body, context.client, context.target, context)
            if self._streams:
                said = self._translator.whole(body)
        except AnswerError as error:
            raise _error_of(error.failure) from error
        self._whole = None if self._streams else said
        return self.head(headers, stream=self._streams), said

    def head(self, headers: Headers, *, stream: bool) -> Headers:
        """The header fields of the answer: its type, and those of the target's that mean the same to every client."""
        kept = [(b"content-type", b"text/event-stream" if stream else b"application/json")]
        request_id = wire_headers.get(headers, "x-request-id") or wire_headers.get(headers, "request-id")
        if request_id:
            names = (b"x-request-id", b"request-id") if self._context.client is _MESSAGES else (b"x-request-id",)
            kept += [(name, request_id.encode("latin-1")) for name in names]
        return tuple(kept)

    def error(self, status: int, headers: Headers, body: bytes) -> tuple[int, Headers, bytes]:
        """An HTTP error of the target, whose `body` has no content coding, as the client's."""
        context = self._context
        told, said = translate_error(status, body, context.client, context.target)
        wait = _retry_after(headers) or retry_after_s(body, context.target)
        pause = () if wait is None else ((b"retry-after", str(wait).encode("latin-1")),)
        return told, (*self.head(headers, stream=False), *pause), said

    def failed_stream(self, terminal: FailureTerminal, status: int, headers: Headers) -> tuple[int, Headers, bytes]:
        """A failure that the target told inside a 2xx answer, as the HTTP error that `status` makes of it."""
        response = terminal.event.get("response")
        carrier = response if isinstance(response, Mapping) and response.get("error") else terminal.event
        document = {"error": carrier.get("error", carrier), "request_id": terminal.event.get("request_id")}
        return self.error(status, headers, dump({name: value for name, value in document.items() if value}))


def _error_of(failure: Failure) -> ProxyError:
    return ProxyError(502, failure.type or _SERVER, failure.code or _SERVER, failure.message)


def _retry_after(headers: Headers) -> str | int | None:
    value = wire_headers.get(headers, "retry-after")
    if value:
        return value
    ms = wire_headers.get(headers, "retry-after-ms")
    return -(-int(ms) // 1000) if ms and ms.isascii() and ms.isdigit() and len(ms) < _MS_DIGITS else None
