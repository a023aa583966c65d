"""Proxies that leave nothing behind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from combos.mitm.layer import StreamedResponses
from mitm.harness import Proxy, no_leaked_sockets, running_proxy, settle
from mitm.streaming import Start


@pytest.fixture
async def start(confdir: Path) -> AsyncIterator[Start]:
    """Starts proxies; afterwards nothing of them may be left: no task, no socket."""
    before = asyncio.all_tasks()
    with no_leaked_sockets():
        async with AsyncExitStack() as stack:

            async def run(*addons: object, **options: Any) -> Proxy:
                return await stack.enter_async_context(running_proxy(confdir, StreamedResponses(), *addons, **options))

            yield run
        await settle(lambda: not {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()})
