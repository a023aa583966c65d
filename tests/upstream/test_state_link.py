"""The link to a real server: what is told arrives, what is lost comes back, and nothing secret is said."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from authority import Authority
from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.core.recall import Completion, caller_digest, lane_key
from combos.core.sharing import Joined, Push
from combos.engine.sharing import Sharing
from combos.engine.state import PickedFrom
from combos.upstream import state_link, state_standing
from combos.upstream.state_link import StateLink
from combos.upstream.state_scripts import JOIN, PUSH
from combos.upstream.state_url import StateAddress, parse_state
from combos.wire.sharing import cell_texts, push_texts, told_of
from engine.test_sharing import STEPS, act
from playbook import World, config
from ports import free_port
from redisserver import RedisServer, redis_server
from sharinggroup import Member, Server, settle
from stage import until as until_within

HOP = Verdict("status-retryable", hop=True, scope=Scope.TARGET)
SUMS, REGISTERS, TOLD = (f"combos:1:{{g}}:{name}" for name in ("sums", "registers", "told"))


def until(condition: Callable[[], bool]) -> Awaitable[None]:
    return until_within(condition, 30)


class Peer:
    """One proxy's state and link, on the real clock."""

    def __init__(self, url: str, group: str = "g") -> None:
        address = parse_state(url, {})
        assert address is not None
        self.world = World(config("alpha/m1", "beta/m2", strategy="round-robin"))
        self.state = self.world.state
        self.sharing = Sharing(self.state, secrets.token_hex(8), _mono_ms, lambda urgent: self.link.wake(urgent))
        self.state.journal = self.sharing
        self.link = StateLink(address, group, self.sharing)

    @property
    def origin(self) -> PickedFrom:
        return PickedFrom(self.world.registry.combos["main"], self.world.registry.generation)

    def cool(self, ms: int = 60_000) -> None:
        target = self.origin.combo.targets[0]
        self.state.cool(self.origin, target, HOP, Cooldown(ms, "default"), 503, Now(_mono_ms(), 0))

    def succeed(self) -> None:
        self.state.succeeded(self.origin, self.origin.combo.targets[0], None, Now(_mono_ms(), 0))

    def remember(self) -> None:
        chosen = Completion(self.origin.combo, self.origin.combo.targets[0], self.origin.generation, "named")
        self.state.completed(
            self.world.registry, lane_key(caller_digest(b"caller"), "lane"), chosen, Now(_mono_ms(), 0)
        )

    @property
    def is_cooling(self) -> bool:
        return any(True for _ in self.state.cooldowns.running(_mono_ms()))

    @property
    def successes(self) -> int:
        return sum(self.state.peek_rotation("main").counts.values())


def _mono_ms() -> int:
    return int(time.monotonic() * 1000)


