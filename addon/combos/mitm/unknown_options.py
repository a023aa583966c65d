"""Names of our options that nobody declared: mitmproxy keeps them for an addon that may come, and says nothing."""

import difflib
from collections.abc import Iterable, Iterator

from combos.mitm.options import OPTIONS

_PREFIX = "combos_"


def unknown_options(deferred: Iterable[str]) -> Iterator[str]:
    """A sentence for every name of ours among those that mitmproxy still waits to see declared."""
    known = [row.name.removeprefix(_PREFIX) for row in OPTIONS]  # all names begin alike: that is no likeness
    for name in sorted(deferred):
        rest = name.removeprefix(_PREFIX)
        if rest != name and rest not in known:
            close = difflib.get_close_matches(rest, known, n=1, cutoff=0.75)
            yield f"there is no option {name}" + (f'; did you mean "{_PREFIX}{close[0]}"?' if close else "")
