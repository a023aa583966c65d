"""The JSON shapes of usage, quotas, budgets and request records, as the API's description states them."""

from typing import Any

from combos.admin.shapes import Shape


class Attempts(Shape):
    """Sums over attempts. Token counts are null when no attempt was measured, the cost when none had a price."""

    attempts: int
    sends: int
    served: int
    failed: int
    measured_attempts: int
    priced_attempts: int
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    average_first_output_ms: float | None


class Requests(Attempts):
    """Sums over requests; null where a filter by provider or model makes them unknowable."""

    requests: int | None
    outcomes: dict[str, int]
    requests_with_fallback: int | None
    hops: int | None
    waited_ms: int | None
    average_duration_ms: float | None


class ComboUsage(Requests):
    """One combo; null for requests that named a target themselves."""

    combo: str | None


class ProviderUsage(Attempts):
    """One provider."""

    provider: str


class ModelUsage(ProviderUsage):
    """One model of a provider."""

    model: str


class DayUsage(Requests):
    """One local day, `2026-10-01`."""

    day: str


class UsageAnswer(Shape):
    """Usage over a window. With `jev=1` the answer is that of decision statistics instead."""

    range: str
    since: int | None
    until: int | None
    generated_at: int
    summary: Requests
    combos: list[ComboUsage]
    providers: list[ProviderUsage]
    models: list[ModelUsage]
    days: list[DayUsage]


class LogsAnswer(Shape):
    """Request records, newest first. `cursor` is the `before` of the next page, null at the end."""

    time_zone: str
    generated_at: int
    total: int
    logs: list[dict[str, Any]]
    cursor: int | None


class QuotaReport(Shape):
    """One report of a provider, or of one account of its pool."""

    provider: str
    label: str
    source: str
    quota: dict[str, Any]
    updated_at: int
    routing_quota: dict[str, Any]
    account: str | None = None


class ComboQuota(Shape):
    """What the badges of a combo's usable targets come to."""

    id: str
    state: str


class RestingMember(Shape):
    """A member of a credential pool that rests."""

    provider: str
    member: str
    left_ms: int


class QuotasAnswer(Shape):
    """All reports."""

    generated_at: int
    reports: list[QuotaReport]
    resting: list[RestingMember]
    combos: list[ComboQuota]


class BudgetPeriod(Shape):
    """What is spent in a running period; limits are null where there is none."""

    since: int
    usd: float
    usd_limit: float | None
    tokens: int
    tokens_limit: int | None


class BudgetRow(Shape):
    """One budget."""

    kind: str
    name: str
    exhausted: bool
    day: BudgetPeriod
    month: BudgetPeriod


class BudgetsAnswer(Shape):
    """All budgets."""

    generated_at: int
    budgets: list[BudgetRow]
