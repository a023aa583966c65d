"""The clients: each takes the next requests, sends them, and has what came of them judged."""

import asyncio
import collections
import contextlib
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from asks import Ask, ask_of, entrance_of
from heard import Answer
from oneone import Client
from oracle import Case, judge
from plans import Fate
from provider import Book, Send
from scene import Combo
from two import Client2

_ENDS_S = 30
"""So long after a client's end at the latest, nothing is asked on its behalf."""
_LET_GO_S = 10
"""A provider that is silent is let go when its client leaves, not when its time is over."""

_LOOKS = 10
"""At what the proxy holds for a client whose answer does not end."""

_WAITING_ROOM = 100
"""Connections that wait to be accepted: asyncio's own bound, with which mitmproxy listens."""


@dataclass(frozen=True)
class Wishes:
    """What the run is to be like."""

    seed: int
    concurrency: int
    patience_s: float
    entrances: tuple[str, ...]
    leave: float
    batches: bool = True


@dataclass
class Tally:
    """What has happened so far."""

    done: int = 0
    sent: int = 0
    answered: int = 0
    sends: int = 0
    reconnects: int = 0
    refused: int = 0
    endings: collections.Counter[str] = field(default_factory=collections.Counter)
    plans: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)
    longest_s: float = 0.0


@dataclass
class Rests:
    """What is known of the cooldowns of a private combo."""

    cooling: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    recent: set[str] = field(default_factory=set)
    """Failed for a client that left: when the proxy noticed that is not known."""


