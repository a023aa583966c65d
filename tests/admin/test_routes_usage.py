"""Usage over HTTP: windows, filters, records, statistics, quotas, budgets, metrics, and their refusals."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from adminstage import AUTH, Stage, stage
from combos.admin.app import AdminServer
from combos.admin.books import Books
from combos.core.facts import Now
from combos.core.failure_facts import FailureFacts
from combos.core.pools import PoolKind, PoolSignals
from combos.core.quota import Credits, Snapshot, Window
from combos.core.registry import Registry
from combos.engine.pools import PoolTurn
from combos.engine.quota import Report
from combos.engine.record import Outcome
from configs import document
from records import AT, PRICED, attempt, decision, failure, turn

TARGETS = [{"provider": "alpha", "model": "m1"}, {"provider": "beta", "model": "m2"}]
DOCUMENT = document(
    providers={"alpha": {**PRICED, "apiKey": "k"}, "beta": PRICED},
    combos={"main": {"targets": TARGETS}},
    budgets={"providers": {"alpha": {"tokensPerDay": 1}}},
)
HOUR = 3_600_000


class Probes:
    """Stands for the probes: notes how it was asked."""

    def __init__(self) -> None:
        self.asked: list[bool] = []
        self.settled = 0

    def refresh(self, registry: Registry, *, force: bool = False) -> None:
        self.asked.append(force)

    async def settle(self) -> None:
        self.settled += 1


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path / "config.json", DOCUMENT) as made:
        made.now[0] = Now(4_000, AT)
        books = Books(made.live, made.state, lambda: made.now[0])
        parts = dataclasses.replace(made.server.parts, books=books, probes=Probes())
        server = AdminServer(parts)
        server.open_token()
        made.server = server
        await made.client.close()
        made.client = TestClient(TestServer(server.app))
        async with made.client:
            yield made
        await books.close()


def enter(api: Stage, *records: Any, at: int = AT) -> None:
    books = api.server.parts.books
    assert books is not None
    for record in records:
        books.turn(record, api.live.registry, Now(4_000, at))


async def test_usage_tells_what_has_just_been_answered(api: Stage) -> None:
    enter(api, turn())
    status, body = await api.call("GET", "/api/usage?range=today")
    assert status == 200
    assert (body["range"], body["summary"]["requests"], body["summary"]["attempts"]) == ("today", 1, 2)
    assert [row["combo"] for row in body["combos"]] == ["main"]
    _, empty = await api.call("GET", "/api/usage?combo=nobody&range=all")
    assert empty["summary"]["requests"] == 0
    _, beta = await api.call("GET", "/api/usage?range=all&provider=beta&model=m2&surface=responses")
    assert (beta["summary"]["requests"], beta["summary"]["served"]) == (None, 1)


async def test_an_unknown_range_is_thirty_days(api: Stage) -> None:
    enter(api, turn(), at=AT - 20 * 24 * HOUR)
    enter(api, turn(), at=AT - 40 * 24 * HOUR)
    _, body = await api.call("GET", "/api/usage?range=fortnight")
    assert (body["range"], body["summary"]["requests"]) == ("30d", 1)
    _, body = await api.call("GET", "/api/usage?range=all")
    assert body["summary"]["requests"] == 2


async def test_a_window_is_given_by_both_ends(api: Stage) -> None:
    enter(api, turn(), at=AT - 1)
    enter(api, turn(), at=AT)
    enter(api, turn(), at=AT + 5)
    _, body = await api.call("GET", f"/api/usage?since={AT}&until={AT + 5}")
    assert body["summary"]["requests"] == 1
    _, body = await api.call("GET", "/api/usage?since=2026-10-01T12:00:00Z&until=2026-10-01T13:00:00Z")
    assert (body["summary"]["requests"], body["since"], body["until"]) == (2, AT, AT + HOUR)


@pytest.mark.parametrize(
    "query", ["since=1", "until=1", "since=5&until=1", "since=soon&until=later", "since=2026-10-01&until=2026-10-02"]
)
async def test_half_a_window_is_refused(api: Stage, query: str) -> None:
    status, body = await api.call("GET", f"/api/usage?{query}")
    assert (status, body["code"]) == (400, "window_invalid")


async def test_decision_statistics(api: Stage) -> None:
    enter(api, turn(decision=decision()))
    status, body = await api.call("GET", "/api/usage?jev=1&comboId=main&range=all")
    assert (status, body["comboId"], body["summary"]["decisions"]) == (200, "main", 1)
    assert body["models"][0]["efforts"] == [{"effort": "high", "picks": 1}]
    _, other = await api.call("GET", "/api/usage?jev=1&comboId=other")
    assert other["summary"]["decisions"] == 0


async def test_the_usage_of_one_combo(api: Stage) -> None:
    enter(api, turn(), turn(combo=None))
    _, body = await api.call("GET", "/api/combos/stats?id=main&range=all")
    assert (body["id"], body["summary"]["requests"]) == ("main", 1)
    _, body = await api.call("GET", "/api/combos/stats?range=all")
    assert body["summary"]["requests"] == 2
    status, body = await api.call("GET", "/api/combos/stats?id=mian")
    assert (status, body["code"]) == (404, "not_found")
    assert 'did you mean "main"?' in body["error"]


async def test_records_page_by_page(api: Stage) -> None:
    enter(api, *(turn(id=str(number), outcome=Outcome.SUCCESS) for number in range(5)))
    _, first = await api.call("GET", "/api/logs?limit=2")
    assert ([row["requestId"] for row in first["logs"]], first["total"]) == (["4", "3"], 5)
    _, second = await api.call("GET", f"/api/logs?limit=3&before={first['cursor']}&combo=main")
    assert [row["requestId"] for row in second["logs"]] == ["2", "1", "0"]
    _, last = await api.call("GET", f"/api/logs?before={second['cursor']}")
    assert (last["logs"], last["cursor"]) == ([], None)
    assert first["logs"][0]["attempts"][0]["rule"] == "status-retryable"
    status, body = await api.call("GET", "/api/logs?limit=many")
    assert (status, body["code"]) == (400, "limit_invalid")


async def test_a_ledger_that_cannot_be_read_is_an_error_of_its_own(api: Stage) -> None:
    (api.path.parent / "usage.sqlite").write_bytes(b"no database at all" * 100)
    status, body = await api.call("GET", "/api/usage")
    assert (status, body["code"]) == (500, "ledger_unreadable")


async def test_without_a_record_everything_is_empty(api: Stage) -> None:
    for path in ("/api/usage", "/api/usage?jev=1", "/api/logs", "/api/combos/stats?id=main"):
        status, _ = await api.call("GET", path)
        assert status == 200
    assert not (api.path.parent / "usage.sqlite").exists()


async def test_quotas_with_their_badges(api: Stage) -> None:
    now = api.now[0]
    api.state.quota.bind = lambda provider: b"k" if provider.name == "alpha" else None
    _, empty = await api.call("GET", "/api/provider-quotas")
    assert (empty["reports"], empty["resting"]) == ([], [])
    assert empty["combos"] == [{"id": "main", "state": "unknown"}]
    full = Snapshot(AT, Window("five-hour", 100, AT + 60_000), custom=(Window("w", 5),), credits=Credits(used=1.5))
    api.state.quota.put(Report("alpha", "Alpha", "source", full, b"k"))
    api.state.quota.note("beta", "acct", "Beta", "headers", Snapshot(AT, monthly=Window("m", 7, AT + 1)))
    pool = api.state.pools.pool("alpha", {"a": b"1"})
    PoolTurn(PoolKind.API_KEYS, pool, ["a"], "m").failed("a", FailureFacts(429), PoolSignals(), now)
    _, body = await api.call("GET", "/api/provider-quotas")
    assert body["reports"] == [
        {
            "provider": "alpha",
            "label": "Alpha",
            "source": "source",
            "quota": {
                "fiveHourPercent": 100,
                "fiveHourResetAt": AT + 60_000,
                "customWindows": [{"label": "w", "percent": 5}],
                "creditsUsd": {"used": 1.5},
                "updatedAt": AT,
            },
            "updatedAt": AT,
            "routingQuota": {"state": "exhausted", "updatedAt": AT, "validUntil": AT + 60_000},
        },
        {
            "provider": "beta",
            "label": "Beta",
            "source": "headers",
            "quota": {"monthlyPercent": 7, "monthlyResetAt": AT + 1, "updatedAt": AT},
            "updatedAt": AT,
            "routingQuota": {"state": "unknown"},
            "account": "acct",
        },
    ]
    assert body["resting"] == [{"provider": "alpha", "member": "a", "leftMs": 60_000}]
    _, state = await api.call("GET", "/api/combos/state")
    assert state["combos"][0]["targets"][0]["reason"] == "quota"


async def test_only_a_refresh_waits_for_the_vendors(api: Stage) -> None:
    probes = api.server.parts.probes
    await api.call("GET", "/api/provider-quotas")
    assert (probes.asked, probes.settled) == ([False], 0)  # type: ignore[union-attr]
    await api.call("GET", "/api/provider-quotas?refresh=1")
    assert (probes.asked, probes.settled) == ([False, True], 1)  # type: ignore[union-attr]


async def test_budgets_and_the_targets_they_keep_out(api: Stage) -> None:
    enter(api, turn(attempt()))
    _, body = await api.call("GET", "/api/budgets")
    (row,) = body["budgets"]
    assert (row["kind"], row["name"], row["exhausted"]) == ("providers", "alpha", True)
    assert (row["day"]["tokens"], row["day"]["tokensLimit"], row["month"]["tokensLimit"]) == (32, 1, None)
    _, state = await api.call("GET", "/api/combos/state")
    assert state["combos"][0]["targets"][0]["reason"] == "budget"


async def test_metrics_need_the_token_and_are_prometheus_text(api: Stage) -> None:
    enter(api, turn(failure(), outcome=Outcome.EXHAUSTED))
    async with api.client.get("/metrics") as refused:
        assert refused.status == 401
    async with api.client.get("/metrics", headers=AUTH) as answer:
        text = await answer.text()
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'combos_requests_total{combo="main",outcome="exhausted"} 1.0' in text
    assert 'combos_budget_exhausted{kind="providers",name="alpha"} 0.0' in text
