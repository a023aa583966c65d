"""Sends an attempt with the credentials of its provider's pool: another member takes over where a failure is its own.

What a pool absorbs is invisible to the turn; what it cannot absorb reaches the turn unchanged, with a note of the
member it belongs to. Every further send is charged to the request's budget first. Which failures rotate and how long a
member rests is decided in `core.pools`. Quota that rides on answers is noted on the way.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from combos.core.config_provider import Adapter, AuthMode
from combos.core.facts import Headers, Now
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.pools import ACCOUNT_KINDS, PoolKind, PoolNote, kind_of, sends_per_attempt
from combos.core.registry import Provider
from combos.core.values import dataclass
from combos.engine.commands import OutboundRequest, Timeouts
from combos.engine.pools import PoolBook, PoolTurn
from combos.engine.quota import QuotaBook
from combos.upstream.echoes import unechoed
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.upstream.members import Member, with_beta
from combos.wire.envelope import BODY_LIMIT, failure_facts
from combos.wire.pool_signals import pool_signals
from combos.wire.quota_headers import header_snapshot

ERROR_BODY_MS = 5_000
_SIGNED_IN = frozenset({AuthMode.FORWARD, AuthMode.OAUTH})
_CODEX_STATUSES = frozenset({400, 402, 429})


class Reading(Protocol):
    """An answer as its reader sees it. `pool` says which member it came from."""

    status: int
    headers: Headers
    peername: tuple[str, int] | None
    pool: PoolNote | None

    def limit(self, idle_ms: int, total_ms: int | None = None) -> None:
        """Change the limits of the rest."""

    async def read_some(self) -> bytes:
        """The next bytes, empty at the end. Raises `UpstreamFault`."""

    def close(self) -> None:
        """Let go of it."""


class Sender(Protocol):
    """What a pool needs of the upstream session."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        """Send and wait for the head. Raises `UpstreamFault`."""


class Held:
    """An answer of which a part has been read already: that part first, then the rest, or the fault that ended it."""

    def __init__(
        self,
        status: int,
        headers: Headers,
        parts: list[bytes],
        rest: Reading | None,
        fault: UpstreamFault | None = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self.peername = rest.peername if rest is not None else None
        self.pool: PoolNote | None = None
        self._parts = parts
        self._rest = rest
        self._fault = fault

    @property
    def body(self) -> bytes | None:
        """The whole body; None when it was not read to its end."""
        return b"".join(self._parts) if self._fault is None and self._rest is None else None

    def limit(self, idle_ms: int, total_ms: int | None = None) -> None:
        """Change the limits of the rest."""
        if self._rest is not None:
            self._rest.limit(idle_ms, total_ms)

    async def read_some(self) -> bytes:
        """The next bytes, empty at the end. Raises `UpstreamFault`."""
        if self._parts:
            return self._parts.pop(0)
        if self._fault is not None:
            raise self._fault
        return b"" if self._rest is None else await self._rest.read_some()

    def close(self) -> None:
        """Let go of it."""
        self._parts = []
        if self._rest is not None:
            self._rest.close()


@dataclass(frozen=True, slots=True)
class Charge:
    """What a send is for. `more` charges one further send to the request's budget and says whether it was granted;
    `spares`: a later target of the request is on the same provider."""

    model: str
    more: Callable[[], bool]
    spares: bool = False


@dataclass(frozen=True, slots=True)
class PooledUpstream:
    """Sends for turns. `members` gives the usable members of a provider's pool."""

    sender: Sender
    pools: PoolBook
    quota: QuotaBook
    members: Callable[[Provider], tuple[Member, ...]]
    now: Callable[[], Now]

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers, charge: Charge) -> Reading:
        """Send and wait for the head; `secrets` are used where the provider has no pool. Raises `UpstreamFault`."""
        provider = request.provider
        kind = kind_of(provider.config)
        if kind is not None:
            members = {member.name: member for member in self.members(provider)}
            if members:
                return await self._send_pooled(request, timeouts, charge, kind, members)
            if kind in ACCOUNT_KINDS:
                return _refusal(PoolNote(kind, None), "no account of the pool can be used")
        answer = await self.sender.send(request, timeouts, secrets)
        self._note_quota(provider, None, answer.headers)
        return unechoed(answer, secrets, provider.config)

    async def _send_pooled(
        self,
        request: OutboundRequest,
        timeouts: Timeouts,
        charge: Charge,
        kind: PoolKind,
        members: Mapping[str, Member],
    ) -> Reading:
        provider = request.provider
        state = self.pools.pool(provider.name, {name: member.login for name, member in members.items()})
        turn = PoolTurn(kind, state, list(members), charge.model)
        strategy = provider.config.api_key_pool_strategy
        name = turn.first(strategy, self.now(), lambda member: self.quota.used_percent(provider.name, member))
        if name is None:
            return _refusal(PoolNote(kind, None), "every account of the pool is cooling")
        dressed = replace(request, headers=with_beta(request.headers, kind))
        while True:
            headers = members[name].headers
            answer: Reading = unechoed(await self.sender.send(dressed, timeouts, headers), headers, provider.config)
            self._note_quota(provider, name, answer.headers)
            if not _may_be_its_own(kind, answer.status):
                answer.pool = turn.succeeded(name) if answer.status < 300 else PoolNote(kind, name)
                return answer
            held = await _held(answer)
            following = self._follow(turn, name, held, charge, len(members))
            if following is None:
                return held
            held.close()
            name = following

    def _follow(self, turn: PoolTurn, name: str, held: Held, charge: Charge, members: int) -> str | None:
        """Note the failure; the member to ask next, None when the failure is to be surfaced."""
        now = self.now()
        facts = failure_facts(held.status, held.headers, held.body)
        signals = pool_signals(held.headers, held.body, now.epoch_ms, spares=charge.spares)
        held.pool, rest = turn.failed(name, facts, signals, now)
        if not rest.rotates or len(turn.tried) >= sends_per_attempt(turn.kind, members):
            return None
        following = turn.next(name, now)
        if following is None or not charge.more():
            return None
        turn.take(following)
        return following

    def _note_quota(self, provider: Provider, member: str | None, headers: Headers) -> None:
        source = _header_source(provider)
        if source is not None:
            snapshot = header_snapshot(headers, self.now().epoch_ms)
            if snapshot is not None:
                self.quota.note(provider.name, member, source[1], source[0], snapshot)


