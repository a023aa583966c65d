"""Rotation inside an attempt: who is asked, what is charged, what is surfaced, what is remembered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from combos.core.facts import Headers, Now, TransportFault
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.pools import PoolKind, PoolNote
from combos.engine.commands import OutboundRequest, Timeouts
from combos.engine.pools import PoolBook
from combos.engine.quota import QuotaBook
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.upstream.members import Member
from combos.upstream.pool import Charge, Held, PooledUpstream, Reading
from combos.upstream.session import Upstream
from exchanges import PATIENT, body_of, outbound
from rawserver import Again, Expect, RawServer, Send, response

LIMITED = response(429, b'{"error": {"code": "rate_limit_exceeded"}}')
REFUSED = response(401, b'{"error": {"code": "invalid_api_key"}}')
BROKE = response(429, b'{"error": {"code": "credit_balance_exhausted"}}')
BUSY = response(503, b'{"error": {"message": "later"}}')
OK = response(200, b"{}")
CUT = UpstreamFault(TransportFault.TRUNCATED, "cut")
KEYS = [{"id": name, "key": f"key-{name}"} for name in "abc"]


def member(name: str) -> Member:
    return Member(name, ((b"Authorization", f"Bearer {name}".encode()),), name.encode())


@dataclass
class World:
    """A pooled upstream over one scripted server; `kind` decides what its provider's pool is."""

    server: RawServer
    pooled: PooledUpstream
    kind: PoolKind
    granted: list[bool] = field(default_factory=list)
    mono_ms: int = 1_000

    def request(self, headers: Headers = ()) -> OutboundRequest:
        return outbound(f"{self.server.url}/v1", headers=headers, **FIELDS[self.kind])

    async def send(self, *, spares: bool = False, headers: Headers = ()) -> Reading:
        charge = Charge("m", lambda: self.granted.pop(0) if self.granted else True, spares)
        return await self.pooled.send(self.request(headers), PATIENT, ((b"Authorization", b"Bearer none"),), charge)

    @property
    def asked(self) -> list[str]:
        """Who was asked, in order."""
        return [str(request.header("authorization")).removeprefix("Bearer ") for request in self.server.requests]

    def resting(self) -> dict[str, int]:
        rows = self.pooled.pools.running(Now(self.mono_ms, 1_790_856_000_000))
        return {str(row["member"]): int(str(row["leftMs"])) for row in rows}


FILES = [{"id": name, "token_file": f"/t/{name}"} for name in "abc"]
FIELDS: dict[PoolKind, dict[str, Any]] = {
    PoolKind.API_KEYS: {"api_key_pool": KEYS},
    PoolKind.ANTHROPIC: {"adapter": "anthropic", "auth_mode": "oauth", "account_pool": FILES},
    PoolKind.OAUTH: {"auth_mode": "oauth", "account_pool": FILES},
    PoolKind.CODEX: {"adapter": "openai-responses", "auth_mode": "oauth", "account_pool": FILES},
}

type Start = Callable[..., Any]


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    session = Upstream()

    @asynccontextmanager
    async def start(*answers: bytes, kind: PoolKind = PoolKind.API_KEYS, members: str = "abc") -> AsyncIterator[World]:
        # The stub stands at another address than the vendor's: tell the kind by hand.
        monkeypatch.setattr("combos.upstream.pool.kind_of", lambda config: kind if members else None)
        scripts = [step for answer in answers for step in (Expect(), Send(answer))]
        async with RawServer([*scripts, Again([Expect(), Send(OK)])]) as server:
            made: list[World] = []
            pooled = PooledUpstream(
                session, PoolBook(), QuotaBook(), lambda _: tuple(member(name) for name in members),
                lambda: Now(made[0].mono_ms, 1_790_856_000_000),
            )  # fmt: skip
            made.append(World(server, pooled, kind))
            yield made[0]

    yield start
    await session.close()


async def test_a_provider_without_a_pool_gets_the_secrets_it_was_given(world: Start) -> None:
    async with world(OK, members="") as on:
        answer = await on.send()
        assert (answer.status, answer.pool, await body_of(answer)) == (200, None, b"{}")
    assert on.asked == ["none"]


@pytest.mark.parametrize("first", [LIMITED, REFUSED])
async def test_a_limited_or_refused_key_passes_the_request_to_the_next_one(world: Start, first: bytes) -> None:
    async with world(first, OK, OK) as on:
        answer = await on.send()
        assert (answer.status, answer.pool) == (200, PoolNote(PoolKind.API_KEYS, "b"))
        assert await body_of(answer) == b"{}"
        answer.close()
        (await on.send()).close()
    assert on.asked == ["a", "b", "b"]
    assert on.resting() == {"a": 600_000 if first is REFUSED else 60_000}


