"""Which attempts of one turn become flows, and when. What an attempt's flow is, `attempt_flows` says.

With `auto` the first attempt is only remembered: should the turn hop, its flow is made afterwards from what was seen.
Firing the hooks costs more than the exchange itself, so the usual request, served by its first target, fires none.
"""

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
    head: tuple[int, Headers] | None = None
    body: list[bytes] = field(default_factory=list)


class Recorder:
    """The attempt flows of one client flow."""

    def __init__(self, client_flow: HTTPFlow, policy: AttemptFlows, body_limit: int) -> None:
        self._client_flow = client_flow
        self._policy = policy
        self._body_limit = body_limit
        self._live: dict[int, AttemptFlow] = {}
        self._seen: dict[int, _Seen] = {}

    async def begin(self, send: Send, outgoing: Outgoing, *, translated: bool) -> AttemptFlow | None:
        """An attempt is about to be sent. Its flow, with the request hooks fired, if it has one from the start."""
        if self._policy is AttemptFlows.NONE:
            return None
        if self._policy is AttemptFlows.AUTO and send.attempt == 0 and not translated:
            self._seen[send.attempt] = _Seen(send, outgoing)
            return None
        flow = AttemptFlow(self._client_flow, send, outgoing, self._body_limit)
        self._live[send.attempt] = flow
        await flow.announce()
        return flow

    def head(self, attempt: int, status: int, headers: Headers) -> None:
        """The target's answer has begun."""
        if flow := self._live.get(attempt):
            flow.head(status, headers)
        elif seen := self._seen.get(attempt):
            seen.head = (status, headers)

    def chunk(self, attempt: int, data: bytes) -> None:
        """A piece of the target's answer."""
        if flow := self._live.get(attempt):
            flow.body(data)
        elif seen := self._seen.get(attempt):
            seen.body.append(data)

    def committed(self, attempt: int) -> None:
        """The attempt owns the answer: the client's own flow shows it, nothing more need be remembered here."""
        self._seen.pop(attempt, None)

    async def end(self, record: AttemptRecord) -> None:
        """An attempt is over: end its flow, or make one now if the request goes on to another target."""
        flow = self._live.pop(record.ordinal, None) or self._made_afterwards(record)
        if flow is not None:
            await flow.finish(None if record.status is not None else record.result)

    def abandon(self) -> None:
        """The client is gone."""
        for flow in self._live.values():
            flow.abandon()
        self._live.clear()
        self._seen.clear()

    def _made_afterwards(self, record: AttemptRecord) -> AttemptFlow | None:
        seen = self._seen.pop(record.ordinal, None)
        if seen is None or record.verdict is None or not record.verdict.hop:
            return None
        flow = AttemptFlow(self._client_flow, seen.send, seen.outgoing, self._body_limit)
        if seen.head is not None:
            flow.head(*seen.head)
        for data in seen.body:
            flow.body(data)
        return flow
