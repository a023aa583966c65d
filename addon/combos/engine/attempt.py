"""One exchange with one target: reads the answer until it is known what it is worth.

States: waiting for the head, reading an error body, reading a whole answer, holding back a stream, and after commitment
feeding the inspector. It says what the answer is (`Ready`, `Answered`, `Refused`) and how a refused one could still be
given to the client; whether to hop, stop or commit is decided by the turn.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from combos.core.errors import ProxyError, transport_failure
from combos.core.facts import Headers, Now, TransportFault
from combos.core.failure_facts import FailureFacts
from combos.core.transport import transport_facts, transport_message
from combos.engine.commands import Limit
from combos.engine.events import ChunkReceived, Ended, Failed, HeadReceived
from combos.engine.prefix import Prefix
from combos.engine.record import AttemptRecord
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.select import Pick
from combos.wire import headers as wire_headers
from combos.wire.bodies import BodyError, Decoder, decode
from combos.wire.dialect import FailureTerminal, StreamInspector, SuccessTerminal, Terminal, inspector, whole_answer
from combos.wire.envelope import failure_facts, stream_failure_facts

type AttemptEvent = HeadReceived | ChunkReceived | Ended | Failed


@dataclass(frozen=True, slots=True)
class Whole:
    """An upstream answer that was read to its end."""

    status: int
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Live:
    """An upstream answer that is still arriving: to give it, send the head and what is held, then go on relaying.
    `once` is what remains to be given if the exchange is closed first."""

    status: int
    headers: Headers
    held: bytes
    once: "Whole | Lost"


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing of the upstream's answer can be given; `error` stands in. `retry_after` is the upstream's own header."""

    error: ProxyError
    retry_after: str | None = None


type Given = Whole | Live | Lost


@dataclass(frozen=True, slots=True)
class Ready:
    """The stream may be committed with the held bytes; `complete` when they are all there is."""

    status: int
    headers: Headers
    held: bytes
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A complete good answer; `result` says how it ended, `completed` that it was not cut short."""

    whole: Whole
    result: str
    completed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The attempt failed before anything reached the client."""

    facts: FailureFacts
    given: Given
    result: str


type Step = Ready | Answered | Refused | Limit | None


# Whole comment lines and blank ones; anything that begins a field is an event on its way.
_COMMENTS = re.compile(rb"(?::[^\r\n]*(?:\r\n|\n|\r)|\r\n|\n|\r)+")


