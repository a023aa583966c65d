"""The state of every credential pool: which member rests until when. One way to begin, to fail and to go on.

The rules are those of `core.pools`; the credentials themselves are unknown here. A member whose credential was replaced
starts anew. Lost on restart by design.
"""

from collections.abc import Callable, Mapping, Sequence

from combos.core.config_provider import PoolStrategy
from combos.core.facts import Now
from combos.core.failure_facts import FailureFacts
from combos.core.pools import (
    DENIAL_MS,
    MemberState,
    PoolKind,
    PoolNote,
    PoolSignals,
    PoolState,
    Rest,
    first_member,
    is_denial,
    is_transient,
    kind_of,
    member_names,
    next_member,
    rest_for,
    soonest_back,
)
from combos.core.registry import Registry


class PoolBook:
    """The pools of one process, by provider name."""

    def __init__(self) -> None:
        self._pools: dict[str, PoolState] = {}
        self._logins: dict[tuple[str, str], bytes] = {}

    def pool(self, provider: str, logins: Mapping[str, bytes]) -> PoolState:
        """The pool of a provider. `logins` are digests of its members' credentials, in list order."""
        state = self._pools.setdefault(provider, PoolState())
        for name, login in logins.items():
            if self._logins.get((provider, name), login) != login:
                state.members.pop(name, None)
            self._logins[provider, name] = login
        return state

    def reconcile(self, registry: Registry) -> None:
        """Forget pools and members that have left the configuration."""
        pooled = {
            name: member_names(row.config)
            for name, row in registry.providers.items()
            if kind_of(row.config) is not None
        }
        self._pools = {name: state for name, state in self._pools.items() if name in pooled}
        self._logins = {
            (name, member): login for (name, member), login in self._logins.items() if member in pooled.get(name, ())
        }
        for name, state in self._pools.items():
            state.keep(pooled[name])

    def clear(self, provider: str | None = None) -> int:
        """Let every member of a pool, or of all, serve again; returns how many rested or were avoided."""
        chosen = [state for name, state in self._pools.items() if provider is None or name == provider]
        resting = [member for state in chosen for member in state.members.values() if member.has_rested]
        for state in chosen:
            state.members = {}
        return len(resting)

    def running(self, now: Now) -> list[dict[str, object]]:
        """The members that rest, for display: provider, member, milliseconds left."""
        return [
            {"provider": provider, "member": name, "leftMs": until - now.mono_ms}
            for provider, state in self._pools.items()
            for name, member in state.members.items()
            if (until := max(member.cooled_until, member.avoided_until)) > now.mono_ms
        ]


class PoolTurn:
    """One attempt's way through a pool: whom to ask first, and whom after a failure."""

    def __init__(self, kind: PoolKind, state: PoolState, members: Sequence[str], model: str) -> None:
        self.kind = kind
        self.tried: list[str] = []
        self._state = state
        self._members = members
        self._model = model

    def first(self, strategy: PoolStrategy | None, now: Now, used_percent: Callable[[str], float]) -> str | None:
        """The member to begin with; None when the pool refuses because all of it rests.

        A key that rests is asked rather than none: its target is not cooling, or it would not have been chosen.
        """
        name = first_member(self._members, self._state, strategy, self._model, now.mono_ms, used_percent)
        if name is None and self.kind is PoolKind.API_KEYS and self._members:
            name = soonest_back(self._members, self._state, self._model)
        return self._asked(name)

    def next(self, failed: str, now: Now) -> str | None:
        """The member after a failed one, or None."""
        return next_member(self._members, self._state, failed, self.tried, self._model, now.mono_ms)

    def take(self, name: str) -> None:
        """`name` is asked now."""
        self._asked(name)

    def succeeded(self, name: str) -> PoolNote:
        """The member answered."""
        self._state.member(name).succeeded()
        return PoolNote(self.kind, name)

    def failed(self, name: str, facts: FailureFacts, signals: PoolSignals, now: Now) -> tuple[PoolNote, Rest]:
        """The member failed: let it rest as the rules say."""
        rest = rest_for(self.kind, facts, signals, now)
        member = self._state.member(name)
        if rest.ms is not None:
            member.cooled_until = now.mono_ms + rest.ms
        self._note_codex(member, facts, now)
        return PoolNote(self.kind, name, cooled=rest.ms is not None), rest

    def _note_codex(self, member: MemberState, facts: FailureFacts, now: Now) -> None:
        if self.kind is not PoolKind.CODEX:
            return
        if is_denial(self.kind, facts):
            member.denied[self._model] = now.mono_ms + DENIAL_MS
        elif is_transient(facts):
            member.stumbled(now.mono_ms)

    def _asked(self, name: str | None) -> str | None:
        if name is not None:
            self.tried.append(name)
            self._state.last = name
        return name
