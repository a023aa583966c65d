"""A small language for tests of the turn: `>>` feeds an event, `<<` expects the next command.

    Play(world.turn("combo/main")) >> Started() << sends("alpha/m1") >> Failed(0, …) << discards(0) << sends("beta/m2")

Every command must be expected, except `AttemptEnded` and `Limit`. The invariants of a turn are checked on the way.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from combos.core.config import parse_config
from combos.core.facts import Headers, Now, TransportFault
from combos.core.registry import Provider, Registry, build_registry
from combos.engine.commands import (
    AttemptEnded,
    Break,
    Command,
    Commit,
    Decide,
    Discard,
    End,
    Finish,
    Limit,
    Relay,
    Reply,
    Send,
    Wait,
)
from combos.engine.events import ChunkReceived, ClientGone, Decided, Ended, Event, Failed, HeadReceived
from combos.engine.record import DecisionRecord, Outcome, TurnRecord
from combos.engine.replay import replayed
from combos.engine.request import TurnOptions, TurnRequest, conversations
from combos.engine.state import EngineState
from combos.engine.turn import Turn
from combos.wire.fields import Fields
from combos.wire.request import peek_model, request_facts

NO_DECISION = DecisionRecord("typesafe", "timeout", None, None, None, 0)
EPOCH_MS = 1_790_856_000_000
SSE: Headers = ((b"content-type", b"text/event-stream"),)
JSON: Headers = ((b"content-type", b"application/json"),)
PORTS = {"alpha": 7101, "beta": 7102, "gamma": 7103, "delta": 7104}
PATHS = {
    "R": "/v1/responses",
    "C": "/v1/chat/completions",
    "M": "/v1/messages",
    "G": "/v1beta/models/combo/main:streamGenerateContent?alt=sse",
}
ADAPTERS = {"R": "openai-responses", "C": "openai-chat", "M": "anthropic", "G": "google"}


def provider(name: str, wire: str = "R", **fields: object) -> dict[str, object]:
    """A stub provider of the field cases."""
    base = {"adapter": ADAPTERS[wire], "baseUrl": f"http://127.0.0.1:{PORTS[name]}/v1", "apiKey": f"{name}-key"}
    return {**base, "allowPrivateNetwork": True, **fields}


def target(key: str, **fields: object) -> dict[str, object]:
    """A target from `provider/model` or `provider/model:weight`."""
    key, _, weight = key.partition(":")
    name, _, model = key.partition("/")
    return {"provider": name, "model": model, **({"weight": int(weight)} if weight else {}), **fields}


def config(
    *targets: str | dict[str, object], wire: str = "R", providers: Mapping[str, object] | None = None, **combo: object
) -> dict[str, object]:
    """A configuration with one combo `main` over the stub providers."""
    rows = [target(t) if isinstance(t, str) else t for t in targets or ("alpha/m1", "beta/m2")]
    table = {name: provider(name, wire) for name in PORTS} | dict(providers or {})
    return {"providers": table, "combos": {"main": {"targets": rows, **combo}}}


@dataclass
class World:
    """Registry, state and clock that the turns of one test share."""

    document: dict[str, object]
    wire: str = "R"
    generation: int = 1
    mono_ms: int = 1_000_000
    draws: list[float] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)
    resets: dict[str, int] = field(default_factory=dict)
    options: TurnOptions = field(default_factory=TurnOptions)
    fails_open: bool = True
    """Whether decisions of jev combos are answered at once, without a choice."""

    def __post_init__(self) -> None:
        self.state = EngineState()
        self.registry: Registry
        self.reload(self.document)

    @property
    def now(self) -> Now:
        return Now(self.mono_ms, EPOCH_MS + self.mono_ms - 1_000_000)

    def reload(self, document: dict[str, object]) -> None:
        self.registry = build_registry(parse_config(document), self.generation)
        self.generation += 1
        self.state.reconcile(self.registry)

    def body(self, model: str = "combo/main", **fields: object) -> bytes:
        if self.wire == "G":
            return json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **fields}).encode()
        prompt = {"input": "hi"} if self.wire == "R" else {"messages": [{"role": "user", "content": "hi"}]}
        extra = {"max_tokens": 100} if self.wire == "M" else {}
        return json.dumps({"model": model, "stream": True, **prompt, **extra, **fields}).encode()

    def request(
        self,
        model: str = "combo/main",
        *,
        path: str | None = None,
        body: bytes | None = None,
        headers: Headers = (),
        lane: str | None = None,
        caller: str = "",
        mark: str = "",
        **fields: object,
    ) -> TurnRequest:
        asked = body or self.body(model, **fields)
        facts = request_facts(path or PATHS[self.wire], asked, peek_model(asked))
        route = self.registry.resolve(facts.model)
        assert route is not None
        known = Fields(headers)
        lane_key, conversation = conversations(caller, lane, known)
        return TurnRequest(
            facts=facts,
            fields=known,
            route=route,
            registry=self.registry,
            current=lambda: self.registry,
            unusable=self._unusable,
            draw=lambda: self.draws.pop(0),
            caller=caller,
            lane_key=lane_key,
            conversation=conversation,
            mark=mark,
            spent=lambda t: t.key in self.spent,
            reset_at=lambda t: self.resets.get(t.key),
        )

    def turn(self, model: str = "combo/main", **kwargs: object) -> "Play":
        request = replayed(self.request(model, **kwargs), self.state, lambda: self.now)  # type: ignore[arg-type]
        return Play(self, Turn(request, self.state, self.options), request)

    def _unusable(self, provider: Provider) -> str | None:
        return self.unusable.get(provider.name)

    def cooling(self) -> dict[str, int]:
        """Remaining cooldown of every cooling target of `main`."""
        return {
            key.target: entry.expires_ms - self.mono_ms for key, entry in self.state.cooldowns.running(self.mono_ms)
        }


@dataclass(frozen=True)
class Expect:
    """A command that is to come next."""

    kind: type
    says: str
    holds: Callable[[Command], bool] = lambda _: True


@dataclass(frozen=True)
class After:
    """Time passes before the next event."""

    ms: int


class Play:
    """One turn being played."""

    def __init__(self, world: World, turn: Turn, request: TurnRequest) -> None:
        self.world = world
        self.turn = turn
        self.request = request
        self.pending: list[Command] = []
        self.log: list[Command] = []
        self.gone = False
        self.rewrites = False
        """Whether bodies in the client's own format may change in more than routing."""

    def __rshift__(self, event: Event | After | Sequence[Event]) -> "Play":
        if isinstance(event, After):
            self.world.mono_ms += event.ms
            return self
        assert not self.pending, f"not expected: {self.pending}"
        for one in event if isinstance(event, Sequence) else (event,):
            self.feed(one)
        return self

    def __lshift__(self, expected: Expect) -> "Play":
        assert self.pending, f"expected {expected.says}, got nothing"
        command = self.pending.pop(0)
        right = isinstance(command, expected.kind) and expected.holds(command)
        assert right, f"expected {expected.says}, got {command}"
        return self

    def feed(self, event: Event) -> list[Command]:
        before = dict(self.world.state.cooldowns.running(self.world.mono_ms))
        commands = self.turn.handle(event, self.world.now)
        if isinstance(event, ClientGone):
            self.gone = True
            assert dict(self.world.state.cooldowns.running(self.world.mono_ms)) == before, "a gone client cools nothing"
        asked = [c for c in commands if isinstance(c, Decide)]
        if asked and self.world.fails_open:
            commands = [c for c in commands if not isinstance(c, Decide)]
            commands += self.turn.handle(Decided(NO_DECISION), self.world.now)
        for command in commands:
            self._check(command)
            self.log.append(command)
        self.pending += [c for c in commands if not isinstance(c, AttemptEnded | Limit)]
        return commands

    def _check(self, command: Command) -> None:
        assert not any(isinstance(c, Finish) for c in self.log), f"{command} after Finish"
        given = any(isinstance(c, Commit | Relay | Reply) for c in self.log)
        if isinstance(command, Send):
            assert not given, "a send after something reached the client"
            assert not self.gone, "a send for a gone client"
            is_native = command.target.dialect is self.request.facts.dialect and not self.rewrites
            same = not is_native or same_but_routing(command.request.body, self.request.facts.body)
            assert same, "not built from the original"
        if isinstance(command, Commit | Reply):
            assert not given, "two answers"
        if isinstance(command, Finish):
            ended = [c.record.ordinal for c in self.log if isinstance(c, AttemptEnded)]
            assert sorted(ended) == [a.ordinal for a in command.record.attempts], "every attempt ends once"

    # -- conveniences

    def skip(self) -> "Play":
        """What has come so far need not be expected."""
        self.pending.clear()
        return self

    def answer(
        self, attempt: int, status: int, body: bytes | str | dict[str, object] = b"", headers: Headers = JSON
    ) -> "Play":
        """A whole upstream answer."""
        raw = json.dumps(body).encode() if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
        events: list[Event] = [HeadReceived(attempt, status, headers)]
        events += [ChunkReceived(attempt, raw)] if raw else []
        return self >> [*events, Ended(attempt)]

    def stream(self, attempt: int, *chunks: bytes, headers: Headers = SSE) -> "Play":
        """The head and some chunks of a stream, and its end is left to the test."""
        return self >> [HeadReceived(attempt, 200, headers), *(ChunkReceived(attempt, c) for c in chunks)]

    @property
    def record(self) -> TurnRecord:
        return self.turn.record

    @property
    def calls(self) -> list[str]:
        return [c.target.key for c in self.log if isinstance(c, Send)]

    @property
    def sends(self) -> list[Send]:
        return [c for c in self.log if isinstance(c, Send)]

    @property
    def client_bytes(self) -> bytes:
        return b"".join(c.data for c in self.log if isinstance(c, Relay))

    def done(self) -> TurnRecord:
        """All commands were expected and the turn is over."""
        assert not self.pending, f"not expected: {self.pending}"
        assert [type(c) for c in self.log].count(Finish) == 1, "no end"
        assert isinstance(self.log[-1], Finish)
        assert not self.feed(Failed(0, TransportFault.RESET)), "something after the end"
        return self.record


