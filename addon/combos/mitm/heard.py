"""Whether a log line would reach anybody, asked before it is made: a line for every request costs more than the asking.

What it says is what `logging` would do with the line: levels, handlers on the way to the root, propagation. The one
thing it knows beyond that is mitmproxy's handler that fires a hook for each line, which reaches nobody while no addon
handles the hook.
"""

import logging

from combos.mitm.hooks import RememberedHooks
from combos.mitm.internals import LegacyLogEvents


def is_heard(logger: logging.Logger, level: int) -> bool:
    """Whether anybody takes a line of this level from this logger. In doubt somebody does."""
    if not logger.isEnabledFor(level):
        return False
    if logger.filters:
        return True  # they see every line, and one may do more than refuse it
    asked: logging.Logger | None = logger
    has_handlers = False
    while asked is not None:
        for handler in asked.handlers:
            if level >= handler.level and not _is_for_nobody(handler):
                return True
            has_handlers = True
        asked = asked.parent if asked.propagate else None
    last = logging.lastResort
    return not has_handlers and (last is None or level >= last.level)


def _is_for_nobody(handler: logging.Handler) -> bool:
    """Whether all that the handler does is to fire a hook that nobody handles."""
    if type(handler) is LegacyLogEvents:
        for each in handler.filters:
            remembered = getattr(each, "__self__", None)
            if isinstance(remembered, RememberedHooks):
                return not remembered.is_log_wanted()
    return False
