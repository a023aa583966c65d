"""Remembered hooks behave as mitmproxy's own dispatch does, whatever comes, goes, halts or fails."""

import asyncio
import logging
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mitmproxy import hooks
from mitmproxy.addonmanager import AddonManager
from mitmproxy.addons.script import ScriptLoader
from mitmproxy.exceptions import AddonHalt
from mitmproxy.log import AddLogHook, LegacyLogEvents, LogEntry
from mitmproxy.proxy.layers.http import HttpRequestHeadersHook, HttpRequestHook
from mitmproxy.test import taddons, tflow

from combos.mitm.hooks import RememberedHooks, fire

EVENT = HttpRequestHook(tflow.tflow())


class Named:
    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls


class Plain(Named):
    def request(self, flow: object) -> None:
        self.calls.append(self.name)


class Awaited(Named):
    async def request(self, flow: object) -> None:
        await asyncio.sleep(0)
        self.calls.append(self.name)


class Halting(Plain):
    def request(self, flow: object) -> None:
        super().request(flow)
        raise AddonHalt


class Failing(Plain):
    def request(self, flow: object) -> None:
        super().request(flow)
        raise ValueError("broken addon")


class Group(Plain):
    def __init__(self, name: str, calls: list[str], *addons: object) -> None:
        super().__init__(name, calls)
        self.addons = list(addons)


class Idle(Named):
    pass


class Uncallable(Named):
    request = "text"


class Importing(Named):
    request = types


@pytest.fixture
def manager() -> Iterator[AddonManager]:
    with taddons.context() as context:
        yield context.master.addons


def compare_sync(manager: AddonManager, calls: list[str], caplog: pytest.LogCaptureFixture) -> list[str]:
    """As `compare`, for hooks that are fired outside tasks."""
    seen = []
    remembered = RememberedHooks(manager)
    for install in (False, True, True):
        if install:
            remembered.install()
        calls.clear()
        caplog.clear()
        manager.trigger(EVENT)
        seen.append((list(calls), [record.getMessage() for record in caplog.records]))
    remembered.remove()
    assert seen[0] == seen[1] == seen[2]
    return seen[0][0]


async def triggered(manager: AddonManager) -> None:
    await manager.trigger_event(EVENT)


async def fired(_manager: AddonManager) -> None:
    """The event, without an object for it."""
    if (waiting := fire(HttpRequestHook, EVENT.flow)) is not None:
        await waiting