EFFORT_MEMBERS = {"reasoning", "reasoning_effort", "thinking", "output_config", "max_tokens", "temperature", "top_p"}


def same_but_routing(sent: bytes, original: bytes) -> bool:
    """Whether two bodies agree in everything that routing may not change."""
    changed = {"model", "user", "service_tier", "thinking_budget"} | EFFORT_MEMBERS
    a, b = ({k: public(v) for k, v in json.loads(raw).items() if k not in changed} for raw in (sent, original))
    return bool(a == b)


def public(value: object) -> object:
    """Input items without the member that is Codex's own."""
    if not isinstance(value, list):
        return value
    private = "internal_chat_message_metadata_passthrough"
    return [{k: v for k, v in item.items() if k != private} if isinstance(item, dict) else item for item in value]


def sends(key: str) -> Expect:
    return Expect(Send, f"a send to {key}", lambda c: isinstance(c, Send) and c.target.key == key)


def waits(ms: int) -> Expect:
    return Expect(Wait, f"a wait of {ms} ms", lambda c: isinstance(c, Wait) and c.ms == ms)


def decides(*eligible: str) -> Expect:
    """A decision among exactly these targets."""
    return Expect(
        Decide,
        f"a decision among {eligible}",
        lambda c: isinstance(c, Decide) and tuple(target.key for target in c.eligible) == eligible,
    )


