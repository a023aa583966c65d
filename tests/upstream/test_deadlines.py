"""Each try ends in its own time, whoever shares the timer, and a cancellation by somebody else stays one."""

import asyncio

import pytest

from combos.engine.commands import Timeouts
from combos.upstream.deadlines import Clock, Deadlines

LONG = 3_600_000


def limits(connect_ms: int = LONG, head_ms: int = LONG) -> Timeouts:
    return Timeouts(connect_ms=connect_ms, head_ms=head_ms, idle_ms=LONG)


async def wait(deadlines: Deadlines, timeouts: Timeouts, *, connected: bool = False) -> str:
    clock = Clock(deadlines, timeouts)
    try:
        with clock:
            if connected:
                clock.restart()
            await asyncio.Event().wait()
    except TimeoutError:
        return "expired"
    return "over"


async def test_the_shorter_one_ends_first_in_whatever_order_they_begin() -> None:
    for order in ((LONG, 1), (1, LONG)):
        deadlines = Deadlines()
        tasks = [asyncio.create_task(wait(deadlines, limits(ms))) for ms in order]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        assert [task.result() for task in done] == ["expired"]
        assert {tasks.index(task) for task in pending} == {order.index(LONG)}
        for task in pending:
            task.cancel()
        await asyncio.wait(pending)
        deadlines.close()


async def test_all_of_them_end_on_one_timer() -> None:
    deadlines = Deadlines()
    waiting = (wait(deadlines, limits(ms)) for ms in (3, 1, 2, 1, 3))
    async with asyncio.timeout(10):
        assert await asyncio.gather(*waiting) == ["expired"] * 5


@pytest.mark.parametrize(("connect_ms", "head_ms"), [(LONG, 1), (20, 1), (1, 20)])
async def test_a_connection_moves_the_deadline_to_and_fro(connect_ms: int, head_ms: int) -> None:
    async with asyncio.timeout(10):
        assert await wait(Deadlines(), limits(connect_ms, head_ms), connected=True) == "expired"


async def test_a_deadline_that_has_moved_away_does_not_end_anything() -> None:
    deadlines = Deadlines()
    clock = Clock(deadlines, limits(connect_ms=1))
    with clock:
        clock.restart()
        async with asyncio.timeout(10):
            assert await wait(deadlines, limits(connect_ms=5)) == "expired"
    deadlines.close()


async def test_what_is_over_is_not_ended_any_more() -> None:
    deadlines = Deadlines()
    clock = Clock(deadlines, limits(connect_ms=1))
    with clock:
        pass
    clock.restart()
    async with asyncio.timeout(10):
        assert await wait(deadlines, limits(connect_ms=5)) == "expired"
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_cancellation_by_somebody_else_is_none_of_time() -> None:
    deadlines = Deadlines()
    task = asyncio.create_task(wait(deadlines, limits()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadlines.close()


async def test_both_at_once_is_a_cancellation() -> None:
    deadlines = Deadlines()
    clock = Clock(deadlines, limits())

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
    clock = Clock(deadlines, limits())
    with pytest.raises(ValueError, match="broken"), clock:
        raise ValueError("broken")
    deadlines.close()


async def test_at_the_close_the_time_of_all_is_up() -> None:
    deadlines = Deadlines()
    tasks = [asyncio.create_task(wait(deadlines, limits(), connected=connected)) for connected in (False, True)]
    await asyncio.sleep(0)
    deadlines.close()
    async with asyncio.timeout(10):
        assert await asyncio.gather(*tasks) == ["expired"] * 2
