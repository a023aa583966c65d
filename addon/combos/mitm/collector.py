"""Keeps Python's garbage collector from stopping the event loop for long. Decides nothing about requests.

A full collection looks at every object that there is, and meanwhile nothing else runs. Measured with a thousand streams
open: 420 000 objects, 280 ms; a third of them are modules, classes and functions that never become garbage. They are
set aside (`gc.freeze`), and full collections come when that much garbage may have gathered, not after every growth by a
quarter, which while streams are opened is every few seconds.

A request at the listener leaves no garbage in circles, but looking for it cost 13 us of each when 32 came at once: they
hold some 2000 objects between them, after which by default the youngest are looked at, in vain. So more may gather.
"""

import gc

YOUNG_AFTER = 5_000
"""New objects before the youngest are looked at."""

FULL_AFTER = 12
"""Collections of the middle generation before a full one: by default some 600 000 new objects, about 60 MB."""


class Collector:
    """Changes the process's collector between `install` and `remove`. Leaves what is chosen otherwise as it is.

    That holds for what others choose later too: `remove` takes back only what is still as `install` left it.
    """

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        self._chosen = (0, 0, 0)
        self._set_aside = 0

    def install(self) -> None:
        """Call when everything is loaded: collects once, and sets aside what is left."""
        young, middle, full = gc.get_threshold()
        if self._before is not None or not gc.isenabled() or not young:
            return
        self._before = young, middle, full
        gc.collect()
        others = gc.get_freeze_count()
        gc.freeze()
        self._set_aside = 0 if others else gc.get_freeze_count()
        gc.set_threshold(max(young, YOUNG_AFTER), middle, max(full, FULL_AFTER))
        self._chosen = gc.get_threshold()

    def remove(self) -> None:
        """The collector is as it was, and looks at everything again."""
        if self._before is None:
            return
        if gc.get_threshold() == self._chosen:
            gc.set_threshold(*self._before)
        # Of what is set aside some goes, and nothing comes but by another `gc.freeze`.
        if gc.get_freeze_count() <= self._set_aside:
            gc.unfreeze()
        self._before = None
