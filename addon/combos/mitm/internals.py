"""Everything of mitmproxy that is not its public addon interface, in one place.

The streamed-response layer reaches into mitmproxy's proxy core. Each name below says what is relied upon; each has
a test that shows it by behaviour, so that a new mitmproxy release fails there and not in front of a user. This
module decides nothing about responses.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Protocol

from mitmproxy import ctx

# `AddonManager`: `trigger_event`, `register`, `remove` and `clear` are looked up on the instance first, so that they
#   can be replaced there; `chain` holds the top-level addons in order. `traverse` yields an addon, then its sub-addons.
#   `safecall` logs an addon's exception and lets `AddonHalt` pass.
from mitmproxy.addonmanager import AddonManager, safecall, traverse
from mitmproxy.connection import Client, Server
from mitmproxy.exceptions import OptionsError
from mitmproxy.http import Headers, HTTPFlow, Request, RequestData, Response
from mitmproxy.http import ResponseData as ResponseFields

# The handler that fires the deprecated hook `add_log` for every log record, through the event loop's wake-up call.
from mitmproxy.log import LegacyLogEvents
from mitmproxy.net.http.validate import parse_content_length

# The marker of an option that nobody has set; what `--set` gave for an option that was not declared yet.
from mitmproxy.optmanager import _UnconvertedStrings, unset

# `CloseConnection` and `Log` are the only commands besides `SendHttp`, `DropStream` and hooks that the response half
# of an `HttpStream` yields.
from mitmproxy.proxy.commands import CloseConnection, Command, Log

# `Event` may be subclassed: layers between the connection handler and ours pass an event of unknown type down.
# `Start` is the first event of every layer.
# `ConnectionEvent` is what tells us that the client sent something (a window update) or left.
from mitmproxy.proxy.events import ConnectionEvent, Event, Start

# `NextLayer.layer` is the decision, `child_layer` chains the layers of one decision and ends in another `NextLayer`.
from mitmproxy.proxy.layer import CommandGenerator, Layer, NextLayer

# `HttpLayer`: `make_stream`, `_handle_event`, `event_to_child`, `streams` (stream id → live stream),
#   `connections` (connection → protocol layer). A fresh one has no streams, so that its class may be swapped.
# `HttpStream`: `make_server_connection` (called once the request hook is over, False = send nothing upstream),
#   `handle_event` (queues while a hook runs), `_handle_event`, `handle_protocol_error` (error hook, then forgets the
#   stream), `check_killed`, `check_body_size`, `start_request_stream` (called once the hook of the request's head is
#   over, if `request.stream` is set then), `client_state` with `state_consume_request_body`, `server_state` with
#   `state_done`, `state_errored` and `state_stream_response_body`, `flow`, `context.layers` (own ancestors in order).
# `DropStream`: makes `HttpLayer` forget a stream. `SendHttp`: an event for the protocol layer of `connection`.
from mitmproxy.proxy.layers.http import DropStream, HttpLayer, HttpStream, SendHttp

# The events of a response in the order head, data…, end; `RequestProtocolError` = the client left or reset.
# `ErrorCode.GENERIC_SERVER_ERROR` is a 502 page before the head, a reset after it.
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    HttpEvent,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)

# The hooks of a flow's way. A hook is fired by handing it to `AddonManager.handle_lifecycle`.
from mitmproxy.proxy.layers.http._hooks import (
    HttpErrorHook,
    HttpRequestHeadersHook,
    HttpRequestHook,
    HttpResponseHeadersHook,
    HttpResponseHook,
)

# `Http2Server.h2_conn.stream_buffers`: stream id → what the client's flow-control window does not admit yet.
# `Http2Server.is_closed`: the stream or its whole connection was ended by either side.
from mitmproxy.proxy.layers.http._http2 import Http2Server
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.proxy.server import ConnectionHandler, TimeoutWatchdog

# `create_task(name, keep_ref)` keeps a reference and gives the task the name that mitmproxy's own debugging shows.
from mitmproxy.utils.asyncio_utils import create_task

# Parses `body_size_limit` ("3m") into bytes.
from mitmproxy.utils.human import parse_size

from combos.wire.reasons import reason_of

# What a random digit becomes where an identifier names its kind (RFC 9562, 4.1).
_VARIANTS = MappingProxyType({digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"})

__all__ = [
    "AddonManager",
    "CloseConnection",
    "Command",
    "CommandGenerator",
    "ConnectionEvent",
    "ConnectionHandler",
    "DropStream",
    "ErrorCode",
    "Event",
    "Http2Server",
    "HttpErrorHook",
    "HttpEvent",
    "HttpLayer",
    "HttpRequestHeadersHook",
    "HttpRequestHook",
    "HttpResponseHeadersHook",
    "HttpResponseHook",
    "HttpStream",
    "Layer",
    "LegacyLogEvents",
    "Log",
    "NextLayer",
    "RequestProtocolError",
    "ResponseData",
    "ResponseEndOfMessage",
    "ResponseHeaders",
    "ResponseProtocolError",
    "SendHttp",
    "Start",
    "TransportWriter",
    "addon_chain",
    "builtin_next_layer",
    "client_transport",
    "close_server",
    "connection_handler",
    "create_task",
    "is_authenticated",
    "is_switched_off",
    "keep_client_open",
    "lazy_unless_chosen",
    "listen_addresses",
    "listening_modes",
    "made_flow",
    "made_headers",
    "made_request",
    "made_response",
    "parse_content_length",
    "parse_size",
    "safecall",
    "store_content",
    "take_out_unreadable",
    "traverse",
]


class TransportWriter(Protocol):
    """What is used of the client's transport: an asyncio stream writer, or mitmproxy's own for other modes."""

    async def drain(self) -> None:
        """Return when the send buffer has room; OSError when the connection is gone."""

    def close(self) -> None:
        """Close it once everything is sent; OSError when the connection is gone."""


def builtin_next_layer(next_layer: NextLayer) -> None:
    """Let mitmproxy's own addon `nextlayer` decide; it leaves a decision alone that was already taken."""
    addon = ctx.master.addons.get("nextlayer")
    if addon is not None:
        addon.next_layer(next_layer)


