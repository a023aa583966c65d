"""What is known of an account's quota at one moment, and what that allows to conclude.

A snapshot holds windows (percent used, when it begins anew) and credits. It says whether something is exhausted, when
that ends, which window resets first and how long any of it may be believed. Whether a snapshot may steer routing at all
(whose credential it belongs to, who measured what) is decided here as well, from facts that the caller brings.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from combos.core.config_provider import AuthMode, ProviderConfig
from combos.core.values import dataclass

FRESH_MS = 30 * 60_000
"""Strictly younger evidence counts, for routing and for badges."""
_FULL = 100.0
_CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key", "x-goog-api-key"})


@dataclass(frozen=True, slots=True)
class Window:
    """One limit over time: percent used (0 to 100, None unknown), and the epoch ms of its reset, if known."""

    label: str
    percent: float | None
    reset_at: int | None = None


@dataclass(frozen=True, slots=True)
class Credits:
    """Prepaid or capped money in USD; None is unknown."""

    used: float | None = None
    limit: float | None = None
    remaining: float | None = None
    percent: float | None = None
    unlimited: bool = False
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything known of one account at `updated_at` (epoch ms)."""

    updated_at: int
    five_hour: Window | None = None
    weekly: Window | None = None
    monthly: Window | None = None
    custom: tuple[Window, ...] = ()
    credits: Credits | None = None

    @property
    def windows(self) -> Iterator[Window]:
        """Every window."""
        for window in (self.five_hour, self.weekly, self.monthly, *self.custom):
            if window is not None:
                yield window

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return self.credits is None and next(self.windows, None) is None

    @property
    def used_percent(self) -> float:
        """The fullest window or the credits, for ranking members of one pool; 0 when nothing is known."""
        credits = (self.credits.percent or 0.0) if self.credits is not None else 0.0
        return max((window.percent or 0.0 for window in self.windows), default=credits)


class BadgeState(StrEnum):
    """What a target's badge shows."""

    UNKNOWN = "unknown"
    AVAILABLE = "available"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class Badge:
    """A state with the time in which it holds (epoch ms); unknown has none."""

    state: BadgeState
    updated_at: int | None = None
    valid_until: int | None = None


def is_fresh(snapshot: Snapshot, epoch_ms: int) -> bool:
    """Whether the snapshot may still be believed; one from the future may not."""
    return 0 <= snapshot.updated_at <= epoch_ms and epoch_ms - snapshot.updated_at < FRESH_MS


def is_exhausted(snapshot: Snapshot, epoch_ms: int) -> bool:
    """Whether some window or the credits are used up at this moment."""
    return any(_is_spent(window, epoch_ms) for window in snapshot.windows) or _is_broke(snapshot.credits)


def soonest_reset(snapshot: Snapshot, epoch_ms: int) -> int | None:
    """Epoch ms of the next reset over all windows, whatever their percent; None when no reset lies ahead."""
    ahead = [at for window in snapshot.windows if (at := window.reset_at) is not None and at > epoch_ms]
    return min(ahead, default=None)


def badge(snapshot: Snapshot | None, epoch_ms: int) -> Badge:
    """The state of a provider whose snapshot may steer routing; None: there is no such snapshot."""
    if snapshot is None or snapshot.is_empty or not is_fresh(snapshot, epoch_ms):
        return Badge(BadgeState.UNKNOWN)
    stale_at = snapshot.updated_at + FRESH_MS
    if not is_exhausted(snapshot, epoch_ms):
        return Badge(BadgeState.AVAILABLE, snapshot.updated_at, stale_at)
    return Badge(BadgeState.EXHAUSTED, snapshot.updated_at, _exhausted_until(snapshot, epoch_ms, stale_at))


def combined(badges: list[Badge]) -> BadgeState:
    """The state of a combo, from the badges of its usable targets."""
    states = {one.state for one in badges}
    if not states or (BadgeState.AVAILABLE not in states and BadgeState.UNKNOWN in states):
        return BadgeState.UNKNOWN
    return BadgeState.AVAILABLE if BadgeState.AVAILABLE in states else BadgeState.EXHAUSTED


def may_route(config: ProviderConfig) -> bool:
    """Whether quota evidence can belong to exactly the credential that this provider sends."""
    named = {name.lower() for name in config.headers}
    return (
        not config.disabled
        and config.auth_mode is AuthMode.KEY
        and len(config.api_key_pool) <= 1
        and not named & _CREDENTIAL_HEADERS
    )


def binding_of(name: str, config: ProviderConfig, key: str) -> bytes:
    """What a snapshot is tied to: another address, adapter or key makes it a stranger's. A digest, never the key."""
    parts = (name, config.adapter.value, config.base_url, key)
    return hashlib.sha256("\0".join(f"{len(part)}:{part}" for part in parts).encode()).digest()


def reset_ms(value: float) -> int | None:
    """A numeric reset as epoch ms: above 10^10 it is milliseconds, else seconds; zero and less is no reset."""
    if value <= 0:
        return None
    return round(value if value > 10**10 else value * 1000)


def merged(old: Snapshot | None, new: Snapshot) -> Snapshot:
    """A later partial snapshot over an earlier one: what it does not speak of is kept."""
    if old is None:
        return new
    return replace(
        new,
        five_hour=new.five_hour or old.five_hour,
        weekly=new.weekly or old.weekly,
        monthly=new.monthly or old.monthly,
        custom=new.custom or old.custom,
        credits=new.credits or old.credits,
    )


def _is_spent(window: Window, epoch_ms: int) -> bool:
    if window.percent is None or window.percent < _FULL:
        return False
    return window.reset_at is None or window.reset_at > epoch_ms


def _is_broke(credits: Credits | None) -> bool:
    if credits is None or credits.unlimited:
        return False
    full = credits.percent is not None and credits.percent >= _FULL
    return full and (credits.remaining is None or credits.remaining <= 0)


def _exhausted_until(snapshot: Snapshot, epoch_ms: int, stale_at: int) -> int:
    """The earliest reset at which nothing is exhausted any more, or the end of freshness."""
    resets = sorted(
        at for window in snapshot.windows if (at := window.reset_at) is not None and epoch_ms < at < stale_at
    )
    return next((at for at in resets if not is_exhausted(snapshot, at)), stale_at)
