"""What is known of quotas now: reports of vendors by provider, and what answers said of single accounts.

Only a report that is bound to exactly the credential in use may steer routing; everything else is for display. Which
conclusions a snapshot allows is decided in `core.quota`.
"""

from collections.abc import Callable, Iterator

from combos.core.facts import Now
from combos.core.quota import (
    FRESH_MS,
    Badge,
    Snapshot,
    badge,
    is_exhausted,
    is_fresh,
    may_route,
    merged,
    soonest_reset,
)
from combos.core.registry import Combo, Provider, Registry, Target
from combos.core.values import dataclass

type Bind = Callable[[Provider], bytes | None]
"""The binding of a provider's credential as it is now; None when there is none."""


@dataclass(frozen=True, slots=True)
class Report:
    """One report. `binding` is None where it may not steer routing; `member` names an account of a pool."""

    provider: str
    label: str
    source: str
    snapshot: Snapshot
    binding: bytes | None = None
    member: str | None = None


class QuotaBook:
    """The reports of one process. `bind` is set by the host."""

    def __init__(self, bind: Bind = lambda _: None) -> None:
        self.bind = bind
        self._reports: dict[tuple[str, str | None], Report] = {}

    # -- writing

    def put(self, report: Report) -> None:
        """A whole report replaces what was known."""
        self._reports[report.provider, report.member] = report

    def note(self, provider: str, member: str | None, label: str, source: str, seen: Snapshot) -> None:
        """What an answer's headers said of an account, over what was known; never routing evidence."""
        old = self._reports.get((provider, member))
        snapshot = merged(old.snapshot if old is not None and old.binding is None else None, seen)
        if old is None or old.binding is None:
            self._reports[provider, member] = Report(provider, label, source, snapshot, None, member)

    def drop(self, provider: str, member: str | None = None) -> None:
        """The report is known to be void."""
        self._reports.pop((provider, member), None)

    def reconcile(self, registry: Registry) -> None:
        """Forget providers that are gone."""
        self._reports = {key: report for key, report in self._reports.items() if key[0] in registry.providers}

    def sweep(self, now: Now) -> int:
        """Drop what nobody may believe any more; returns how many reports went."""
        stale = [key for key, one in self._reports.items() if now.epoch_ms - one.snapshot.updated_at >= FRESH_MS]
        for key in stale:
            del self._reports[key]
        return len(stale)

    # -- reading

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of any quota."""
        return not self._reports

    def evidence(self, provider: Provider | None, now: Now) -> Snapshot | None:
        """The snapshot that may exclude or rank the provider; None without one."""
        report = self._reports.get((provider.name, None)) if provider is not None else None
        if provider is None or report is None or report.binding is None or not may_route(provider.config):
            return None
        if not is_fresh(report.snapshot, now.epoch_ms) or report.binding != self.bind(provider):
            return None
        return report.snapshot

    def spent(self, target: Target, now: Now) -> bool:
        """Whether the target's provider is known to be exhausted."""
        snapshot = self.evidence(target.provider, now)
        return snapshot is not None and is_exhausted(snapshot, now.epoch_ms)

    def reset_at(self, target: Target, now: Now) -> int | None:
        """Epoch ms at which the provider's first window begins anew."""
        snapshot = self.evidence(target.provider, now)
        return None if snapshot is None else soonest_reset(snapshot, now.epoch_ms)

    def used_percent(self, provider: str, member: str) -> float:
        """The fullest window of one account of a pool; 0 when nothing is known."""
        report = self._reports.get((provider, member))
        return 0.0 if report is None else report.snapshot.used_percent

    def badge(self, provider: Provider | None, now: Now) -> Badge:
        """The badge of a provider."""
        return badge(self.evidence(provider, now), now.epoch_ms)

    def badges(self, combo: Combo, now: Now) -> list[Badge]:
        """The badges of a combo's usable targets."""
        rows = (target.provider for target in combo.targets)
        return [self.badge(row, now) for row in rows if row is not None and not row.config.disabled]

    def reports(self) -> Iterator[Report]:
        """Everything known, in the order of provider names."""
        return iter(sorted(self._reports.values(), key=lambda one: (one.provider, one.member or "")))
