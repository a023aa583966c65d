"""Which attempts of one turn become flows, and when. What an attempt's flow is, `attempt_flows` says.

With `auto` the first attempt is only remembered: should the turn hop, its flow is made afterwards from what was seen.
Firing the hooks costs more than the exchange itself, so the usual request, served by its first target, fires none.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field

from mitmproxy.http import HTTPFlow

from combos.core.facts import Headers
from combos.engine.commands import Send
from combos.engine.record import AttemptRecord
from combos.mitm.attempt_flows import AttemptFlow, Outgoing
from combos.mitm.options import AttemptFlows


@dataclass(slots=True)
class _Seen:
    """What there is to show of an attempt that has no flow yet."""

    send: Send
    outgoing: Outgoing
    answered: tuple[int, Headers] | None = None
    pieces: list[bytes] = field(default_factory=list)

    def head(self, status: int, headers: Headers) -> None:
        self.answered = (status, headers)

    def body(self, data: bytes) -> None:
        self.pieces.append(data)


class Recorder:
    """The attempt flows of one client flow. `body_limit`: how many bytes of a body stay visible in a flow."""

    def __init__(self, client_flow: HTTPFlow, policy: AttemptFlows, body_limit: int) -> None:
        self._client_flow = client_flow
        self._policy = policy
        self.body_limit = body_limit
        self._shown: dict[int, AttemptFlow | _Seen] = {}

    def begin(self, send: Send, outgoing: Outgoing, *, translated: bool) -> AttemptFlow | None:
        """An attempt is about to be sent. Its flow, still to be announced, if it has one from the start."""
        if self._policy is AttemptFlows.NONE:
            return None
        if self._policy is AttemptFlows.AUTO and send.attempt == 0 and not translated:
            self._shown[send.attempt] = _Seen(send, outgoing)
            return None
        flow = self._shown[send.attempt] = AttemptFlow(self._client_flow, send, outgoing, self.body_limit)
        return flow

    def head(self, attempt: int, status: int, headers: Headers) -> None:
        """The target's answer has begun."""
        if shown := self._shown.get(attempt):
            shown.head(status, headers)

    def chunk(self, attempt: int, data: bytes) -> None:
        """A piece of the target's answer."""
        if shown := self._shown.get(attempt):
            shown.body(data)

    def committed(self, attempt: int) -> None:
        """The attempt owns the answer: the client's own flow shows it, nothing more need be remembered here."""
        if isinstance(self._shown.get(attempt), _Seen):
            del self._shown[attempt]

    def end(self, record: AttemptRecord) -> Awaitable[None] | None:
        """An attempt is over: end its flow, or make one now if the request goes on to another target. Gives what is
        still to be awaited."""
        shown = self._shown.pop(record.ordinal, None)
        flow = self._made_afterwards(shown, record) if isinstance(shown, _Seen) else shown
        return None if flow is None else flow.finish(None if record.status is not None else record.result)

    def abandon(self) -> None:
        """The client is gone."""
        for shown in self._shown.values():
            if isinstance(shown, AttemptFlow):
                shown.abandon()
        self._shown.clear()

    def _made_afterwards(self, seen: _Seen, record: AttemptRecord) -> AttemptFlow | None:
        if record.verdict is None or not record.verdict.hop:
            return None
        flow = AttemptFlow(self._client_flow, seen.send, seen.outgoing, self.body_limit)
        if seen.answered is not None:
            flow.head(*seen.answered)
        for data in seen.pieces:
            flow.body(data)
        return flow