def _header_source(provider: Provider) -> tuple[str, str] | None:
    """Name and label of what rides on this provider's answers; None for vendors whose headers say nothing."""
    config = provider.config
    if config.auth_mode not in _SIGNED_IN:
        return None
    if config.adapter is Adapter.OPENAI_RESPONSES:
        return ("chatgpt-headers", "ChatGPT") if config.base_url.rstrip("/") == CHATGPT_BASE_URL else None
    is_claude = config.adapter is Adapter.ANTHROPIC and config.auth_mode is AuthMode.OAUTH
    return ("anthropic-headers", "Claude") if is_claude else None


def _may_be_its_own(kind: PoolKind, status: int) -> bool:
    """Whether an answer of this status may be the member's own failure, so that its body is worth reading first."""
    match kind:
        case PoolKind.API_KEYS:
            return status in (401, 429)
        case PoolKind.CODEX:
            return status in _CODEX_STATUSES or status >= 500
        case _:
            return status == 429


async def _held(answer: Reading) -> Held:
    """Read an error body as far as it matters. What is not read stays to be read."""
    answer.limit(ERROR_BODY_MS, ERROR_BODY_MS)
    parts: list[bytes] = []
    size = 0
    try:
        while size <= BODY_LIMIT:
            data = await answer.read_some()
            if not data:
                return Held(answer.status, answer.headers, parts, None)
            parts.append(data)
            size += len(data)
    except UpstreamFault as fault:
        return Held(answer.status, answer.headers, parts, None, fault)
    except asyncio.CancelledError:
        answer.close()
        raise
    return Held(answer.status, answer.headers, parts, answer)


def _refusal(note: PoolNote, message: str) -> Held:
    """The pool's own refusal without asking anybody. It states no delay: the target's own cooldown counts."""
    error = {"type": "rate_limit_error", "message": message}
    body = json.dumps({"type": "error", "error": error}).encode()
    held = Held(429, ((b"content-type", b"application/json"),), [body], None)
    held.pool = note
    return held
