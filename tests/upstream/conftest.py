"""Fixtures: an upstream session that must leave no task behind, and certificate authorities."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from authority import Authority
from combos.upstream.session import Upstream


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """A session with default settings; at its end the tasks are back to what they were."""
    before = asyncio.all_tasks()
    session = Upstream()
    yield session
    await session.close()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"tasks left behind: {left}"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The certificate authority that the tests trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")
