"""Prometheus metrics of the proxy: what requests, attempts and decisions came to, cooldowns and the configuration.

Every label has a bounded set of values: ids of the configuration, names of rules and outcomes. A model name that only a
client knows becomes `other`. What a number means is written in docs/metrics.md; a test holds both together.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from combos import __version__
from combos.admin.live_config import Change
from combos.admin.tallies import Count, Counts, Durations, Spread
from combos.admin.usage_record import attempt_tokens
from combos.core.facts import Now
from combos.core.registry import Registry, known_models
from combos.core.usage import Tokens
from combos.core.values import dataclass
from combos.engine.record import AttemptRecord, Outcome, TurnRecord
from combos.engine.state import EngineState

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DIRECT = "direct"
"""The label `combo` of requests that named a provider and model themselves."""
OTHER = "other"

type Place = tuple[str, str]

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
_OVERHEAD = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)
_TOGETHER = 100  # requests that wait to be counted
_KINDS = ("input", "output", "cache_read", "cache_write", "reasoning")  # of tokens, in the order of `_Tried`
_UNDECIDED = frozenset({"cancelled", "overtaken"})


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made = self.registry
        made.register(_Before(self._count))  # the first that a scrape asks
        self._finished: list[tuple[TurnRecord, Registry]] = []
        self._requests = Counts("combos_requests", "Requests, by outcome.", ("combo", "outcome"), made)
        self._attempts = Counts(
            "combos_attempts", "Attempts, by result.", ("combo", "provider", "model", "result"), made
        )
        self._hops = Counts("combos_hops", "Hops to another target, by rule.", ("combo", "reason"), made)
        self._duration = Spread("combos_request_duration_seconds", "Whole requests.", ("combo",), _SECONDS, made)
        self._first_output = Spread(
            "combos_time_to_first_output_seconds",
            "From the dispatch of an attempt to its first output.",
            ("provider", "model"),
            _SECONDS,
            made,
        )
        self._wait = Spread("combos_wait_seconds", "Waits for a cooldown.", ("combo",), _SECONDS, made)
        self._overhead = Spread(
            "combos_overhead_seconds", "Time of a request that was no target's.", (), _OVERHEAD, made
        ).at()
        self._tokens = Counts("combos_tokens", "Tokens reported.", ("provider", "model", "type"), made)
        self._decisions = Counts("combos_decisions", "Decisions.", ("combo", "backend", "gate"), made)
        self._reload = Gauge("combos_config_last_reload_successful", "Whether the file could be used.", registry=made)
        self._reloaded = Gauge(
            "combos_config_last_reload_timestamp_seconds", "When the file was last put into force.", registry=made
        )
        Gauge("combos_build_info", "The version.", ("version",), registry=made).labels(__version__).set(1)
        # What is counted at again and again, by what it is found with: combos, outcomes, results and names of the
        # configuration, so that there is an end to it.
        self._ended: dict[tuple[str, Outcome | None], tuple[Count, Durations]] = {}
        self._tried: dict[tuple[str, str, str, str], _Tried] = {}
        self._registry: Registry | None = None
        self._named: frozenset[Place] = frozenset()

    def watch(self, collector: Collector) -> None:
        """Ask `collector` at every scrape as well."""
        self.registry.register(collector)

    def scrape(self) -> bytes:
        """The text of all metrics."""
        return generate_latest(self.registry)

    def turn(self, record: TurnRecord, registry: Registry) -> None:
        """Take a finished request, to be counted at the latest when somebody looks. `registry` names what may be a
        label. Many are counted one after another in a third of the time that one takes between two requests."""
        self._finished.append((record, registry))
        if len(self._finished) >= _TOGETHER:
            self._count()

    def _count(self) -> None:
        finished, self._finished = self._finished, []
        for record, registry in finished:
            try:
                self._turn(record, registry)
            except Exception:  # the others are counted all the same
                logger.warning("combos: a finished request could not be counted", exc_info=True)

    def _turn(self, record: TurnRecord, registry: Registry) -> None:
        if registry is not self._registry:
            self._registry, self._named = registry, named_places(registry)
            self._tried.clear()
        combo = record.combo or DIRECT
        self._ending(combo, record)
        for attempt in record.attempts:
            self._attempt(combo, attempt, registry)
        if len(record.attempts) > 1:
            for attempt in record.attempts[:-1]:
                if attempt.verdict is not None:
                    self._hops.add(combo, attempt.verdict.rule)

    def configuration(self, change: Change, now: Now) -> None:
        """The file was looked at and something came of it."""
        self._count()  # what waits holds on to the registry before
        is_good = change is Change.LOADED
        self._reload.set(int(is_good))
        if is_good:
            self._reloaded.set(now.epoch_ms / 1000)

    def _ending(self, combo: str, record: TurnRecord) -> None:
        ended = self._ended.get((combo, record.outcome))
        if ended is None:
            requests = self._requests.at(combo, record.outcome.value if record.outcome else OTHER)
            ended = self._ended[combo, record.outcome] = (requests, self._duration.at(combo))
        requests, duration = ended
        requests.total += 1
        if record.ended_ms is not None:
            duration.add(record.ended_ms - record.started_ms)
            self._overhead.add(overhead_ms(record))
        for wait in record.waits_ms:
            self._wait.add(combo, ms=wait)
        if record.decision is not None:
            self._decisions.add(combo, record.decision.backend, record.decision.gate)

    def _attempt(self, combo: str, attempt: AttemptRecord, registry: Registry) -> None:
        at = (combo, attempt.provider, attempt.model, _result(attempt))
        tried = self._tried.get(at)
        if tried is None:
            place = place_of(attempt, registry, self._named)
            tried = self._tried_at(combo, place, at[3])
            if place == (attempt.provider, attempt.model):  # others are known to clients alone, and have no end
                self._tried[at] = tried
        tried.attempts.total += 1
        if attempt.first_output_ms is not None:
            tried.first_output.add(attempt.first_output_ms - attempt.started_ms)
        if attempt.usage:
            tried.spend(attempt_tokens(attempt))

    def _tried_at(self, combo: str, place: Place, result: str) -> "_Tried":
        return _Tried(
            self._attempts.at(combo, *place, result),
            self._first_output.at(*place),
            *(self._tokens.at(*place, kind) for kind in _KINDS),
        )


@dataclass(slots=True)
class _Tried:
    """The numbers of attempts in one combo at one place with one result. Finding them anew takes longer than all that
    is added to them."""

    attempts: Count
    first_output: Durations
    input: Count
    output: Count
    cache_read: Count
    cache_write: Count
    reasoning: Count

    def spend(self, tokens: Tokens) -> None:
        """Add what was reported."""
        if tokens.input:
            self.input.total += tokens.input
        if tokens.output:
            self.output.total += tokens.output
        if tokens.cache_read:
            self.cache_read.total += tokens.cache_read
        if tokens.cache_write:
            self.cache_write.total += tokens.cache_write
        if tokens.reasoning:
            self.reasoning.total += tokens.reasoning


class _Before(Collector):
    """Does something before a scrape, and has no metric of its own."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Nothing."""
        self._act()
        return iter(())


