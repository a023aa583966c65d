"""Requests for models that reach the listener: each becomes a flow, is claimed in the ordinary hooks, and is answered.

There is no HTTP layer of mitmproxy below: the listener has read the request, and the answer is written to its wire.
What other addons see, change, answer, hold or kill is the same as on a port of the proxy.
"""

import asyncio
import time
from weakref import WeakKeyDictionary

from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.http import HTTPFlow

from combos.admin.asked import Request
from combos.admin.client_wire import ClientWire
from combos.core import errors
from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.mitm import claims, own_address, recognition
from combos.mitm.hooks import fire
from combos.mitm.internals import HttpRequestHeadersHook, HttpRequestHook, made_flow, made_headers, made_request
from combos.mitm.listener_sink import ListenerSink
from combos.mitm.refusals import refuse_with
from combos.mitm.seeds import Seeds
from combos.mitm.service import Service
from combos.mitm.writer import Responder, ResponseWriter


class Listener:
    """Serves models at the listener. `service` is what the configuration in force belongs to."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._seeds = Seeds()
        self._peers: WeakKeyDictionary[asyncio.Transport, _Peer] = WeakKeyDictionary()

    @property
    def body_limit(self) -> int:
        """How many bytes of a body are taken."""
        return self._service.config.registry.config.max_inbound_body_bytes

    async def serve(self, request: Request, target: str, body: bytes | None, wire: ClientWire) -> None:
        """Answer one request; see `Models.serve`."""
        peer = self._peer(request)
        if peer is None:
            return
        flow = _flow(peer, self._seeds.next(), request, target, body or b"")
        answer = _Answer(flow, wire)
        await answer.run(None if body is not None else self._too_large(flow))

    def _too_large(self, flow: HTTPFlow) -> Responder:
        dialect = recognition.turn_surface(flow) or Dialect.CHAT
        return refuse_with(errors.body_too_large(self.body_limit), dialect)

    def _peer(self, request: Request) -> "_Peer | None":
        """The connection as mitmproxy describes one; None when it is closed already."""
        transport = request.transport
        if transport is None:
            return None
        peer = self._peers.get(transport)
        if peer is None:
            peer = self._peers[transport] = _peer_of(transport)
        return peer


@dataclass(frozen=True, slots=True)
class _Peer:
    """One connection of a client; `host` and `port` are the listener's. No server is ever connected for it."""

    client: Client
    server: Server
    host: str
    port: int


def _peer_of(transport: asyncio.Transport) -> _Peer:
    here = transport.get_extra_info("sockname")[:2]
    client = Client(
        peername=transport.get_extra_info("peername"),
        sockname=here,
        state=ConnectionState.OPEN,
        timestamp_start=time.time(),
    )
    return _Peer(client, Server(address=None), *here)


class _Answer:
    """One request on its way through the hooks."""

    def __init__(self, flow: HTTPFlow, wire: ClientWire) -> None:
        self._flow = flow
        self._wire = wire
        self._sink = ListenerSink(flow, wire, fire)
        self._writer = ResponseWriter(flow, 0, self._sink)

    async def run(self, refusal: Responder | None) -> None:
        """From the first hook to the last. `refusal` answers in place of whoever claims the request."""
        try:
            await self._announce()
            responder = self._responder(refusal)
            if responder is not None:
                await self._run(responder)
            else:
                await self._sink.given(self._flow.response or own_address.answer(self._flow))
        except asyncio.CancelledError:
            if self._flow.error is not None:
                return  # killed: the task itself was not cancelled
            self._writer.keep_captured()
            self._flow.resume()
            await self._sink.left()
            raise
        finally:
            self._flow.live = False

    async def _announce(self) -> None:
        flow = self._flow
        if (before := fire(HttpRequestHeadersHook, flow)) is not None:
            await before
        if flow.error is None and (waiting := fire(HttpRequestHook, flow, follows=before is None)) is not None:
            await waiting
        if flow.error is not None:
            await self._sink.kill()

    def _responder(self, refusal: Responder | None) -> Responder | None:
        """Who answers. A response that an addon has set goes before who has claimed the request."""
        claimed = claims.take_responder(self._flow)
        return refusal or (claimed if self._flow.response is None else None)

    async def _run(self, responder: Responder) -> None:
        try:
            await responder(self._flow, self._writer)
        except Exception as error:
            claims.log_failure(self._flow, error)
            await self._writer.error("The proxy failed to make a response.")
        else:
            if not self._writer.finished:
                await self._writer.error("The response was not completed.")


def _flow(peer: _Peer, seed: str, request: Request, target: str, body: bytes) -> HTTPFlow:
    now = time.time()
    flow = made_flow(peer.client, peer.server, seed, now)
    flow.request = made_request(
        peer.host,
        peer.port,
        request.method.encode(),
        target.encode("utf-8", "surrogateescape"),
        b"HTTP/%d.%d" % request.version,
        made_headers(request.raw_headers),
        body,
        now,
    )
    claims.enter_at_listener(flow)
    return flow
