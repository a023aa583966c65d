"""Random histories of one process against a small model: requests, outcomes, aborts, reloads, clock jumps."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from combos.core.facts import TransportFault
from combos.engine.commands import Commit, Finish, Reply, Send, Wait
from combos.engine.events import ChunkReceived, ClientGone, Ended, Failed, HeadReceived, Started, WaitOver
from playbook import SSE, Play, World, completed, config, created, delta, failed, target

KEYS = ("alpha/m1", "beta/m2", "gamma/m3", "delta/m4", "alpha/m5")
STRATEGIES = ("failover", "round-robin", "random", "least-used", "jev")
FAILURES = (429, 500, 503, 401)


class Draws(list[float]):
    """Numbers for random draws without end."""

    def pop(self, _index: int = -1) -> float:  # type: ignore[override]
        self.append(0.37 * (len(self) + 1) % 1)
        return self[-1]


class Live:
    """A turn under way and what the model knows of it."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.asked: list[str] = []
        self.wait: Wait | None = None
        self.over = False


class History(RuleBasedStateMachine):
    """Feeds turns and checks every send against the cooldowns as they were before it."""

    def __init__(self) -> None:
        super().__init__()
        self.live: list[Live] = []

    @initialize(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True),
        strategy=st.sampled_from(STRATEGIES),
        wait=st.sampled_from([0, 1000, 60_000]),
        sticky=st.integers(1, 3),
    )
    def begin(self, keys: list[str], strategy: str, wait: int, sticky: int) -> None:
        self.options = {"strategy": strategy, "waitForCooldownMs": wait, "stickyLimit": sticky}
        self.world = World(config(*keys, **self.options), draws=Draws())

    # -- steps

    @rule()
    def request(self) -> None:
        if len(self.live) < 4:
            live = Live(self.world.turn())
            self.live.append(live)
            self.feed(live, Started())

    @precondition(lambda self: self.live)
    @rule(data=st.data(), how=st.sampled_from(["ok", "cut", "fault", "prefix", "stop", *FAILURES]))
    def answer(self, data: st.DataObject, how: str | int) -> None:
        live = data.draw(st.sampled_from(self.live))
        attempt = len(live.asked) - 1
        if live.wait is not None or attempt < 0:
            return
        match how:
            case "fault":
                self.feed(live, Failed(attempt, TransportFault.RESET))
            case "ok" | "cut" | "prefix":
                self.feed(live, HeadReceived(attempt, 200, SSE))
                tail = {"ok": [delta("x"), completed()], "cut": [delta("x")], "prefix": [failed("server_error")]}[how]
                for chunk in [created(), *tail]:
                    self.feed(live, ChunkReceived(attempt, chunk))
                if how != "prefix":
                    self.feed(live, Ended(attempt))
            case _:
                status = 400 if how == "stop" else int(how)
                self.feed(live, HeadReceived(attempt, status, ()))
                self.feed(live, Ended(attempt))

    @precondition(lambda self: any(live.wait for live in self.live))
    @rule()
    def wake(self) -> None:
        live = next(live for live in self.live if live.wait)
        wait, live.wait = live.wait, None
        assert wait is not None
        self.world.mono_ms += wait.ms
        self.feed(live, WaitOver(wait.wait))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.feed(data.draw(st.sampled_from(self.live)), ClientGone())

    @rule(ms=st.sampled_from([1, 999, 60_000, 10**9]))
    def later(self, ms: int) -> None:
        self.world.mono_ms += ms

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True))
    def reload(self, keys: list[str]) -> None:
        self.world.reload(config(*keys, **self.options))

    @rule()
    def sweep(self) -> None:
        self.world.state.sweep(self.world.now)

    # -- the model

    def feed(self, live: Live, event: object) -> None:
        cooling = self.world.cooling()
        seen = len(live.play.log)
        live.play.feed(event)  # type: ignore[arg-type]
        for command in live.play.log[seen:]:
            match command:
                case Send(target=target_):
                    self.check_send(live, target_.key, cooling)
                case Wait():
                    assert command.ms <= self.options["waitForCooldownMs"]  # type: ignore[operator]
                    live.wait = command
                case Finish():
                    live.over = True
                case _:
                    pass
        if live.over:
            answers = [c for c in live.play.log if isinstance(c, Commit | Reply)]
            assert len(answers) <= 1
            live.play.skip().done()
            self.live.remove(live)

    def check_send(self, live: Live, key: str, cooling: dict[str, int]) -> None:
        # Cooldowns that a failure of this very event has set are newer than `cooling`; a tried target stays out anyway.
        assert key not in cooling, f"{key} is cooling"
        retried = live.asked == [key]
        assert key not in live.asked or retried, f"{key} was tried"
        live.asked.append(key)

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "world"):
            rotation = self.world.state.peek_rotation("main")
            names = {t.key for t in self.world.registry.combos["main"].targets}
            assert len(self.world.state.cooldowns) <= len(KEYS)
            assert set(rotation.weights) | set(rotation.counts) <= set(KEYS)
            assert rotation.active is None or rotation.active in names or self.live


History.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase


def test_shares_converge_through_whole_turns() -> None:
    rows = [target("alpha/m1", weight=5), target("beta/m2", weight=3), target("gamma/m3", weight=2)]
    world = World(config(*rows, strategy="round-robin", stickyLimit=2))
    served: Counter[str] = Counter()
    for number in range(400):
        play = (world.turn() >> Started()).skip()
        if number % 7 == 3:  # neither aborts nor stops change the shares
            play >> ClientGone()
            continue
        if number % 7 == 5:
            play.answer(0, 400, b"")
            continue
        served[play.calls[0]] += 1
        play.stream(0, created(), delta("x"), completed())
    total = sum(served.values())
    shares = {key: round(count / total, 2) for key, count in served.items()}
    assert shares == {"alpha/m1": 0.5, "beta/m2": 0.3, "gamma/m3": 0.2}
