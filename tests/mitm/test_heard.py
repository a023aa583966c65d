"""Whether a log line would reach anybody: exactly when `logging` would hand it to somebody."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.addons.eventstore import EventStore
from mitmproxy.addons.termlog import TermLog
from mitmproxy.log import AddLogHook, LegacyLogEvents, LogEntry
from mitmproxy.test import taddons

from combos.mitm.heard import is_heard
from combos.mitm.hooks import RememberedHooks

LEVELS = (logging.NOTSET, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


class Kept(logging.Handler):
    def __init__(self, seen: list[str], level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@contextmanager
def bare_root(*handlers: logging.Handler) -> Iterator[logging.Logger]:
    """A logger below a root that has these handlers alone: those of pytest take every line."""
    root = logging.getLogger()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(root, "handlers", list(handlers))
        level = root.level
        root.setLevel(logging.DEBUG)
        try:
            yield logging.getLogger("combos.test.heard")
        finally:
            root.setLevel(level)


@contextmanager
def own_tree(levels: list[int], handlers: list[list[int]], propagate: list[bool]) -> Iterator[tuple[Any, list[str]]]:
    """Loggers below one another in a tree of their own: the last one, and what their handlers get."""
    seen: list[str] = []
    top = logging.RootLogger(levels[0])
    manager = logging.Manager(top)
    rows = [top, *(manager.getLogger(".".join("abc"[:depth])) for depth in range(1, len(levels)))]
    for row, level, own, up in zip(rows, levels, handlers, propagate, strict=True):
        row.setLevel(level)
        row.propagate = up
        for each in own:
            row.addHandler(Kept(seen, each))
    last = logging.lastResort
    logging.lastResort = Kept(seen, logging.WARNING)  # type: ignore[assignment]
    try:
        yield rows[-1], seen
    finally:
        logging.lastResort = last


rows_of = st.integers(1, 4).flatmap(
    lambda depth: st.tuples(
        st.lists(st.sampled_from(LEVELS), min_size=depth, max_size=depth),
        st.lists(st.lists(st.sampled_from(LEVELS), max_size=2), min_size=depth, max_size=depth),
        st.lists(st.booleans(), min_size=depth, max_size=depth),
    )
)


@given(rows_of, st.sampled_from(LEVELS[1:]), st.booleans())
def test_a_line_is_heard_when_logging_hands_it_to_somebody(
    rows: tuple[list[int], list[list[int]], list[bool]], level: int, disabled: bool
) -> None:
    with own_tree(*rows) as (logger, seen):
        logger.disabled = disabled
        said = is_heard(logger, level)
        logger.log(level, "a line")
        assert said is bool(seen)


def test_a_filter_sees_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with bare_root(Kept([], logging.ERROR)) as logger:
        assert not is_heard(logger, logging.INFO)
        monkeypatch.setattr(logger, "filters", [lambda _record: False])
        assert is_heard(logger, logging.INFO)


def test_without_a_last_resort_logging_itself_complains(monkeypatch: pytest.MonkeyPatch) -> None:
    with bare_root() as logger:
        assert not is_heard(logger, logging.INFO)
        monkeypatch.setattr(logging, "lastResort", None)
        assert is_heard(logger, logging.INFO)


@pytest.mark.parametrize(("verbosity", "heard"), [("error", False), ("warn", False), ("info", True), ("debug", True)])
async def test_what_the_terminal_shows_is_heard(verbosity: str, heard: bool) -> None:
    terminal = TermLog()
    with taddons.context(terminal) as context, bare_root(terminal.logger) as logger:
        context.options.update(termlog_verbosity=verbosity)
        assert is_heard(logger, logging.INFO) is heard
        terminal.uninstall()
        assert not is_heard(logger, logging.INFO)


async def test_what_mitmweb_and_the_console_list_is_heard() -> None:
    with bare_root() as logger:
        store = EventStore()
        assert is_heard(logger, logging.DEBUG)
        store.done()
        assert not is_heard(logger, logging.DEBUG)


class Logging:
    """An addon with the hook."""

    def add_log(self, _entry: object) -> None:
        """Only has to be there."""


async def test_a_hook_for_log_lines_is_heard_while_somebody_handles_it() -> None:
    with taddons.context() as context, bare_root(LegacyLogEvents(context.master)) as logger:
        manager, remembered, listening = context.master.addons, RememberedHooks(context.master.addons), Logging()

        def heard(*, after_a_line: bool) -> bool:
            if after_a_line:
                manager.trigger(AddLogHook(LogEntry("x", "info")))
            return is_heard(logger, logging.INFO)

        assert heard(after_a_line=True), "mitmproxy's own dispatch remembers nothing"
        remembered.install()
        assert heard(after_a_line=False), "not looked up yet"
        assert not heard(after_a_line=True)
        manager.add(listening)
        assert heard(after_a_line=False)
        assert heard(after_a_line=True)
        manager.remove(listening)
        assert not heard(after_a_line=True)
        remembered.remove()
        assert heard(after_a_line=False)
