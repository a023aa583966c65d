"""Takes a provider's credentials out of what it says about a failure: some servers repeat the key that they refuse.

Only failures are looked at, and nothing changes its length: what a model writes is nobody's to change here. A body with
a content coding passes as it is, no target is asked for one.
"""

import re
from collections.abc import Iterator

from combos.core.config_provider import ProviderConfig
from combos.core.facts import Headers
from combos.core.pools import PoolNote
from combos.upstream.exchange import Answer

SHORTEST = 8
"""Characters of a credential that is searched for: a shorter one would be found in ordinary words."""

_FAILURES_FROM = 400
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|pass|session", re.IGNORECASE)


class Unechoed:
    """The answer of a failure without the credentials of its request. Otherwise as `Answer`."""

    def __init__(self, answer: Answer, words: tuple[bytes, ...]) -> None:
        self.status = answer.status
        self.peername = answer.peername
        self.pool: PoolNote | None = None
        self._answer = answer
        self._words = words
        self._held = b""
        self.headers: Headers = tuple((name, self._masked(value)) for name, value in answer.headers)

    def limit(self, idle_ms: int, total_ms: int | None = None) -> None:
        """Change the limits of the rest."""
        self._answer.limit(idle_ms, total_ms)

    async def read_some(self) -> bytes:
        """The next bytes, empty at the end. Raises `UpstreamFault`."""
        while data := await self._answer.read_some():
            data = self._masked(self._held + data)
            begun = max(_begun(data, word) for word in self._words)
            self._held = data[len(data) - begun :]
            if len(data) > begun:
                return data[: len(data) - begun]
        rest, self._held = self._held, b""
        return rest

    def close(self) -> None:
        """Let go of it."""
        self._answer.close()

    def _masked(self, data: bytes) -> bytes:
        for word in self._words:
            if word in data:
                data = data.replace(word, b"*" * len(word))
        return data


def unechoed(answer: Answer, secrets: Headers, config: ProviderConfig) -> Answer | Unechoed:
    """The answer, if it is a failure without what `secrets` and the provider's own secret fields hold."""
    if answer.status < _FAILURES_FROM:
        return answer
    words = tuple(dict.fromkeys(word for word in _words(secrets, config) if len(word) >= SHORTEST))
    # The longest first: a shorter one may be a part of it.
    return Unechoed(answer, tuple(sorted(words, key=len, reverse=True))) if words else answer


def _words(secrets: Headers, config: ProviderConfig) -> Iterator[bytes]:
    fields = (value.encode() for name, value in config.headers.items() if _SECRET_NAME.search(name))
    for value in (*(value for _, value in secrets), *fields):
        yield value
        yield value.rpartition(b" ")[2]  # the token behind its scheme


def _begun(data: bytes, word: bytes) -> int:
    """How many bytes at the end of the data may be the beginning of the word."""
    longest = min(len(data), len(word) - 1)
    return next((size for size in range(longest, 0, -1) if data.endswith(word[:size])), 0)
