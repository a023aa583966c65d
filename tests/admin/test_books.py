"""What a finished request is entered into, and what an earlier process left."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from combos.admin import books as module
from combos.admin.books import Books
from combos.admin.ledger import LEDGER_NAME
from combos.admin.live_config import LiveConfig
from combos.admin.spans import TracingError
from combos.admin.usage_query import reading, records
from combos.core.cooldowns import CooldownEntry, CooldownKey
from combos.core.facts import Now, Surface
from combos.engine.state import EngineState
from configs import document
from records import AT, PRICED, attempt, failure, turn

TARGETS = [{"provider": "alpha", "model": "m1"}, {"provider": "beta", "model": "m2"}]


class World:
    def __init__(self, folder: Path, **budgets: Any) -> None:
        self.path = folder / "config.json"
        made = document(providers={"alpha": PRICED, "beta": PRICED}, combos={"main": {"targets": TARGETS}})
        self.path.write_text(json.dumps({**made, "budgets": budgets}))
        self.live, self.state = LiveConfig(self.path), EngineState()
        self.now = Now(4_000, AT)
        self.live.reload()
        self.books = Books(self.live, self.state, lambda: self.now)

    def enter(self, *records: Any) -> None:
        for record in records:
            self.books.turn(record, self.live.registry, self.now)

    def is_over(self, provider: str, combo: str | None) -> bool:
        return self.state.spending.over(self.live.registry.config.budgets, provider, combo, self.now.epoch_ms)

    def value(self, metric: str, **labels: str) -> float | None:
        return self.books.metrics.registry.get_sample_value(metric, labels)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, providers={"alpha": {"tokensPerDay": 60}}, combos={"main": {"usdPerDay": 0.0003}})
    yield made
    made.books.ledger.close()


def test_a_request_is_entered_everywhere(world: World) -> None:
    world.enter(turn())
    assert world.books.ledger.flush()
    with reading(world.path.parent / LEDGER_NAME) as ledger:
        ((_, row),) = records(ledger, 5)
    assert (row["requestId"], row["timestamp"]) == ("r1", AT)
    assert world.value("combos_requests_total", combo="main", outcome="success") == 1


def test_counting_tokens_is_entered_nowhere(world: World) -> None:
    world.enter(turn(surface=Surface.COUNT_TOKENS))
    assert world.books.ledger.flush()
    assert not (world.path.parent / LEDGER_NAME).exists()
    assert world.value("combos_requests_total", combo="main", outcome="success") is None


def test_budgets_count_every_attempt_at_its_price(world: World) -> None:
    world.enter(turn(failure(), attempt(1, "beta", "m2")))
    assert not world.is_over("alpha", "main")
    world.enter(turn(attempt(), combo=None))
    assert not world.is_over("alpha", None)
    world.enter(turn(attempt(), combo=None))
    assert world.is_over("alpha", None)
    assert not world.is_over("beta", "main")
    world.enter(turn(failure(), attempt(1, "beta", "m2")))
    assert world.is_over("beta", "main")
    assert world.value("combos_budget_exhausted", kind="providers", name="alpha") == 1
    assert world.value("combos_budget_exhausted", kind="combos", name="main") == 1


async def test_a_later_process_knows_what_was_spent(tmp_path: Path) -> None:
    limits = {"providers": {"alpha": {"tokensPerDay": 60}}, "combos": {"main": {"usdPerMonth": 0.0001}}}
    first = World(tmp_path, **limits)
    first.enter(turn(attempt()), turn(attempt()))
    await first.books.close()
    second = World(tmp_path, **limits)
    assert not second.is_over("alpha", None)
    await second.books.open()
    assert second.is_over("alpha", None)
    assert second.is_over("beta", "main")


async def test_yesterday_is_not_spent_today(tmp_path: Path) -> None:
    limits = {"providers": {"alpha": {"tokensPerDay": 1}}}
    first = World(tmp_path, **limits)
    first.now = Now(4_000, AT - 3 * 86_400_000)
    first.enter(turn(attempt()))
    await first.books.close()
    second = World(tmp_path, **limits)
    await second.books.open()
    assert not second.is_over("alpha", None)


async def test_a_ledger_that_cannot_be_read_is_one_warning(world: World, caplog: pytest.LogCaptureFixture) -> None:
    (world.path.parent / LEDGER_NAME).write_bytes(b"no database at all" * 100)
    await world.books.open()
    assert "budgets count from now on" in caplog.text


def test_what_a_scrape_reads(world: World) -> None:
    entry = CooldownEntry(64_000, "r", "s", 503)
    world.state.cooldowns.replace(CooldownKey("main", "alpha/m1"), entry)
    place = {"provider": "alpha", "model": "m1"}
    assert world.value("combos_target_cooldown_until_timestamp_seconds", **place) == (AT + 60_000) / 1000
    assert world.value("combos_usage_records_lost_total") == 0
    assert world.value("combos_shared_state_connected") is None
    world.books.shares = lambda: True
    assert world.value("combos_shared_state_connected") == 1


def test_looks_at_the_configuration_are_counted(world: World) -> None:
    assert world.value("combos_config_last_reload_successful") == 1
    assert world.value("combos_config_last_reload_timestamp_seconds") == AT / 1000
    world.path.write_text("{")
    world.live.reload()
    assert world.value("combos_config_last_reload_successful") == 0


def test_traces_are_made_only_when_they_are_wanted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Spans:
        def __init__(self, api: object) -> None:
            assert api is not None

        def turn(self, *arguments: Any) -> None:
            seen.append(arguments)

    monkeypatch.setattr(module, "Spans", Spans)
    world.enter(turn())
    world.books.trace(wanted=True)
    world.enter(turn())
    world.books.trace(wanted=False)
    world.enter(turn())
    assert len(seen) == 1


def test_a_book_that_fails_is_a_warning_and_the_others_are_kept(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no metrics today")

    monkeypatch.setattr(world.books.metrics, "turn", broken)
    world.enter(turn(attempt(), combo=None), turn(attempt(), combo=None))
    assert world.books.ledger.flush()
    with reading(world.path.parent / LEDGER_NAME) as ledger:
        assert len(records(ledger, 5)) == 2
    assert world.is_over("alpha", None)
    assert "no metrics today" in caplog.text


def test_a_missing_package_for_traces_is_one_warning(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> Any:
        raise TracingError("the package opentelemetry-api is not installed")

    monkeypatch.setattr(module, "tracing_api", missing)
    with caplog.at_level(logging.WARNING):
        world.books.trace(wanted=True)
        world.enter(turn())
    assert caplog.text.count("no traces") == 1