def discards(attempt: int) -> Expect:
    return Expect(Discard, f"attempt {attempt} discarded", lambda c: isinstance(c, Discard) and c.attempt == attempt)


def commits(attempt: int, status: int = 200) -> Expect:
    return Expect(
        Commit, f"{attempt} committed", lambda c: isinstance(c, Commit) and (c.attempt, c.status) == (attempt, status)
    )


def relays(data: bytes) -> Expect:
    return Expect(Relay, f"{data!r} relayed", lambda c: isinstance(c, Relay) and c.data == data)


def ends() -> Expect:
    return Expect(End, "a clean end")


def breaks(tail: bytes | None = None) -> Expect:
    return Expect(Break, "a broken end", lambda c: isinstance(c, Break) and (tail is None or tail in c.tail))


def replies(status: int, body: bytes | None = None, code: str | None = None) -> Expect:
    def holds(command: Command) -> bool:
        if not isinstance(command, Reply) or command.status != status:
            return False
        if body is not None and command.body != body:
            return False
        return code is None or code in command.body.decode()

    return Expect(Reply, f"a reply {status} {body!r} {code}", holds)


def finishes(outcome: Outcome) -> Expect:
    return Expect(Finish, f"the end: {outcome}", lambda c: isinstance(c, Finish) and c.record.outcome is outcome)


def header(command: Command, name: bytes) -> bytes | None:
    headers = command.headers if isinstance(command, Commit | Reply) else ()
    return next((value for key, value in headers if key.lower() == name), None)


# -- streams


def event(payload: Mapping[str, object], name: str | None = None) -> bytes:
    """One SSE event; Responses and Messages events carry their type as name."""
    kind = name or payload.get("type")
    line = f"event: {kind}\n" if kind else ""
    return f"{line}data: {json.dumps(payload)}\n\n".encode()


def created(rid: str = "r1") -> bytes:
    return event({"type": "response.created", "response": {"id": rid, "status": "in_progress", "output": []}})


def delta(text: str) -> bytes:
    return event({"type": "response.output_text.delta", "delta": text})


def completed(rid: str = "r1", model: str = "m", **fields: object) -> bytes:
    response = {"id": rid, "status": "completed", "model": model, "output": [{"type": "message"}], **fields}
    return event({"type": "response.completed", "response": response})


def failed(code: str, message: str = "no", rid: str = "r1") -> bytes:
    error = {"code": code, "message": message}
    return event({"type": "response.failed", "response": {"id": rid, "status": "failed", "error": error}})


def ok(text: str = "ok") -> list[bytes]:
    return [created(), delta(text), completed()]


def error(message: str = "no", **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}
