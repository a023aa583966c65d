"""The providers' own model lists: fetched in the background, kept while fresh, and kept when a later fetch fails.

Decides when a list is asked for again. No request ever waits for it: readers get what is known at that moment.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from combos.core.catalog_member import DiscoveredModel
from combos.core.config_provider import Adapter, AuthMode, ProviderConfig
from combos.core.facts import Dialect, Headers
from combos.core.registry import Provider, Registry, is_routable
from combos.engine.commands import OutboundRequest, Timeouts
from combos.upstream.exchange import Answer
from combos.upstream.faults import UpstreamFault
from combos.wire.bodies import BodyError, decode
from combos.wire.headers import ANTHROPIC_VERSION, HeaderError, get, pair, request_headers
from combos.wire.model_list import ModelListError, parse_model_list

logger = logging.getLogger(__name__)

TTL_S = 300.0  # as long as quota reports: a list changes by the day
RETRY_S = 60.0
TIMEOUT_MS = 8_000  # of a whole fetch, as for a provider's connection test
BODY_MAX = 8 * 1024 * 1024  # the longest public lists are below 2 MiB
PARALLEL = 4
# Vendors whose list does not lie below the address of their models.
_LISTS_ELSEWHERE = {"https://models.github.ai/inference": "https://models.github.ai/catalog/models"}

_TIMEOUTS = Timeouts(connect_ms=TIMEOUT_MS, head_ms=TIMEOUT_MS, idle_ms=TIMEOUT_MS)
# No list of its own (azure-openai lists what could be deployed, not what is), or none without the caller's login.
_STATIC_ADAPTERS = frozenset({Adapter.AZURE_OPENAI, Adapter.JEV_DECISION})


class Sender(Protocol):
    """What discovery needs of the upstream session."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> Answer:
        """Send and wait for the head. Raises `UpstreamFault`."""


class DiscoveryError(Exception):
    """A list could not be had; the text says why and holds nothing of the answer."""


class VendorList(NamedTuple):
    """A vendor's own list as this client would see it, without content coding. `etag` as it was sent."""

    body: bytes
    etag: str | None


class _Binding(NamedTuple):
    """What a list belongs to: another address or credential makes it another list. `login` is a digest."""

    adapter: Adapter
    base_url: str
    auth_mode: AuthMode
    login: bytes


@dataclass(slots=True)
class _State:
    binding: _Binding
    due_at: float = 0.0
    rows: tuple[DiscoveredModel, ...] = ()
    problem: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)


_FAILURES = (DiscoveryError, UpstreamFault, ModelListError, BodyError, HeaderError)


