"""The connections of clients at the listener: the HTTP server's own, with a short way for requests for models.

Reading, the order of what has come, and the holding back of a client that sends too much are the HTTP server's in
either way. The short way leaves out the request object, the writer, the response object and the task that it makes for
every request, which cost more than all that is decided here. Anything else than a request for models, such as one for
the management, for another protocol, or one that cannot be read, goes the long way, and so does whatever follows it on
its connection.

Relied upon, of `RequestHandler`: `start` is run as a task for every connection, which `connection_lost` cancels;
`_messages` holds heads and bodies in the order of their coming; `_waiter` is waited for by who has nothing to do; the
flags and timers that are looked at and set here mean the same to its `start`. A version of the HTTP server that does
not have all of them has no short way.
"""

import asyncio
from typing import Any, Protocol, cast

from aiohttp import web
from aiohttp.http import HttpRequestParser, RawRequestMessage, StreamWriter
from aiohttp.streams import StreamReader

from combos.admin.asked import Asked, Request
from combos.admin.unreadable import Unreadable
from combos.core.limits import INBOUND_HEAD_S

_OF_THE_HANDLER = (
    "_buffer_paused", "_close", "_force_close", "_handler_waiter", "_keepalive_handle", "_keepalive_timeout",
    "_lingering_time", "_messages", "_msg_queue_resume_size", "_next_keepalive_close_time", "_parser",
    "_process_keepalive", "_reading_paused", "_request_in_progress", "_resume_reading_if_drained", "_task_handler",
    "_waiter",
)  # fmt: skip


class Entrance(Protocol):
    """Answers requests for models."""

    def takes(self, target: str) -> bool:
        """Whether a request is for models, by what its first line names."""

    async def serve(self, request: Request) -> bool:
        """Answer one; whether the connection can take another request. The client's leaving is a cancellation."""


def admit(server: web.Server, entrance: Entrance | None) -> None:
    """Have the connections of a server that has none yet behave so; without an entrance there is no short way.

    Relied upon: `Server` has no slots, and is called for every connection with what it keeps in `_loop` and `_kwargs`.
    """
    server.__class__ = _Server
    cast("_Server", server).entrance = entrance if is_known(web.RequestHandler, HttpRequestParser) else None


def is_known(handler: type, parser: type) -> bool:
    """Whether these are the classes of a version of the HTTP server that the short way is made for."""
    return all(hasattr(handler, name) for name in _OF_THE_HANDLER) and hasattr(parser, "message_consumed")


class _Server(web.Server):
    entrance: Entrance | None

    def __call__(self) -> web.RequestHandler:
        if self.entrance is None:
            return TimedConnection(self, loop=self._loop, **self._kwargs)
        return Connection(self, self.entrance, loop=self._loop, **self._kwargs)


class TimedConnection(Unreadable):
    """A connection that is closed when a head is not complete in time."""

    __slots__ = ("_coming", "_head_timer")

    def __init__(self, server: web.Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._coming: StreamReader | None = None  # the last body, while it is not there as a whole

    def data_received(self, data: bytes) -> None:
        """Take what has come. What comes while nothing is answered is the beginning of a head, if not a whole one."""
        if self._coming is None:
            super().data_received(data)
        else:
            self._go_on_with(self._coming, data)
        if self._messages:
            content = self._messages[-1][1]
            self._coming = None if content.is_eof() else content
        waiter = self._waiter
        if waiter is None or waiter.done():
            self._head_is_there()
        elif self._head_timer is None and data.strip(b"\r\n"):
            self._head_timer = self._loop.call_later(INBOUND_HEAD_S, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client has left, or was made to."""
        self._head_is_there()
        super().connection_lost(exc)

    def _go_on_with(self, coming: StreamReader, data: bytes) -> None:
        """Take more of a body, and what stands behind it.

        Relied upon: the parser counts the requests whose bodies are there and which nobody has taken up, and holds back
        what follows on too many. One that was taken up before its body was there is counted too, and would be for good:
        enough of them, and what was sent ahead is never looked at.
        """
        is_taken_up = not self._messages
        super().data_received(data)
        if coming.is_eof():
            self._coming = None
            if is_taken_up and self._parser is not None and hasattr(self._parser, "message_consumed"):
                self._parser.message_consumed()
                super().data_received(b"")
        elif self._messages and not isinstance(self._messages[-1][0], RawRequestMessage):
            # No body goes on like this. The HTTP server answers that in its turn, which does not come while whoever
            # serves the request waits for the rest of its body.
            coming.set_exception(web.RequestPayloadError("the body is not framed as announced"))

    def _head_is_there(self) -> None:
        timer, self._head_timer = self._head_timer, None
        if timer is not None:
            timer.cancel()


class Connection(TimedConnection):
    """A connection with a short way."""

    __slots__ = ("_entrance", "_is_whole")

    def __init__(self, server: web.Server, entrance: Entrance, **options: Any) -> None:
        super().__init__(server, **options)
        self._entrance = entrance
        self._is_whole = False  # the body of the request that is being answered has been read from the socket

    async def start(self) -> None:
        """Answer what comes, until the connection is closed."""
        while not self._force_close:
            if not self._messages:
                try:
                    self._waiter = self._loop.create_future()
                    await self._waiter
                finally:
                    self._waiter = None
            head, content = self._messages[0]
            if not isinstance(head, RawRequestMessage) or head.upgrade or not self._entrance.takes(head.path):
                return await super().start()
            self._messages.popleft()
            if not await self._answer(head, content) or self._close:
                break
            self._rest()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()
        return None

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on where reading was stopped. Nothing was where a body is there as a whole, and the parser need not be
        asked for more of it."""
        if self._reading_paused or not self._is_whole:
            super().resume_reading(resume_parser)

    async def _answer(self, head: RawRequestMessage, content: StreamReader) -> bool:
        """Whether the connection can take another request."""
        self._make_room()
        self._is_whole = content.is_eof()
        self._request_in_progress = True
        try:
            keeps = await self._entrance.serve(Asked(head, content, self))
        except asyncio.CancelledError:
            self.force_close()
            raise
        except Exception as error:
            await self._fail(head, content, error)
            keeps = False
        finally:
            self._request_in_progress = self._is_whole = False
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)
        return (content.is_eof() or await self._read_off(content)) and keeps

    def _make_room(self) -> None:
        """Read on, where that was stopped because too many requests waited."""
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()

    def _rest(self) -> None:
        """Nothing is left to be answered: from now on the connection may be closed for being idle."""
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    async def _read_off(self, content: StreamReader) -> bool:
        """Read the rest of a body that nobody wanted; whether there is an end to it. Closing a connection from which
        not everything was read is a reset, and the client might never see its answer."""
        try:
            async with asyncio.timeout(self._lingering_time):
                while not content.is_eof():
                    await content.readany()
        except Exception:  # in whatever way it ends, the connection is closed
            return False
        return True

    async def _fail(self, head: RawRequestMessage, content: StreamReader, error: Exception) -> None:
        """Answer as in the long way."""
        writer, task = StreamWriter(self, self._loop), cast("asyncio.Task[None]", asyncio.current_task())
        request = web.BaseRequest(head, content, self, writer, task, self._loop)
        await self.finish_response(request, self.handle_error(request, 500, error), None)
