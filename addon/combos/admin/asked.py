"""A request at the listener, as far as those who answer it look at it."""

import asyncio
from typing import Protocol

from aiohttp import web
from aiohttp.http import HttpVersion, RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy

from combos.core.facts import Headers


class Request(Protocol):
    """What the requests of the HTTP server, `web.BaseRequest`, and those of the short way have in common."""

    @property
    def method(self) -> str:
        """In upper case."""

    @property
    def version(self) -> HttpVersion:
        """Of the protocol."""

    @property
    def raw_path(self) -> str:
        """What the request line names, as it was sent."""

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The header fields, to look one up."""

    @property
    def raw_headers(self) -> Headers:
        """The header fields as they were sent."""

    @property
    def keep_alive(self) -> bool:
        """Whether the client would like the connection to take another request."""

    @property
    def content(self) -> StreamReader:
        """The body."""

    @property
    def protocol(self) -> web.RequestHandler:
        """The connection."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """What the connection is written to; None once it is closed."""


class Asked:
    """A request of the short way: see `connection`."""

    __slots__ = ("content", "headers", "keep_alive", "method", "protocol", "raw_headers", "raw_path", "version")

    def __init__(self, head: RawRequestMessage, content: StreamReader, protocol: web.RequestHandler) -> None:
        self.method = head.method
        self.version = head.version
        self.raw_path = head.path
        self.headers = head.headers
        self.raw_headers = head.raw_headers
        self.keep_alive = not head.should_close
        self.content = content
        self.protocol = protocol

    @property
    def transport(self) -> asyncio.Transport | None:
        """What the connection is written to; None once it is closed."""
        return self.protocol.transport