class Discovery:
    """Model lists by provider. `secrets` gives the credential headers of a provider, `clock` monotonic seconds."""

    def __init__(
        self, sender: Sender, secrets: Callable[[Provider], Headers], clock: Callable[[], float] | None = None
    ) -> None:
        self._sender = sender
        self._secrets = secrets
        self._clock = clock
        self._states: dict[str, _State] = {}
        self._slots = asyncio.Semaphore(PARALLEL)

    @property
    def rows(self) -> Mapping[str, tuple[DiscoveredModel, ...]]:
        """What is known now, by provider name, for `build_catalog`."""
        return {name: state.rows for name, state in self._states.items() if state.rows}

    @property
    def problems(self) -> Mapping[str, str]:
        """Why the last fetch of a provider's list failed, by provider name."""
        return {name: state.problem for name, state in self._states.items() if state.problem}

    def refresh(self, registry: Registry) -> None:
        """Start fetching every list that is due, and forget providers that are gone. Returns at once.

        To be called inside the running loop: at start, after a reload, and whenever a catalog is read.
        """
        wanted = {provider.name: provider for provider in registry.providers.values() if has_live_list(provider)}
        for name in self._states.keys() - wanted.keys():
            self._forget(name)
        for provider in wanted.values():
            self._refresh_one(provider)

    async def vendor_list(
        self, provider: Provider, query: str, client_headers: Headers, secrets: Headers
    ) -> VendorList | None:
        """The list of a provider that takes the caller's login, fetched for this caller; None when it cannot be had.

        For a client that uses the proxy as its base URL and would otherwise lose the vendor's own models. `secrets`
        are the caller's credentials as far as they may go to this provider. Takes `TIMEOUT_MS` at most.
        """
        dialect = Dialect.RESPONSES
        try:
            headers = request_headers(
                client_headers, dialect=dialect, client_dialect=dialect, model="", configured=provider.config.headers
            )
            url = models_url(provider.config) + (f"?{query}" if query else "")
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                return await self._fetch(provider, url, headers, secrets)
        except (TimeoutError, *_FAILURES) as error:
            logger.debug(f"combos: the model list of {provider.name} cannot be relayed: {error}")
            return None

    async def settle(self) -> None:
        """Wait for the fetches that run now: for commands and tests, never for a request."""
        await asyncio.gather(*(state.task for state in self._states.values() if state.task is not None))

    async def close(self) -> None:
        """Cancel what runs and forget everything."""
        tasks = [state.task for state in self._states.values() if state.task is not None]
        for name in list(self._states):
            self._forget(name)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()

    def _forget(self, name: str) -> None:
        state = self._states.pop(name)
        if state.task is not None:
            state.task.cancel()

    def _refresh_one(self, provider: Provider) -> None:
        config = provider.config
        secrets = self._secrets(provider)
        login = hashlib.sha256(repr(secrets).encode()).digest()
        binding = _Binding(config.adapter, config.base_url, config.auth_mode, login)
        state = self._states.get(provider.name)
        if state is None or state.binding != binding:
            if state is not None:
                self._forget(provider.name)
            state = self._states[provider.name] = _State(binding)
        if not secrets and config.auth_mode is not AuthMode.LOCAL:
            state.problem = "no credentials"
        elif state.task is None and self._now() >= state.due_at:
            work = self._update(provider, state, secrets)
            state.task = asyncio.create_task(work, name=f"combos models of {provider.name}")

    async def _update(self, provider: Provider, state: _State, secrets: Headers) -> None:
        try:
            async with self._slots, asyncio.timeout(TIMEOUT_MS / 1000):
                url, headers = models_url(provider.config), _headers(provider.config)
                found = await self._fetch(provider, url, headers, secrets)
            state.rows = parse_model_list(found.body)
            self._settled(provider, state, "", TTL_S)
        except TimeoutError:
            self._settled(provider, state, "no answer in time", RETRY_S)
        except _FAILURES as error:
            self._settled(provider, state, str(error), RETRY_S)
        finally:
            state.task = None

    def _settled(self, provider: Provider, state: _State, problem: str, pause_s: float) -> None:
        if problem and problem != state.problem:
            logger.info(f"combos: the model list of {provider.name} cannot be read: {problem}")
        state.problem = problem
        state.due_at = self._now() + pause_s

    async def _fetch(self, provider: Provider, url: str, headers: Headers, secrets: Headers) -> VendorList:
        request = OutboundRequest("GET", url, headers, b"", provider)
        answer = await self._sender.send(request, _TIMEOUTS, secrets)
        try:
            if answer.status != 200:
                raise DiscoveryError(f"status {answer.status}")
            body = await _bounded(answer)
        finally:
            answer.close()
        whole = decode(get(answer.headers, "content-encoding"), body, BODY_MAX)
        return VendorList(whole, get(answer.headers, "etag"))


def has_live_list(provider: Provider) -> bool:
    """Whether the provider's list is read: it wants it, has one, and needs no caller's login for it."""
    config = provider.config
    return (
        is_routable(provider)
        and config.live_models
        and config.adapter not in _STATIC_ADAPTERS
        and config.auth_mode is not AuthMode.FORWARD
    )


def models_url(config: ProviderConfig) -> str:
    """The address of a provider's model list, as its vendor documents it; pages are asked for as long as they get."""
    base = config.base_url.rstrip("/")
    if base in _LISTS_ELSEWHERE:
        return _LISTS_ELSEWHERE[base]
    match config.adapter:
        case Adapter.ANTHROPIC:
            return f"{base if base.endswith('/v1') else f'{base}/v1'}/models?limit=1000"
        case Adapter.GOOGLE:
            return f"{base if base.endswith('/v1beta') else f'{base}/v1beta'}/models?pageSize=1000"
        case _:
            return f"{base.removesuffix('/models').rstrip('/')}/models"


def _headers(config: ProviderConfig) -> Headers:
    extra = tuple(pair(name, value) for name, value in config.headers.items())
    named = {name.lower() for name, _ in extra}
    usual = [(b"accept", b"application/json"), (b"user-agent", b"combos")]
    if config.adapter is Adapter.ANTHROPIC:
        usual.append((b"anthropic-version", ANTHROPIC_VERSION.encode()))
    return (*(field for field in usual if field[0] not in named), *extra)


async def _bounded(answer: Answer) -> bytes:
    parts = bytearray()
    while data := await answer.read_some():
        parts += data
        if len(parts) > BODY_MAX:
            raise DiscoveryError("the answer is too large")
    return bytes(parts)
