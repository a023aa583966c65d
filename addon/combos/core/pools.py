"""Credential pools: which member serves next, which failures pass to another member, how long a failed one rests.

Pure rules over ordered members and a small explicit state (functional spec, "What happens when a target fails": what a
pool absorbs never reaches the combo). Where credentials come from, and how a member is sent, is known elsewhere.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from enum import StrEnum

from combos.core import prose
from combos.core.config_provider import Adapter, AuthMode, PoolStrategy, ProviderConfig
from combos.core.cooldown import codex_reset_ms
from combos.core.facts import Now, Scope, Verdict
from combos.core.failure_codes import QUOTA_EVIDENCE, code_class
from combos.core.failure_facts import AccountRefusal, FailureFacts
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.retry_after import retry_after_ms
from combos.core.values import dataclass

OWN_KEY = "apiKey"
"""The name under which a provider's `apiKey` is a member of its pool."""

KEY_MS = 60_000
KEY_CAP_MS = 600_000
REFUSED_KEY_MS = 600_000
"""A key that was answered with 401 will not mend itself sooner than ten minutes."""
DATED_CAP_MS = 32 * 86_400_000
"""A reset that an error body dates: a month and a day at most."""
CODEX_RESET_CAP_MS = 900_000
TRANSIENT_RUN = 3
TRANSIENT_GAP_MS = 300_000
AVOID_MS = (30_000, 120_000, 600_000, 1_800_000)
"""How long an account is avoided after three transient failures in a row, and after each further one."""
DENIAL_MS = 6 * 3_600_000

# The organisation has spent its money: every key of it would hear the same.
ORGANISATION_CODES = frozenset(
    {
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    }
)
_TRANSIENT = frozenset({500, 502, 503, 504, 520, 521, 522, 529})


class PoolKind(StrEnum):
    """What the members are."""

    API_KEYS = "api-keys"
    ANTHROPIC = "anthropic-oauth"
    CODEX = "codex"
    OAUTH = "oauth"


ACCOUNT_KINDS = frozenset({PoolKind.ANTHROPIC, PoolKind.CODEX, PoolKind.OAUTH})
EXEMPT_KINDS = frozenset({PoolKind.ANTHROPIC, PoolKind.CODEX})
"""A 429 of one cooled account of these does not cool the combo's target."""


@dataclass(frozen=True, slots=True)
class PoolNote:
    """Which member the answer came from, and whether its pool has cooled it for this very failure."""

    kind: PoolKind
    member: str | None
    cooled: bool = False

    @property
    def spares_target(self) -> bool:
        """Whether a 429 of it is the account's business alone."""
        return self.kind in EXEMPT_KINDS and self.member is not None and self.cooled


@dataclass(frozen=True, slots=True)
class Rest:
    """What a failure does to the member: how long it rests (None: not at all), and whether another may be asked."""

    ms: int | None
    rotates: bool


@dataclass(slots=True)
class MemberState:
    """What is remembered of one member. Instants are monotonic milliseconds."""

    cooled_until: int = 0
    avoided_until: int = 0
    transient: int = 0
    transient_at: int = 0
    denied: dict[str, int] = field(default_factory=dict)

    def is_out(self, model: str, now_ms: int) -> bool:
        """Whether it rests, or refused this model lately."""
        return self.cooled_until > now_ms or self.avoided_until > now_ms or self.denied.get(model, 0) > now_ms

    @property
    def has_rested(self) -> bool:
        """Whether anything is held against it, running or over."""
        return bool(self.cooled_until or self.avoided_until or self.denied)

    def until(self, model: str) -> int:
        """When it is back."""
        return max(self.cooled_until, self.avoided_until, self.denied.get(model, 0))

    def succeeded(self) -> None:
        """An answer ends a run of transient failures."""
        self.transient = 0

    def stumbled(self, now_ms: int) -> None:
        """One transient failure; the third in a row, and each further one, makes the member avoided for longer."""
        in_row = self.transient and now_ms - self.transient_at <= TRANSIENT_GAP_MS
        self.transient = self.transient + 1 if in_row else 1
        self.transient_at = now_ms
        if self.transient >= TRANSIENT_RUN:
            step = min(self.transient - TRANSIENT_RUN, len(AVOID_MS) - 1)
            self.avoided_until = now_ms + AVOID_MS[step]


