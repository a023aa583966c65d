"""Two real proxies that share state through a real server, and what becomes of them when it dies under load."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.proxyprocess import ADDON, MITMDUMP, ProxyProcess, mitmdump
from ports import free_port
from rawclient import Answer, ask
from rawserver import RawServer
from redisserver import RedisServer, redis_server
from stage import Case, document_of, stubs, until
from wires import R, error

DOWN = error(503, {"error": {"message": "down"}})
SHARES = r"combos: state is shared at"
LOST = "goes on with its own until it is back"
BACK = r"the shared state at \S+ is back$"
LIMIT_S = 30


class Group:
    """Proxies with the same configuration, and the management of each."""

    def __init__(self, proxies: Sequence[ProxyProcess], ports: Sequence[int], redis: RedisServer) -> None:
        self.proxies = list(proxies)
        self.redis = redis
        self._ports = dict(zip(map(id, proxies), ports, strict=True))

    async def manage(self, proxy: ProxyProcess, method: str, path: str) -> Any:
        token = (proxy.home / "admin-api-token").read_text().strip().encode()
        headers = ((b"Authorization", b"Bearer " + token),)
        answer = await ask(self._ports[id(proxy)], method, path, headers=headers)
        assert answer.status == 200, answer
        return answer.json()

    async def targets(self, proxy: ProxyProcess, case: Case) -> dict[str, Any]:
        """The live state of the case's targets, as this proxy sees it."""
        rows = await self.manage(proxy, "GET", "/api/combos/state")
        (row,) = [row for row in rows["combos"] if row["id"] == case.id]
        return {target["target"].removeprefix(f"{case.id}-"): target for target in row["targets"]}

    async def until(self, proxy: ProxyProcess, case: Case, **wanted: Any) -> None:
        """Wait until the named field of every target is as wanted: `successes={"alpha/m1": 1, …}`."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                seen = await self.targets(proxy, case)
                found = {name: {key: row[name] for key, row in seen.items()} for name in wanted}
                if found == wanted:
                    return
                await asyncio.sleep(0.01)


@asynccontextmanager
async def group(
    tmp_path: Path, confdir: Path, cases: Sequence[Case], redis: RedisServer, query: str = "", size: int = 2
) -> AsyncIterator[tuple[Group, RawServer]]:
    """Proxies that serve the cases, each with a home of its own, as on different machines."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(stubs(*cases))
        document, ports = document_of(cases, server.url, {}), [free_port() for _ in range(size)]
        proxies = [
            await stack.enter_async_context(
                mitmdump(
                    tmp_path / str(number),
                    confdir,
                    *("--set", f"combos_state={redis.url}{query}"),
                    document=document,
                    admin=f"127.0.0.1:{port}",
                )
            )
            for number, port in enumerate(ports)
        ]
        yield Group(proxies, ports, redis), server


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    with redis_server() as made:
        await made.start()
        yield made


async def sharing(on: Group) -> None:
    for proxy in on.proxies:
        await proxy.line(SHARES)


