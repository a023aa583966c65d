"""Streams a response that an addon makes itself: from an attribute on the flow to the client's connection.

Everything up to the request hook and everything on the client's wire is mitmproxy's own; this layer only replaces the
connection to a server by a task of the addon. It decides when that task starts, when it is cancelled and where its
pieces enter mitmproxy's layers. What the response says is the responder's business.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow, Response

from combos.mitm import claims
from combos.mitm.internals import (
    CloseConnection,
    Command,
    CommandGenerator,
    ConnectionEvent,
    ConnectionHandler,
    DropStream,
    ErrorCode,
    Event,
    Http2Server,
    HttpEvent,
    HttpLayer,
    HttpStream,
    Layer,
    Log,
    NextLayer,
    RequestProtocolError,
    ResponseData,
    ResponseProtocolError,
    SendHttp,
    Start,
    builtin_next_layer,
    client_transport,
    connection_handler,
    create_task,
    keep_client_open,
    parse_size,
)
from combos.mitm.writer import Responder, ResponseWriter, WholeSink, whole_events

TASK_NAME = "combos responder"
# On the connection handler, so that a reloaded script finds what its predecessor started.
_RUNNING = "combos_running_answers"


async def answer_whole(flow: HTTPFlow, responder: Responder) -> None:
    """Await in `request` for a replayed flow, which has no streamed layer: sets the complete `flow.response`."""
    writer = ResponseWriter(flow, 0, WholeSink(flow))
    await responder(flow, writer)
    if not writer.finished:
        await writer.error("The response was not completed.")


class StreamedResponses:
    """Addon that makes `respond_with` work. Keeps no state: a reloaded script finds everything as it was."""

    def next_layer(self, next_layer: NextLayer) -> None:
        """Hook: let mitmproxy choose, then swap our class in for every HTTP layer it chose.

        The class and not the object: a replaced object would stay in `context.layers`.
        """
        builtin_next_layer(next_layer)
        layer: Layer | None = next_layer.layer
        while layer is not None and not isinstance(layer, NextLayer):
            if type(layer) is HttpLayer and not layer.streams:
                layer.__class__ = StreamedHttpLayer
            layer = getattr(layer, "child_layer", None)

    def client_disconnected(self, client: Client) -> None:
        """Hook: cancel what this client still waits for, and close its connection.

        As a rule its streams have been told, and the connection is closed; neither when mitmproxy cancels a connection
        while it waits for its lock. Whoever reads from it would wait until the garbage collector finds it.
        """
        handler = connection_handler(client)
        if handler is None:
            return
        for stream in running_answers(handler):
            stream.client_left()
        transport = client_transport(handler, client)
        if transport is not None:
            with suppress(OSError):
                transport.close()

    def done(self) -> None:
        """Hook: the addon goes, and with it every answer in the making."""
        self.cancel_all()

    def cancel_all(self) -> int:
        """Cancel every responder of this event loop; their clients get a 502 or a reset. Returns how many."""
        tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith(TASK_NAME)]
        for task in tasks:
            task.cancel()
        return len(tasks)


class ToStream(Event):
    """Pieces of a response on their way to the stream that is to send them."""

    __slots__ = ("events", "failure", "handled", "stream", "waiter")

    def __init__(self, stream: "ResponderStream", events: tuple[HttpEvent, ...]) -> None:
        self.stream = stream
        self.events = events
        self.failure: Exception | None = None
        self.handled = False
        self.waiter: asyncio.Future[None] | None = None

    def ack(self) -> None:
        """The pieces are dealt with: sent, or given up."""
        self.handled = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class StreamedHttpLayer(HttpLayer):
    """mitmproxy's HTTP layer, whose streams may be answered by a responder."""

    window_waiters: dict[int, asyncio.Future[None]] | None = None

    def make_stream(self, stream_id: int) -> CommandGenerator[None]:
        """As the base class, with our stream."""
        stream = self.streams[stream_id] = ResponderStream(self.context.fork(), stream_id)
        stream.http = self
        yield from self.event_to_child(stream, Start())

    def _handle_event(self, event: Event) -> CommandGenerator[None]:
        if isinstance(event, ToStream):
            yield from self._route(event)
            return
        try:
            yield from super()._handle_event(event)
        except NotImplementedError:
            # Trailers, which mitmproxy's reader does not know: it would leave the client without an answer for ever.
            yield CloseConnection(self.context.client)
        if self.window_waiters and isinstance(event, ConnectionEvent):
            self._wake_writers()

    def _route(self, event: ToStream) -> CommandGenerator[None]:
        """To the stream itself, or to the CONNECT stream around it; never broadcast: TCP layers assert on it."""
        stream = event.stream
        if self.streams.get(stream.stream_id) is stream and stream.relays_unchanged(event.events):
            # What the base class would do with these pieces, without its detour: a third of the work per chunk.
            connection = self.connections[self.context.client]
            for piece in event.events:
                yield from self.event_to_child(connection, piece)
            event.ack()
            return
        for layer in event.stream.context.layers:
            if isinstance(layer, HttpStream) and self.streams.get(layer.stream_id) is layer:
                yield from self.event_to_child(layer, event)
                return
        event.ack()

    def has_left(self, stream_id: int) -> bool:
        """Whether the client was gone before its request was complete.

        mitmproxy forgets an HTTP/2 stream whose reset it reads together with the end of the request.
        """
        connection = self.connections.get(self.context.client)
        return not self.context.client.connected or (
            isinstance(connection, Http2Server) and connection.is_closed(stream_id)
        )

    def unsent(self, stream_id: int) -> bool:
        """Whether an HTTP/2 client's window holds back a part of the stream."""
        connection = self.connections.get(self.context.client)
        return isinstance(connection, Http2Server) and bool(connection.h2_conn.stream_buffers.get(stream_id))

    async def window_opens(self, stream_id: int) -> None:
        """Return when nothing of the stream is held back by its HTTP/2 window."""
        if self.window_waiters is None:
            self.window_waiters = {}
        while self.unsent(stream_id):
            waiter = self.window_waiters[stream_id] = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                self.window_waiters.pop(stream_id, None)

    def _wake_writers(self) -> None:
        for stream_id, waiter in (self.window_waiters or {}).items():
            if not waiter.done() and not self.unsent(stream_id):
                waiter.set_result(None)


