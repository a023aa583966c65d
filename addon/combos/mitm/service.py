"""Serves recognised requests: admits the client, starts the turn, runs it. Owns what outlives a request."""

import logging
import os
import random
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import lru_cache

from mitmproxy import ctx
from mitmproxy.hooks import UpdateHook
from mitmproxy.http import HTTPFlow
from yarl import URL

from combos.admin.activity import Activity
from combos.admin.books import Books
from combos.admin.live_config import LiveConfig
from combos.core import errors
from combos.core.facts import Headers, Now
from combos.core.keychain import keychain_names
from combos.core.pools import kind_of
from combos.core.quota import binding_of
from combos.core.recall import lane_key
from combos.core.registry import Combo, ComboRoute, Provider, Registry
from combos.core.secrets import Secret, resolve_secret
from combos.decision.model import ModelReply
from combos.decision.service import Secrets
from combos.engine.compaction import recalled_route
from combos.engine.explain import Explanation, explain
from combos.engine.record import Outcome, TurnRecord, trail
from combos.engine.replay import replayed
from combos.engine.request import TurnOptions, TurnRequest, conversations
from combos.engine.state import EngineState
from combos.engine.turn import Turn
from combos.mitm import access
from combos.mitm.client import Client
from combos.mitm.dispatch import Dispatch, Services, clock
from combos.mitm.heard import is_heard
from combos.mitm.internal_turn import Surroundings, invoke
from combos.mitm.model_lists import ModelLists
from combos.mitm.options import Settings
from combos.mitm.recognition import Recognised
from combos.mitm.recorder import Recorder
from combos.mitm.refusals import refuse_with
from combos.mitm.seeds import Seeds
from combos.mitm.sharing import SharedState
from combos.mitm.writer import Responder
from combos.upstream import credentials
from combos.upstream.accounts import AccountFiles
from combos.upstream.credentials import SystemKeychain
from combos.upstream.decision import Decider
from combos.upstream.discovery import Discovery
from combos.upstream.members import Member, members_of, with_beta
from combos.upstream.pool import PooledUpstream
from combos.upstream.quota import QuotaProbes
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.session import Upstream
from combos.wire.fields import Fields
from combos.wire.headers import LOOP_HEADER
from combos.wire.request import lane

logger = logging.getLogger(__name__)


