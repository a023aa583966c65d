"""Discovery of model lists: addresses, credentials, what is kept, what is bounded, and that nobody waits for it."""

import asyncio
import gzip
from typing import Any

import pytest

from catalogs import CHATGPT, registry
from combos.core.config_provider import ProviderConfig
from combos.core.facts import Headers, TransportFault
from combos.core.registry import Provider, Registry
from combos.engine.commands import OutboundRequest, Timeouts
from combos.upstream.discovery import (
    BODY_MAX,
    PARALLEL,
    RETRY_S,
    TTL_S,
    Discovery,
    VendorList,
    has_live_list,
    models_url,
)
from combos.upstream.faults import UpstreamFault
from combos.upstream.session import Upstream
from rawserver import Close, Expect, RawServer, Send, response

KEY: Headers = ((b"Authorization", b"Bearer k"),)
LIST = b'{"data":[{"id":"one","context_length":1000},{"id":"two"}]}'


def provider(base_url: str = "https://up.example/v1", **fields: Any) -> dict[str, Any]:
    return {"adapter": "openai-chat", "baseUrl": base_url, "allowPrivateNetwork": True, "apiKey": "k", **fields}


def config(**fields: Any) -> ProviderConfig:
    return ProviderConfig.model_validate({"adapter": "openai-chat", "baseUrl": "https://up.example/v1", **fields})


def one(base_url: str = "https://up.example/v1", **fields: Any) -> Registry:
    return registry({"providers": {"up": provider(base_url, **fields)}})


class FakeAnswer:
    def __init__(self, status: int, body: bytes, headers: Headers = ()) -> None:
        self.status, self.headers = status, headers
        self._parts = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]
        self.is_closed = False

    async def read_some(self) -> bytes:
        await asyncio.sleep(0)
        return self._parts.pop(0) if self._parts else b""

    def close(self) -> None:
        self.is_closed = True


