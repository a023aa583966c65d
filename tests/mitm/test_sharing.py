"""Whom the state is shared with follows the option and the configuration, while everything runs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from combos.mitm.sharing import SharedState
from combos.upstream import state_standing
from combos.upstream.state_url import StateAddress, parse_state
from playbook import World, config
from redisserver import RedisServer, redis_server
from stage import until as until_within


def until(condition: Callable[[], bool]) -> Awaitable[None]:
    return until_within(condition, 30)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_standing, "PAUSE_S", (0.01, 0.05))


@pytest.fixture
async def server() -> AsyncIterator[RedisServer]:
    with redis_server() as made:
        await made.start()
        yield made


def address(server: RedisServer, query: str = "") -> StateAddress:
    found = parse_state(server.url + query, {})
    assert found is not None
    return found


@asynccontextmanager
async def shared(world: World) -> AsyncIterator[SharedState]:
    made = SharedState(world.state, lambda: world.mono_ms)
    made.follow(world.registry)
    try:
        yield made
    finally:
        await made.close()
    assert not [task for task in asyncio.all_tasks() if "shared state" in task.get_name()]


def groups(server: RedisServer) -> list[str]:
    """The groups whose sums the server has."""
    return sorted(key.decode().split("{")[1].split("}")[0] for key in server.client.keys("combos:1:*:sums"))


async def test_nothing_is_shared_before_the_start_or_without_an_address(server: RedisServer) -> None:
    world = World(config())
    async with shared(world) as made:
        made.start()
        assert world.state.journal is None
    async with shared(world) as made:
        made.configure(address(server))
        assert world.state.journal is None
        made.start()
        assert world.state.journal is not None
        await until(lambda: len(groups(server)) == 1)
        await until(lambda: made.is_connected is True)
        server.kill()
        await until(lambda: made.is_connected is False)
        made.configure(None)
        assert made.is_connected is None


async def test_the_option_can_change_at_any_time(server: RedisServer) -> None:
    world = World(config())
    async with shared(world) as made:
        made.start()
        made.configure(address(server, "?prefix=first"))
        await until(lambda: groups(server) == ["first"])
        journal = world.state.journal
        made.configure(address(server, "?prefix=first"))  # nothing new
        made.configure(address(server, "?prefix=second"))
        assert world.state.journal is journal
        await until(lambda: groups(server) == ["first", "second"])
        made.configure(None)
        assert world.state.journal is None
        world.state.clear_cooldowns()
        made.configure(address(server, "?prefix=third"))
        await until(lambda: "third" in groups(server))


async def test_the_group_is_that_of_the_configuration_unless_it_is_named(server: RedisServer) -> None:
    world = World(config())
    async with shared(world) as made:
        made.start()
        made.configure(address(server))
        await until(lambda: len(groups(server)) == 1)
        world.reload(config("beta/m2"))
        made.follow(world.registry)
        await until(lambda: len(groups(server)) == 2)
        world.reload(config("beta/m2", strategy="random"))  # the same targets
        made.follow(world.registry)
        made.configure(address(server, "?prefix=named"))
        await until(lambda: "named" in groups(server))
        world.reload(config("alpha/m1"))
        made.follow(world.registry)
        made.sweep()
        assert len(groups(server)) == 3