class Service:
    """Everything that requests share: configuration, state, the client session.

    `own` are the addresses of the proxy, `listener` is that of the addon's own listener: no target may be there.
    """

    def __init__(self, config: LiveConfig, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self._options: tuple[Settings | None, TurnOptions] = (None, TurnOptions())
        self.state = EngineState()
        self.upstream = Upstream()
        self.own = OwnAddresses()
        self.listener = OwnAddresses()
        self.is_admin_token: Callable[[str], bool] = lambda _shown: False
        self.environ: Mapping[str, str] = os.environ
        self.mark = f"combos-{uuid.uuid4().hex[:12]}"
        self.draw = random.random
        self._seeds = Seeds()
        self.now: Callable[[], Now] = clock
        self.activity = Activity()
        self.keychain = SystemKeychain(lambda text: logger.warning(f"combos: {text}"))
        self.accounts = AccountFiles(
            lambda: self.now().mono_ms / 1000,
            lambda: self.now().epoch_ms,
            lambda text: logger.warning(f"combos: {text}"),
        )
        self.pooled = PooledUpstream(
            self.upstream, self.state.pools, self.state.quota, self.members_of, lambda: self.now()
        )
        self.probes = QuotaProbes(
            self.upstream, self.state.quota, self.own_credentials, self.members_of, lambda: self.now()
        )
        self.state.quota.bind = self._quota_binding
        self.books = Books(config, self.state, lambda: self.now())
        self.model_lists = ModelLists(Discovery(self.upstream, self.question_credentials))
        self.decider = Decider(self.upstream, lambda: Secrets(self.environ, self.keychain), self._invoke)
        self._services = Services(
            self.pooled, lambda: self.now(), self._finished, self.decider.answer, lambda: self.settings.response_headers
        )
        self.shared = SharedState(self.state, lambda: self.now().mono_ms)
        self.books.shares = lambda: self.shared.is_connected
        for adopt in (self.state.reconcile, self.shared.follow):
            adopt(config.registry)
            config.subscribe(adopt)

    def responder(self, flow: HTTPFlow, recognised: Recognised, origin: str | None) -> Responder:
        """What answers the flow. `origin` is the host the client addressed, None when that was the proxy itself."""
        registry = self.config.registry
        if not self.admits(flow):
            return refuse_with(errors.forbidden(access.REFUSAL), recognised.facts.dialect)
        if self._has_been_here(recognised.fields):
            return refuse_with(errors.loop_detected(), recognised.facts.dialect)
        client = Client(self, flow, registry, origin)
        request = replayed(self._turn_request(recognised, client), self.state, self.now)
        turn = Turn(request, self.state, self._turn_options())
        recorder = Recorder(flow, self.settings.attempt_flows, self.settings.body_limit)
        return Dispatch(self._services, turn, recorder, client.credentials, recognised.facts.dialect).run

    def _has_been_here(self, fields: Fields) -> bool:
        """Whether the request carries the mark of this proxy."""
        return LOOP_HEADER in fields.first and any(self.mark.encode() in value for value in fields.every(LOOP_HEADER))

    def _turn_request(self, recognised: Recognised, client: Client) -> TurnRequest:
        fields = recognised.fields
        caller = access.caller_of(fields)
        named, conversation = conversations(caller, lane(fields), fields)
        return TurnRequest(
            facts=recognised.facts,
            fields=fields,
            route=recognised.route,
            registry=client.registry,
            current=self._current,
            unusable=client.unusable,
            draw=self.draw,
            origin=client.origin,
            caller=caller,
            lane_key=named,
            conversation=conversation,
            seed=self._seeds.next(),
            mark=self.mark,
        )

    def _current(self) -> Registry:
        """The registry in force."""
        return self.config.registry

    def _turn_options(self) -> TurnOptions:
        settings, (known, made) = self.settings, self._options
        if known is not settings:
            made = TurnOptions(settings.connect_timeout_ms, settings.head_timeout_ms, settings.idle_timeout_ms)
            self._options = (settings, made)
        return made

    def _invoke(self, registry: Registry, body: bytes) -> Awaitable[ModelReply]:
        """An internal turn for a decision: nothing of any client goes into it."""
        around = Surroundings(
            upstream=self.pooled,
            state=self.state,
            current=self._current,
            unusable=lambda provider: self.unusable(provider, may_forward=False),
            credentials=self.own_credentials,
            draw=self.draw,
            now=lambda: self.now(),
        )
        return invoke(around, self._turn_options(), registry, body)

    def unusable(self, provider: Provider, *, may_forward: bool) -> str | None:
        """Why the provider cannot be called: `no_credentials`, `self_loop`; None when it can."""
        host, port = _place(provider.base)
        if self.own.holds(host, port) or self.listener.holds(host, port):
            return "self_loop"
        return credentials.usable(provider, self.environ, may_forward, self.keychain, self.accounts)

    def own_credentials(self, provider: Provider) -> Headers:
        """The secret headers for a provider where no client is involved."""
        return credentials.auth_headers(provider, self.environ, None, self.keychain, self.accounts)

    def question_credentials(self, provider: Provider) -> Headers:
        """The secret headers for a question that is no request of a client: a model list, a connection test."""
        kind = kind_of(provider.config)
        members = self.members_of(provider) if kind is not None else ()
        return with_beta(members[0].headers, kind) if members and kind is not None else self.own_credentials(provider)

    def forwarded_credentials(self, provider: Provider, caller: Headers) -> Headers:
        """The secret headers, with those of the caller where the provider takes them."""
        return credentials.auth_headers(provider, self.environ, caller, self.keychain, self.accounts)

    def members_of(self, provider: Provider) -> tuple[Member, ...]:
        """The usable members of a provider's credential pool."""
        return members_of(provider, self.environ, self.keychain, self.accounts)

    def _quota_binding(self, provider: Provider) -> bytes | None:
        """What quota evidence of the provider's key is tied to now."""
        secret = credentials.secret_of(provider, self.environ, self.keychain)
        return binding_of(provider.name, provider.config, secret.reveal()) if isinstance(secret, Secret) else None

    async def open(self) -> None:
        """Take over what earlier processes have used, and ask vendors for quotas."""
        await self.books.open()
        self.probes.refresh(self.config.registry)

    def explain(
        self, combo: Combo, registry: Registry, unusable: Callable[[Provider], str | None] | None = None
    ) -> Explanation:
        """What the combo would do now; without `unusable` for a client whose own credentials may be forwarded."""
        usable = unusable or (lambda provider: self.unusable(provider, may_forward=True))
        return explain(combo, registry, self.state, self.now(), unusable=usable)

    def recall(self, path: str, fields: Fields, body: bytes) -> ComboRoute | None:
        """The combo that a compaction with a bare model name goes on with, if there is one to remember."""
        name = lane(fields)
        if name is None:
            return None
        key = lane_key(access.caller_of(fields), name)
        return recalled_route(self.state.recall, self.config.registry, key, path, body, self.now().mono_ms)

    def admits(self, flow: HTTPFlow) -> bool:
        """Whether the flow's client may use what is served here."""
        # Where it comes from is asked first: nearly all are on this machine, and show no key.
        here = access.is_from_here(flow.client_conn)
        return here or access.is_admitted(flow, self._admission_keys(self.config.registry))

    async def load_keychain(self) -> None:
        """Read the keychain entries that the configuration refers to."""
        await self.keychain.load(keychain_names(self.config.registry.config))

    async def close(self) -> None:
        """Close every connection to a provider, and to others that share the state."""
        await self.shared.close()
        await self.model_lists.discovery.close()
        await self.probes.close()
        await self.upstream.close()
        await self.books.close()

    def _admission_keys(self, registry: Registry) -> Iterator[str]:
        """The configured `apiKeys`, looked up when somebody has shown one: most clients are on this machine."""
        for entry in registry.config.api_keys:
            secret = resolve_secret(entry.key, self.environ, self.keychain)
            if isinstance(secret, Secret):
                yield secret.reveal()

    def holds_own_key(self, flow: HTTPFlow, registry: Registry) -> bool:
        """Whether the request carries one of the configured keys, or the token of the management: such a key is ours
        and is forwarded to nobody."""
        shown = access.presented_keys(Fields(flow.request.headers.fields))
        return any(map(self.is_admin_token, shown)) or access.holds_key(shown, self._admission_keys(registry))

    def sweep(self) -> None:
        """Drop what has expired, and ask anew for quotas that are due."""
        self.state.sweep(self.now())
        self.shared.sweep()
        self.probes.refresh(self.config.registry)

    def _finished(self, flow: HTTPFlow, record: TurnRecord, changed: bool) -> None:
        level = logging.INFO if record.outcome is not Outcome.CANCELLED else logging.DEBUG
        if is_heard(logger, level):
            logger.log(level, f"combos: {trail(record)}")
        now = self.now()
        self.activity.turn(record, now)
        self.books.turn(record, self.config.registry, now)
        if changed:
            ctx.master.addons.trigger(UpdateHook([flow]))


@lru_cache(1_024)
def _place(address: str) -> tuple[str, int]:
    """Host and port of a provider's address; reading one takes longer than all that is asked of it here."""
    url = URL(address)
    return url.host or "", url.port or 0
