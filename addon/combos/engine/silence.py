"""Whether a stream has fallen silent: nothing but comments for longer than the idle limit.

Comments keep a connection alive, but clients that wait for events do not count them: nor does this. It knows instants
only as they are given to it, and no content coding.
"""

import re

# Whole comment lines and blank ones; anything that begins a field is an event on its way.
_COMMENTS = re.compile(rb"(?::[^\r\n]*(?:\r\n|\n|\r)|\r\n|\n|\r)+")
_MAY_BE_COMMENTS = (b":", b"\r", b"\n")


class Silence:
    """Silence of one exchange since `heard_ms`; times in milliseconds."""

    def __init__(self, heard_ms: int, idle_ms: int) -> None:
        self._heard_ms = heard_ms
        self._idle_ms = idle_ms
        self.is_over_limit = False

    def heard(self, now_ms: int) -> None:
        """Something came that counts."""
        self._heard_ms = now_ms

    def listen(self, data: bytes, now_ms: int) -> None:
        """Bytes of a stream came."""
        if not (data.startswith(_MAY_BE_COMMENTS) and _COMMENTS.fullmatch(data)):
            self._heard_ms = now_ms
        elif now_ms - self._heard_ms > self._idle_ms:
            self.is_over_limit = True
