"""Connections that wait: which one is taken, which are closed and when."""

import asyncio
from collections.abc import Iterator

import pytest

from combos.upstream.idle import KEEPALIVE_S, Idle


class Link:
    def __init__(self) -> None:
        self.is_usable = True
        self.end = ""

    def close(self) -> None:
        self.end += "closed"

    def abort(self) -> None:
        self.end += "aborted"


class Loop:
    """The event loop's time and its timers, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.timers: list[tuple[float, Timer]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback) -> "Timer":
        timer = Timer(callback)
        self.timers.append((self.now + delay, timer))
        return timer

    def go(self, seconds: float) -> None:
        self.now += seconds
        due, self.timers = self.timers, []
        for at, timer in due:
            if timer.cancelled:
                continue
            if at <= self.now:
                timer.callback()
            else:
                self.timers.append((at, timer))


class Timer:
    def __init__(self, callback) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    made = Loop()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "get_running_loop", lambda: made)
        yield made


def kept(idle: Idle[Link], key: str = "a", count: int = 1) -> list[Link]:
    links = [Link() for _ in range(count)]
    for link in links:
        idle.keep(key, link)
    return links


def test_the_one_that_was_used_last_is_taken_first(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    first, second = kept(idle, count=2)
    assert [idle.take("a") for _ in range(3)] == [second, first, None]
    assert len(idle) == 0


def test_nobody_gets_what_was_opened_for_something_else(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    (link,) = kept(idle, "a")
    assert idle.take("b") is None
    assert idle.take("a") is link


def test_what_is_of_no_use_is_closed_on_the_way(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    good, bad = kept(idle, count=2)
    bad.is_usable = False
    assert idle.take("a") is good
    assert (good.end, bad.end) == ("", "aborted")


def test_what_has_waited_too_long_is_closed_and_not_taken(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    (link,) = kept(idle)
    loop.now += KEEPALIVE_S + 1
    assert idle.take("a") is None
    assert link.end == "closed"


def test_time_closes_what_nobody_takes_and_only_that(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    (old,) = kept(idle)
    loop.go(KEEPALIVE_S / 2)
    young, dead, other = [*kept(idle, count=2), *kept(idle, "b")]
    dead.is_usable = False
    loop.go(KEEPALIVE_S / 2)
    assert [link.end for link in (old, dead, young, other)] == ["closed", "closed", "", ""]
    assert len(idle) == 2
    loop.go(KEEPALIVE_S)
    assert [link.end for link in (young, other)] == ["closed", "closed"]
    assert len(idle) == 0
    assert loop.timers == [], "nothing waits, so nobody looks"
    (late,) = kept(idle)
    loop.go(KEEPALIVE_S)
    assert late.end == "closed"


def test_one_dead_connection_discredits_those_that_waited_beside_it(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    links, other = kept(idle, count=3), kept(idle, "b")
    idle.distrust("a")
    idle.distrust("never there")
    assert [link.end for link in links] == ["aborted"] * 3
    assert [link.end for link in other] == [""]
    assert idle.take("a") is None


def test_closing_closes_all_and_what_comes_later(loop: Loop) -> None:
    idle: Idle[Link] = Idle()
    links = [*kept(idle, count=2), *kept(idle, "b")]
    idle.close()
    links += kept(idle)
    assert [link.end for link in links] == ["closed"] * 4
    assert len(idle) == 0
    assert all(timer.cancelled for _, timer in loop.timers)
