"""The usage ledger of a real process that is killed, and credential pools and response headers on the wire."""

import asyncio
import contextlib
import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

from combos.admin.usage_query import Filters, WindowSums, reading, records
from combos.admin.usage_sums import TURNS
from combos.core.usage_windows import Window
from e2e.proxyprocess import ProxyProcess, mitmdump, process_with
from rawserver import RawServer
from stage import Case, document_of, stage, stubs, until
from wires import M, R, error

CLIENTS = 8
SETTLED_S = 1.0
"""After this time an answered request is on disk, also on a busy machine."""
LIMITED = error(429, {"error": {"code": "rate_limit_exceeded", "message": "slow down"}})


def kept(path: Path) -> list[dict[str, Any]]:
    with reading(path) as ledger:
        return [row for _, row in records(ledger, 100_000)]


def summed(path: Path) -> int:
    with reading(path) as ledger:
        return sum(row["requests"] for row in WindowSums(ledger, Window(None)).by(TURNS, (), Filters()))


def is_whole(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


async def kill(proxy: ProxyProcess) -> None:
    proxy.process.send_signal(signal.SIGKILL)
    await proxy.process.wait()


async def until_killed(home: Path, confdir: Path, case: Case, server: RawServer) -> int:
    """Ask without end and kill the process in the middle; how many answers had come a second before."""
    clock = asyncio.get_running_loop().time
    answers: list[float] = []
    killed_at = 0.0
    with contextlib.suppress(AssertionError):  # its end is no orderly one
        async with mitmdump(home, confdir, document=document_of([case], server.url, {})) as proxy:

            async def ask() -> None:
                with contextlib.suppress(OSError, EOFError, AssertionError):
                    while (await proxy.ask(case)).status == 200:
                        answers.append(clock())

            running = [asyncio.create_task(ask()) for _ in range(CLIENTS)]
            started = clock()
            await until(lambda: len(answers) >= 100 and clock() - started > 1.5, 30)
            killed_at = clock()
            await kill(proxy)
            await asyncio.gather(*running)
    assert killed_at
    return sum(at < killed_at - SETTLED_S for at in answers)


async def test_a_killed_process_leaves_a_whole_ledger_and_the_next_one_goes_on(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=error(503, {}), beta=R.answers("beta-ok"))
    path = tmp_path / "usage.sqlite"
    async with stubs(case) as server:
        for _ in range(2):
            before = len(kept(path))
            settled = await until_killed(tmp_path, confdir, case, server)
            assert is_whole(path)
            rows = kept(path)
            assert len({row["requestId"] for row in rows}) == len(rows)
            # Records and their sums are written together: neither is ahead of the other.
            assert summed(path) == len(rows)
            assert settled > 0
            assert len(rows) - before >= settled
    whole = [row for row in rows if row["outcome"] == "success"]
    assert all(row["attempts"] and row["resolvedModel"].endswith("m2") for row in whole)


async def test_what_a_client_has_seen_is_in_the_ledger_when_the_process_ends_in_order(
    tmp_path: Path, confdir: Path
) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        for _ in range(20):
            await proxy.ask(case)
    rows = kept(tmp_path / "usage.sqlite")
    assert len(rows) == 20
    assert {row["combo"] for row in rows} == {case.id}
    assert "alpha-key" not in json.dumps(rows)


async def test_a_pool_of_keys_absorbs_a_limited_one(confdir: Path) -> None:
    pool = [{"id": "one", "key": "key-one"}, {"id": "two", "key": "key-two"}]
    fields = {"alpha": {"apiKey": None, "apiKeyPool": pool}}
    case = Case(
        R, alpha=[LIMITED, R.answers("alpha-ok"), R.answers("alpha-ok")], beta=R.answers("no"), providers=fields
    )
    async with stage(confdir, case, combos_options={"combos_response_headers": True}) as on:
        for _ in range(2):
            answer = await on.ask(case)
            assert b"alpha-ok" in answer.body
            headers = {name.lower(): value for name, value in answer.headers}
            assert headers[b"x-combos-target"] == f"{case.provider('alpha')}/m1".encode()
            assert headers[b"x-combos-attempts"] == b"1"
        keys = [request.header("authorization") for request in case.requests]
        assert keys == ["Bearer key-one", "Bearer key-two", "Bearer key-two"]
        assert on.cooling(case) == {}
        assert [record.attempts[0].sends for record in case.records] == [2, 1]
        assert case.records[0].attempts[0].account == "two"
        assert headers[b"x-combos-request-id"] == case.records[1].id.encode()


async def test_an_exhausted_pool_of_keys_hops_and_cools_the_target(confdir: Path) -> None:
    pool = [{"id": "one", "key": "key-one"}, {"id": "two", "key": "key-two"}]
    fields = {"alpha": {"apiKey": None, "apiKeyPool": pool}}
    case = Case(R, alpha=[LIMITED, LIMITED], beta=R.answers("beta-ok"), providers=fields)
    async with stage(confdir, case) as on:
        answer = await on.ask(case)
        assert b"beta-ok" in answer.body
        assert not [name for name, _ in answer.headers if name.lower().startswith(b"x-combos")]
        assert case.calls == ["alpha", "alpha", "beta"]
        assert on.cooling(case) == {"alpha/m1": 60_000}


async def test_the_429_of_a_claude_account_leaves_the_target_selectable(tmp_path: Path, confdir: Path) -> None:
    rows = []
    for name in ("one", "two"):
        (tmp_path / name).write_text(json.dumps({"claudeAiOauth": {"accessToken": f"token-{name}"}}))
        rows.append({"id": name, "tokenFile": str(tmp_path / name)})
    fields = {"alpha": {"apiKey": None, "authMode": "oauth", "accountPool": rows}}
    limited = error(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "account limited"}})
    case = Case(M, alpha=[limited, limited, M.answers("alpha-ok")], beta=M.answers("beta-ok"), providers=fields)
    async with stage(confdir, case) as on:
        assert b"beta-ok" in (await on.ask(case)).body
        assert on.cooling(case) == {}
        on.clock.advance(60_000)
        assert b"alpha-ok" in (await on.ask(case)).body
        sent = case.requests_of("alpha")
        assert {request.header("authorization") for request in sent} == {"Bearer token-one", "Bearer token-two"}
        assert all("oauth-2025-04-20" in str(request.header("anthropic-beta")) for request in sent)


async def test_a_spent_budget_sends_requests_elsewhere(confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"), beta=R.answers("beta-ok"))
    async with stage(confdir, case) as on:
        budgets = {"providers": {case.provider("alpha"): {"tokensPerDay": 10}}}
        path = on.service.config.path
        path.write_text(json.dumps({**json.loads(path.read_text()), "budgets": budgets}))
        on.service.config.reload()
        assert b"alpha-ok" in (await on.ask(case)).body
        on.service.state.spending.add(case.provider("alpha"), case.id, None, 10, on.clock.epoch_ms)
        assert b"beta-ok" in (await on.ask(case)).body
        assert case.calls == ["alpha", "beta"]
