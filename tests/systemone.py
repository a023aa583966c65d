"""A tiny System One service on a raw socket: chooses an option, or misbehaves as a test wants it to.

async with SystemOne(choosing("beta/m2:none")) as service:
    ...  # service.url, service.documents, service.requests
"""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rawserver import Again, ClientGone, Connection, RawServer, Request, response

PATH = "/v1/systemone"

type Behaviour = Callable[[Connection, Request], Awaitable[object]]


def answer(choice: str, usage: Mapping[str, int] | None = None, **route: Any) -> bytes:
    """A whole reply that names an option."""
    document = {"model": "jev-1.13.0", "answers": {"route": {"type": "choice", "choice": choice, **route}}}
    return json.dumps({**document, **({"usage": usage} if usage else {})}).encode()


def options(document: Mapping[str, Any]) -> list[str]:
    """The keys on offer in a request."""
    return list(document["questions"]["route"]["criteria"])


def choosing(choice: str | None = None, usage: Mapping[str, int] | None = None, **route: Any) -> Behaviour:
    """Name this option; by default the last one on offer."""

    async def behave(connection: Connection, request: Request) -> None:
        key = choice or options(json.loads(request.body))[-1]
        connection.writer.write(response(200, answer(key, usage, **route)))
        await connection.writer.drain()

    return behave


def sending(data: bytes, then: Behaviour | None = None) -> Behaviour:
    """Send exactly these bytes."""

    async def behave(connection: Connection, request: Request) -> None:
        connection.writer.write(data)
        await connection.writer.drain()
        if then is not None:
            await then(connection, request)

    return behave


def hanging(begun: asyncio.Event | None = None, left: asyncio.Event | None = None, first: bytes = b"") -> Behaviour:
    """Send `first` and then nothing until the client leaves; tell when it came and when it left."""

    async def behave(connection: Connection, request: Request) -> None:
        connection.writer.write(first)
        if begun is not None:
            begun.set()
        await ClientGone(left)(connection)
        raise asyncio.IncompleteReadError(b"", None)

    return behave


async def closing(connection: Connection, request: Request) -> None:
    """Close without a word."""
    connection.writer.close()


class SystemOne:
    """The service. The n-th request meets the n-th behaviour, the last one serves all further requests."""

    def __init__(self, *behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self._behaviours = behaviours or (choosing(),)
        self.server = RawServer([Again([self._serve])], tls=tls)

    @property
    def url(self) -> str:
        """The decision endpoint."""
        return self.server.url + PATH

    @property
    def requests(self) -> list[Request]:
        """What was asked."""
        return self.server.requests

    @property
    def documents(self) -> list[Any]:
        """The bodies of what was asked."""
        return [json.loads(request.body) for request in self.requests]

    async def _serve(self, connection: Connection) -> None:
        request = await connection.request()
        assert (request.method, request.target) == ("POST", PATH), request.head
        index = min(len(self.requests), len(self._behaviours)) - 1
        await self._behaviours[index](connection, request)

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.server.__aexit__(kind, exc, trace)
