"""One exchange with one target: reads the answer until it is known what it is worth.

States: waiting for the head, reading an error body, reading a whole answer, holding back a stream, and after commitment
feeding the inspector. It says what the answer is (`Ready`, `Answered`, `Refused`) and how a refused one could still be
given to the client; whether to hop, stop or commit is decided by the turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from combos.core.errors import ProxyError, transport_failure
from combos.core.facts import Headers, Now, TransportFault
from combos.core.pools import PoolNote
from combos.core.transport import transport_facts, transport_message
from combos.engine import telling
from combos.engine.commands import Limit
from combos.engine.events import ChunkReceived, Ended, Failed, HeadReceived
from combos.engine.prefix import Prefix
from combos.engine.record import MODEL_MAX, AttemptRecord
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.select import Pick
from combos.engine.silence import Silence
from combos.engine.steps import Answered, Given, Live, Lost, Ready, Refused, Step, Whole
from combos.engine.telling import content_coding
from combos.engine.voice import Voice
from combos.wire.bodies import BodyError, Decoder, decode
from combos.wire.dialect import FailureTerminal, StreamInspector, SuccessTerminal, Terminal, inspector, whole_answer
from combos.wire.envelope import failure_facts, stream_failure_facts
from combos.wire.errors import stream_tail
from combos.wire.fields import Fields
from combos.wire.sse import EVENT_STREAM
from combos.wire.whole import WholeAnswer

type AttemptEvent = HeadReceived | ChunkReceived | Ended | Failed


class Attempt:
    """One exchange. `inspects` is False for auxiliary endpoints, whose answers are taken as they are. `voice` says the
    answer in the client's format; None when it is already in it."""

    # How every exchange begins.
    settled = False
    """Whether the committed stream has been accounted for."""
    said = b""
    """What the bytes fed last are in the client's format, when a voice says them."""
    spoiled = False
    """Whether the voice has ended the client's stream with an error."""
    kept = False
    """Whether it has been seen to that the client can go on from the answer by its id."""
    response_id: str | None = None
    """The id of the answer, as far as the record was written."""
    status = 0
    headers: Headers = ()
    fields = Fields(())
    pool: PoolNote | None = None
    _response: Mapping[str, object] | None = None
    _inspector: StreamInspector | None = None
    _silence: Silence | None = None
    _decoder: Decoder | None = None
    _undecodable = False

    def __init__(
        self,
        pick: Pick,
        record: AttemptRecord,
        request: TurnRequest,
        options: TurnOptions,
        *,
        inspects: bool,
        idle_ms: int,
        voice: Voice | None = None,
    ) -> None:
        self.ordinal = record.ordinal
        self.pick = pick
        self.record = record
        self.idle_ms = idle_ms
        self.voice = voice
        self._request = request
        self._options = options
        self._inspects = inspects
        self._dialect = pick.target.dialect or request.facts.dialect
        self._held = Prefix(options.prefix_bytes, options.prefix_chunks)
        self._sink: Callable[[bytes], object] = _ignore
        # No bound method: it would refer back to this exchange.
        self._state: Callable[[Attempt, AttemptEvent, Now], Step] = Attempt._awaiting_head

    def handle(self, event: AttemptEvent, now: Now) -> Step:
        """Take one event of this exchange before commitment; None when more is needed."""
        if self._inspector is not None and isinstance(event, ChunkReceived) and self._listen(event.data, now.mono_ms):
            return self._broken(TransportFault.IDLE_TIMEOUT)
        return self._state(self, event, now)

    # -- after commitment

    def feed(self, data: bytes, now_ms: int) -> bool:
        """Show relayed bytes to the inspector; True when the turn has to look: a terminal that is not
        settled, an answer that is not kept, or silence."""
        self._sink(data)
        if self._listen(data, now_ms) or self.spoiled:
            return True
        if self.settled:
            return self.voice is not None and not self.kept and self.voice.response is not None
        return self._inspector is not None and self._inspector.terminal is not None

    def _listen(self, data: bytes, now_ms: int) -> bool:
        """Hear the bytes of a stream; True when it has fallen silent."""
        silence = self._silence
        if silence is None:
            return False
        if self._decoder is None:
            silence.listen(data, now_ms)
        else:
            silence.heard(now_ms)
        return silence.is_over_limit

    @property
    def is_silent(self) -> bool:
        """Whether nothing but comments came for longer than the idle limit."""
        return self._silence is not None and self._silence.is_over_limit

    def close(self) -> None:
        """The stream is at its end: the last frame counts without its blank line, and a missing terminal is one."""
        if self._inspector is not None:
            self._inspector.close()

    @property
    def terminal(self) -> Terminal | None:
        """How the stream ended, so far as seen."""
        return None if self._inspector is None else self._inspector.terminal

    @property
    def response(self) -> Mapping[str, object] | None:
        """The final object that a Responses client got, once it ended well; None for other clients."""
        if self.voice is not None:
            return self.voice.response
        return self._response if self._inspector is None else self._inspector.response

    @property
    def has_output(self) -> bool:
        """Whether an output event has been seen."""
        return self._inspector is not None and self._inspector.output

    @property
    def is_refusing(self) -> bool:
        """Whether the head said that this is no success, so that an error body is being read."""
        return self.status >= 300

    def last_words(self) -> bytes:
        """What the client still has to get at the end of a relayed stream that ended well."""
        return b"" if self.voice is None else self.voice.finish()

    def complaint(self, error: ProxyError) -> bytes:
        """The client's error event behind the relayed bytes; none behind a content coding."""
        if self.voice is not None:
            return self.voice.failure(error)
        if self._inspector is None or self._decoder is not None:
            return b""
        return stream_tail(error, self._request.facts.dialect, response_id=self._inspector.response_id)

    def let_go(self) -> None:
        """Nothing more is asked of this exchange: drop its bytes now, and what refers back to it. Garbage in a circle
        can stay for minutes, and an answer can be large."""
        self._held.release()
        self._sink = _ignore

    def note_answer(self) -> None:
        """Copy what the inspector learned into the record."""
        if self._inspector is not None:
            self._note(self._inspector.usage, self._inspector.model, self._inspector.response_id)

    def _note(self, usage: dict[str, int] | None, model: str | None, response_id: str | None) -> None:
        """What the answer said of itself; the model is the one that the client sees."""
        self.record.usage, self.response_id = usage, response_id
        seen = model if self.voice is None else self.voice.model
        self.record.response_model = None if seen is None else seen[:MODEL_MAX]

    def no_output_in_time(self) -> Refused:
        """The failure of an exchange that showed no output within `firstOutputTimeoutMs`."""
        return replace(self._broken(TransportFault.IDLE_TIMEOUT), result="no output in time")

    # -- states

    def _awaiting_head(self, event: AttemptEvent, now: Now) -> Step:
        match event:
            case HeadReceived(status=status, headers=headers, pool=pool):
                self.status, self.record.status = status, status
                self.headers, self.fields = headers, Fields(headers)
                self.pool, self.record.account = pool, pool.member if pool is not None else None
                return self._at_head(now)
            case Failed(fault=fault):
                return self._broken(fault)
            case _:
                return None

    def _at_head(self, now: Now) -> Step:
        options = self._options
        if not 200 <= self.status < 300:
            self._held.bound(options.error_bytes, options.error_bytes)
            self._silence = Silence(now.mono_ms, self.idle_ms)
            self._state = Attempt._reading_error
            return Limit(self.ordinal, options.error_idle_ms, options.error_total_ms)
        if self._is_stream() and (self.voice is None or self.voice.relays):
            self._silence = Silence(now.mono_ms, self.idle_ms)
            return self._open_stream(content_coding(self.fields))
        self._held.bound(options.answer_bytes, options.answer_bytes)
        self._state = Attempt._reading_whole
        return None

    def _open_stream(self, coding: str | None) -> Step:
        self._inspector = inspector(self._dialect)
        self._sink = self._inspector.feed
        self._state = Attempt._holding
        if coding is not None:
            try:
                self._decoder = Decoder(coding)
            except BodyError:
                return self._broken(TransportFault.MALFORMED)
            self._sink = partial(self._inspect_decoded, self._inspector, self._decoder)
        if self.voice is not None:
            self._sink = partial(self._say, self._inspector, self.voice)
        return None

    def _say(self, inspector: StreamInspector, voice: Voice, data: bytes) -> None:
        """Show the bytes to the inspector, and keep what they are in the client's format."""
        try:
            plain = data if self._decoder is None else self._decoder.feed(data)
        except BodyError:
            self._undecodable, self._sink, self.said = True, _ignore, b""
            return
        inspector.feed(plain)
        self.said = voice.feed(plain)
        self.spoiled = voice.fault is not None

    def _inspect_decoded(self, inspector: StreamInspector, decoder: Decoder, data: bytes) -> None:
        try:
            inspector.feed(decoder.feed(data))
        except BodyError:
            # Nobody can read on: before commitment that is a failure, after it the stream ends without a terminal.
            self._undecodable = True
            self._sink = _ignore

    def _is_stream(self) -> bool:
        content_type = self.fields.first.get(b"content-type")
        if content_type is None:
            return self._inspects and self._request.facts.stream
        return EVENT_STREAM.match(content_type) is not None

    def _reading_error(self, event: AttemptEvent, _now: Now) -> Step:
        match event:
            case ChunkReceived(data=data):
                if self._held.take(data):
                    return None
                lost = telling.lost_body(self.status, self.headers)
                live = Live(self.status, self.headers, self._held.joined() + data, lost)
                return self._refused_by_status(lost if self._crosses else live, "error body too large")
            case Ended():
                body = self._held.joined()
                facts = failure_facts(self.status, self.headers, body)
                told = telling.status_error(self.voice, self.status, self.headers, body)
                return Refused(facts, told, f"http {self.status}")
            case Failed(fault=fault):
                return self._refused_by_status(telling.lost_body(self.status, self.headers), f"error body: {fault}")
            case _:
                return None

    @property
    def _crosses(self) -> bool:
        """Whether the target's errors are not in the client's format."""
        return self.voice is not None and self.voice.crosses

    def _refused_by_status(self, given: Given, result: str) -> Refused:
        return Refused(failure_facts(self.status, self.headers, None), given, result)

    def _reading_whole(self, event: AttemptEvent, _now: Now) -> Step:
        match event:
            case ChunkReceived(data=data):
                return None if self._held.take(data) else self._broken(TransportFault.TOO_LARGE)
            case Ended():
                return self._judge_whole(Whole(self.status, self.headers, self._held.joined()))
            case Failed(fault=fault):
                return self._broken(fault)
            case _:
                return None

    def _judge_whole(self, whole: Whole) -> Step:
        if not self._inspects:
            return Answered(whole, f"http {self.status}")
        coding = content_coding(self.fields)
        try:
            body = whole.body if coding is None else decode(coding, whole.body, self._options.answer_bytes)
        except BodyError:
            return self._broken(TransportFault.MALFORMED)
        answer = self._read_whole(body)
        self._note(answer.usage, answer.model, answer.response_id)
        self._response = answer.response
        failure = answer.terminal
        if isinstance(failure, SuccessTerminal):
            return self._answered(whole, body, failure)
        if failure.kind == "malformed":
            return self._broken(TransportFault.MALFORMED)
        facts = stream_failure_facts(failure, self.headers)
        told = whole if self.voice is None else telling.stream_error(self.voice, failure, facts.status, self.headers)
        return Refused(facts, told, f"http {self.status} with an error body")

    def _read_whole(self, body: bytes) -> WholeAnswer:
        """The answer in a complete body. One that is read to its end for a voice may be a stream all the same."""
        if self.voice is None or not self._is_stream() or body.lstrip().startswith(b"{"):
            return whole_answer(self._dialect, body)
        seen = inspector(self._dialect)
        seen.feed(body)
        seen.close()
        return WholeAnswer(seen.terminal or FailureTerminal(self._dialect, "eof"), seen.usage, seen.model)

    def _answered(self, whole: Whole, body: bytes, terminal: SuccessTerminal) -> Answered | Refused:
        if self.voice is not None:
            try:
                whole = Whole(whole.status, *self.voice.whole(self.headers, body))
            except ProxyError as error:
                return telling.unsayable(error)
        return Answered(whole, "empty" if terminal.empty else terminal.kind, terminal.kind == "completed")

    def _holding(self, event: AttemptEvent, _now: Now) -> Step:
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
        self._sink(data)
        self._held.hold(self._shown(data))
        if self._undecodable:
            return self._broken(TransportFault.MALFORMED)
        terminal = self.terminal
        if (fault := self._fault()) is not None:
            return telling.unsayable(fault)
        if self.has_output or isinstance(terminal, SuccessTerminal):
            return self._ready()
        if terminal is None:
            return None
        if self._crosses:
            return self._refused_stream(terminal)
        held = self._held.joined()
        return self._refused_stream(
            terminal, Live(self.status, self.headers, held, Whole(self.status, self.headers, held))
        )

    def _shown(self, data: bytes) -> bytes:
        """Bytes just fed, as the client gets them."""
        return data if self.voice is None else self.said

    def _fault(self) -> ProxyError | None:
        """The error by which a voice ended the answer although the target reported none."""
        if self.voice is None or isinstance(self.terminal, FailureTerminal):
            return None
        return self.voice.fault

    def _overflow(self, data: bytes) -> Step:
        """The prefix is full: the answer is committed, whatever it turns out to be."""
        self._sink(data)
        return self._ready(self._shown(data))

    def _ready(self, last: bytes = b"", *, complete: bool = False) -> Ready:
        headers = self.headers if self.voice is None else self.voice.head(self.headers, stream=True)
        return Ready(self.status, headers, b"".join((*self._held.release(), last)), complete)

    def _at_early_end(self) -> Step:
        self.close()
        terminal = self.terminal
        if self.has_output or not isinstance(terminal, FailureTerminal):
            last = self.last_words()
            fault = self._fault()
            return self._ready(last, complete=True) if fault is None else telling.unsayable(fault)
        if terminal.kind in telling.SILENT:
            error = transport_failure(TransportFault.TRUNCATED, "The upstream's stream ended before any output.")
            return replace(self._refused_stream(terminal, Lost(error)), result="stream ended early")
        return self._refused_stream(terminal, Whole(self.status, self.headers, self._held.joined()))

    def _refused_stream(self, terminal: FailureTerminal, given: Given | None = None) -> Refused:
        """A failure told before any output. Another dialect's is given as an HTTP error, never as a stream."""
        self.note_answer()
        facts = stream_failure_facts(terminal, self.headers)
        if given is None or (self._crosses and not isinstance(given, Lost)):
            given = telling.stream_error(self.voice, terminal, facts.status, self.headers)
        return Refused(facts, given, "failed in the stream before output")

    def _broken(self, fault: TransportFault) -> Refused:
        return Refused(transport_facts(fault), Lost(transport_failure(fault, transport_message(fault))), str(fault))


def _ignore(_unread: bytes, /) -> None:
    """Where bytes go that nobody looks at."""
