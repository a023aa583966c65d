"""Fixtures: an upstream session that must leave no socket, file or task behind."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from authority import Authority

from combos.upstream.session import Upstream


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """A session with default settings; at its end tasks are back to what they were."""
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


def open_files() -> int:
    """How many file descriptors this process holds."""
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