class Crowd:
    """All clients of one run."""

    def __init__(
        self, wishes: Wishes, book: Book, private: list[list[Combo]], shared: list[Combo], proxy: object
    ) -> None:
        self.wishes = wishes
        self.book = book
        self.tally = Tally()
        self._free = private
        self._shared = shared
        self._proxy = proxy
        self._rests: dict[str, Rests] = collections.defaultdict(Rests)
        self._before: dict[str, str] = {}
        self._tls: dict[str, ssl.SSLContext] = {}
        self._looks = 0

    async def run(self, numbers: Iterator[int]) -> None:
        """Do these requests."""
        await asyncio.gather(*(self._member(numbers) for _ in range(self.wishes.concurrency)))

    def forget(self) -> None:
        """The proxy knows of no cooldown any more."""
        self._rests.clear()

    async def _member(self, numbers: Iterator[int]) -> None:
        clients: dict[str, Client | Client2] = {}
        try:
            while asks := self._next(numbers):
                entrance, _, stays = entrance_of(self.wishes.seed, asks[0].number, self.wishes.entrances)
                client = clients.get(entrance)
                if client is None or not client.usable:
                    client = clients[entrance] = self._client(entrance)
                await self._exchange(client, asks)
                if not stays:
                    client.close()
        finally:
            for client in clients.values():
                client.close()

    def _client(self, entrance: str) -> Client | Client2:
        protocol = {"tunnel": "http/1.1", "http2": "h2"}.get(entrance, "")
        if protocol not in self._tls:
            self._tls[protocol] = self._proxy.client_tls(*([protocol] if protocol else []))  # type: ignore[attr-defined]
        port: int = self._proxy.port_of(entrance)  # type: ignore[attr-defined]
        if entrance == "http2":
            return Client2(port, self._tls["h2"], self._look)
        token: str = self._proxy.token if entrance == "listener" else ""  # type: ignore[attr-defined]
        return Client(port, entrance, self._tls[protocol], self._look, token)

    async def _look(self, port: int) -> object:
        """What the proxy holds for the client at this port. A look keeps everybody else waiting: a few are enough."""
        self._looks += 1
        if self._looks > _LOOKS:
            return "not asked"
        with contextlib.suppress(OSError, TimeoutError):
            return await self._proxy.inside("client", port=port)  # type: ignore[attr-defined]
        return "says nothing"

    # -- what is asked

    def _next(self, numbers: Iterator[int]) -> list[Ask]:
        """The next requests for one connection; those behind one whose client leaves or wants no more would be lost."""
        asks: list[Ask] = []
        count = 1
        for number in numbers:
            ask = self._ask(number)
            if not asks and self.wishes.batches:
                count = entrance_of(self.wishes.seed, number, self.wishes.entrances)[1]
            asks.append(ask)
            if len(asks) >= count or ask.leaving is not None or ask.sending.closes:
                break
        return asks

    def _ask(self, number: int) -> Ask:
        wishes = self.wishes
        ask = ask_of(wishes.seed, number, leave=wishes.leave, longest_s=min(wishes.patience_s, 4.0))
        free = self._free[ask.shape] if ask.shape is not None else []
        ask.combo = free.pop() if free else ask.draw.choice(self._shared)
        return ask

    # -- what comes of it

    async def _exchange(self, client: Client | Client2, asks: list[Ask]) -> None:
        begun, reused = time.monotonic(), client.usable
        answers = await client.ask(asks, self.wishes.patience_s * 20)
        if self._was_stale(asks, answers) and (reused or self._was_refused(answers)):
            self.tally.reconnects += reused
            self.tally.refused += not reused
            client.close()
            answers = await client.ask(asks, self.wishes.patience_s * 20)
        seconds = time.monotonic() - begun
        self.tally.longest_s = max(self.tally.longest_s, seconds)
        broken = False
        for ask, answer in zip(asks, answers, strict=True):
            # What stands behind a broken answer on its connection is lost with it.
            if broken and not answer.status and isinstance(client, Client):
                answer.left = True
            broken = broken or not answer.clean
            await self._settle(ask, answer, seconds)

    def _was_stale(self, asks: list[Ask], answers: list[Answer]) -> bool:
        """Whether the proxy had closed the connection before it saw anything of this."""
        return not any(
            answer.status or answer.left or answer.errands or self.book.of(ask.number)
            for ask, answer in zip(asks, answers, strict=True)
        )

    def _was_refused(self, answers: list[Answer]) -> bool:
        """Whether the kernel did: more clients come at once than can wait to be accepted."""
        return self.wishes.concurrency > _WAITING_ROOM and "ConnectionResetError" in answers[0].reason

    async def _settle(self, ask: Ask, answer: Answer, seconds: float) -> None:
        combo = ask.combo
        assert combo is not None
        sends = await self._sends_over(ask, answer)
        rests = self._rests[combo.id] if combo.strict else Rests()
        cooling, doubtful = frozenset(rests.cooling), frozenset(rests.doubtful | rests.recent)
        case = Case(ask, answer, sends, self.wishes.patience_s, seconds, cooling, doubtful)
        for fault in judge(case):
            self._fault(case, fault)
        self._count(case)
        self._before[combo.id] = self._story(case)
        if combo.strict:
            await self._remember(case, rests)
            assert ask.shape is not None
            self._free[ask.shape].append(combo)
        self.book.sends.pop(ask.number, None)

    async def _sends_over(self, ask: Ask, answer: Answer) -> list[Send]:
        """The sends of a request, once none is under way."""
        if answer.left:
            await asyncio.sleep(0.05)
        begun = time.monotonic()
        limit = begun + max(_ENDS_S, self.wishes.patience_s * 2)
        while any(send.ended is None for send in self.book.of(ask.number)):
            if time.monotonic() > limit:
                self.tally.faults.append((ask.number, "a provider's connection is open long after the end"))
                break
            await asyncio.sleep(0.005)
        held_s = time.monotonic() - begun
        if answer.left and self.wishes.patience_s > _LET_GO_S * 2 and held_s > _LET_GO_S:
            text = f"a provider was held for {held_s:.0f} s after its client had left ({ask.leaving})"
            self.tally.faults.append((ask.number, text))
        await asyncio.sleep(0.004)
        return list(self.book.of(ask.number))

    async def _remember(self, case: Case, rests: Rests) -> None:
        """What rests after this request, as far as that is certain; some of it is ended at once."""
        combo = case.ask.combo
        assert combo is not None
        rests.recent = {send.target for send in case.sends if case.answer.left and send.plan.fate is not Fate.OK}
        for send in case.sends:
            if not send.plan.rests:
                continue
            provider = send.target.partition("/")[0]
            certain = send.plan.name == "status" and not case.answer.left and provider != "pool"
            siblings = {target.key for target in combo.targets if target.provider == provider}
            if certain:
                rests.cooling.add(send.target)
                siblings.discard(send.target)
            rests.doubtful |= siblings
        rests.doubtful -= rests.cooling
        if (rests.cooling or rests.doubtful) and case.ask.draw.random() < 0.6:
            await self._proxy.inside("clear", combo=combo.id)  # type: ignore[attr-defined]
            rests.cooling.clear()
            if not case.answer.left:
                rests.doubtful.clear()

    def _count(self, case: Case) -> None:
        tally = self.tally
        tally.done += 1
        tally.sent += case.answer.sent
        tally.answered += not case.answer.left and bool(case.answer.status)
        tally.sends += len(case.sends)
        tally.endings["left" if case.answer.left else case.heard.ending] += 1
        tally.plans.update("known" if send.plan.name.startswith("case") else send.plan.name for send in case.sends)

    def _fault(self, case: Case, fault: str) -> None:
        assert case.ask.combo is not None
        text = f"{fault}\n    {self._story(case)}\n    before: {self._before.get(case.ask.combo.id)}"
        self.tally.faults.append((case.ask.number, text))

    def _story(self, case: Case) -> str:
        ask, answer, combo = case.ask, case.answer, case.ask.combo
        assert combo is not None
        way = [f"{send.target}: {send.plan.name} {send.plan.status}{' reused' * send.reused}" for send in case.sends]
        content = answer.fields.get("content-type", "")
        told = f"{case.seconds:.1f} s {answer.status} {case.heard.ending} {content} {answer.reason}"
        kind = f"{ask.dialect} {'stream' if ask.stream else 'whole'} leaving={ask.leaving} slow={ask.slow_s}"
        targets = [target.key for target in combo.targets]
        rests = f"cooling {sorted(case.cooling)} doubtful {sorted(case.doubtful)}"
        entrance = entrance_of(self.wishes.seed, ask.number, self.wishes.entrances)[0]
        return f"{ask.number} {combo.id} {targets} {kind} by {entrance}\n      {way} -> {told}; {rests}"