class FakeSender:
    """Answers with what it is given, by turns; an exception is raised, a callable awaited first."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[OutboundRequest] = []
        self.secrets: list[Headers] = []
        self.running = 0
        self.most = 0

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Any:
        self.requests.append(request)
        self.secrets.append(secrets)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if isinstance(answer, asyncio.Event):
                await answer.wait()
                answer = FakeAnswer(200, LIST)
            await asyncio.sleep(0)
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def discovery(sender: Any, clock: Clock | None = None, secrets: Headers = KEY) -> Discovery:
    return Discovery(sender, lambda _provider: secrets, clock or Clock())


async def refreshed(found: Discovery, known: Registry) -> dict[str, list[str]]:
    found.refresh(known)
    await found.settle()
    return {name: [row.id for row in rows] for name, rows in found.rows.items()}


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, "https://up.example/v1/models"),
        ({"baseUrl": "https://up.example/v1///"}, "https://up.example/v1/models"),
        ({"baseUrl": "https://up.example/v1/models/"}, "https://up.example/v1/models"),
        ({"adapter": "openai-responses", "baseUrl": "https://api.x.ai/v1"}, "https://api.x.ai/v1/models"),
        ({"adapter": "anthropic", "baseUrl": "https://a.example"}, "https://a.example/v1/models?limit=1000"),
        ({"adapter": "anthropic", "baseUrl": "https://a.example/v1/"}, "https://a.example/v1/models?limit=1000"),
        ({"adapter": "google", "baseUrl": "https://g.example"}, "https://g.example/v1beta/models?pageSize=1000"),
        ({"adapter": "google", "baseUrl": "https://g.example/v1beta"}, "https://g.example/v1beta/models?pageSize=1000"),
        ({"baseUrl": "https://models.github.ai/inference/"}, "https://models.github.ai/catalog/models"),
    ],
)
def test_addresses(fields: dict[str, Any], url: str) -> None:
    assert models_url(config(**fields)) == url


@pytest.mark.parametrize(
    ("fields", "is_live"),
    [
        ({}, True),
        ({"authMode": "local"}, True),
        ({"liveModels": False}, False),
        ({"disabled": True}, False),
        ({"adapter": "azure-openai"}, False),
        ({"adapter": "jev-decision"}, False),
        (CHATGPT, False),
    ],
)
def test_whose_list_is_read(fields: dict[str, Any], is_live: bool) -> None:
    assert has_live_list(Provider("up", config(**fields))) is is_live


async def test_a_list_is_fetched_with_the_providers_credentials_and_headers() -> None:
    sender = FakeSender(FakeAnswer(200, LIST))
    known = one(adapter="anthropic", headers={"x-team": "blue"})
    assert await refreshed(discovery(sender), known) == {"up": ["one", "two"]}
    (request,) = sender.requests
    assert (request.method, request.body) == ("GET", b"")
    assert (b"x-team", b"blue") in request.headers
    assert (b"anthropic-version", b"2023-06-01") in request.headers
    assert sender.secrets == [KEY]


async def test_nobody_waits_and_a_fetch_that_runs_is_not_started_again() -> None:
    gate = asyncio.Event()
    sender = FakeSender(gate)
    found = discovery(sender)
    for _ in range(3):
        found.refresh(one())
        await asyncio.sleep(0)
    assert found.rows == {}
    gate.set()
    await found.settle()
    assert len(sender.requests) == 1
    assert [row.id for row in found.rows["up"]] == ["one", "two"]


async def test_a_list_is_fetched_again_when_it_is_old() -> None:
    clock, sender = Clock(), FakeSender(FakeAnswer(200, LIST), FakeAnswer(200, b'["three"]'))
    found = discovery(sender, clock)
    await refreshed(found, one())
    clock.now = TTL_S - 1
    assert await refreshed(found, one()) == {"up": ["one", "two"]}
    clock.now = TTL_S
    assert await refreshed(found, one()) == {"up": ["three"]}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (FakeAnswer(401, b"{}"), "status 401"),
        (FakeAnswer(302, b"", ((b"location", b"https://evil.example"),)), "status 302"),
        (FakeAnswer(200, b"<html>"), "not valid JSON"),
        (FakeAnswer(200, b"{}"), "not a list of models"),
        (FakeAnswer(200, b" " * (BODY_MAX + 1)), "the answer is too large"),
        (FakeAnswer(200, b"x", ((b"content-encoding", b"gzip"),)), "body ends in the middle of its coding"),
        (UpstreamFault(TransportFault.REFUSED, "up.example port 443"), "connection_refused: up.example port 443"),
        (TimeoutError(), "no answer in time"),
    ],
)
async def test_the_last_good_list_is_kept_when_a_fetch_fails(answer: Any, problem: str) -> None:
    clock, sender = Clock(), FakeSender(FakeAnswer(200, LIST), answer, FakeAnswer(200, b'["three"]'))
    found = discovery(sender, clock)
    await refreshed(found, one())
    clock.now = TTL_S
    assert await refreshed(found, one()) == {"up": ["one", "two"]}
    assert found.problems == {"up": problem}
    assert not isinstance(answer, FakeAnswer) or answer.is_closed
    clock.now += RETRY_S - 1
    assert await refreshed(found, one()) == {"up": ["one", "two"]}
    clock.now += 1
    assert await refreshed(found, one()) == {"up": ["three"]}
    assert found.problems == {}


async def test_another_address_or_key_makes_another_list() -> None:
    sender = FakeSender(FakeAnswer(200, LIST), FakeAnswer(503, b""))
    found = discovery(sender)
    await refreshed(found, one())
    assert await refreshed(found, one("https://other.example/v1")) == {}
    sender.answers = [FakeAnswer(200, LIST), FakeAnswer(503, b"")]
    keys = [KEY, ((b"Authorization", b"Bearer other"),)]
    rotating = Discovery(sender, lambda _provider: keys[0], Clock())
    assert await refreshed(rotating, one()) == {"up": ["one", "two"]}
    del keys[0]
    assert await refreshed(rotating, one()) == {}


async def test_a_change_that_does_not_touch_the_list_keeps_it() -> None:
    sender = FakeSender(FakeAnswer(200, LIST))
    found = discovery(sender)
    await refreshed(found, one())
    assert await refreshed(found, one(contextWindow=5)) == {"up": ["one", "two"]}
    assert len(sender.requests) == 1


async def test_providers_that_are_gone_are_forgotten() -> None:
    found = discovery(FakeSender(FakeAnswer(200, LIST)))
    await refreshed(found, one())
    assert await refreshed(found, registry({})) == {}
    assert await refreshed(found, one(disabled=True)) == {}


async def test_without_credentials_nobody_is_asked() -> None:
    sender = FakeSender(FakeAnswer(200, LIST))
    found = discovery(sender, secrets=())
    assert await refreshed(found, one()) == {}
    assert found.problems == {"up": "no credentials"}
    assert sender.requests == []
    assert await refreshed(found, one(authMode="local", apiKey="k")) == {"up": ["one", "two"]}


async def test_few_lists_are_fetched_at_once() -> None:
    sender = FakeSender(*(FakeAnswer(200, LIST) for _ in range(12)))
    known = registry({"providers": {f"p{n}": provider() for n in range(12)}})
    assert len(await refreshed(discovery(sender), known)) == 12
    assert sender.most == PARALLEL


async def test_closing_cancels_what_runs() -> None:
    found = discovery(FakeSender(asyncio.Event()))
    before = asyncio.all_tasks()
    found.refresh(one())
    await asyncio.sleep(0)
    await found.close()
    assert asyncio.all_tasks() == before
    assert found.rows == {}


async def test_a_fetch_that_was_overtaken_by_a_new_address_leaves_no_trace() -> None:
    gate = asyncio.Event()
    found = discovery(FakeSender(gate, FakeAnswer(200, b'["new"]')))
    found.refresh(one())
    await asyncio.sleep(0)
    found.refresh(one("https://other.example/v1"))
    gate.set()
    await found.settle()
    assert [row.id for row in found.rows["up"]] == ["new"]


CLIENT: Headers = (
    (b"version", b"0.171.0"),
    (b"authorization", b"Bearer caller"),
    (b"accept-encoding", b"zstd,gzip"),
    (b"host", b"127.0.0.1:8080"),
)


async def test_the_list_of_a_forwarding_provider_is_fetched_for_the_caller() -> None:
    body = b'{"models":[]}'
    packed = ((b"content-encoding", b"gzip"), (b"ETag", b'W/"7"'))
    sender = FakeSender(FakeAnswer(200, gzip.compress(body), packed))
    forwarding = Provider("openai", config(**CHATGPT))
    found = await discovery(sender).vendor_list(forwarding, "client_version=0.171.0", CLIENT, KEY)
    assert found == VendorList(body, 'W/"7"')
    (request,) = sender.requests
    assert request.url == "https://chatgpt.com/backend-api/codex/models?client_version=0.171.0"
    assert (b"version", b"0.171.0") in request.headers
    assert not {b"authorization", b"host"} & {name for name, _ in request.headers}
    assert sender.secrets == [KEY]


@pytest.mark.parametrize(
    "answer", [FakeAnswer(401, b""), UpstreamFault(TransportFault.DNS, "no such host"), TimeoutError()]
)
async def test_without_the_vendors_list_the_own_one_serves(answer: Any) -> None:
    forwarding = Provider("openai", config(**CHATGPT))
    assert await discovery(FakeSender(answer)).vendor_list(forwarding, "", CLIENT, KEY) is None


async def test_over_a_real_connection(upstream: Upstream) -> None:
    redirect = response(302, b"", ((b"Location", b"/elsewhere"),))
    async with RawServer([Expect(), Send(response(200, LIST)), Close()], [Expect(), Send(redirect), Close()]) as server:
        clock = Clock()
        found = discovery(upstream, clock)
        assert await refreshed(found, one(f"{server.url}/v1")) == {"up": ["one", "two"]}
        assert server.requests[0].target == "/v1/models"
        assert server.requests[0].header("authorization") == "Bearer k"
        clock.now = TTL_S
        assert await refreshed(found, one(f"{server.url}/v1")) == {"up": ["one", "two"]}
        assert found.problems == {"up": "status 302"}
        assert [request.target for request in server.requests] == ["/v1/models", "/v1/models"]
        await found.close()