class LiveCollector(Collector):
    """What is read at the moment of a scrape: running cooldowns and budgets. `lost` counts records not written."""

    def __init__(self, sources: "LiveSources") -> None:
        self._sources = sources

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The metrics now."""
        cooldowns = GaugeMetricFamily(
            "combos_target_cooldown_until_timestamp_seconds",
            "When a cooling target may be asked again; the latest of all combos.",
            labels=("provider", "model"),
        )
        for (provider, model), until in self._sources.cooldowns().items():
            cooldowns.add_metric((provider, model), until / 1000)
        yield cooldowns
        budgets = GaugeMetricFamily(
            "combos_budget_exhausted", "1 while a budget keeps its targets out.", labels=("kind", "name")
        )
        for kind, name, is_spent in self._sources.budgets():
            budgets.add_metric((kind, name), int(is_spent))
        yield budgets
        lost = CounterMetricFamily("combos_usage_records_lost", "Records that could not be written.")
        lost.add_metric((), self._sources.lost())
        yield lost
        connected = self._sources.shared_state()
        if connected is not None:
            yield GaugeMetricFamily(
                "combos_shared_state_connected", "1 while the server of the shared state is reached.", int(connected)
            )


class LiveSources(Protocol):
    """Where a scrape looks. Everything is read inside the event loop."""

    def cooldowns(self) -> dict[tuple[str, str], int]:
        """Epoch ms of expiry by provider and model."""

    def budgets(self) -> Sequence[tuple[str, str, bool]]:
        """Kind, name and whether it is spent, of every budget."""

    def lost(self) -> int:
        """Records that were not written."""

    def shared_state(self) -> bool | None:
        """Whether the server of the shared state is reached; None when nothing is shared."""


def cooling(state: EngineState, registry: Registry, now: Now) -> dict[tuple[str, str], int]:
    """Epoch ms at which each cooling target is back, the latest over all combos."""
    found: dict[tuple[str, str], int] = {}
    for key, entry in state.cooldowns.running(now.mono_ms):
        combo = registry.combos.get(key.combo)
        target = next((one for one in combo.targets if one.key == key.target), None) if combo else None
        if target is not None:
            place = (target.provider_name, target.model)
            found[place] = max(found.get(place, 0), now.epoch_ms + entry.expires_ms - now.mono_ms)
    return found


def named_places(registry: Registry) -> frozenset[Place]:
    """Every provider and model that a configuration names."""
    known = {(name, model) for name, one in registry.providers.items() for model in known_models(one.config)}
    targets = (target for combo in registry.combos.values() for target in combo.targets)
    return frozenset(known.union((target.provider_name, target.model) for target in targets))


def place_of(attempt: AttemptRecord, registry: Registry, named: frozenset[Place]) -> Place:
    """Provider and model of an attempt as labels: a model that the configuration does not name is `other`."""
    if attempt.provider not in registry.providers:
        return OTHER, OTHER
    return attempt.provider, attempt.model if (attempt.provider, attempt.model) in named else OTHER


def overhead_ms(record: TurnRecord) -> int:
    """Milliseconds of a request in which no attempt ran, nothing was waited for and nothing decided."""
    end = record.ended_ms
    if end is None:
        return 0
    attempts = record.attempts
    over = end - (reached := record.started_ms)
    for attempt in attempts if len(attempts) < 2 else sorted(attempts, key=lambda one: one.started_ms):
        start, stop = attempt.started_ms, end if attempt.ended_ms is None else attempt.ended_ms
        if stop > reached:
            over -= stop - (start if start > reached else reached)
            reached = stop
    if record.waits_ms:
        over -= sum(record.waits_ms)
    if record.decision is not None:
        over -= record.decision.latency_ms
    return over if over > 0 else 0


def _result(attempt: AttemptRecord) -> str:
    if attempt.verdict is not None:
        return attempt.verdict.rule
    return attempt.result if attempt.result in _UNDECIDED else "success"
