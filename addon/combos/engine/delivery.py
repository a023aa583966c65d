"""What the client receives: heads, bytes, whole answers, refusals, and the one end of every turn.

Collects the commands of one event. It decides how an answer is given, never which; after `finish` nothing more can
be given.
"""

from combos.core.config_provider import AuthMode
from combos.core.errors import ProxyError, transport_failure
from combos.core.facts import Dialect, Headers, Now, TransportFault
from combos.core.limits import ENDED_IDLE_MS
from combos.core.transport import transport_message
from combos.engine.attempt import Attempt
from combos.engine.commands import AttemptEnded, Break, Command, Commit, Discard, End, Finish, Limit, Relay, Reply
from combos.engine.record import Outcome, TurnRecord
from combos.engine.request import TurnRequest
from combos.engine.steps import Given, Live, Lost, Whole
from combos.wire import headers as wire_headers
from combos.wire.errors import render
from combos.wire.model_header import with_requested_model
from combos.wire.terminal import FailureTerminal, SuccessTerminal


class Delivery:
    """The client's side of one turn: its commands, the attempts in flight, and the one that owns the answer."""

    def __init__(self, request: TurnRequest, record: TurnRecord) -> None:
        self.request = request
        self.record = record
        self.out: list[Command] = []
        self.flying: dict[int, Attempt] = {}
        self.owner: Attempt | None = None
        self.finished = False
        self._status = 0

    def take(self) -> list[Command]:
        """The commands collected since the last call."""
        out, self.out = self.out, []
        return out

    # -- attempts

    def drop(self, attempt: Attempt, now: Now) -> None:
        """The attempt is of no further use: close it and complete its record."""
        self.out.append(Discard(attempt.ordinal))
        self._complete(attempt, now)

    def drop_others(self, winner: Attempt, now: Now) -> None:
        """Discard every other attempt in flight; losing a hedge is no failure."""
        if len(self.flying) < 2:
            return
        for attempt in list(self.flying.values()):
            if attempt is not winner:
                attempt.record.result = attempt.record.result or "overtaken"
                self.drop(attempt, now)

    def _complete(self, attempt: Attempt, now: Now) -> None:
        if self.flying.pop(attempt.ordinal, None) is not None:
            attempt.note_answer()
            attempt.let_go()
            attempt.record.ended_ms = now.mono_ms
            self.out.append(AttemptEnded(attempt.record))

    # -- streamed answers

    def commit(self, attempt: Attempt, status: int, headers: Headers, held: bytes, now: Now) -> None:
        """Send the head and the held bytes; the attempt owns the answer from here on."""
        self.drop_others(attempt, now)
        self.owner = attempt
        self._status = status = self._client_status(attempt, status)
        self.record.committed_ms = now.mono_ms
        self.out.append(Commit(attempt.ordinal, status, self._client_headers(headers, keep_length=False)))
        if held:
            self.out.append(Relay(self.as_asked(held)))

    def as_asked(self, data: bytes) -> bytes:
        """A piece of a stream in the client's own format, with the model it asked for where it looks for that."""
        facts = self.request.facts
        return with_requested_model(data, facts.model) if facts.dialect is Dialect.RESPONSES else data

    def let_end(self, attempt: Attempt) -> None:
        """The owner has said how it ended: one that stays open is not waited for as for output."""
        self.out.append(Limit(attempt.ordinal, min(attempt.idle_ms, ENDED_IDLE_MS)))

    def end_stream(self, attempt: Attempt, outcome: Outcome, now: Now, *, early: bool = False) -> None:
        """The owner's answer is complete, or ended with a failure that the client can read. `early`: the exchange
        is still open and of no further use."""
        if last := attempt.last_words():
            self.out.append(Relay(last))
        self.out.append(End())
        if early:
            self.out.append(Discard(attempt.ordinal))
        self._complete(attempt, now)
        self.finish(outcome, self._status, now)

    def break_stream(self, attempt: Attempt, fault: TransportFault, outcome: Outcome, now: Now) -> None:
        """The owner's answer broke: say so in the dialect where bytes can be added, and never end it cleanly."""
        error = transport_failure(fault, transport_message(fault))
        self.out.append(Break(attempt.complaint(error), str(fault)))
        if attempt.is_silent:
            self.out.append(Discard(attempt.ordinal))
        self._complete(attempt, now)
        self.finish(outcome, self._status, now)

    # -- whole answers

    def reply(self, attempt: Attempt, whole: Whole, outcome: Outcome, now: Now) -> None:
        """Give an upstream answer as it is."""
        self.drop_others(attempt, now)
        status = self._client_status(attempt, whole.status)
        headers = self._client_headers(whole.headers, keep_length=False)
        self.out.append(Reply(status, headers, whole.body, attempt.ordinal))
        self.finish(outcome, status, now)

    def refuse(self, error: ProxyError, outcome: Outcome, now: Now, retry_after: str | None = None) -> None:
        """Answer with an error made here."""
        headers, body = render(error, self.request.facts.dialect)
        if retry_after is not None:
            headers = (*headers, (b"retry-after", retry_after.encode("latin-1", "replace")))
        self.out.append(Reply(error.status, headers, body))
        self.finish(outcome, error.status, now)

    def give(self, attempt: Attempt, given: Given, outcome: Outcome, idle_ms: int, now: Now) -> None:
        """Give an upstream failure, unchanged where that is possible. A live one owns the answer until its end."""
        match given:
            case Live(status=status, headers=headers, held=held):
                attempt.settled = True
                self.commit(attempt, status, headers, held, now)
                self.out.append(Limit(attempt.ordinal, idle_ms))
                if attempt.terminal is not None:
                    self.let_end(attempt)
            case Whole():
                self.reply(attempt, given, outcome, now)
            case Lost(error=error, retry_after=retry_after):
                self.drop_others(attempt, now)
                status = self._client_status(attempt, error.status)
                shown = ProxyError(status, error.type, error.code, error.message, error.retry_after_s, error.param)
                self.refuse(shown, outcome, now, retry_after)

    # -- the end

    def finish(self, outcome: Outcome, status: int, now: Now) -> None:
        """Close what is still open and end the turn."""
        for attempt in list(self.flying.values()):
            self.drop(attempt, now)
        self.record.outcome, self.record.status, self.record.ended_ms = outcome, status, now.mono_ms
        self.owner = None
        self.finished = True
        self.out.append(Finish(self.record))

    def _client_status(self, attempt: Attempt, status: int) -> int:
        """The status of an upstream answer for the client."""
        # A 401 tells Codex with a ChatGPT login that this login has expired: it renews it and repeats, twelve times.
        # When another credential was refused, that is not so; 403 ends it, with body and headers unchanged.
        if status != 401:
            return status
        provider = attempt.pick.target.provider
        forwards = provider is not None and provider.config.auth_mode is AuthMode.FORWARD
        has_login = self.request.fields.get(b"chatgpt-account-id") is not None
        return 403 if has_login and not forwards else status

    def _client_headers(self, headers: Headers, *, keep_length: bool) -> Headers:
        return wire_headers.response_headers(headers, requested_model=self.request.facts.model, keep_length=keep_length)


def ends_well(terminal: SuccessTerminal | FailureTerminal | None) -> bool:
    """Whether the client can take the stream's end for what it is: a success, or an error event it has received."""
    return isinstance(terminal, SuccessTerminal) or (
        isinstance(terminal, FailureTerminal) and terminal.kind not in ("eof", "malformed")
    )