@dataclass(slots=True)
class PoolState:
    """One provider's pool: its members' states and the member that served last."""

    members: dict[str, MemberState] = field(default_factory=dict)
    last: str | None = None

    def member(self, name: str) -> MemberState:
        """The state of a member; fresh when nothing is known."""
        return self.members.setdefault(name, MemberState())

    def keep(self, names: Collection[str]) -> None:
        """Forget members that are no longer configured."""
        self.members = {name: state for name, state in self.members.items() if name in names}
        self.last = self.last if self.last in names else None


def spared(verdict: Verdict, status: int, note: PoolNote | None) -> Verdict:
    """The verdict where a failure belongs to one account that its pool has cooled for it: a hop that cools nothing.

    For a 429 that would cool the target alone; whatever speaks of the provider cools it as ever.
    """
    if note is None or status != 429 or verdict.scope is not Scope.TARGET or not note.spares_target:
        return verdict
    return Verdict(verdict.rule, verdict.hop)


def kind_of(config: ProviderConfig) -> PoolKind | None:
    """The kind of a provider's pool; None when it has none."""
    if config.auth_mode is AuthMode.OAUTH and config.account_pool:
        if config.adapter is Adapter.ANTHROPIC:
            return PoolKind.ANTHROPIC
        is_codex = config.adapter is Adapter.OPENAI_RESPONSES and config.base_url.rstrip("/") == CHATGPT_BASE_URL
        return PoolKind.CODEX if is_codex else PoolKind.OAUTH
    has_keys = config.auth_mode in (AuthMode.KEY, AuthMode.OAUTH) and config.api_key_pool
    return PoolKind.API_KEYS if has_keys else None


def member_names(config: ProviderConfig) -> tuple[str, ...]:
    """The names that members of a provider's pool can have."""
    return (OWN_KEY, *(row.id for row in config.api_key_pool), *(row.id for row in config.account_pool))


def sends_per_attempt(kind: PoolKind, members: int) -> int:
    """How many members one attempt may ask."""
    match kind:
        case PoolKind.API_KEYS:
            return members
        case PoolKind.CODEX:
            return min(2, members)
        case _:
            return min(4, members)  # the first and at most three rotations


def first_member(
    members: Sequence[str],
    state: PoolState,
    strategy: PoolStrategy | None,
    model: str,
    now_ms: int,
    used_percent: Callable[[str], float] = lambda _: 0.0,
) -> str | None:
    """The member a request begins with, by the pool's strategy; None when all of them rest.

    Without a strategy the last one goes on serving until it fails.
    """
    ready = [name for name in members if not state.member(name).is_out(model, now_ms)]
    if not ready:
        return None
    match strategy:
        case PoolStrategy.FILL_FIRST:
            return ready[0]
        case PoolStrategy.QUOTA:
            return min(ready, key=used_percent)
        case PoolStrategy.ROUND_ROBIN:
            return _after(members, state.last, ready)
        case None:
            return state.last if state.last in ready else _after(members, state.last, ready)


def next_member(
    members: Sequence[str], state: PoolState, failed: str, tried: Collection[str], model: str, now_ms: int
) -> str | None:
    """The member to ask after `failed`: in list order, around the end, without those that rest or were asked."""
    ready = [name for name in members if name not in tried and not state.member(name).is_out(model, now_ms)]
    return _after(members, failed, ready) if ready else None


def soonest_back(members: Sequence[str], state: PoolState, model: str) -> str:
    """The member whose rest ends first; ties in list order. `members` is not empty."""
    return min(members, key=lambda name: state.member(name).until(model))