class Attempt:
    """One exchange. `inspects` is False for auxiliary endpoints, whose answers are taken as they are."""

    def __init__(
        self,
        pick: Pick,
        record: AttemptRecord,
        request: TurnRequest,
        options: TurnOptions,
        *,
        inspects: bool,
        idle_ms: int,
    ) -> None:
        self.ordinal = record.ordinal
        self.pick = pick
        self.record = record
        self._heard_ms = record.started_ms
        self._idle_ms = idle_ms
        self.is_silent = False
        """Whether nothing but comments came for longer than the idle limit."""
        self.settled = False
        """Whether the committed stream has been accounted for."""
        self.status = 0
        self.headers: Headers = ()
        self._request = request
        self._options = options
        self._inspects = inspects
        self._dialect = pick.target.dialect or request.facts.dialect
        self._held = Prefix(options.prefix_bytes, options.prefix_chunks)
        self._inspector: StreamInspector | None = None
        self._decoder: Decoder | None = None
        self._undecodable = False
        self._sink: Callable[[bytes], object] = _ignore
        self._state: Callable[[AttemptEvent], Step] = self._awaiting_head

    def handle(self, event: AttemptEvent, now: Now) -> Step:
        """Take one event of this exchange before commitment; None when more is needed."""
        if isinstance(event, HeadReceived):
            self._heard_ms = now.mono_ms
        elif isinstance(event, ChunkReceived) and self._inspector is not None:
            self._listen(event.data, now.mono_ms)
            if self.is_silent:
                return self._broken(TransportFault.IDLE_TIMEOUT)
        return self._state(event)

    # -- after commitment

    def feed(self, data: bytes, now_ms: int) -> bool:
        """Show relayed bytes to the inspector; True when the turn has to look: an unsettled terminal, or silence."""
        self._sink(data)
        if data.startswith(b":"):
            self._listen(data, now_ms)
        else:
            self._heard_ms = now_ms
        inspector = self._inspector
        return self.is_silent or (not self.settled and inspector is not None and inspector.terminal is not None)

    def _listen(self, data: bytes, now_ms: int) -> None:
        """Comments keep a connection alive, but clients that wait for events do not count them: nor do we."""
        if self._decoder is not None or not _COMMENTS.fullmatch(data):
            self._heard_ms = now_ms
        elif now_ms - self._heard_ms > self._idle_ms:
            self.is_silent = True

    def close(self) -> None:
        """The stream is at its end: the last frame counts without its blank line, and a missing terminal is one."""
        if self._inspector is not None:
            self._inspector.close()

    @property
    def terminal(self) -> Terminal | None:
        """How the stream ended, so far as seen."""
        return None if self._inspector is None else self._inspector.terminal

    @property
    def has_output(self) -> bool:
        """Whether an output event has been seen."""
        return self._inspector is not None and self._inspector.output

    @property
    def is_refusing(self) -> bool:
        """Whether the head said that this is no success, so that an error body is being read."""
        return self.status >= 300

    @property
    def response_id(self) -> str | None:
        """The id that the answer has announced, if any."""
        return None if self._inspector is None else self._inspector.response_id

    @property
    def can_append(self) -> bool:
        """Whether an event may be added behind the relayed bytes: a stream without a content coding."""
        return self._inspector is not None and self._decoder is None

    def note_answer(self) -> None:
        """Copy what the inspector learned into the record."""
        if self._inspector is not None:
            self.record.usage = self._inspector.usage
            self.record.response_model = self._inspector.model

    def no_output_in_time(self) -> Refused:
        """The failure of an exchange that showed no output within `firstOutputTimeoutMs`."""
        return replace(self._broken(TransportFault.IDLE_TIMEOUT), result="no output in time")

    # -- states

    def _awaiting_head(self, event: AttemptEvent) -> Step:
        match event:
            case HeadReceived(status=status, headers=headers):
                self.status, self.headers, self.record.status = status, headers, status
                return self._at_head()
            case Failed(fault=fault):
                return self._broken(fault)
            case _:
                return None

    def _at_head(self) -> Step:
        if not 200 <= self.status < 300:
            self._held = Prefix(self._options.error_bytes, self._options.error_bytes)
            self._state = self._reading_error
            return Limit(self.ordinal, self._options.error_idle_ms, self._options.error_total_ms)
        if self._is_stream():
            return self._open_stream(_coding(self.headers))
        self._held = Prefix(self._options.answer_bytes, self._options.answer_bytes)
        self._state = self._reading_whole
        return None

    def _open_stream(self, coding: str | None) -> Step:
        self._inspector = inspector(self._dialect)
        self._sink = self._inspector.feed
        self._state = self._holding
        if coding is not None:
            try:
                self._decoder = Decoder(coding)
            except BodyError:
                return self._broken(TransportFault.MALFORMED)
            self._sink = partial(self._inspect_decoded, self._inspector, self._decoder)
        return None

    def _inspect_decoded(self, inspector: StreamInspector, decoder: Decoder, data: bytes) -> None:
        try:
            inspector.feed(decoder.feed(data))
        except BodyError:
            # Nobody can read on: before commitment that is a failure, after it the stream ends without a terminal.
            self._undecodable = True
            self._sink = _ignore

    def _is_stream(self) -> bool:
        content_type = wire_headers.get(self.headers, "content-type")
        if content_type is None:
            return self._inspects and self._request.facts.stream
        return content_type.split(";", 1)[0].strip().lower() == "text/event-stream"

    def _reading_error(self, event: AttemptEvent) -> Step:
        match event:
            case ChunkReceived(data=data):
                if self._held.has_room(data):
                    self._held.hold(data)
                    return None
                held = self._held.joined() + data
                return self._refused_by_status(
                    Live(self.status, self.headers, held, self._lost_body()), "error body too large"
                )
            case Ended():
                body = self._held.joined()
                facts = failure_facts(self.status, self.headers, body)
                return Refused(facts, Whole(self.status, self.headers, body), f"http {self.status}")
            case Failed(fault=fault):
                return self._refused_by_status(self._lost_body(), f"error body: {fault}")
            case _:
                return None

    def _refused_by_status(self, given: Given, result: str) -> Refused:
        return Refused(failure_facts(self.status, self.headers, None), given, result)

    def _lost_body(self) -> Lost:
        error = ProxyError(self.status, "upstream_error", "upstream_error", f"Provider error {self.status}")
        return Lost(error, wire_headers.get(self.headers, "retry-after"))

    def _reading_whole(self, event: AttemptEvent) -> Step:
        match event:
            case ChunkReceived(data=data):
                if not self._held.has_room(data):
                    return self._broken(TransportFault.TOO_LARGE)
                self._held.hold(data)
                return None
            case Ended():
                return self._judge_whole(Whole(self.status, self.headers, self._held.joined()))
            case Failed(fault=fault):
                return self._broken(fault)
            case _:
                return None

    def _judge_whole(self, whole: Whole) -> Step:
        result = f"http {self.status}"
        if not self._inspects:
            return Answered(whole, result)
        try:
            body = decode(_coding(self.headers), whole.body, self._options.answer_bytes)
        except BodyError:
            return self._broken(TransportFault.MALFORMED)
        answer = whole_answer(self._dialect, body)
        self.record.usage, self.record.response_model = answer.usage, answer.model
        failure = answer.failure
        if failure is None:
            return Answered(whole, _success_word(answer.terminal), answer.completed)
        if answer.malformed:
            return self._broken(TransportFault.MALFORMED)
        return Refused(stream_failure_facts(failure, self.headers), whole, f"{result} with an error body")

    def _holding(self, event: AttemptEvent) -> Step:
        match event:
            case ChunkReceived(data=data):
                return self._hold(data)
            case Ended():
                return self._at_early_end()
            case Failed(fault=fault):
                return self._broken(fault)
            case _:
                return None

    def _hold(self, data: bytes) -> Step:
        if not self._held.has_room(data):
            return self._overflow(data)
        self._held.hold(data)
        self._sink(data)
        if self._undecodable:
            return self._broken(TransportFault.MALFORMED)
        terminal = self.terminal
        if self.has_output or isinstance(terminal, SuccessTerminal):
            return self._ready()
        if terminal is None:
            return None
        held = self._held.joined()
        return self._refused_stream(
            terminal, Live(self.status, self.headers, held, Whole(self.status, self.headers, held))
        )

    def _overflow(self, data: bytes) -> Step:
        """The prefix is full: the answer is committed, whatever it turns out to be."""
        held = b"".join([*self._held.release(), data])
        self._sink(data)
        return Ready(self.status, self.headers, held)

    def _ready(self, *, complete: bool = False) -> Ready:
        return Ready(self.status, self.headers, b"".join(self._held.release()), complete)

    def _at_early_end(self) -> Step:
        self.close()
        terminal = self.terminal
        if self.has_output or not isinstance(terminal, FailureTerminal):
            return self._ready(complete=True)
        if terminal.kind in ("eof", "malformed"):
            error = transport_failure(TransportFault.TRUNCATED, "The upstream's stream ended before any output.")
            return replace(self._refused_stream(terminal, Lost(error)), result="stream ended early")
        return self._refused_stream(terminal, Whole(self.status, self.headers, self._held.joined()))

    def _refused_stream(self, terminal: FailureTerminal, given: Given) -> Refused:
        self.note_answer()
        return Refused(stream_failure_facts(terminal, self.headers), given, "failed in the stream before output")

    def _broken(self, fault: TransportFault) -> Refused:
        return Refused(transport_facts(fault), Lost(transport_failure(fault, transport_message(fault))), str(fault))


def _ignore(_data: bytes) -> None:
    """Where bytes go that nobody inspects."""


def _success_word(terminal: Terminal) -> str:
    if not isinstance(terminal, SuccessTerminal):
        return ""
    return "empty" if terminal.empty else terminal.kind


def _coding(headers: Headers) -> str | None:
    coding = wire_headers.get(headers, "content-encoding")
    return None if coding is None or coding.strip().lower() in ("", "identity") else coding