class ResponderStream(HttpStream):
    """A request whose answer may come from a responder; without one it is the base class, unchanged."""

    http: StreamedHttpLayer
    writer: ResponseWriter | None = None
    task: "asyncio.Task[None] | None" = None
    gone = False

    def make_server_connection(self) -> CommandGenerator[bool]:
        """Start the responder instead of connecting; False makes the base class send nothing upstream."""
        responder = claims.take_responder(self.flow)
        if responder is None:
            return (yield from super().make_server_connection())
        handler = connection_handler(self.context.client)
        if handler is None or self.http.has_left(self.stream_id):
            left = RequestProtocolError(self.stream_id, "Client disconnected.", ErrorCode.CLIENT_DISCONNECTED)
            yield from self._only_to_client(self.handle_protocol_error(left))
            return False
        self.handler: ConnectionHandler = handler
        self.writer = ResponseWriter(self.flow, self.stream_id, self)
        # The task factory is eager: the first part of the responder runs here, before `task` is set.
        self.task = create_task(
            self._run(responder, self.writer), name=TASK_NAME, keep_ref=True, client=self.context.client.peername
        )
        return False

    def check_body_size(self, request: bool) -> CommandGenerator[bool]:
        """As the base class, but a held request is never streamed, only refused when it exceeds the limit."""
        if request and claims.is_held(self.flow):
            limit = parse_size(self.context.options.body_size_limit)
            if limit is None or len(self.request_body_buf) <= limit:
                return False
        return (yield from super().check_body_size(request))

    def start_request_stream(self) -> CommandGenerator[None]:
        """As the base class, but a held request is collected, whatever an addon after ours has set."""
        if not claims.is_held(self.flow):
            yield from super().start_request_stream()
            return
        self.flow.request.stream = False
        self.client_state = self.state_consume_request_body

    def client_left(self) -> None:
        """Cancel the answer unless it is complete."""
        if self.writer is not None and not self.writer.finished:
            self.writer.keep_captured()
            self._give_up()

    def handle_event(self, event: Event) -> CommandGenerator[None]:
        """Cancel at once when the client leaves: the base class would queue the news while a hook runs."""
        if self.writer is not None and isinstance(event, RequestProtocolError):
            self.writer.keep_captured()
            self._give_up()
        return super().handle_event(event)

    def _handle_event(self, event: Event) -> CommandGenerator[None]:
        if isinstance(event, ToStream):
            yield from self._replay(event)
        elif self.writer is None:
            yield from super()._handle_event(event)
        else:
            yield from self._only_to_client(super()._handle_event(event))

    def _replay(self, event: ToStream) -> CommandGenerator[None]:
        """Send the pieces through mitmproxy's own response states; acknowledge when they are through."""
        try:
            if self.flow.error is not None and not self._is_over():
                yield from self._only_to_client(self.check_killed(True))
            for piece in event.events:
                if self._is_over():
                    break
                yield from self._only_to_client(super()._handle_event(piece))
            if self.server_state == self.state_errored:
                yield from self._end_refused(event)
        except Exception as error:
            # Another addon's stream function, as a rule. The writer raises it: logged once, and the client gets an end.
            event.failure = error
        finally:
            event.ack()

    def _end_refused(self, event: ToStream) -> CommandGenerator[None]:
        """After a kill or a limit, not after the responder's own error: it may still have things to write down."""
        if not isinstance(event.events[-1], ResponseProtocolError):
            self._give_up()
        # The base class forgets a stream only after a protocol error.
        yield DropStream(self.stream_id)

    def relays_unchanged(self, pieces: tuple[HttpEvent, ...]) -> bool:
        """Whether nobody but the client's connection has anything to do with these pieces."""
        flow = self.flow
        return (
            type(pieces[0]) is ResponseData
            and self._paused is None
            and self.server_state == self.state_stream_response_body
            and flow.error is None
            and flow.response is not None
            and flow.response.stream is True
            and not self.context.options.store_streamed_bodies
        )

    def _is_over(self) -> bool:
        return self.server_state in (self.state_done, self.state_errored)

    def _only_to_client(self, commands: Iterable[Command]) -> CommandGenerator[None]:
        """Leave out what is meant for a server, which does not exist, and the log line that names it.

        Replies are not passed back: the only commands with one, those that open connections, do not occur here.
        """
        client = self.context.client
        for command in commands:
            if isinstance(command, SendHttp | CloseConnection) and command.connection is not client:
                continue
            if isinstance(command, Log):
                continue
            yield command

    def _give_up(self) -> None:
        if self.gone:
            return
        self.gone = True
        if self.task is not None:
            self.task.cancel()

    async def put(self, events: tuple[HttpEvent, ...], *, wait: bool = True) -> None:
        """Sink: hand the pieces to mitmproxy, wait while a hook or the user holds them."""
        if self.gone:
            raise asyncio.CancelledError
        event = ToStream(self, events)
        await self.handler.server_event(event)
        if wait and not event.handled:
            event.waiter = asyncio.get_running_loop().create_future()
            await event.waiter
        if event.failure is not None:
            raise event.failure
        if self.gone and wait:
            await self._stop()

    async def whole(self, response: Response, body: bytes) -> None:
        """Sink: hand over all pieces in one round."""
        await self.put(whole_events(self.stream_id, response, body))

    async def drain(self) -> None:
        """Sink: wait for the HTTP/2 window, then for the socket."""
        if self.http.unsent(self.stream_id):
            await self.http.window_opens(self.stream_id)
        transport = client_transport(self.handler, self.context.client)
        if transport is not None:
            try:
                await transport.drain()
            except OSError:
                self._give_up()
        if transport is None or self.gone:
            self._give_up()
            await self._stop()

    async def _stop(self) -> None:
        """Let the cancellation that is on its way arrive; raise it in any other task that writes."""
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    async def _run(self, responder: Responder, writer: ResponseWriter) -> None:
        try:
            with enlisted(self.handler, self), keep_client_open(self.handler.timeout_watchdog):
                await responder(self.flow, writer)
            await writer.error("The response was not completed.")
        except asyncio.CancelledError:
            if not self.gone:
                await writer.error("The proxy gave the response up.", wait=False)
            raise
        except Exception as error:
            claims.log_failure(self.flow, error)
            await writer.error("The proxy failed to make a response.")


def running_answers(handler: ConnectionHandler) -> tuple[ResponderStream, ...]:
    """The streams of this client whose responders run."""
    return tuple(vars(handler).get(_RUNNING, ()))


@contextmanager
def enlisted(handler: ConnectionHandler, stream: ResponderStream) -> Iterator[None]:
    """Name the stream among the running ones of its client meanwhile."""
    running: set[ResponderStream] = vars(handler).setdefault(_RUNNING, set())
    running.add(stream)
    try:
        yield
    finally:
        running.discard(stream)
