"""Runs a turn that no client sees: the model method of a decision, routed, hopping and cooling like any request.

It brings no credentials, headers or conversation of a caller. What it is asked and what its reply means is decided by
`combos.decision`; it only carries the commands of the turn out and keeps a bounded answer.
"""

import uuid
from collections.abc import Callable

from combos.core.errors import ProxyError
from combos.core.facts import Headers, Now
from combos.core.registry import DirectRoute, Provider, Registry, UnknownCombo
from combos.core.values import dataclass
from combos.decision.gates import Closed, Gate
from combos.decision.model import PATH, REPLY_MAX, ModelReply
from combos.engine.commands import Break, Command, Commit, Discard, Finish, Limit, Relay, Reply, Send, Wait
from combos.engine.events import ClientGone, Event, Started
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.state import EngineState
from combos.engine.turn import Turn
from combos.mitm.sources import ExchangeSource, Sources, TimerSource
from combos.upstream.pool import Charge, PooledUpstream
from combos.wire.bodies import BodyError, decode
from combos.wire.fields import Fields
from combos.wire.headers import get
from combos.wire.request import request_facts

_FIELDS = Fields(
    (
        (b"content-type", b"application/json"),
        (b"accept", b"text/event-stream"),
        (b"user-agent", b"combos"),
    )
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What internal turns share with those of clients. `unusable` and `credentials` know no caller."""

    upstream: PooledUpstream
    state: EngineState
    current: Callable[[], Registry]
    unusable: Callable[[Provider], str | None]
    credentials: Callable[[Provider], Headers]
    draw: Callable[[], float]
    now: Callable[[], Now]


async def invoke(around: Surroundings, options: TurnOptions, registry: Registry, body: bytes) -> ModelReply:
    """Run the turn of a Responses request. Raises `Closed` when there is nothing to read. Cancel it at any time."""
    turn = Turn(_request(around, registry, body), around.state, options)
    running = _Run(turn, around)
    return await running.result()


def _request(around: Surroundings, registry: Registry, body: bytes) -> TurnRequest:
    try:
        facts = request_facts(PATH, body)
    except ProxyError:
        raise Closed(Gate.MALFORMED) from None
    route = registry.resolve(facts.model) or registry.resolve_bare(facts.model)
    if route is None or isinstance(route, UnknownCombo):
        raise Closed(Gate.MISSING_KEY)
    provider = route.target.provider if isinstance(route, DirectRoute) else None
    if provider is not None and around.unusable(provider) is not None:
        raise Closed(Gate.MISSING_KEY)
    return TurnRequest(
        facts=facts,
        fields=_FIELDS,
        route=route,
        registry=registry,
        current=around.current,
        unusable=around.unusable,
        draw=around.draw,
        decides=True,
        seed=uuid.uuid4().hex,
    )


class _Run:
    """One turn while it runs."""

    def __init__(self, turn: Turn, around: Surroundings) -> None:
        self._turn = turn
        self._around = around
        self._sources = Sources()
        self._over = False
        self._status = 0
        self._headers: Headers = ()
        self._body = bytearray()

    async def result(self) -> ModelReply:
        """The whole answer."""
        try:
            self._feed(Started())
            while not self._over:
                self._feed(await self._sources.next())
        finally:
            self._leave()
        return ModelReply(self._status, self._decoded(), streamed=_is_stream(self._headers))

    def _feed(self, event: Event) -> None:
        for command in self._turn.handle(event, self._around.now()):
            self._perform(command)

    def _leave(self) -> None:
        """Close everything; a turn that is not over learns that nobody waits for it any more."""
        if not self._over:
            self._turn.handle(ClientGone(), self._around.now())
        self._sources.close()

    def _perform(self, command: Command) -> None:
        match command:
            case Send():
                self._sources.add(command.attempt, self._source(command))
            case Limit(attempt, idle_ms, total_ms):
                source = self._sources.get(attempt)
                if isinstance(source, ExchangeSource):
                    source.limit(idle_ms, total_ms)
            case Wait(wait, ms):
                self._sources.add(("wait", wait), TimerSource(wait, ms))
            case Discard(attempt):
                self._sources.drop(attempt)
            case _:
                self._answer(command)

    def _answer(self, command: Command) -> None:
        match command:
            case Commit(status=status, headers=headers):
                self._status, self._headers = status, headers
            case Relay(data):
                self._keep(data)
            case Reply(status=status, headers=headers, body=body):
                self._status, self._headers = status, headers
                self._keep(body)
            case Break():
                raise Closed(Gate.MALFORMED)
            case Finish():
                self._over = True

    def _keep(self, data: bytes) -> None:
        self._body += data
        if len(self._body) > REPLY_MAX and 200 <= self._status < 300:
            raise Closed(Gate.MALFORMED)

    def _source(self, send: Send) -> ExchangeSource:
        request, secrets = send.request, self._around.credentials(send.request.provider)
        charge = Charge(send.target.model, lambda: self._turn.charge(send.attempt) is None, send.spares)
        upstream = self._around.upstream
        return ExchangeSource(send.attempt, lambda: upstream.send(request, send.timeouts, secrets, charge))

    def _decoded(self) -> bytes:
        if not 200 <= self._status < 300:
            return b""  # only the status of a failure counts
        try:
            return decode(get(self._headers, "content-encoding"), bytes(self._body), REPLY_MAX)
        except BodyError:
            raise Closed(Gate.MALFORMED) from None


def _is_stream(headers: Headers) -> bool:
    return (get(headers, "content-type") or "").partition(";")[0].strip().lower() == "text/event-stream"