def connection_handler(client: Client) -> ConnectionHandler | None:
    """The handler whose `server_event` feeds this client's layers, None when the client is gone.

    Relied upon: the addon `proxyserver` keeps live handlers in `connections` under the client's id.
    """
    proxyserver = ctx.master.addons.get("proxyserver")
    handler: ConnectionHandler | None = proxyserver.connections.get(client.id)
    return handler


def client_transport(handler: ConnectionHandler, client: Client) -> TransportWriter | None:
    """The client's writer, None when its transport is closed. Relied upon: `transports` is keyed by connection."""
    transport = handler.transports.get(client)
    return None if transport is None else transport.writer


def close_server(client: Client, server: Server) -> None:
    """Close a server's connection before anything was sent on it.

    Relied upon: nothing is written to a transport that is closing, and its layers are told that the server has left.
    """
    handler = connection_handler(client)
    transport = None if handler is None else handler.transports.get(server)
    if transport is not None and transport.writer is not None:
        transport.writer.close()


def is_authenticated(client: Client) -> bool:
    """Whether the client gave its name and password when it asked for its tunnel, by CONNECT or SOCKS.

    Relied upon: the addon `proxyauth` remembers such clients in `authenticated`.
    """
    proxyauth = ctx.master.addons.get("proxyauth")
    return proxyauth is not None and client in proxyauth.authenticated


@contextmanager
def keep_client_open(watchdog: TimeoutWatchdog) -> Iterator[None]:
    """Keep the inactivity watchdog (`tcp_timeout`) from closing a client that waits for a silent target.

    `disarm` alone is not enough: a watch that has just begun to sleep checks the last activity once more without
    looking whether it has been disarmed meanwhile. One sign of activity before that check is.
    """
    activity = asyncio.get_running_loop().call_later(watchdog.timeout / 2, watchdog.register_activity)
    try:
        with watchdog.disarm():
            yield
    finally:
        activity.cancel()


def store_content(flow: HTTPFlow, content: bytes) -> None:
    """Show `content` as the body of a streamed response.

    Relied upon: the end of a streamed response does not send `flow.response.data.content`; with
    `store_streamed_bodies` mitmproxy replaces it by the whole body.
    """
    if flow.response is not None:
        flow.response.data.content = content


def made_flow(client: Client, server: Server, seed: str, now: float) -> HTTPFlow:
    """A live flow that still lacks its request. `seed` is 32 random hexadecimal digits, for an identifier of the usual
    form.

    Relied upon: the constructor does no more than set these attributes. It asks the system for every identifier, which
    takes longer than all the rest.
    """
    flow = HTTPFlow.__new__(HTTPFlow)
    flow.id = f"{seed[:8]}-{seed[8:12]}-4{seed[13:16]}-{_VARIANTS[seed[16]]}{seed[17:20]}-{seed[20:]}"
    flow.client_conn = client
    flow.server_conn = server
    flow.live = True
    flow.timestamp_created = now
    flow.intercepted = False
    flow._resume_event = None
    flow._backup = None
    flow.marked = ""
    flow.is_replay = None
    flow.metadata = {}
    flow.comment = ""
    return flow


