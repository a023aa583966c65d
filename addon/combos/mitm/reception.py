"""The request hooks: which requests are claimed, and by which part. Everything else passes untouched."""

import logging
from collections.abc import Awaitable
from typing import Protocol

from mitmproxy.http import HTTPFlow, Response

from combos.core import errors
from combos.mitm import access, attempt_flows, management, model_details, own_address, recognition
from combos.mitm.claims import hold_request, is_answered_here, is_at_listener, respond_with
from combos.mitm.client import Client
from combos.mitm.layer import answer_whole
from combos.mitm.model_lists import asks_for_list
from combos.mitm.recognition import Recognised
from combos.mitm.refusals import refuse_with
from combos.mitm.service import Service
from combos.mitm.writer import Responder
from combos.wire.fields import Fields

logger = logging.getLogger(__name__)


class Host(Protocol):
    """The addon, as the hooks see it."""

    service: Service | None

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Where the management API listens, None when it does not."""

    def admin_stand_in(self, shown: str) -> str:
        """What may be recorded of a text that a client shows as the token of the management API."""


class Reception:
    """A sub-addon with the hooks of a request's way. Attempt flows of our own are left alone."""

    def __init__(self, host: Host, machine: str) -> None:
        self._host = host
        self._machine = machine

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Hook: the body of a request that may be ours is needed whole."""
        if not attempt_flows.is_attempt(flow) and recognition.turn_surface(flow) is not None:
            hold_request(flow)

    def request(self, flow: HTTPFlow) -> Awaitable[None] | None:
        """Hook: claim what is ours. Usually there is nothing to await, and so no coroutine."""
        service = self._host.service
        if service is None or flow.response or flow.error or attempt_flows.is_attempt(flow):
            return None
        base_url = is_at_listener(flow)
        if not base_url:
            if management.forward(flow, self._host.admin_address, self._host.admin_stand_in):
                return None
            base_url = self._is_base_url(flow, service)
        responder = self._responder(flow, service, base_url=base_url)
        if responder is None:
            return self._unclaimed(flow, service, base_url=base_url)
        if flow.is_replay == "request":
            return answer_whole(flow, responder)
        respond_with(flow, responder)
        return None

    def responseheaders(self, flow: HTTPFlow) -> None:
        """Hook: event streams that are none of our business are not held up either."""
        response = flow.response
        if is_answered_here(flow) or response is None or response.stream or attempt_flows.is_attempt(flow):
            return
        response.stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    def response(self, flow: HTTPFlow) -> None:
        """Hook: a vendor's own model list gets the combos added, for who may use them. One made here holds them."""
        service = self._host.service
        if is_at_listener(flow) or service is None or not asks_for_list(flow) or attempt_flows.is_attempt(flow):
            return
        if not self._is_base_url(flow, service) and service.admits(flow):
            service.model_lists.merge(flow, service.config.registry)

    def _is_base_url(self, flow: HTTPFlow, service: Service) -> bool:
        if recognition.is_base_url(flow, service.own, self._machine):
            return True
        # What came by the listener is asked again through a port of the proxy.
        return flow.is_replay == "request" and service.listener.holds(flow.request.host, flow.request.port)

    def _responder(self, flow: HTTPFlow, service: Service, *, base_url: bool) -> Responder | None:
        registry = service.config.registry
        fields = Fields(flow.request.headers.fields)
        if access.is_foreign_page(fields, registry.config.cors_allow_origins):
            return self._page_refusal(flow) if base_url else None
        found = recognition.recognise(flow, fields, registry, service.recall, base_url=base_url)
        if isinstance(found, Recognised):
            return service.responder(flow, found, None if base_url else flow.request.host)
        if found is not None:
            return refuse_with(found.error, found.dialect)
        model = model_details.asked_model(flow)
        return None if model is None else model_details.responder_for(service, flow, model, base_url=base_url)

    def _page_refusal(self, flow: HTTPFlow) -> Responder:
        dialect = recognition.turn_surface(flow) or model_details.dialect_of(flow)
        return refuse_with(errors.forbidden(access.PAGE_REFUSAL), dialect)

    async def _unclaimed(self, flow: HTTPFlow, service: Service, *, base_url: bool) -> None:
        registry = service.config.registry
        if registry.combos and recognition.is_responses_upgrade(flow):
            flow.response = own_address.upgrade_required()
        elif base_url and asks_for_list(flow):
            flow.response = await self._model_list(flow, service)
        elif base_url:
            flow.response = own_address.answer(flow)

    async def _model_list(self, flow: HTTPFlow, service: Service) -> Response:
        if not service.admits(flow):
            return own_address.forbidden()
        registry = service.config.registry
        made = await service.model_lists.answer(flow, registry, Client(service, flow, registry, None).forwarded)
        if flow.request.method == "HEAD":
            made.content = b""
        return made