async def test_the_last_failure_is_surfaced_whole_when_every_key_failed(world: Start) -> None:
    async with world(LIMITED, REFUSED, LIMITED) as on:
        answer = await on.send()
        assert (answer.status, answer.pool) == (429, PoolNote(PoolKind.API_KEYS, "c", cooled=True))
        assert await body_of(answer) == b'{"error": {"code": "rate_limit_exceeded"}}'
        answer.limit(1, 1)
        answer.close()
        assert await answer.read_some() == b""
    assert on.asked == ["a", "b", "c"]


async def test_a_spent_budget_of_sends_surfaces_the_failure(world: Start) -> None:
    async with world(LIMITED, LIMITED) as on:
        on.granted = [True, False]
        answer = await on.send()
        assert answer.status == 429
        assert await body_of(answer) == b'{"error": {"code": "rate_limit_exceeded"}}'
    assert on.asked == ["a", "b"]


@pytest.mark.parametrize("failure", [BROKE, BUSY, response(400, b"{}"), response(404, b"{}")])
async def test_what_is_not_the_keys_own_failure_is_passed_on_as_it_is(world: Start, failure: bytes) -> None:
    async with world(failure) as on:
        answer = await on.send()
        note = answer.pool
        assert note is not None
        assert (note.member, note.cooled) == ("a", False)
        assert await body_of(answer) == failure.partition(b"\r\n\r\n")[2]
    assert on.asked == ["a"]
    assert on.resting() == {}


async def test_keys_that_rest_are_passed_over_until_they_are_back(world: Start) -> None:
    async with world(LIMITED, OK, LIMITED, OK, OK) as on:
        (await on.send()).close()
        (await on.send()).close()
        on.mono_ms += 60_000
        (await on.send()).close()
    assert on.asked == ["a", "b", "b", "c", "c"]


async def test_a_claude_accounts_429_passes_on_three_times_at_most(world: Start) -> None:
    async with world(*[LIMITED] * 4, kind=PoolKind.ANTHROPIC, members="abcdef") as on:
        answer = await on.send()
        assert (answer.status, answer.pool) == (429, PoolNote(PoolKind.ANTHROPIC, "d", cooled=True))
        answer.close()
    assert on.asked == ["a", "b", "c", "d"]
    assert {request.header("anthropic-beta") for request in on.server.requests} == {"oauth-2025-04-20"}


async def test_a_pool_of_accounts_refuses_by_itself_while_all_rest(world: Start) -> None:
    async with world(LIMITED, LIMITED, kind=PoolKind.ANTHROPIC, members="ab") as on:
        (await on.send()).close()
        answer = await on.send()
        assert (answer.status, answer.pool) == (429, PoolNote(PoolKind.ANTHROPIC, None))
        assert json.loads(await body_of(answer))["error"]["type"] == "rate_limit_error"
        assert not [name for name, _ in answer.headers if name.lower() == b"retry-after"]
    assert on.asked == ["a", "b"]


async def test_a_pool_without_a_usable_account_sends_nothing() -> None:
    pooled = over(Answering(), "")
    request = outbound("https://api.anthropic.com", **FIELDS[PoolKind.ANTHROPIC])
    answer = await pooled.send(request, PATIENT, (), CHARGE)
    assert (answer.status, answer.pool) == (429, PoolNote(PoolKind.ANTHROPIC, None))
    assert b"no account of the pool can be used" in await body_of(answer)


async def test_a_chatgpt_account_passes_on_once(world: Start) -> None:
    async with world(BUSY, LIMITED, kind=PoolKind.CODEX) as on:
        answer = await on.send()
        assert (answer.status, answer.pool) == (429, PoolNote(PoolKind.CODEX, "b", cooled=True))
        answer.close()
    assert on.asked == ["a", "b"]
    assert on.resting() == {"b": 60_000}


async def test_an_account_that_may_not_use_a_model_is_not_asked_for_it_again(world: Start) -> None:
    text = "The 'm' model is not supported when using Codex with a ChatGPT account."
    denied = response(400, json.dumps({"detail": text}).encode())
    async with world(denied, OK, OK, kind=PoolKind.CODEX) as on:
        answer = await on.send()
        assert answer.status == 200
        answer.close()
        (await on.send()).close()
    assert on.asked == ["a", "b", "b"]
    assert on.resting() == {}


async def test_an_ordinary_refusal_of_a_request_is_no_accounts_business(world: Start) -> None:
    async with world(response(400, b'{"error": {"message": "no"}}'), kind=PoolKind.CODEX) as on:
        answer = await on.send()
        assert (answer.status, answer.pool) == (400, PoolNote(PoolKind.CODEX, "a"))
        assert await body_of(answer) == b'{"error": {"message": "no"}}'


async def test_reset_headers_alone_do_not_rest_an_account_that_a_later_target_needs(world: Start) -> None:
    spent = response(429, b"{}", ((b"x-codex-primary-reset-at", b"1790856100"),))
    async with world(spent, kind=PoolKind.CODEX, members="a") as on:
        answer = await on.send(spares=True)
        assert answer.pool == PoolNote(PoolKind.CODEX, "a", cooled=False)
        answer.close()
        assert on.resting() == {}
    async with world(spent, kind=PoolKind.CODEX, members="a") as on:
        (await on.send()).close()
        assert on.resting() == {"a": 100_000}


