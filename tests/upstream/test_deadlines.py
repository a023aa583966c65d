"""Each try ends in its own time, whoever shares the timer, and a cancellation by somebody else stays one."""

import asyncio
import math

import pytest

from combos.upstream.deadlines import Clock, Deadlines

LONG = 3_600_000


class Waiter:
    """Something that waits, and notes when its time is up. `ms` from now on."""

    def __init__(self, deadlines: Deadlines, ms: float) -> None:
        self.expired = asyncio.Event()
        self.deadlines = deadlines
        self.wait(ms)

    def wait(self, ms: float) -> None:
        self.at = asyncio.get_running_loop().time() + ms / 1000
        self.deadlines.add(self)

    def expire(self) -> None:
        self.expired.set()


async def wait(deadlines: Deadlines, ms: int) -> str:
    try:
        with Clock(deadlines, ms):
            await asyncio.Event().wait()
    except TimeoutError:
        return "expired"
    return "over"


async def test_the_shorter_one_ends_first_in_whatever_order_they_begin() -> None:
    for order in ((LONG, 1), (1, LONG)):
        deadlines = Deadlines()
        tasks = [asyncio.create_task(wait(deadlines, ms)) for ms in order]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        assert [task.result() for task in done] == ["expired"]
        assert {tasks.index(task) for task in pending} == {order.index(LONG)}
        for task in pending:
            task.cancel()
        await asyncio.wait(pending)
        deadlines.close()


async def test_all_of_them_end_on_one_timer() -> None:
    deadlines = Deadlines()
    waiting = (wait(deadlines, ms) for ms in (3, 1, 2, 1, 3))
    async with asyncio.timeout(10):
        assert await asyncio.gather(*waiting) == ["expired"] * 5


@pytest.mark.parametrize(("first_ms", "then_ms"), [(LONG, 1), (20, 1), (1, 20), (math.inf, 1)])
async def test_a_deadline_may_move_to_and_fro(first_ms: float, then_ms: float) -> None:
    deadlines = Deadlines()
    waiter = Waiter(deadlines, first_ms)
    waiter.wait(then_ms)
    async with asyncio.timeout(10):
        await waiter.expired.wait()
    assert asyncio.get_running_loop().time() >= waiter.at


async def test_a_deadline_that_has_moved_away_does_not_end_anything() -> None:
    for later in (LONG, math.inf):
        deadlines = Deadlines()
        waiter = Waiter(deadlines, 1)
        waiter.at += later
        async with asyncio.timeout(10):
            assert await wait(deadlines, 5) == "expired"
        assert not waiter.expired.is_set()
        waiter.wait(1)
        async with asyncio.timeout(10):
            await waiter.expired.wait()
        deadlines.close()


async def test_what_is_over_is_not_ended_any_more() -> None:
    deadlines = Deadlines()
    with Clock(deadlines, 1):
        pass
    waiter = Waiter(deadlines, 1)
    deadlines.discard(waiter)
    async with asyncio.timeout(10):
        assert await wait(deadlines, 5) == "expired"
    assert not waiter.expired.is_set()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_cancellation_by_somebody_else_is_none_of_time() -> None:
    deadlines = Deadlines()
    task = asyncio.create_task(wait(deadlines, LONG))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadlines.close()


async def test_both_at_once_is_a_cancellation() -> None:
    deadlines = Deadlines()
    clock = Clock(deadlines, LONG)

    async def work() -> None:
        with clock:
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    clock.expire()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelling() == 1
    deadlines.close()


async def test_another_error_stays_itself() -> None:
    deadlines = Deadlines()
    clock = Clock(deadlines, LONG)
    with pytest.raises(ValueError, match="broken"), clock:
        raise ValueError("broken")
    deadlines.close()


async def test_at_the_close_the_time_of_all_is_up() -> None:
    deadlines = Deadlines()
    tasks = [asyncio.create_task(wait(deadlines, LONG)) for _ in range(2)]
    waiter = Waiter(deadlines, math.inf)
    await asyncio.sleep(0)
    deadlines.close()
    async with asyncio.timeout(10):
        assert await asyncio.gather(*tasks) == ["expired"] * 2
    assert waiter.expired.is_set()
