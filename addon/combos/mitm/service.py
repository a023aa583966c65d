"""Serves recognised requests: admits the client, starts the turn, runs it. Owns what outlives a request."""

import logging
import os
import random
from collections.abc import Awaitable, Callable, Mapping

from mitmproxy import ctx
from mitmproxy.hooks import UpdateHook
from mitmproxy.http import HTTPFlow
from yarl import URL

from combos.admin.live_config import LiveConfig
from combos.core import errors
from combos.core.facts import Headers, Now
from combos.core.recall import caller_digest
from combos.core.registry import Provider, Registry
from combos.core.secrets import Secret, resolve_secret
from combos.decision.model import ModelReply
from combos.decision.service import Secrets
from combos.engine.record import Outcome, TurnRecord, trail
from combos.engine.request import TurnOptions, TurnRequest
from combos.engine.state import EngineState
from combos.engine.turn import Turn
from combos.mitm import access
from combos.mitm.dispatch import Dispatch, Services, clock
from combos.mitm.internal_turn import Surroundings, invoke
from combos.mitm.options import Settings
from combos.mitm.recognition import Recognised, Refusal
from combos.mitm.recorder import Recorder
from combos.mitm.writer import Responder, ResponseWriter
from combos.upstream import credentials
from combos.upstream.decision import Decider
from combos.upstream.selfloop import OwnAddresses
from combos.upstream.session import Upstream
from combos.wire.errors import render
from combos.wire.request import lane

logger = logging.getLogger(__name__)


class Service:
    """Everything that requests share: configuration, state, the client session."""

    def __init__(self, config: LiveConfig, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.state = EngineState()
        self.upstream = Upstream()
        self.own = OwnAddresses()
        self.environ: Mapping[str, str] = os.environ
        self.draw = random.random
        self.now: Callable[[], Now] = clock
        self.decider = Decider(self.upstream, lambda: Secrets(self.environ), self._invoke)
        self._services = Services(self.upstream, lambda: self.now(), self._finished, self.decider.answer)
        config.subscribe(self.state.reconcile)

    def responder(self, flow: HTTPFlow, recognised: Recognised, origin: str | None) -> Responder:
        """What answers the flow. `origin` is the host the client addressed, None when that was the proxy itself."""
        registry = self.config.registry
        if not access.is_admitted(flow, self._admission_keys(registry)):
            return refuse(Refusal(errors.forbidden(access.REFUSAL), recognised.facts.dialect))
        client = Client(self, flow, registry, origin)
        turn = Turn(self._turn_request(flow, recognised, client), self.state, self._turn_options())
        recorder = Recorder(flow, self.settings.attempt_flows, self.settings.body_limit)
        dispatch = Dispatch(self._services, turn, recorder, client.credentials, recognised.facts.dialect)

        async def respond(flow: HTTPFlow, writer: ResponseWriter) -> None:
            writer.capture_limit = self.settings.body_limit
            await dispatch.run(flow, writer)

        return respond

    def _turn_request(self, flow: HTTPFlow, recognised: Recognised, client: "Client") -> TurnRequest:
        headers = flow.request.headers.fields
        return TurnRequest(
            facts=recognised.facts,
            headers=headers,
            route=recognised.route,
            registry=client.registry,
            current=lambda: self.config.registry,
            unusable=client.unusable,
            draw=self.draw,
            origin=client.origin,
            lane=lane(headers),
            caller=caller_digest("\0".join(access.presented_keys(flow)).encode(errors="surrogateescape")),
        )

    def _turn_options(self) -> TurnOptions:
        settings = self.settings
        return TurnOptions(settings.connect_timeout_ms, settings.head_timeout_ms, settings.idle_timeout_ms)

    def _invoke(self, registry: Registry, body: bytes) -> Awaitable[ModelReply]:
        """An internal turn for a decision: nothing of any client goes into it."""
        around = Surroundings(
            upstream=self.upstream,
            state=self.state,
            current=lambda: self.config.registry,
            unusable=lambda provider: self.unusable(provider, may_forward=False),
            credentials=lambda provider: credentials.auth_headers(provider, self.environ, None),
            draw=self.draw,
            now=lambda: self.now(),
        )
        return invoke(around, self._turn_options(), registry, body)

    def unusable(self, provider: Provider, *, may_forward: bool) -> str | None:
        """Why the provider cannot be called: `no_credentials`, `self_loop`; None when it can."""
        url = URL(provider.config.base_url)
        if self.own.holds(url.host or "", url.port or 0):
            return "self_loop"
        return credentials.usable(provider, self.environ, may_forward)

    def _admission_keys(self, registry: Registry) -> list[str]:
        resolved = (resolve_secret(entry.key, self.environ) for entry in registry.config.api_keys)
        return [secret.reveal() for secret in resolved if isinstance(secret, Secret)]

    def holds_admission_key(self, flow: HTTPFlow, registry: Registry) -> bool:
        """Whether the request carries one of the configured keys: it is then ours and is forwarded to nobody."""
        return access.holds_key(access.presented_keys(flow), self._admission_keys(registry))

    def sweep(self) -> None:
        """Drop what has expired."""
        self.state.sweep(self.now())

    def _finished(self, flow: HTTPFlow, record: TurnRecord, changed: bool) -> None:
        level = logging.INFO if record.outcome is not Outcome.CANCELLED else logging.DEBUG
        logger.log(level, f"combos: {trail(record)}")
        if changed:
            ctx.master.addons.trigger(UpdateHook([flow]))


class Client:
    """One client as the providers see it: which credentials there are for a provider on behalf of this request."""

    def __init__(self, service: Service, flow: HTTPFlow, registry: Registry, origin: str | None) -> None:
        self.registry = registry
        self.origin = origin
        self._service = service
        self._headers: Headers = flow.request.headers.fields
        self._has_credentials = credentials.has_caller_credentials(self._headers)
        self._holds_key = bool(registry.config.api_keys) and service.holds_admission_key(flow, registry)

    def unusable(self, provider: Provider) -> str | None:
        """Why the provider cannot be called for this client: `no_credentials`, `self_loop`; None when it can."""
        return self._service.unusable(provider, may_forward=self._may_forward(provider))

    def credentials(self, provider: Provider) -> Headers:
        """The secret headers for the provider, of its own or forwarded from the client."""
        caller = self._headers if self._may_forward(provider) else None
        return credentials.auth_headers(provider, self._service.environ, caller)

    def _may_forward(self, provider: Provider) -> bool:
        """The client's own credentials go to the host it addressed, or anywhere a base-URL client is configured for."""
        if self._holds_key or not self._has_credentials:
            return False
        return self.origin is None or self.origin == URL(provider.config.base_url).host


def refuse(refusal: Refusal) -> Responder:
    """A responder that answers with the refusal in the client's dialect."""

    async def respond(_flow: HTTPFlow, writer: ResponseWriter) -> None:
        headers, body = render(refusal.error, refusal.dialect)
        await writer.respond(refusal.error.status, headers, body)

    return respond