async def test_what_one_learns_the_other_knows(tmp_path: Path, confdir: Path, redis: RedisServer) -> None:
    cooled = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    turns = Case(R, combo={"strategy": "round-robin"}, alpha=R.answers("a"), beta=R.answers("b"))
    least = Case(R, combo={"strategy": "least-used"}, alpha=R.answers("a"), beta=R.answers("b"))
    kept = Case(R, alpha=R.answers("alpha-ok"))
    async with group(tmp_path, confdir, [cooled, turns, least, kept], redis) as (on, _):
        a, b = on.proxies
        await sharing(on)
        # A cooldown: B does not ask the target that A found down.
        await a.ask(cooled)
        await on.until(b, cooled, reason={"alpha/m1": "cooling", "beta/m2": None})
        assert (await b.ask(cooled)).status == 200
        assert cooled.calls == ["alpha", "beta", "beta"]
        # It is cleared through either, in both.
        assert (await on.manage(b, "POST", "/api/combos/cooldowns/clear"))["cleared"] == 1
        await on.until(a, cooled, reason={"alpha/m1": None, "beta/m2": None})
        # Rotation and counts go on where the other left off.
        for case in (turns, least):
            for number in range(6):
                here, there = (a, b) if number % 2 == 0 else (b, a)
                await here.ask(case)
                done = {"alpha/m1": number // 2 + 1, "beta/m2": (number + 1) // 2}
                await on.until(there, case, successes=done)
            assert case.calls == ["alpha", "beta"] * 3
        # A compaction finds through B the combo that answered through A.
        thread = ((b"thread-id", b"thread-1"),)
        await a.ask(kept, headers=thread)
        await on.until(b, kept, successes={"alpha/m1": 1})
        body = json.dumps(R.request("stub", input=[{"type": "compaction_trigger"}])).encode()
        assert (await ask(b.port, "POST", R.path, headers=thread, body=body)).status == 200
        assert kept.calls == ["alpha", "alpha"]


async def load(proxy: ProxyProcess, case: Case, stop: asyncio.Event) -> list[Answer]:
    """One request after another until told to stop."""
    answers = []
    while not stop.is_set():
        answers.append(await proxy.ask(case))
    return answers


async def test_the_server_dies_under_load_and_comes_back(tmp_path: Path, confdir: Path, redis: RedisServer) -> None:
    turns = Case(R, combo={"strategy": "round-robin"}, alpha=R.answers("a"), beta=R.answers("b"))
    cooled = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with group(tmp_path, confdir, [turns, cooled], redis) as (on, _):
        a, b = on.proxies
        await sharing(on)
        stop = asyncio.Event()
        loads = [asyncio.create_task(load(proxy, turns, stop)) for proxy in (a, a, b, b)]
        await a.line(f"{turns.id}: ")
        redis.kill()
        for proxy in (a, b):
            await proxy.line(LOST)
        # Each goes on with what it has: what A learns now is its own.
        await a.ask(cooled)
        assert (await on.targets(a, cooled))["alpha/m1"]["reason"] == "cooling"
        assert (await on.targets(b, cooled))["alpha/m1"]["reason"] is None
        await redis.start()
        for proxy in (a, b):
            await proxy.line(BACK)
        await on.until(b, cooled, reason={"alpha/m1": "cooling", "beta/m2": None})
        # The server forgets everything while it is in use.
        redis.client.flushall()
        before = len(turns.calls)
        await until(lambda: len(turns.calls) >= before + 20, LIMIT_S)
        stop.set()
        answers = [answer for task in loads for answer in await task]
        assert {answer.status for answer in answers} == {200}
        assert set(turns.calls) == {"alpha", "beta"}
        for proxy in (a, b):
            assert sum(LOST in line for line in proxy.lines) == 1
            assert len(re.findall(BACK, proxy.log, re.MULTILINE)) == 1
            seen = await on.targets(proxy, turns)
            assert sum(row["successes"] for row in seen.values()) <= len(turns.calls)


async def test_a_killed_proxy_leaves_nothing_behind_that_sends_all_to_one_target(
    tmp_path: Path, confdir: Path, redis: RedisServer
) -> None:
    least = Case(R, combo={"strategy": "least-used"}, alpha=R.answers("a"), beta=R.answers("b"))
    async with stubs(least) as server:
        document, ports = document_of([least], server.url, {}), [free_port(), free_port()]
        shares = ("--set", f"combos_state={redis.url}")
        admins = [f"127.0.0.1:{port}" for port in ports]
        async with mitmdump(tmp_path / "b", confdir, *shares, document=document, admin=admins[1]) as b:
            await b.line(SHARES)
            killed = mitmdump(tmp_path / "a", confdir, *shares, document=document, admin=admins[0])
            a = await killed.__aenter__()
            await a.line(SHARES)
            on = Group([a, b], ports, redis)
            for number in range(10):
                await (a, b)[number % 2].ask(least)
                for each in (a, b):  # whoever is asked next has to know
                    served = {"alpha/m1": number // 2 + 1, "beta/m2": (number + 1) // 2}
                    await on.until(each, least, successes=served)
            a.process.send_signal(signal.SIGKILL)
            await a.process.wait()
            for _ in range(4):
                await b.ask(least)
            assert least.calls[10:] == ["alpha", "beta"] * 2


async def test_proxies_of_other_configurations_do_not_mix(tmp_path: Path, confdir: Path, redis: RedisServer) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("b"))
    async with stubs(case) as server:
        document = document_of([case], server.url, {})
        elsewhere = json.loads(json.dumps(document))
        for row in elsewhere["providers"].values():
            row["baseUrl"] += "/"
        shares = ("--set", f"combos_state={redis.url}")
        async with (
            mitmdump(tmp_path / "1", confdir, *shares, document=document) as one,
            mitmdump(tmp_path / "2", confdir, *shares, document=elsewhere) as other,
        ):
            for proxy in (one, other):
                await proxy.line(SHARES)
                await proxy.ask(case)
            assert case.calls == ["alpha", "beta"] * 2
            assert len(redis.client.keys("combos:1:*:sums")) == 2


async def test_a_configuration_that_changes_takes_the_state_along(
    tmp_path: Path, confdir: Path, redis: RedisServer
) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("b"), gamma=R.answers("c"))
    async with group(tmp_path, confdir, [case], redis) as (on, _):
        a, b = on.proxies
        await sharing(on)
        await a.ask(case)
        await on.until(b, case, reason={"alpha/m1": "cooling", "beta/m2": None, "gamma/m3": None})
        await on.manage(b, "POST", "/api/combos/cooldowns/clear")
        await on.until(a, case, reason={"alpha/m1": None, "beta/m2": None, "gamma/m3": None})
        await a.ask(case)
        document = json.loads(a.config.read_text())
        del document["combos"][case.id]["targets"][2]
        for proxy in (a, b):
            proxy.config.write_text(json.dumps(document))
        for proxy in (a, b):
            await on.until(proxy, case, reason={"alpha/m1": "cooling", "beta/m2": None})


async def test_a_server_that_is_not_there_does_not_hold_up_the_start(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("a"))
    with redis_server() as redis:
        async with group(tmp_path, confdir, [case], redis, size=1) as (on, _):
            (proxy,) = on.proxies
            await proxy.line(LOST)
            assert (await proxy.ask(case)).status == 200
            await redis.start()
            await proxy.line(BACK)


async def test_a_bad_address_ends_the_start_with_one_line_that_hides_it(tmp_path: Path, confdir: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(str(MITMDUMP), "-s", str(ADDON), "-p", "0"),
        *("--set", f"confdir={confdir}", "--set", "combos_admin_listen="),
        *("--set", "combos_state=redis://:very-secret@host/x"),
        env={"COMBOS_HOME": str(tmp_path), "PATH": ""},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode == 1
    assert b"combos_state must name the database by a number" in output
    assert b"very-secret" not in output