@asynccontextmanager
async def running(*peers: Peer, connected: bool = True) -> AsyncIterator[None]:
    """The peers' links, connected."""
    tasks = [asyncio.create_task(peer.link.run()) for peer in peers]
    try:
        if connected:
            await until(lambda: all(peer.link.is_connected for peer in peers))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def said(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level and "combos" in record.name]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses: what is waited for here is a server on this machine."""
    monkeypatch.setattr(state_standing, "PAUSE_S", (0.01, 0.05))
    monkeypatch.setattr(state_link, "HEARTBEAT_S", 0.2)


@pytest.fixture
async def server() -> AsyncIterator[RedisServer]:
    with redis_server() as made:
        await made.start()
        yield made


async def test_everything_shared_arrives(server: RedisServer) -> None:
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        a.cool()
        a.succeed()
        a.remember()
        await until(lambda: b.is_cooling and b.successes == 1 and len(b.state.recall) == 1)
        b.state.clear_cooldowns()
        await until(lambda: not a.is_cooling)
        late = Peer(server.url)
        async with running(late):
            assert late.successes == 1
            assert not late.is_cooling


async def test_what_is_urgent_waits_for_nothing_else(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_link, "GATHER_S", (0.001, 600))
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        a.succeed()
        await until(lambda: b.successes == 1)
        a.succeed()
        a.cool()
        await until(lambda: b.is_cooling)
        assert b.successes == 2
        a.state.clear_cooldowns()
        await until(lambda: not b.is_cooling)


async def test_groups_do_not_mix(server: RedisServer) -> None:
    a, b, c = Peer(server.url), Peer(server.url, "h"), Peer(f"{server.url}?prefix=g")
    async with running(a, b, c):
        a.cool()
        await until(lambda: c.is_cooling)
        b.succeed()
        await until(lambda: server.client.hget("combos:1:{h}:sums", 'n["main","alpha/m1"]') == b"1")
        assert not b.is_cooling


async def test_everything_on_the_server_has_an_end(server: RedisServer) -> None:
    a = Peer(server.url)
    async with running(a):
        a.cool()
        a.remember()
        await until(lambda: server.client.hlen(REGISTERS) == 2)
        ends = {key.decode(): server.client.pttl(key) for key in server.client.keys("*")}
        assert len(ends) == 3
        assert all(ms > 0 for ms in ends.values())
        assert ends[SUMS] <= 60_000


async def test_what_is_stored_names_no_caller_and_no_conversation(server: RedisServer) -> None:
    a = Peer(server.url)
    async with running(a):
        a.remember()
        await until(lambda: server.client.hlen(REGISTERS) == 1)
        ((field, _),) = server.client.hgetall(REGISTERS).items()
        assert b"lane" not in field


async def test_a_server_that_dies_is_one_warning_and_one_note(
    server: RedisServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    attempts: list[StateAddress] = []
    connect = state_link._client
    monkeypatch.setattr(state_link, "_client", lambda address: attempts.append(address) or connect(address))
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        a.cool()
        await until(lambda: b.is_cooling)
        server.kill()
        await until(lambda: not a.link.is_connected and not b.link.is_connected)
        a.state.clear_cooldowns()
        b.succeed()
        before = len(attempts)
        await until(lambda: len(attempts) >= before + 8)  # several in vain
        await server.start()
        await until(lambda: not b.is_cooling and a.successes == 1)
        await until(lambda: a.link.is_connected and b.link.is_connected)
    assert [text.rpartition(" ")[2] for text in said(caplog)] == [str(server.socket)] * 2 + ["back"] * 2
    assert len(said(caplog, logging.WARNING)) == 2
    assert all("goes on with its own" in text for text in said(caplog, logging.WARNING))


async def test_a_server_that_is_not_there_at_first(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with redis_server() as server:
        a, b = Peer(server.url), Peer(server.url)
        async with running(a, b, connected=False):
            await until(lambda: len(said(caplog, logging.WARNING)) == 2)
            a.cool()
            b.succeed()
            await server.start()
            await until(lambda: b.is_cooling and a.successes == 1)
            await until(lambda: a.link.is_connected and b.link.is_connected)
    assert len(said(caplog, logging.WARNING)) == 2
    assert len(said(caplog)) == 2


async def test_a_server_that_hangs_is_left(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(state_link, "ANSWER_S", 1.0)
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        server.freeze()
        a.cool()
        await until(lambda: not a.link.is_connected and not b.link.is_connected)
        server.thaw()
        await until(lambda: b.is_cooling)
    assert any("does not answer" in text for text in said(caplog, logging.WARNING))


async def test_a_channel_that_falls_silent_is_left(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_link, "SILENCE_S", 0.3)
    monkeypatch.setattr(state_link, "HEARTBEAT_S", 60)
    a = Peer(server.url)
    async with running(a):
        session = a.link._session
        await until(lambda: a.link._session != session)


async def test_a_server_that_forgets_everything_while_in_use(server: RedisServer) -> None:
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        a.cool()
        a.succeed()
        await until(lambda: b.is_cooling and b.successes == 1)
        server.client.flushall()
        b.succeed()
        await until(lambda: a.successes == 2 and server.client.hlen(REGISTERS) == 1)
        assert b.is_cooling


async def test_a_subscription_that_is_cut_is_made_anew(server: RedisServer) -> None:
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        server.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        a.cool()
        a.succeed()
        await until(lambda: b.is_cooling and b.successes == 1)


async def test_rubbish_on_the_server_does_no_harm(server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    a, b = Peer(server.url), Peer(server.url)
    async with running(a, b):
        a.succeed()
        await until(lambda: b.successes == 1)
        for data in (b"", b"\xff\x00", b"[]", b'["a"]', b"{" * 9999, b'w["main","alpha/m1"]', b'n["main","alpha/m1"]'):
            server.client.publish(TOLD, data)
            server.client.hset(REGISTERS, data, data)
            server.client.hset(SUMS, data, data)
        a.cool()
        a.succeed()
        late = Peer(server.url)
        async with running(late):
            await until(lambda: b.is_cooling and late.is_cooling)
            late.succeed()
            await until(lambda: a.successes == b.successes == late.successes)
    warned = said(caplog, logging.WARNING)
    assert len(warned) == 2
    assert all("no message" in text for text in warned)


async def test_keys_of_another_kind_are_a_failure_like_any_other(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.client.set(SUMS, "somebody else's")
    a = Peer(server.url)
    async with running(a, connected=False):
        await until(lambda: bool(said(caplog, logging.WARNING)))
        assert "it refuses" in said(caplog, logging.WARNING)[0]
        server.client.delete(SUMS)
        await until(lambda: a.link.is_connected)


# -- who may

RIGHTS = (
    "resetchannels -@all +@connection +eval +subscribe +unsubscribe +publish +ping +time"
    " +hget +hset +hdel +hkeys +hgetall +hincrby +get +set +del +pexpire ~combos:1:* &combos:1:*"
)


async def test_the_rights_that_the_documentation_asks_for_are_enough(server: RedisServer) -> None:
    documented = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text()
    assert f"ACL SETUSER combos on >PASSWORD {RIGHTS}" in " ".join(documented.split())
    server.client.execute_command("ACL", "SETUSER", "combos", "on", ">hush", *RIGHTS.split())
    a, b = (Peer(f"unix://combos:hush@{server.socket}") for _ in range(2))
    async with running(a, b):
        a.cool()
        await until(lambda: b.is_cooling)
        b.sharing.forgot("main")
        await until(lambda: not a.is_cooling)


@pytest.mark.parametrize("right", ["hincrby", "hkeys", "publish"])
async def test_a_login_that_may_join_and_not_push_is_one_warning(
    server: RedisServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, right: str
) -> None:
    caplog.set_level(logging.INFO)
    attempts: list[StateAddress] = []
    connect = state_link._client
    monkeypatch.setattr(state_link, "_client", lambda address: attempts.append(address) or connect(address))
    server.client.execute_command("ACL", "SETUSER", "combos", "on", ">hush", *RIGHTS.split(), f"-{right}")
    a = Peer(f"unix://combos:hush@{server.socket}")
    a.sharing.forgot("main")
    async with running(a, connected=False):
        await until(lambda: len(attempts) >= 8)
        assert not a.link.is_connected
        assert said(caplog) == []
        assert len(said(caplog, logging.WARNING)) == 1
        server.client.execute_command("ACL", "SETUSER", "combos", "+hincrby", "+hkeys", "+publish")
        monkeypatch.setattr(state_standing, "STEADY_S", 0.0)
        await until(lambda: bool(said(caplog)))
    assert len(said(caplog, logging.WARNING)) == 1


async def test_sums_that_are_lost_again_and_again_are_one_warning(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    a = Peer(server.url)
    async with running(a):
        for _ in range(6):
            session = a.link._session
            server.client.delete(SUMS)
            a.succeed()
            await until(lambda: a.link._session != session and a.link.is_connected)  # noqa: B023 - awaited at once
    assert len(said(caplog)) == len(said(caplog, logging.WARNING)) == 1
    assert "it does not keep what it is told" in said(caplog, logging.WARNING)[0]


async def test_why_there_is_no_connection_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A server of another protocol, no socket, nobody who listens: each wants another remedy."""

    async def foreign(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(b"HTTP/1.1 400 canary\r\n\r\n")
        writer.close()

    stranger = await asyncio.start_server(foreign, "127.0.0.1", 0)
    port = stranger.sockets[0].getsockname()[1]
    expected = {
        f"redis://127.0.0.1:{port}": "it does not speak the protocol of Redis",
        f"unix://{tmp_path}/nobody.sock": "no connection, no such file or directory",
        "redis://127.0.0.1:1": "no connection, connection refused",
    }
    for url, reason in expected.items():
        caplog.clear()
        async with running(Peer(url), connected=False):
            await until(lambda: bool(said(caplog, logging.WARNING)))
        (text,) = said(caplog, logging.WARNING)
        assert f"is out of reach: {reason};" in text
        assert "canary" not in text
    stranger.close()
    await stranger.wait_closed()


@pytest.mark.parametrize(("login", "reason"), [("combos:wrong-hush", "refuses the password"), ("few:hush", "permit")])
async def test_a_login_that_does_not_do(
    server: RedisServer, caplog: pytest.LogCaptureFixture, login: str, reason: str
) -> None:
    caplog.set_level(logging.DEBUG)
    server.client.execute_command("ACL", "SETUSER", "combos", "on", ">hush", *RIGHTS.split())
    server.client.execute_command("ACL", "SETUSER", "few", "on", ">hush", "+@connection", "+subscribe", "&*")
    async with running(Peer(f"unix://{login}@{server.socket}"), connected=False):
        await until(lambda: bool(said(caplog, logging.WARNING)))
    assert reason in said(caplog, logging.WARNING)[0]
    assert "hush" not in caplog.text


async def test_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = Authority(tmp_path)
    certificate, port = authority.issue("localhost"), free_port()
    files = ("--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-ca-cert-file", authority.ca_file)
    options = ("--port", "0", "--tls-port", port, "--tls-auth-clients", "no", *files, "--bind", "127.0.0.1")
    with redis_server(*map(str, options)) as server:
        await server.start()
        url = f"rediss://localhost:{port}"
        a, b, stranger = Peer(f"{url}?ca={authority.ca_file}"), Peer(f"{url}?ca={authority.ca_file}"), Peer(url)
        async with running(a, b), running(stranger, connected=False):
            a.cool()
            await until(lambda: b.is_cooling)
            await until(lambda: stranger.link._standing.is_lost)
    assert "out of reach: no connection, TLS fails;" in said(caplog, logging.WARNING)[0]


# -- the scripts do what the model of the tests does


class RealServer(Server):
    """The model's place taken by a real server; only the clock of the tests is still its own."""

    def __init__(self, real: RedisServer) -> None:
        self._client = real.client
        super().__init__()

    def flush(self) -> None:
        self._client.flushall()

    def join(self, member: Member) -> Joined:
        session = f"{member.session:016x}"
        arguments = ("60000", "60000", "60000", secrets.token_hex(8), session, *cell_texts(member.sharing.seeds()))
        joined = state_link._joined_of(self._client.eval(JOIN, 3, *_keys(member), *arguments))
        return Joined(self.now_ms, joined.epoch, joined.version, joined.applied, joined.totals, joined.registers)

    def push(self, member: Member, epoch: str, push: Push) -> bool:
        listening = self._client.pubsub()
        listening.subscribe(TOLD)
        head = (TOLD, epoch, f"{member.session:016x}", member.name, str(push.number))
        arguments = ("60000", "60000", "60000", *head, *push_texts(push))
        done: Any = self._client.eval(PUSH, 3, *_keys(member), *arguments)
        if done == b"ok":
            told = told_of(next(m["data"] for m in listening.listen() if m["type"] == "message"))
            for listener in self.listeners:
                if listener.is_connected:
                    listener.inbox.append(told)
        listening.close()
        return bool(done == b"ok")


def _keys(member: Member) -> tuple[str, ...]:
    return SUMS, REGISTERS, f"combos:1:{{g}}:mark:{member.name}"


async def test_the_scripts_in_any_interleaving(server: RedisServer) -> None:
    @settings(max_examples=40, deadline=None)
    @given(steps=st.lists(st.tuples(st.integers(0, 1), STEPS), max_size=40))
    def check(steps: list[tuple[int, tuple[Any, ...]]]) -> None:
        real = RealServer(server)
        members = [Member(f"{number:016x}", real, number * 7_777_777) for number in (1, 2)]
        for member in members:
            member.join()
        successes = sum(act(members[who], step) for who, step in steps)
        settle(members)
        a, b = members
        assert (a.cooling(), a.weights(), a.counts(), a.recalled()) == (
            b.cooling(),
            b.weights(),
            b.counts(),
            b.recalled(),
        )
        assert sum(a.counts().values()) == successes

    check()
