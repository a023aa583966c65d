"""Probes of quota: where and with what they ask, how often, and what a failed one leaves of the last good report."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from catalogs import registry
from combos.core.facts import Now
from combos.core.quota import BadgeState, binding_of
from combos.core.registry import Provider, Registry
from combos.engine.quota import QuotaBook
from combos.upstream.members import Member
from combos.upstream.quota import ACCOUNT_S, BODY_MAX, REPORT_S, QuotaProbes
from combos.upstream.session import Upstream
from combos.wire.quota_reports import SOURCES, Login, Source
from rawserver import Close, Expect, RawServer, Send, Signal, Stall, response

EPOCH_MS = 1_790_856_000_000
FULL = json.dumps({"data": {"limit": 10, "limit_remaining": 0}}).encode()
HALF = json.dumps({"data": {"limit": 10, "limit_remaining": 5}}).encode()
NO_CAP = json.dumps({"data": {"limit": None}}).encode()


def reader(name: str) -> Any:
    return next(source for source in SOURCES if source.name == name).read


@dataclass
class World:
    """Probes of one provider `up` at a scripted server that stands where the vendor does."""

    server: RawServer
    probes: QuotaProbes
    book: QuotaBook
    mono_ms: int = 1_000_000

    @property
    def now(self) -> Now:
        return Now(self.mono_ms, EPOCH_MS + self.mono_ms)

    def registry(self, **fields: Any) -> Registry:
        row = {"adapter": "openai-chat", "baseUrl": f"{self.server.url}/v1", "allowPrivateNetwork": True, "apiKey": "k"}
        return registry({"providers": {"up": {**row, **fields}}})

    async def probe(self, *, after_s: float = 0, force: bool = False, **fields: Any) -> list[float | None]:
        """Ask what is due; the fullest percent of each report that is known then."""
        self.mono_ms += round(after_s * 1000)
        self.probes.refresh(self.registry(**fields), force=force)
        await self.probes.settle()
        return [
            one.snapshot.credits.percent if one.snapshot.credits else one.snapshot.used_percent
            for one in self.book.reports()
        ]


type Started = Any


@pytest.fixture
async def world() -> AsyncIterator[Started]:
    session = Upstream()
    open_worlds: list[World] = []

    class Start:
        def __init__(self, *answers: Any, source: str = "openrouter", routes: bool = True, login: Login = Login.KEY):
            self.answers, self.source, self.routes, self.login = answers, source, routes, login

        async def __aenter__(self) -> World:
            scripts = [
                [Expect(), *(answer if isinstance(answer, list) else [Send(answer), Close()])]
                for answer in self.answers
            ]
            self.server = RawServer(*scripts)
            await self.server.__aenter__()
            url = self.server.url
            source = Source(
                "fake", "Fake", (f"{url}/v1",), f"{url}/quota", reader(self.source), self.routes, self.login
            )
            book = QuotaBook()
            made: list[World] = []

            def secrets(provider: Provider) -> Any:
                key = provider.config.api_key
                return ((b"Authorization", b"Bearer " + key.get_secret_value().encode()),) if key else ()

            def members(provider: Provider) -> tuple[Member, ...]:
                rows = [*provider.config.api_key_pool, *provider.config.account_pool]
                return tuple(Member(r.id, ((b"Authorization", r.id.encode()),), b"") for r in rows)

            def bind(provider: Provider) -> bytes | None:
                key = provider.config.api_key
                return binding_of(provider.name, provider.config, key.get_secret_value()) if key else None

            book.bind = bind
            probes = QuotaProbes(session, book, secrets, members, lambda: made[0].now, (source,))
            made.append(World(self.server, probes, book))
            open_worlds.extend(made)
            return made[0]

        async def __aexit__(self, *exc: object) -> None:
            await self.server.__aexit__(*exc)  # type: ignore[arg-type]

    yield Start
    for made in open_worlds:
        await made.probes.close()
    await session.close()


async def test_a_report_is_asked_with_the_providers_key_and_becomes_evidence(world: Started) -> None:
    async with world(response(200, FULL)) as on:
        assert await on.probe() == [100]
        (request,) = on.server.requests
        assert (request.method, request.target, request.header("authorization")) == ("GET", "/quota", "Bearer k")
        row = on.registry().providers["up"]
        assert on.book.badge(row, on.now).state is BadgeState.EXHAUSTED
        changed = on.registry(apiKey="another").providers["up"]
        assert on.book.badge(changed, on.now).state is BadgeState.UNKNOWN


async def test_a_report_is_kept_for_five_minutes_unless_it_is_forced(world: Started) -> None:
    async with world(response(200, FULL), response(200, HALF), response(200, FULL)) as on:
        assert await on.probe() == [100]
        assert await on.probe(after_s=REPORT_S - 1) == [100]
        assert await on.probe(after_s=1) == [50]
        assert await on.probe(force=True) == [100]


@pytest.mark.parametrize(
    "failure",
    [
        response(500), response(503), response(429), response(408), response(302, b"", ((b"Location", b"/x"),)),
        response(200, b"not json"), response(200, b"[]"), response(200, b"x" * (BODY_MAX + 1)),
        response(200, b"x", ((b"Content-Encoding", b"gzip"),)),
    ],
)  # fmt: skip
async def test_a_passing_failure_keeps_the_last_good_report(world: Started, failure: bytes) -> None:
    async with world(response(200, HALF), failure) as on:
        assert await on.probe() == [50]
        assert await on.probe(after_s=REPORT_S) == [50]
    assert len(on.server.requests) == 2


@pytest.mark.parametrize("refusal", [response(401), response(404), response(200, NO_CAP)])
async def test_a_refusal_or_an_empty_answer_drops_it(world: Started, refusal: bytes) -> None:
    async with world(response(200, HALF), refusal) as on:
        assert await on.probe() == [50]
        assert await on.probe(after_s=REPORT_S) == []


async def test_a_vendor_that_cannot_be_reached_is_no_news(world: Started) -> None:
    async with world() as on:
        pass
    assert await on.probe() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"disabled": True},
        {"authMode": "local", "apiKey": None},
        {"baseUrl": "https://elsewhere.example/v1"},
        {"authMode": "oauth", "apiKey": "t"},
    ],
)
async def test_others_are_not_asked(world: Started, fields: dict[str, Any]) -> None:
    async with world(response(200, FULL)) as on:
        given = {name: value for name, value in fields.items() if value is not None}
        assert await on.probe(**given) == []
    assert on.server.requests == []


async def test_a_pool_of_keys_is_asked_key_by_key_and_steers_nothing(world: Started) -> None:
    pool = [{"id": "one", "key": "1"}, {"id": "two", "key": "2"}]
    async with world(response(200, FULL), response(200, HALF)) as on:
        assert sorted(await on.probe(apiKeyPool=pool)) == [50, 100]  # type: ignore[type-var]
        assert {report.member for report in on.book.reports()} == {"one", "two"}
        assert all(report.binding is None for report in on.book.reports())


async def test_accounts_are_asked_every_ten_minutes_for_display(world: Started) -> None:
    rows = [{"id": "one", "tokenFile": "/t/1"}]
    document = json.dumps({"five_hour": {"utilization": 30}}).encode()
    answers = [response(200, document)] * 2
    async with world(*answers, source="anthropic", routes=False, login=Login.ACCOUNT) as on:
        fields = {"adapter": "anthropic", "authMode": "oauth", "accountPool": rows}
        assert await on.probe(**fields) == [30]
        assert await on.probe(after_s=ACCOUNT_S - 1, **fields) == [30]
        assert len(on.server.requests) == 1
        await on.probe(after_s=1, **fields)
        assert len(on.server.requests) == 2
        assert on.server.requests[0].header("anthropic-beta") == "oauth-2025-04-20"


async def test_a_report_for_display_steers_nothing(world: Started) -> None:
    async with world(response(200, FULL), routes=False) as on:
        assert await on.probe() == [100]
        assert on.book.badge(on.registry().providers["up"], on.now).state is BadgeState.UNKNOWN


async def test_nobody_waits_for_a_probe_and_a_provider_that_goes_ends_it(world: Started) -> None:
    asked, never = asyncio.Event(), asyncio.Event()
    async with world([Signal(asked), Stall(never)]) as on:
        on.probes.refresh(on.registry())
        on.probes.refresh(on.registry())
        await asyncio.wait_for(asked.wait(), 5)
        assert list(on.book.reports()) == []
        on.probes.refresh(registry({"providers": {}}))
        await on.probes.settle()
        never.set()
    assert len(on.server.requests) == 1
