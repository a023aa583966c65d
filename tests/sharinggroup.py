"""A group of proxies that share state through a server kept in memory, which does what the scripts in a real one do.

Every step is taken when a test says so: pushing, hearing, losing the connection before or after a push was applied.
"""

from collections import deque
from dataclasses import dataclass, field

from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.core.recall import Completion, caller_digest, lane_key
from combos.core.registers import Register, RegisterKey
from combos.core.sharing import Joined, Push, Told
from combos.core.strategies import round_robin
from combos.core.tallies import Cell
from combos.engine.sharing import Sharing
from combos.engine.state import PickedFrom
from playbook import World, config

HOP = Verdict("status-retryable", hop=True, scope=Scope.TARGET)
SERVER_MS = 1_700_000_000_000


class Server:
    """Sums, registers, marks and the channel."""

    def __init__(self) -> None:
        self.now_ms = SERVER_MS
        self.lives = 0
        self.listeners: list[Member] = []
        self.flush()

    def flush(self) -> None:
        """Everything is lost, as by FLUSHALL or a restart without a file."""
        self.epoch: str | None = None
        self.version = 0
        self.sums: dict[Cell, int] = {}
        self.registers: dict[RegisterKey, Register] = {}
        self.marks: dict[str, tuple[int, int]] = {}

    def join(self, member: "Member") -> Joined:
        if self.epoch is None:
            self.lives += 1
            self.epoch, self.version = f"epoch-{self.lives}", 0
            self.sums = dict(member.sharing.seeds())
        _, applied = self.marks.get(member.name, (0, 0))
        self.marks[member.name] = (member.session, applied)
        return Joined(self.now_ms, self.epoch, self.version, applied, dict(self.sums), tuple(self.registers.items()))

    def push(self, member: "Member", epoch: str, push: Push) -> bool:
        if epoch != self.epoch or self.marks.get(member.name, (0, 0))[0] != member.session:
            return False
        self.version += 1
        self.sums = {cell: n for cell, n in self.sums.items() if cell.combo not in push.forgets}
        for cell, n in push.additions.items():
            self.sums[cell] = self.sums.get(cell, 0) + n
        for key, register in push.registers:
            if key not in self.registers or self.registers[key].stamp < register.stamp:
                self.registers[key] = register
        for key, stamp in push.drops:
            if key in self.registers and self.registers[key].stamp == stamp:
                del self.registers[key]
        self.marks[member.name] = (member.session, push.number)
        totals = {cell: self.sums[cell] for cell in push.additions}
        told = Told(epoch, self.version, member.name, push.number, push.forgets, totals, push.registers)
        for listener in self.listeners:
            if listener.is_connected:
                listener.inbox.append(told)
        return True


@dataclass
class Member:
    """One proxy: its state, its part of the group, what it has not heard yet. Its clock began at `began_ms`."""

    name: str
    server: Server
    began_ms: int
    strategy: str = "round-robin"
    session: int = 0
    epoch: str = ""
    is_connected: bool = False
    inbox: deque[Told] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.world = World(config("alpha/m1:2", "beta/m2", "gamma/m3", strategy=self.strategy))
        self.state = self.world.state
        self.sharing = Sharing(self.state, self.name, lambda: self.now_ms)
        self.state.journal = self.sharing
        self.server.listeners.append(self)

    @property
    def now_ms(self) -> int:
        return self.server.now_ms - SERVER_MS + self.began_ms

    @property
    def now(self) -> Now:
        return Now(self.now_ms, 0)

    @property
    def origin(self) -> PickedFrom:
        return PickedFrom(self.world.registry.combos["main"], self.world.registry.generation)

    # -- what a proxy does

    def cool(self, target: int, ms: int = 60_000) -> None:
        self.state.cool(self.origin, self.origin.combo.targets[target], HOP, Cooldown(ms, "default"), 503, self.now)

    def succeed(self, target: int) -> None:
        self.state.succeeded(self.origin, self.origin.combo.targets[target], None, self.now)

    def pick(self) -> str:
        """A round-robin pick that is served at once."""
        rotation = self.state.choice_rotation(self.origin)
        target = round_robin(self.origin.combo.targets, rotation)
        self.state.succeeded(self.origin, target, None, self.now)
        return target.key

    def remember(self, lane: str, target: int) -> None:
        chosen = self.origin.combo.targets[target]
        completion = Completion(self.origin.combo, chosen, self.origin.generation, f"named-{target}")
        self.state.completed(self.world.registry, lane_key(caller_digest(b"caller"), lane), completion, self.now)

    # -- the connection

    def join(self) -> None:
        self.session += 1
        self.inbox.clear()
        self.is_connected = True
        joined = self.server.join(self)
        self.epoch = joined.epoch
        self.sharing.joined(joined)

    def leave(self) -> None:
        self.is_connected = False
        self.inbox.clear()

    def push(self, *, is_lost: bool = False, is_late: bool = False) -> bool:
        """Push what there is; False when that was nothing. `is_lost`: it never arrives; `is_late`: it arrives, and the
        connection is gone before anything is known of it."""
        push = self.sharing.outgoing()
        if push is None:
            return False
        if is_lost or is_late:
            if is_late:
                self.server.push(self, self.epoch, push)
            self.leave()
        elif not self.server.push(self, self.epoch, push):
            self.join()
        return True

    def hear(self) -> bool:
        """The next message; False when there is none."""
        if not self.inbox:
            return False
        if not self.sharing.received(self.inbox.popleft()):
            self.join()
        return True

    # -- what can be seen

    def cooling(self) -> dict[str, int]:
        """Target → end of its cooldown on the server's clock."""
        shift = self.server.now_ms - self.now_ms
        return {key.target: entry.expires_ms + shift for key, entry in self.state.cooldowns.running(self.now_ms)}

    def weights(self) -> dict[str, int]:
        return {key: n for key, n in self.state.peek_rotation("main").weights.items() if n}

    def counts(self) -> dict[str, int]:
        return {key: n for key, n in self.state.peek_rotation("main").counts.items() if n}

    def recalled(self) -> dict[str, str]:
        return {key.lane: selection.response_model for key, selection in self.state.recall.items()}


def group(size: int = 2) -> tuple[Server, list[Member]]:
    """Members that have joined; their clocks have nothing in common."""
    server = Server()
    members = [Member(f"{number:016x}", server, 1_000 + number * 7_777_777) for number in range(1, size + 1)]
    for member in members:
        member.join()
    return server, members


def settle(members: list[Member]) -> None:
    """Everybody connects, pushes and hears until there is nothing left."""
    for member in members:
        if not member.is_connected:
            member.join()
    while any([member.push() for member in members] + [member.hear() for member in members]):
        pass