async def compare(manager: AddonManager, calls: list[str], caplog: pytest.LogCaptureFixture) -> list[str]:
    """What mitmproxy's own dispatch does, after having seen that ours does the same, by every way and twice."""
    seen = []
    remembered = RememberedHooks(manager)
    ways = (triggered, fired, triggered, fired)
    for way, install in zip(ways, (False, False, True, True), strict=True):
        if install:
            remembered.install()
        for _ in range(2):
            calls.clear()
            caplog.clear()
            await way(manager)
            seen.append((list(calls), [record.getMessage() for record in caplog.records]))
    remembered.remove()
    assert all(each == seen[0] for each in seen)
    return seen[0][0]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((Plain, Idle, Awaited), ["0", "2"]),
        ((Plain, Halting, Plain), ["0", "1"]),
        ((Failing, Plain), ["0", "1"]),
        ((Uncallable, Plain), ["1"]),
        ((Importing, Plain), ["1"]),
        ((), []),
    ],
)
async def test_as_mitmproxy_does(
    kinds: tuple[type[Named], ...], expected: list[str], manager: AddonManager, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    manager.add(*(kind(str(number), calls) for number, kind in enumerate(kinds)))
    assert await compare(manager, calls, caplog) == expected


async def test_sub_addons_and_a_failure_among_them(manager: AddonManager, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []
    manager.add(Group("g", calls, Plain("a", calls), Failing("b", calls), Plain("c", calls)), Plain("d", calls))
    assert await compare(manager, calls, caplog) == ["g", "a", "b", "d"]


async def test_addons_that_come_and_go(manager: AddonManager) -> None:
    calls: list[str] = []
    first, second = Plain("first", calls), Plain("second", calls)
    remembered = RememberedHooks(manager)
    remembered.install()
    manager.add(first)
    await manager.trigger_event(EVENT)
    manager.add(second)
    await manager.trigger_event(EVENT)
    manager.remove(first)
    await manager.trigger_event(EVENT)
    manager.clear()
    await manager.trigger_event(EVENT)
    assert calls == ["first", "first", "second", "second"]
    remembered.remove()


async def test_a_handler_that_a_handler_gives_is_called_at_once(manager: AddonManager) -> None:
    class Giving(Named):
        def request(self, flow: object) -> None:
            manager.trigger(hooks.UpdateHook([]))
            other.update = lambda _flows: calls.append("update")

    class Others:
        update: Callable[[object], None] | None = None

    calls: list[str] = []
    other = Others()
    manager.add(Giving("giving", calls), other)
    remembered = RememberedHooks(manager)
    remembered.install()
    await fired(manager)
    assert calls == ["update"]
    remembered.remove()


async def test_a_hook_that_follows_sees_what_the_one_before_has_changed(manager: AddonManager) -> None:
    class Giving(Named):
        def requestheaders(self, flow: object) -> None:
            late.begin()

    calls: list[str] = []
    late = Late("late", calls)
    manager.add(Giving("giving", calls), late)
    remembered = RememberedHooks(manager)
    remembered.install()
    assert fire(HttpRequestHeadersHook, EVENT.flow) is None
    assert fire(HttpRequestHook, EVENT.flow, follows=True) is None
    assert calls == ["late"]
    remembered.remove()


class Late(Named):
    """Has no handler until `begin`."""

    def begin(self) -> None:
        self.request = lambda _flow: self.calls.append(self.name)


def insert(manager: AddonManager, calls: list[str]) -> None:
    manager.chain.insert(0, Plain("new", calls))


def reverse(manager: AddonManager, _calls: list[str]) -> None:
    manager.chain.reverse()


def give_a_handler(manager: AddonManager, _calls: list[str]) -> None:
    manager.chain[-1].begin()


def replace_a_handler(manager: AddonManager, calls: list[str]) -> None:
    manager.chain[-1].begin()
    manager.chain[-1].request = lambda _flow: calls.append("other")


def take_a_handler(manager: AddonManager, _calls: list[str]) -> None:
    manager.chain[-3].request = None


def append_to_a_group(manager: AddonManager, calls: list[str]) -> None:
    manager.chain[-2].addons.append(Plain("new", calls))


def reverse_a_group(manager: AddonManager, _calls: list[str]) -> None:
    manager.chain[-2].addons.reverse()


def make_a_group(manager: AddonManager, calls: list[str]) -> None:
    manager.chain[-1].addons = [Plain("new", calls)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (insert, "new a g b c"),
        (reverse, "g b c a"),
        (give_a_handler, "a g b c late"),
        (replace_a_handler, "a g b c other"),
        (take_a_handler, "g b c"),
        (append_to_a_group, "a g b c new"),
        (reverse_a_group, "a g c b"),
        (make_a_group, "a g b c new"),
    ],
)
async def test_changes_that_no_manager_is_told_of(
    change: Callable[[AddonManager, list[str]], None], expected: str, manager: AddonManager
) -> None:
    calls: list[str] = []
    group = Group("g", calls, Plain("b", calls), Plain("c", calls))
    manager.add(Plain("a", calls), group, Late("late", calls))
    remembered = RememberedHooks(manager)
    remembered.install()
    await manager.handle_lifecycle(EVENT)
    assert calls == ["a", "g", "b", "c"]
    change(manager, calls)
    for way in (fired, triggered):
        calls.clear()
        await way(manager)
        assert calls == expected.split()
    calls.clear()
    manager.trigger(EVENT)
    assert calls == expected.split()
    remembered.remove()


class Switched(Named):
    """Has its handler switched on and off; the attribute is there all the time."""

    def __init__(self, name: str, calls: list[str]) -> None:
        super().__init__(name, calls)
        self.request: Callable[[object], None] | None = None

    def switch(self, *, on: bool) -> None:
        self.request = (lambda _flow: self.calls.append(self.name)) if on else None


async def test_a_handler_that_is_switched_on_and_off(manager: AddonManager) -> None:
    calls: list[str] = []
    switched = Switched("s", calls)
    manager.add(Plain("a", calls), switched, Plain("b", calls))
    remembered = RememberedHooks(manager)
    remembered.install()
    for is_on in (False, True, False, True):
        switched.switch(on=is_on)
        for way in (fired, triggered):
            calls.clear()
            await way(manager)
            assert calls == (["a", "s", "b"] if is_on else ["a", "b"])
        calls.clear()
        manager.trigger(EVENT)
        assert calls == (["a", "s", "b"] if is_on else ["a", "b"])
    remembered.remove()


SCRIPT = """
def request(flow):
    flow.append("{name}")

def configure(updated):
    assert not hasattr(configure, "over"), "configured after the end"

def done():
    configure.over = True
"""


async def test_scripts_change_places_and_leave(
    manager: AddonManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [tmp_path / f"{name}.py" for name in "ab"]
    for path in paths:
        path.write_text(SCRIPT.format(name=path.stem))
    loader = ScriptLoader()
    manager.add(loader)
    loader.running()
    remembered = RememberedHooks(manager)
    remembered.install()
    options = manager.master.options
    seen = []
    for chosen in (paths, paths[::-1], paths[1:], []):
        options.update(scripts=[str(path) for path in chosen])
        for _ in range(3):  # a script is loaded by a task that lets the others go first once
            await asyncio.sleep(0)
        assert all(script.ns for script in loader.addons)
        calls: list[str] = []
        await manager.trigger_event(HttpRequestHook(calls))  # type: ignore[arg-type]
        seen.append("".join(calls))
    remembered.remove()
    assert seen == ["ab", "ba", "b", ""]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_hook_can_be_made_a_task(manager: AddonManager) -> None:
    calls: list[str] = []
    manager.add(Plain("p", calls))
    remembered = RememberedHooks(manager)
    remembered.install()
    for way in (manager.handle_lifecycle, manager.trigger_event):
        await asyncio.create_task(way(EVENT))
    await asyncio.create_task(manager.trigger_event(hooks.RunningHook()))
    remembered.remove()
    assert calls == ["p", "p"]


async def test_what_others_have_put_on_the_manager_stays(manager: AddonManager) -> None:
    def before(_event: hooks.Hook) -> None:
        """Somebody's, older than ours."""

    def after(_addon: object) -> None:
        """Somebody's, newer than ours."""

    manager.trigger = before  # type: ignore[method-assign]
    remembered = RememberedHooks(manager)
    remembered.install()
    assert manager.trigger is not before
    manager.remove = after  # type: ignore[method-assign]
    remembered.remove()
    found = vars(manager)
    assert (found.pop("trigger"), found.pop("remove")) == (before, after)
    assert not {"handle_lifecycle", "trigger_event", "register", "clear"} & found.keys()


async def test_the_lifecycle_goes_through_it_and_updates_follow(manager: AddonManager) -> None:
    class Watching(Named):
        def request(self, flow: object) -> None:
            self.calls.append("request")

        def update(self, flows: object) -> None:
            self.calls.append("update")

    calls: list[str] = []
    manager.add(Watching("w", calls))
    remembered = RememberedHooks(manager)
    remembered.install()
    await manager.handle_lifecycle(EVENT)
    assert calls == ["request", "update"]
    remembered.remove()


async def test_what_comes_to_handle_updates_later_is_told_of_them(manager: AddonManager) -> None:
    class Watching:
        def update(self, flows: object) -> None:
            calls.append("update")

    calls: list[str] = []
    manager.add(Plain("p", calls))
    remembered = RememberedHooks(manager)
    remembered.install()
    await manager.handle_lifecycle(EVENT)
    manager.add(Watching())
    await manager.handle_lifecycle(EVENT)
    assert calls == ["p", "p", "update"]
    remembered.remove()


async def test_a_hook_may_make_its_own_arguments(manager: AddonManager) -> None:
    @dataclass
    class CombosTestHook(hooks.Hook):
        given: str

        def args(self) -> list[str]:
            return [self.given, "made"]

    class Handling:
        def combos_test(self, *arguments: str) -> None:
            calls.append(arguments)

    calls: list[tuple[str, ...]] = []
    manager.add(Handling())
    remembered = RememberedHooks(manager)
    remembered.install()
    try:
        await manager.trigger_event(CombosTestHook("given"))
    finally:
        remembered.remove()
        del hooks.all_hooks[CombosTestHook.name]
    assert calls == [("given", "made")]


async def test_log_records_wake_the_loop_only_for_somebody(manager: AddonManager) -> None:
    class Logging:
        def add_log(self, entry: object) -> None:
            calls.append("add_log")

    calls: list[str] = []
    fired: list[logging.LogRecord] = []
    handler = LegacyLogEvents(manager.master)
    handler.emit = lambda record: fired.append(record)  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    remembered = RememberedHooks(manager)
    try:
        remembered.install()
        logging.getLogger("combos").warning("not looked up yet")
        manager.trigger(AddLogHook(LogEntry("x", "info")))
        logging.getLogger("combos").warning("for nobody")
        manager.add(Logging())
        logging.getLogger("combos").warning("for somebody")
        manager.trigger(AddLogHook(LogEntry("x", "info")))
        logging.getLogger("combos").warning("for somebody")
        remembered.remove()
        manager.remove(manager.chain[-1])
        logging.getLogger("combos").warning("as before")
    finally:
        remembered.remove()
        logging.getLogger().removeHandler(handler)
    assert [record.getMessage() for record in fired if record.name == "combos"] == [
        "not looked up yet", "for somebody", "for somebody", "as before",
    ]  # fmt: skip
    assert calls == ["add_log"]


async def test_afterwards_the_manager_is_as_it_was(manager: AddonManager) -> None:
    before = dict(vars(manager))
    remembered = RememberedHooks(manager)
    remembered.install()
    assert vars(manager) != before
    remembered.remove()
    assert vars(manager) == before
    remembered.remove()


async def test_an_error_is_logged_with_its_traceback(manager: AddonManager, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    manager.add(Failing("f", []))
    remembered = RememberedHooks(manager)
    remembered.install()
    await manager.trigger_event(EVENT)
    (record,) = caplog.records
    assert record.getMessage() == "Addon error: broken addon"
    assert record.exc_info
    remembered.remove()


async def test_hooks_nobody_handles(manager: AddonManager) -> None:
    remembered = RememberedHooks(manager)
    remembered.install()
    await manager.trigger_event(hooks.UpdateHook([]))
    remembered.remove()


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((Plain, Idle, Plain), ["0", "2"]),
        ((Plain, Halting, Plain), ["0", "1"]),
        ((Failing, Plain), ["0", "1"]),
        ((Uncallable, Plain), ["1"]),
        ((Awaited, Plain), ["1"]),
    ],
)
def test_outside_tasks_too(
    kinds: tuple[type[Named], ...], expected: list[str], manager: AddonManager, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    manager.add(*(kind(str(number), calls) for number, kind in enumerate(kinds)))
    assert compare_sync(manager, calls, caplog) == expected
