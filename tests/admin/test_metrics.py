"""Metrics: what a request adds to them, that labels are bounded, and that every metric is documented."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos import __version__
from combos.admin.live_config import Change
from combos.admin.metrics import LiveCollector, LiveSources, Metrics, cooling, named_places, overhead_ms, place_of
from combos.core.config import Config
from combos.core.cooldowns import CooldownEntry, CooldownKey
from combos.core.facts import Dialect, Now
from combos.core.registry import Registry, build_registry
from combos.engine.record import Outcome, TurnRecord
from combos.engine.state import EngineState
from records import AT, attempt, decision, failure, registry, turn

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
PRICES = registry()


def value(metrics: Metrics, metric: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, labels)


def test_a_hop_is_counted_for_what_it_is() -> None:
    metrics = Metrics()
    metrics.turn(turn(waits_ms=[400, 600], decision=decision()), PRICES)
    assert value(metrics, "combos_requests_total", combo="main", outcome="success") == 1
    place = {"combo": "main", "provider": "alpha", "model": "m1"}
    assert value(metrics, "combos_attempts_total", **place, result="status-retryable") == 1
    other = {"combo": "main", "provider": "beta", "model": "m2"}
    assert value(metrics, "combos_attempts_total", **other, result="success") == 1
    assert value(metrics, "combos_hops_total", combo="main", reason="status-retryable") == 1
    assert value(metrics, "combos_request_duration_seconds_sum", combo="main") == 3.0
    first = {"provider": "beta", "model": "m2"}
    assert value(metrics, "combos_time_to_first_output_seconds_sum", **first) == 0.1
    assert value(metrics, "combos_wait_seconds_sum", combo="main") == 1.0
    assert value(metrics, "combos_tokens_total", **first, type="input") == 25
    assert value(metrics, "combos_tokens_total", **first, type="output") == 7
    assert value(metrics, "combos_tokens_total", **first, type="reasoning") is None
    assert value(metrics, "combos_decisions_total", combo="main", backend="typesafe", gate="apply") == 1
    assert value(metrics, "combos_build_info", version=__version__) == 1


def test_a_last_failure_is_no_hop() -> None:
    metrics = Metrics()
    metrics.turn(turn(failure(), outcome=Outcome.EXHAUSTED), PRICES)
    assert value(metrics, "combos_hops_total", combo="main", reason="status-retryable") is None
    assert value(metrics, "combos_requests_total", combo="main", outcome="exhausted") == 1


def test_a_reload_changes_which_names_are_labels() -> None:
    metrics = Metrics()
    for served_with in (PRICES, build_registry(Config(), 2), PRICES):
        metrics.turn(turn(attempt(), combo=None), served_with)
    counted = {"combo": "direct", "result": "success"}
    assert value(metrics, "combos_attempts_total", **counted, provider="alpha", model="m1") == 2
    assert value(metrics, "combos_attempts_total", **counted, provider="other", model="other") == 1


def test_names_that_only_clients_know_are_no_labels() -> None:
    named = named_places(PRICES)
    assert place_of(attempt(), PRICES, named) == ("alpha", "m1")
    assert place_of(attempt(model="whatever-a-client-says"), PRICES, named) == ("alpha", "other")
    assert place_of(attempt(provider="gone"), PRICES, named) == ("other", "other")
    metrics = Metrics()
    for number in range(20):
        metrics.turn(turn(attempt(model=f"x{number}", result="cancelled"), combo=None), PRICES)
    text = metrics.scrape().decode()
    assert "x1" not in text
    assert value(
        metrics, "combos_attempts_total", combo="direct", provider="alpha", model="other", result="cancelled"
    ) == 20  # fmt: skip


def test_what_is_kept_at_hand_has_an_end() -> None:
    metrics = Metrics()
    for number in range(50):
        metrics.turn(turn(attempt(model=f"x{number}"), attempt(provider=f"p{number}"), attempt()), PRICES)
    metrics.scrape()
    assert len(metrics._tried) == 1
    metrics.turn(turn(attempt()), build_registry(Config(), 2))
    metrics.scrape()
    assert len(metrics._tried) == 0


def test_requests_that_wait_to_be_counted_have_an_end_and_a_look_counts_them() -> None:
    metrics = Metrics()
    place = {"combo": "main", "outcome": "success"}
    for number in range(1, 501):
        metrics.turn(turn(), PRICES)
        assert len(metrics._finished) < 100
        if number in (1, 77, 250):
            assert value(metrics, "combos_requests_total", **place) == number
    assert f'combos_requests_total{{combo="main",outcome="success"}} {500.0}' in metrics.scrape().decode()


def test_nothing_waits_longer_than_its_configuration() -> None:
    metrics = Metrics()
    metrics.turn(turn(), PRICES)
    metrics.configuration(Change.LOADED, Now(0, AT))
    assert metrics._finished == []
    assert value(metrics, "combos_requests_total", combo="main", outcome="success") == 1


def test_one_that_cannot_be_counted_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    for record in (turn(), None, turn()):
        metrics.turn(record, PRICES)  # type: ignore[arg-type]
    assert value(metrics, "combos_requests_total", combo="main", outcome="success") == 2
    assert caplog.text.count("could not be counted") == 1


ATTEMPTS = st.builds(
    lambda make, names, usage, first: make(
        0, *names, usage=usage, first_output_ms=first, dialect=Dialect.MESSAGES if usage is not None else None
    ),
    st.sampled_from([attempt, failure]),
    st.sampled_from([("alpha", "m1"), ("beta", "m2"), ("alpha", "x"), ("gone", "m1")]),
    st.one_of(
        st.none(),
        st.dictionaries(
            st.sampled_from(["input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens"]),
            st.integers(0, 9),
        ),
    ),
    st.one_of(st.none(), st.integers(1_100, 1_200)),
)
RECORDS = st.builds(
    lambda attempts, combo, outcome, ended: turn(*attempts, combo=combo, outcome=outcome, ended_ms=ended),
    st.lists(ATTEMPTS, max_size=3),
    st.sampled_from([None, "main"]),
    st.sampled_from([*Outcome, None]),
    st.one_of(st.none(), st.integers(2_000, 9_000)),
)
REGISTRIES = (PRICES, build_registry(Config(), 2))


def samples(metrics: Metrics) -> Counter[tuple[str, tuple[tuple[str, str], ...]]]:
    """What is counted, by series."""
    found: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
    for family in metrics.registry.collect():
        for sample in family.samples:
            if "config" not in sample.name and "build_info" not in sample.name:
                found[sample.name, tuple(sorted(sample.labels.items()))] = round(sample.value * 1000)
    return found


@given(st.lists(st.tuples(RECORDS, st.sampled_from(REGISTRIES)), max_size=8))
def test_numbers_at_hand_are_those_that_are_looked_up(entered: list[tuple[TurnRecord, Registry]]) -> None:
    together, one_by_one = Metrics(), samples(Metrics())
    for record, served_with in entered:
        together.turn(record, served_with)
        alone = Metrics()
        alone.turn(record, served_with)
        one_by_one += samples(alone)
    assert +samples(together) == +one_by_one


@pytest.mark.parametrize(
    ("record", "ms"),
    [
        (turn(attempt(), ended_ms=2_000), 100),
        (turn(ended_ms=3_000), 200),
        (turn(attempt(ended_ms=None), ended_ms=2_000), 10),
        (turn(attempt(), attempt(1, started_ms=1_500, ended_ms=2_500), ended_ms=2_600), 110),
        (turn(attempt(), ended_ms=2_000, waits_ms=[60]), 40),
        (turn(attempt(), ended_ms=2_000, decision=decision(latency_ms=80)), 20),
        (turn(attempt(), ended_ms=2_000, waits_ms=[900]), 0),
        (turn(attempt(), ended_ms=None), 0),
    ],
)
def test_overhead_is_the_time_of_nobody(record: Any, ms: int) -> None:
    assert overhead_ms(record) == ms


def test_the_configuration_shows_whether_it_could_be_used() -> None:
    metrics = Metrics()
    metrics.configuration(Change.LOADED, Now(0, AT))
    assert value(metrics, "combos_config_last_reload_successful") == 1
    for change in (Change.INVALID, Change.MISSING):
        metrics.configuration(change, Now(0, AT + 5_000))
        assert value(metrics, "combos_config_last_reload_successful") == 0
    assert value(metrics, "combos_config_last_reload_timestamp_seconds") == AT / 1000


class Sources(LiveSources):
    def cooldowns(self) -> dict[tuple[str, str], int]:
        return {("alpha", "m1"): AT}

    def budgets(self) -> list[tuple[str, str, bool]]:
        return [("providers", "alpha", True), ("combos", "main", False)]

    def lost(self) -> int:
        return 3

    def shared_state(self) -> bool | None:
        return False


def watched() -> Metrics:
    metrics = Metrics()
    metrics.watch(LiveCollector(Sources()))
    return metrics


def test_what_is_read_at_a_scrape() -> None:
    metrics = watched()
    place = {"provider": "alpha", "model": "m1"}
    assert value(metrics, "combos_target_cooldown_until_timestamp_seconds", **place) == AT / 1000
    assert value(metrics, "combos_budget_exhausted", kind="providers", name="alpha") == 1
    assert value(metrics, "combos_budget_exhausted", kind="combos", name="main") == 0
    assert value(metrics, "combos_usage_records_lost_total") == 3
    assert value(metrics, "combos_shared_state_connected") == 0


def test_a_target_cools_until_the_last_combo_lets_it_go() -> None:
    state, now = EngineState(), Now(1_000, AT)
    entry = CooldownEntry(61_000, "r", "s", 503)
    state.cooldowns.replace(CooldownKey("main", "alpha/m1"), entry)
    state.cooldowns.replace(CooldownKey("gone", "beta/m2"), entry)
    assert cooling(state, PRICES, now) == {("alpha", "m1"): AT + 60_000}
    assert cooling(state, PRICES, Now(61_000, AT)) == {}


def families() -> dict[str, tuple[str, set[str]]]:
    """Every metric that is served: its kind and labels."""
    metrics = watched()
    record = turn(waits_ms=[1], decision=decision())
    metrics.turn(record, PRICES)
    metrics.configuration(Change.LOADED, Now(0, AT))
    found = {}
    for family in metrics.registry.collect():
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = (family.type, labels)
    return found


def documented() -> dict[str, tuple[str, set[str]]]:
    rows = re.findall(r"^\| `(combos_\w+)` \| (\w+) \| ([^|]*)\|", PAGE, re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def test_every_metric_is_documented_with_its_labels_and_no_other() -> None:
    assert documented() == families()


def test_the_names_that_operators_rely_on_are_there() -> None:
    assert {
        "combos_requests_total", "combos_attempts_total", "combos_hops_total", "combos_request_duration_seconds",
        "combos_time_to_first_output_seconds", "combos_wait_seconds", "combos_overhead_seconds",
        "combos_target_cooldown_until_timestamp_seconds", "combos_tokens_total", "combos_decisions_total",
        "combos_config_last_reload_successful", "combos_config_last_reload_timestamp_seconds", "combos_build_info",
    } <= families().keys()  # fmt: skip


def test_outcomes_are_documented() -> None:
    for outcome in Outcome:
        assert f"`{outcome.value}`" in PAGE
