"""Texts unique to a request, from the system's randomness. Each system call fetches enough for many requests."""

import os
from collections.abc import Callable

_BYTES = 16
_AT_ONCE = 256  # 4 KiB


class Seeds:
    """Gives one text after another; nobody can tell the next from those before it."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._random_bytes = random_bytes
        self._left: list[str] = []

    def next(self) -> str:
        """32 hexadecimal digits that were never given before."""
        if not self._left:
            drawn = self._random_bytes(_BYTES * _AT_ONCE).hex()
            self._left = [drawn[at : at + 2 * _BYTES] for at in range(0, len(drawn), 2 * _BYTES)]
        return self._left.pop()