class Answering:
    """A sender with prepared answers, for what no server can be made to say in order."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Headers] = []

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        self.sent.append(secrets)
        return self.answers.pop(0)  # type: ignore[no-any-return]


class Broken:
    """An answer that gives its pieces, then raises, ends, or hangs."""

    def __init__(self, status: int, *pieces: bytes, fault: UpstreamFault | None = None, hangs: bool = False) -> None:
        self.status, self.headers, self.peername, self.pool = status, (), None, None
        self.limits: list[tuple[int, int | None]] = []
        self.closed = False
        self._pieces, self._fault, self._hangs = list(pieces), fault, hangs

    def limit(self, idle_ms: int, total_ms: int | None = None) -> None:
        self.limits.append((idle_ms, total_ms))

    async def read_some(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        if self._hangs:
            await asyncio.Event().wait()
        if self._fault is not None:
            raise self._fault
        return b""

    def close(self) -> None:
        self.closed = True


def over(sender: Answering, members: str = "a") -> PooledUpstream:
    now = Now(1, 1_790_856_000_000)
    return PooledUpstream(
        sender, PoolBook(), QuotaBook(), lambda _: tuple(member(name) for name in members), lambda: now
    )


CHARGE = Charge("m", lambda: True)


def pooled_request() -> OutboundRequest:
    return outbound("https://a.example/v1", **FIELDS[PoolKind.API_KEYS])


async def test_an_error_body_that_breaks_is_judged_by_its_status_and_its_end_is_passed_on() -> None:
    broken = Broken(429, b"par", fault=CUT)
    answer = await over(Answering(broken)).send(pooled_request(), PATIENT, (), CHARGE)
    assert (answer.status, answer.pool) == (429, PoolNote(PoolKind.API_KEYS, "a", cooled=True))
    assert broken.limits == [(5_000, 5_000)]
    assert await answer.read_some() == b"par"
    with pytest.raises(UpstreamFault):
        await answer.read_some()


async def test_of_an_endless_error_body_only_the_beginning_is_read_ahead() -> None:
    endless = Broken(429, *[b"x" * 40_000] * 3, b"rest")
    answer = await over(Answering(endless)).send(pooled_request(), PATIENT, (), CHARGE)
    assert len(await body_of(answer)) == 120_004  # type: ignore[arg-type]
    answer.limit(7, None)
    answer.close()
    assert (endless.limits[-1], endless.closed) == ((7, None), True)


async def test_a_client_that_leaves_while_an_error_body_is_read_closes_the_answer() -> None:
    hanging = Broken(429, hangs=True)
    task = asyncio.create_task(over(Answering(hanging)).send(pooled_request(), PATIENT, (), CHARGE))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.closed


async def test_quota_on_an_answer_is_noted_for_its_account() -> None:
    answer = Broken(200)
    answer.headers = ((b"anthropic-ratelimit-unified-5h-utilization", b"0.5"),)  # type: ignore[assignment]
    pooled = over(Answering(answer))
    request = outbound("https://api.anthropic.com", **FIELDS[PoolKind.ANTHROPIC])
    await pooled.send(request, PATIENT, (), CHARGE)
    (report,) = pooled.quota.reports()
    assert (report.provider, report.member, report.source, report.binding) == ("acme", "a", "anthropic-headers", None)
    assert pooled.quota.used_percent("acme", "a") == 50


async def test_quota_of_a_forwarded_login_is_noted_for_the_provider() -> None:
    answer = Broken(200)
    answer.headers = ((b"x-codex-primary-used-percent", b"7"),)  # type: ignore[assignment]
    pooled = over(Answering(answer, Broken(200)))
    request = outbound(CHATGPT_BASE_URL, adapter="openai-responses", auth_mode="forward")
    await pooled.send(request, PATIENT, (), CHARGE)
    (report,) = pooled.quota.reports()
    assert (report.member, report.label) == (None, "ChatGPT")


async def test_pools_start_where_their_strategy_says() -> None:
    sender = Answering(*(Broken(200) for _ in range(4)))
    pooled = over(sender, "abc")
    request = outbound("https://a.example/v1", api_key_pool=KEYS, api_key_pool_strategy="round-robin")
    for _ in range(4):
        await pooled.send(request, PATIENT, (), CHARGE)
    assert [secrets[0][1] for secrets in sender.sent] == [b"Bearer a", b"Bearer b", b"Bearer c", b"Bearer a"]


async def test_held_parts_come_first_and_then_the_fault() -> None:
    held = Held(429, (), [b"one", b"two"], None, CUT)
    assert held.body is None
    assert [await held.read_some(), await held.read_some()] == [b"one", b"two"]
    with pytest.raises(UpstreamFault):
        await held.read_some()
    assert Held(429, (), [b"one", b"two"], None).body == b"onetwo"