def made_headers(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Header fields as they are. Relied upon: `Headers` keeps them as `fields`, and its constructor checks types."""
    headers = Headers.__new__(Headers)
    headers.fields = tuple(fields)
    return headers


def made_request(
    host: str,
    port: int,
    method: bytes,
    path: bytes,
    version: bytes,
    headers: Headers,
    body: bytes,
    now: float,
    *,
    scheme: bytes = b"http",
) -> Request:
    """A request in origin form, as it was read from a client or goes to a target.

    Relied upon: `Request` holds all its fields in `data`, whose constructor does nothing but check their types. That
    check costs more than everything else that is done for a request at the listener.
    """
    data = RequestData.__new__(RequestData)
    data.host = host
    data.port = port
    data.method = method
    data.scheme = scheme
    data.authority = b""
    data.path = path
    data.http_version = version
    data.headers = headers
    data.content = body
    data.trailers = None
    data.timestamp_start = now
    data.timestamp_end = now
    request = Request.__new__(Request)
    request.data = data
    return request


def made_response(status: int, headers: Headers, now: float) -> Response:
    """A response without its body yet; see `made_request`."""
    data = ResponseFields.__new__(ResponseFields)
    # HTTP/1.1 also for an HTTP/2 client: mitmproxy then puts the header names into lower case without a log line.
    data.http_version = b"HTTP/1.1"
    data.status_code = status
    data.reason = reason_of(status)
    data.headers = headers
    data.content = None
    data.trailers = None
    data.timestamp_start = now
    data.timestamp_end = None
    response = Response.__new__(Response)
    response.data = data
    return response


def listen_addresses() -> tuple[tuple[str, int], ...]:
    """Host and port of every port the proxy listens on; empty before the servers have started.

    Relied upon: the addon `proxyserver` answers `listen_addrs`, whose entries begin with host and port.
    """
    proxyserver = ctx.master.addons.get("proxyserver")
    return () if proxyserver is None else tuple((address[0], address[1]) for address in proxyserver.listen_addrs())


def listening_modes() -> tuple[tuple[ProxyMode, tuple[str, int] | None], ...]:
    """Every mode in use with the host and port where it listens first, None for one that has no port.

    Relied upon: iterating `proxyserver.servers` gives what runs, each with its `mode` and its `listen_addrs`.
    """
    proxyserver = ctx.master.addons.get("proxyserver")
    servers = () if proxyserver is None else proxyserver.servers
    return tuple((one.mode, next(((a[0], a[1]) for a in one.listen_addrs), None)) for one in servers)


def lazy_unless_chosen() -> None:
    """Connect to servers only when needed, so that an unreachable vendor does not fail a CONNECT.

    Relied upon: `Options._options[name].value` is the marker `unset` until somebody sets the option; the public
    `has_changed` cannot tell a chosen default from an untouched one.
    """
    if ctx.options._options["connection_strategy"].value is unset:
        ctx.options.update(connection_strategy="lazy")


def is_switched_off(name: str) -> bool:
    """Whether the option is there, and false, nought or empty.

    Relied upon: `Options._options[name]` holds `value`, or `_default` while that is the marker `unset`. The public way
    makes two copies each time.
    """
    option = ctx.options._options.get(name)
    return option is not None and not (option._default if option.value is unset else option.value)


def take_out_unreadable(names: Iterable[str]) -> tuple[str, ...]:
    """Forget values from the command line that are none for their option; answers what mitmproxy says of each.

    Left in place, such a value keeps the whole addon from being registered, and nobody is told. Relied upon:
    `Options.deferred` holds them until the addon that declared the options has loaded, and `_parse_setval` reads them.
    """
    options, problems = ctx.options, []
    for name in names:
        given = options.deferred.get(name)
        if not isinstance(given, _UnconvertedStrings):
            continue
        try:
            options._parse_setval(options._options[name], given.val)
        except OptionsError as error:
            del options.deferred[name]
            problems.append(str(error))
    return tuple(problems)


def addon_chain(manager: AddonManager) -> tuple[object, ...]:
    """The top-level addons in the order in which hooks reach them."""
    return tuple(manager.chain)
