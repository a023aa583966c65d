"""The event stream: order, replay, slow listeners, the end."""

import asyncio

import pytest

from combos.admin.events import KEPT, LISTENERS_MAX, EventBus, TooManyListenersError


async def test_listeners_hear_everything_in_order_and_nothing_after() -> None:
    bus = EventBus()
    bus.publish("before", 1, {})
    with bus.listen() as one, bus.listen() as two:
        bus.publish("a", 2, {"x": 1})
        bus.publish("b", 3, {})
        for listener in (one, two):
            heard = [await listener.next(), await listener.next()]
            assert [(event.number, event.kind) for event in heard if event] == [(2, "a"), (3, "b")]
    bus.publish("c", 4, {})
    assert not bus._listeners


async def test_what_was_missed_is_told_again() -> None:
    bus = EventBus()
    for number in range(5):
        bus.publish("e", number, {})
    with bus.listen(after=3) as listener:
        heard = [await listener.next(), await listener.next()]
        assert [event.number for event in heard if event] == [4, 5]


async def test_what_was_missed_has_an_end_and_its_numbers_stay() -> None:
    bus = EventBus()
    for number in range(1, KEPT + 11):
        bus.publish("e", number, {"x": number})
    for after, first in ((0, 11), (10, 11), (11, 12), (KEPT + 9, KEPT + 10)):
        with bus.listen(after) as listener:
            heard = [await listener.next() for _ in range(KEPT + 11 - first)]
            assert [(event.number, event.at, event.data["x"]) for event in heard if event] == [
                (number, number, number) for number in range(first, KEPT + 11)
            ]
            assert not listener._waiting
    with bus.listen(after=KEPT + 10) as listener:
        assert not listener._waiting


async def test_what_makes_the_data_is_asked_for_each_who_looks_and_never_before() -> None:
    bus, made = EventBus(), []

    def make() -> dict[str, object]:
        made.append(1)
        return {"x": len(made)}

    bus.publish("e", 1, make)
    with bus.listen(after=0) as early, bus.listen() as late:
        bus.publish("f", 2, make)
        assert made == []
        for listener, kinds in ((early, ["e", "f"]), (late, ["f"])):
            events = [await listener.next() for _ in kinds]
            assert [event.kind for event in events if event and event.data] == kinds
    assert len(made) == 3


async def test_a_slow_listener_loses_the_oldest_and_costs_nothing() -> None:
    bus = EventBus()
    with bus.listen() as listener:
        for number in range(KEPT + 10):
            bus.publish("e", number, {})
        first = await listener.next()
        assert first is not None
        assert first.number == 11


async def test_waiting_ends_with_the_next_event_or_the_end() -> None:
    bus = EventBus()
    with bus.listen() as listener:
        waiting = asyncio.create_task(listener.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        bus.publish("e", 1, {})
        assert (await waiting) is not None
        bus.close()
        assert await listener.next() is None


async def test_the_number_of_listeners_is_bounded() -> None:
    import contextlib

    bus = EventBus()
    with contextlib.ExitStack() as stack:
        for _ in range(LISTENERS_MAX):
            stack.enter_context(bus.listen())
        with pytest.raises(TooManyListenersError), bus.listen():
            pass
