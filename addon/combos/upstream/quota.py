"""Asks vendors for their quota reports: in the background, never for a request, at canonical addresses only.

Decides when a report is asked for again and what a failed question means for the last good one. What a report says is
read in `wire.quota_reports`; what follows from it is decided in `core.quota`.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from combos.core.facts import Headers, Now
from combos.core.pools import PoolKind, kind_of
from combos.core.quota import may_route
from combos.core.registry import Provider, Registry
from combos.engine.commands import OutboundRequest, Timeouts
from combos.engine.quota import QuotaBook, Report
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.upstream.members import Member, with_beta
from combos.wire.bodies import BodyError, decode
from combos.wire.headers import get
from combos.wire.quota_reports import SOURCES, Login, Source, source_of

logger = logging.getLogger(__name__)

REPORT_S = 300.0
ACCOUNT_S = 600.0
TIMEOUT_MS = 8_000
BODY_MAX = 512 * 1024
PARALLEL = 4
_TIMEOUTS = Timeouts(connect_ms=TIMEOUT_MS, head_ms=TIMEOUT_MS, idle_ms=TIMEOUT_MS)
_HEADERS: Headers = ((b"accept", b"application/json"), (b"user-agent", b"combos"))
_PASSING = frozenset({408, 429})


class Sender(Protocol):
    """What probes need of the upstream session."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        """Send and wait for the head. Raises `UpstreamFault`."""


class _VoidError(Exception):
    """The vendor says with authority that there is no report for this credential."""


class _FailedError(Exception):
    """The question came to nothing; the text says why and holds nothing of the answer."""


class _Asked(NamedTuple):
    """One question: whose quota, at which source, with which credential."""

    provider: Provider
    source: Source
    member: str | None
    secrets: Headers

    @property
    def key(self) -> tuple[str, str | None]:
        return self.provider.name, self.member


@dataclass(slots=True)
class _State:
    due_at: float = 0.0
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class QuotaProbes:
    """The probes of one process. `secrets` and `members` give the credentials, `clock` monotonic seconds."""

    def __init__(
        self,
        sender: Sender,
        book: QuotaBook,
        secrets: Callable[[Provider], Headers],
        members: Callable[[Provider], tuple[Member, ...]],
        now: Callable[[], Now],
        sources: tuple[Source, ...] = SOURCES,
    ) -> None:
        self._sender = sender
        self._book = book
        self._secrets = secrets
        self._members = members
        self._now = now
        self._sources = sources
        self._states: dict[tuple[str, str | None], _State] = {}
        self._slots = asyncio.Semaphore(PARALLEL)

    def refresh(self, registry: Registry, *, force: bool = False) -> None:
        """Start every probe that is due, or all of them. Returns at once; to be called inside the running loop."""
        wanted = {asked.key: asked for provider in registry.providers.values() for asked in self._questions(provider)}
        for key in self._states.keys() - wanted.keys():
            self._forget(key)
        now_s = self._now().mono_ms / 1000
        for key, asked in wanted.items():
            state = self._states.setdefault(key, _State())
            if state.task is None and (force or now_s >= state.due_at):
                state.due_at = now_s + (REPORT_S if asked.member is None else ACCOUNT_S)
                name = f"combos quota of {asked.provider.name}"
                state.task = asyncio.create_task(self._probe(asked, state), name=name)

    async def settle(self) -> None:
        """Wait for the probes that run now: for commands and tests, never for a request."""
        await asyncio.gather(*(state.task for state in self._states.values() if state.task is not None))

    async def close(self) -> None:
        """Cancel what runs."""
        tasks = [state.task for state in self._states.values() if state.task is not None]
        for key in list(self._states):
            self._forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: tuple[str, str | None]) -> None:
        task = self._states.pop(key).task
        if task is not None:
            task.cancel()

    def _questions(self, provider: Provider) -> Iterator[_Asked]:
        source = None if provider.config.disabled else source_of(provider.config, self._sources)
        if source is None:
            return
        members = self._members(provider)
        if source.login is Login.ACCOUNT or len(members) > 1:
            for member in members:
                yield _Asked(provider, source, member.name, member.headers)
            return
        secrets = self._secrets(provider)
        if secrets:
            yield _Asked(provider, source, None, secrets)

    async def _probe(self, asked: _Asked, state: _State) -> None:
        binding = self._book.bind(asked.provider) if self._may_route(asked) else None
        try:
            async with self._slots, asyncio.timeout(TIMEOUT_MS / 1000):
                body = await self._fetch(asked)
            self._book.put(self._report(asked, body, binding))
        except _VoidError:
            self._book.drop(asked.provider.name, asked.member)
        except (TimeoutError, UpstreamFault, BodyError, _FailedError) as error:
            # The last good report stays for as long as it is fresh.
            why = "no answer in time" if isinstance(error, TimeoutError) else error
            logger.debug(f"combos: the quota of {asked.provider.name} is not known: {why}")
        finally:
            state.task = None

    def _may_route(self, asked: _Asked) -> bool:
        return asked.source.routes and asked.member is None and may_route(asked.provider.config)

    def _report(self, asked: _Asked, body: bytes, binding: bytes | None) -> Report:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise _FailedError("the report is not JSON") from None
        if not isinstance(document, dict):
            raise _FailedError("the report is no JSON object")
        snapshot = asked.source.read(document, self._now().epoch_ms)
        if snapshot is None or snapshot.is_empty:
            raise _VoidError
        return Report(asked.provider.name, asked.source.label, asked.source.name, snapshot, binding, asked.member)

    async def _fetch(self, asked: _Asked) -> bytes:
        kind = kind_of(asked.provider.config) or PoolKind.API_KEYS
        request = OutboundRequest("GET", asked.source.url, with_beta(_HEADERS, kind), b"", asked.provider)
        answer = await self._sender.send(request, _TIMEOUTS, asked.secrets)
        try:
            if 400 <= answer.status < 500 and answer.status not in _PASSING:
                raise _VoidError
            if not 200 <= answer.status < 300:
                raise _FailedError(f"status {answer.status}")
            data = bytearray()
            while part := await answer.read_some():
                data += part
                if len(data) > BODY_MAX:
                    raise _FailedError("the report is too long")
        finally:
            answer.close()
        return decode(get(answer.headers, "content-encoding"), bytes(data), BODY_MAX)