def rest_for(kind: PoolKind, facts: FailureFacts, signals: "PoolSignals", now: Now) -> Rest:
    """What a failure means for the member that met it."""
    if facts.code in ORGANISATION_CODES or facts.non_replayable:
        return Rest(None, rotates=False)
    match kind:
        case PoolKind.API_KEYS:
            return _key_rest(facts, signals, now)
        case PoolKind.ANTHROPIC:
            return _anthropic_rest(facts, signals, now)
        case PoolKind.CODEX:
            return _codex_rest(facts, signals, now)
        case PoolKind.OAUTH:
            return _account_rest(facts, now)


@dataclass(frozen=True, slots=True)
class PoolSignals:
    """What a failure says of a pool member beside the facts: instants in epoch ms.

    `dated` is a reset that the error body states, `rejected` those of the unified windows that refused. `spares` is
    True when a later target of the same request is on the same provider.
    """

    dated: int | None = None
    rejected: tuple[int, ...] = ()
    spares: bool = False


def is_transient(facts: FailureFacts) -> bool:
    """A 5xx that says nothing of a quota."""
    return facts.status in _TRANSIENT and not _is_quota(facts)


def is_denial(kind: PoolKind, facts: FailureFacts) -> bool:
    """The exact refusal of a model by an account."""
    return kind is PoolKind.CODEX and facts.account_refusal is AccountRefusal.EXACT


def _key_rest(facts: FailureFacts, signals: PoolSignals, now: Now) -> Rest:
    if facts.status == 401:
        return Rest(REFUSED_KEY_MS, rotates=True)
    if facts.status != 429:
        return Rest(None, rotates=False)
    if signals.dated is not None and now.epoch_ms < signals.dated <= now.epoch_ms + DATED_CAP_MS:
        return Rest(signals.dated - now.epoch_ms, rotates=True)
    return Rest(_bounded(facts, now) or KEY_MS, rotates=True)


def _anthropic_rest(facts: FailureFacts, signals: PoolSignals, now: Now) -> Rest:
    if facts.status != 429:
        return Rest(None, rotates=False)
    stated = retry_after_ms(facts.signals.retry_after, now.epoch_ms)
    ahead = [at - now.epoch_ms for at in signals.rejected if at > now.epoch_ms]
    return Rest(stated or max(ahead, default=KEY_MS), rotates=True)


def _codex_rest(facts: FailureFacts, signals: PoolSignals, now: Now) -> Rest:
    if is_denial(PoolKind.CODEX, facts):
        return Rest(None, rotates=True)
    if is_transient(facts):
        return Rest(None, rotates=not facts.from_stream)
    if facts.status not in (402, 429) and not _is_quota(facts):
        return Rest(None, rotates=False)
    stated = retry_after_ms(facts.signals.retry_after, now.epoch_ms)
    if stated is not None:
        return Rest(stated, rotates=True)
    reset = codex_reset_ms(facts.signals.codex_resets, now.epoch_ms)
    if reset is not None:
        return Rest(None if signals.spares else min(reset, CODEX_RESET_CAP_MS), rotates=True)
    return Rest(KEY_MS, rotates=True)


def _account_rest(facts: FailureFacts, now: Now) -> Rest:
    if facts.status != 429:
        return Rest(None, rotates=False)
    return Rest(_bounded(facts, now) or KEY_MS, rotates=True)


def _bounded(facts: FailureFacts, now: Now) -> int | None:
    stated = retry_after_ms(facts.signals.retry_after, now.epoch_ms)
    return None if stated is None else min(stated, KEY_CAP_MS)


def _is_quota(facts: FailureFacts) -> bool:
    return not facts.garbled and (code_class(facts.code) in QUOTA_EVIDENCE or prose.is_spent_window(facts.prose))


def _after(members: Sequence[str], mark: str | None, ready: Sequence[str]) -> str:
    """The first of `ready` that follows `mark` in the list, around its end."""
    start = members.index(mark) + 1 if mark in members else 0
    turned = [*members[start:], *members[:start]]
    return next(name for name in turned if name in ready)
