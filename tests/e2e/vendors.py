"""Hosts of vendors that a forward proxy's client addresses, served by a scripted server on this machine."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from rawclient import Answer, ask
from rawserver import Again, Expect, Pairs, RawServer, Send, Step, response


class Redirect:
    """A mitmproxy addon: every connection to a host that is not this machine goes to the server on `port`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.hosts: list[str] = []

    def server_connect(self, data: ServerConnectionHookData) -> None:
        assert data.server.address is not None
        host = data.server.address[0]
        if host != "127.0.0.1":
            self.hosts.append(host)
            data.server.address = ("127.0.0.1", self.port)


@asynccontextmanager
async def vendor(*steps: bytes) -> AsyncIterator[tuple[RawServer, Redirect]]:
    """A vendor that gives these answers, one after another, the last one again and again."""
    scripts: list[Sequence[Step]] = [[Expect(), Send(step)] for step in steps]
    first = [step for script in scripts[:-1] for step in script]
    async with RawServer([*first, Again(scripts[-1])]) as server:
        yield server, Redirect(server.port)


async def ask_vendor(
    port: int, method: str, host: str, path: str, *, headers: Pairs = (), body: object = None
) -> Answer:
    """A forward proxy's client asks `host`."""
    raw = b"" if body is None else json.dumps(body).encode()
    return await ask(port, method, f"http://{host}{path}", headers=headers, body=raw, host=host.encode())


def listing(document: Any, headers: Pairs = (), *, raw: bytes | None = None) -> bytes:
    """A vendor's answer with a model list; `raw` is the body as it is sent, for content codings."""
    body = raw if raw is not None else document if isinstance(document, bytes) else json.dumps(document).encode()
    return response(200, body, [(b"Content-Type", b"application/json"), *headers])
