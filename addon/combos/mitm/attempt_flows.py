"""Attempts as flows: what a target was asked and what it said, in the ordinary mitmproxy lifecycle.

Decides which hooks fire and when. Credentials never enter a flow: where one was sent, the flow shows a mask.
"""

import asyncio
import contextlib
import time

from mitmproxy import http
from mitmproxy.connection import Server
from mitmproxy.flow import Error
from mitmproxy.hooks import Hook
from mitmproxy.proxy.layers.http._hooks import (
    HttpErrorHook,
    HttpRequestHeadersHook,
    HttpRequestHook,
    HttpResponseHeadersHook,
    HttpResponseHook,
)
from yarl import URL

from combos.core.facts import Headers
from combos.core.values import dataclass
from combos.engine.commands import OutboundRequest, Send
from combos.mitm.hooks import fire
from combos.mitm.internals import made_headers, made_request, made_response

MASK = b"****"
_ATTRIBUTE = "combos_attempt"


def is_attempt(flow: http.HTTPFlow) -> bool:
    """Whether the flow is one of ours, and so none of the addon's business."""
    return getattr(flow, _ATTRIBUTE, False)


def is_attempt_record(metadata: dict[str, object]) -> bool:
    """Whether a flow's `combos` metadata describes an attempt, not a client's request; holds for loaded flows too."""
    return "client_flow" in metadata


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it goes to the target: without credentials, and the credential headers beside it."""

    request: OutboundRequest
    credentials: Headers


def _configured(request: OutboundRequest) -> frozenset[bytes]:
    """Names of the provider's extra header fields: their values may be secrets as well."""
    return frozenset(name.lower().encode("latin-1", "replace") for name in request.provider.config.headers)


def _shown(outgoing: Outgoing) -> list[tuple[bytes, bytes]]:
    configured = _configured(outgoing.request)
    plain = [(name, MASK if name.lower() in configured else value) for name, value in outgoing.request.headers]
    return [*plain, *((name, MASK) for name, _ in outgoing.credentials)]


def _make_request(outgoing: Outgoing) -> http.Request:
    url = URL(outgoing.request.url, encoded=True)
    host, port = url.host or "", url.port or 0
    shown = [(b"host", (url.host_port_subcomponent or "").encode()), *_shown(outgoing)]
    return made_request(
        host,
        port,
        outgoing.request.method.encode(),
        url.raw_path_qs.encode(),
        b"HTTP/1.1",
        made_headers(shown),
        outgoing.request.body,
        time.time(),
        scheme=url.scheme.encode(),
    )


class AttemptFlow:
    """One attempt on its way through the hooks. Every started flow ends in exactly one of `response` and `error`."""

    def __init__(self, client_flow: http.HTTPFlow, send: Send, outgoing: Outgoing, body_limit: int) -> None:
        request = _make_request(outgoing)
        flow = http.HTTPFlow(client_flow.client_conn, Server(address=(request.host, request.port)), live=True)
        flow.request = request
        setattr(flow, _ATTRIBUTE, True)
        flow.metadata["combos"] = {
            "attempt": send.attempt + 1,
            "target": send.target.key,
            "client_flow": client_flow.id,
        }
        flow.comment = f"attempt {send.attempt + 1} of {client_flow.id[:8]}: {send.target.key}"
        self.flow = flow
        self._outgoing = outgoing
        self._body = bytearray()
        self._body_limit = body_limit
        self._is_over = False
        self._is_announced = False

    async def announce(self) -> None:
        """Fire the request hooks. Afterwards other addons may have changed, answered or killed the attempt."""
        self._is_announced = True
        # proxyauth would answer with 407, because an attempt carries no proxy credential: replayed flows are exempt.
        self.flow.is_replay = "request"
        await self._fire(HttpRequestHeadersHook)
        self.flow.is_replay = None
        await self._fire(HttpRequestHook)

    def changed(self) -> Outgoing:
        """What is to be sent, as other addons left it. What is masked is ours and cannot be changed here."""
        request = self._outgoing.request
        masked = _configured(request)
        ours = {name.lower() for name, _ in self._outgoing.credentials} | {b"host", b"content-length"} | masked
        headers = (
            *((name, value) for name, value in self.flow.request.headers.fields if name.lower() not in ours),
            *((name, value) for name, value in request.headers if name.lower() in masked),
        )
        changed = OutboundRequest(
            method=self.flow.request.method,
            url=self.flow.request.url,
            headers=headers,
            body=self.flow.request.raw_content or b"",
            provider=request.provider,
        )
        return Outgoing(changed, self._outgoing.credentials)

    @property
    def is_killed(self) -> bool:
        """Whether somebody killed the attempt in a hook."""
        return self.flow.error is not None

    def answered(self) -> tuple[int, Headers, bytes] | None:
        """The answer that another addon put into the flow before anything was sent."""
        response = self.flow.response
        if response is None:
            return None
        return response.status_code, response.headers.fields, response.raw_content or b""

    def head(self, status: int, headers: Headers) -> None:
        """Note the head of the target's answer."""
        if self.flow.response is None:
            self.flow.response = made_response(status, made_headers(headers), time.time())
            self.flow.response.data.content = b""

    def body(self, data: bytes) -> None:
        """Keep a bounded part of the answer's body."""
        room = self._body_limit - len(self._body)
        if room > 0:
            self._body += data[:room]

    async def finish(self, fault: str | None) -> None:
        """End the lifecycle: `response` when the target answered, `error` with the fault's name when it broke."""
        if self._is_over:
            return
        self._is_over = True
        if not self._is_announced:
            await self.announce()
        if self.flow.response is not None and fault is None:
            await self._finish_answered(self.flow.response)
        else:
            self.flow.error = Error(fault or "closed before an answer")
            await self._fire(HttpErrorHook)
        self.flow.live = False

    async def _finish_answered(self, response: http.Response) -> None:
        await self._fire(HttpResponseHeadersHook)
        response.data.content = bytes(self._body)
        response.timestamp_end = time.time()
        await self._fire(HttpResponseHook)

    def abandon(self) -> None:
        """The client is gone: leave no flow behind that waits for somebody to resume it."""
        if not self._is_over:
            self._is_over = True
            self.flow.error = self.flow.error or Error("client disconnected")
            self.flow.resume()
            self.flow.live = False

    async def _fire(self, hook: type[Hook]) -> None:
        if (waiting := fire(hook, self.flow)) is None:
            return
        try:
            await waiting
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                self.flow.resume()
            raise
