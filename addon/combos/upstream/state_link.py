"""The connection of one proxy to the server that keeps shared state: joins, pushes, listens, and comes back.

Nothing that serves a request waits for it. It knows neither what is shared nor how it is merged. What is said of the
server, and how long the pauses between attempts are, is decided elsewhere.
"""

import asyncio
import logging
import os
import random
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from combos.core.sharing import Joined, Push
from combos.engine.sharing import Sharing
from combos.upstream.state_scripts import JOIN, MARK_MS, PUSH, REGISTERS_MS, SUMS_MS
from combos.upstream.state_standing import Standing
from combos.upstream.state_url import StateAddress
from combos.wire.sharing import cell_texts, push_texts, registers_of, told_of, totals_of

logger = logging.getLogger(__name__)

FORMAT = "1"
"""Part of every key: proxies of another format keep to themselves."""
GATHER_S = (0.005, 0.05)
"""After a push, what happens meanwhile goes together: what is urgent waits for the first time, all else for the second.
A push costs every process of the group some of its core."""
HEARTBEAT_S = 5.0
ANSWER_S = 5.0
"""How long the server may take for one answer."""
SILENCE_S = 12.0
"""Every heartbeat comes back on the channel: a channel that is silent for two of them is dead."""

_LIVES = (str(SUMS_MS), str(REGISTERS_MS), str(MARK_MS))
_NO_CONNECTION = "no connection"


class _RejoinError(Exception):
    """Something was missed: the connection is sound, and everything has to be asked for anew."""


# What is said of a failure. Never its own text, which may repeat what was sent, and that may be a password.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (_RejoinError, "it does not keep what it is told"),
    (AuthenticationError, "it refuses the password"),
    (NoPermissionError, "it does not permit what is needed"),
    (ReadOnlyError, "it is a read-only copy"),
    (OutOfMemoryError, "its memory is full"),
    (ResponseError, "it refuses"),
    (TimeoutError, "it does not answer"),
    (InvalidResponse, "it does not speak the protocol of Redis"),
    (RedisError, _NO_CONNECTION),
    (OSError, _NO_CONNECTION),
    (ValueError, "its answer cannot be read"),
)


class StateLink:
    """Keeps `sharing` in touch with its group. `wake` is to be called when there is something to push."""

    def __init__(
        self, address: StateAddress, group: str, sharing: Sharing, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        base = f"combos:{FORMAT}:{{{address.prefix or group}}}"
        self._address = address
        self._keys = (f"{base}:sums", f"{base}:registers", f"{base}:mark:{sharing.replica}")
        self._channel = f"{base}:told"
        self._sharing = sharing
        self._woken = asyncio.Event()
        self._urgent = asyncio.Event()
        self._epoch = ""
        self._session = ""
        self._standing = Standing(address.label, now_s)
        self._complained = False

    @property
    def is_connected(self) -> bool:
        """Whether what is pushed arrives."""
        return self._standing.is_connected

    def wake(self, is_urgent: bool) -> None:
        """There is something to push."""
        self._woken.set()
        if is_urgent:
            self._urgent.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                await self._connected()
            except Exception as error:  # whatever it is, requests are served and the next attempt is due
                pause_s = self._standing.failed(_reason(error), is_rejoin=isinstance(error, _RejoinError))
            finally:
                self._standing.is_connected = False  # also when it is left
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - spreads the load, hides nothing

    # -- one connection

    async def _connected(self) -> None:
        async with AsyncExitStack() as stack:
            client = _client(self._address)
            stack.push_async_callback(client.aclose)
            listening = client.pubsub()
            stack.push_async_callback(listening.aclose)
            async with asyncio.timeout(ANSWER_S):
                await listening.subscribe(self._channel)
                await _subscribed(listening)
                await self._join(client)
            self._standing.joined()
            await _first(self._listen(listening), self._push(client))

    async def _join(self, client: Redis) -> None:
        self._session = secrets.token_hex(8)
        seeds = cell_texts(self._sharing.seeds())
        answer = await _evaluate(client, JOIN, self._keys, (*_LIVES, secrets.token_hex(8), self._session, *seeds))
        joined = _joined_of(answer)
        self._epoch = joined.epoch
        self._sharing.joined(joined)
        self._woken.set()

    async def _push(self, client: Redis) -> None:
        is_due = True  # the first shows whether pushes arrive
        while True:
            self._woken.clear()
            self._urgent.clear()
            push = self._sharing.outgoing(even_nothing=is_due)
            if push is not None:
                await self._send(client, push)
                soon, late = GATHER_S
                await asyncio.sleep(soon)
                await _is_set(self._urgent, late - soon)
            is_due = not await _is_set(self._woken, HEARTBEAT_S)

    async def _send(self, client: Redis, push: Push) -> None:
        head = (self._channel, self._epoch, self._session, self._sharing.replica, str(push.number))
        async with asyncio.timeout(ANSWER_S):
            answer = await _evaluate(client, PUSH, self._keys, (*_LIVES, *head, *push_texts(push)))
        if answer != b"ok":
            raise _RejoinError

    async def _listen(self, listening: PubSub) -> None:
        while True:
            message = await listening.get_message(timeout=SILENCE_S)
            if message is None:
                raise TimeoutError
            if message["type"] != "message":
                continue
            try:
                told = told_of(message["data"])
            except ValueError:
                self._complain()
                continue
            if not self._sharing.received(told):
                raise _RejoinError
            if told.replica == self._sharing.replica:
                self._standing.proved()

    def _complain(self) -> None:
        if not self._complained:
            self._complained = True
            logger.warning(f"combos: somebody sends what is no message to {self._channel} at {self._address.label}")


def _reason(error: BaseException) -> str:
    """The first row that fits the error, or one that it wraps."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    fitting = (text for kind, text in _REASONS if any(isinstance(one, kind) for one in chain))
    said = next(fitting, type(error).__name__)
    return said + _system_reason(error) if said == _NO_CONNECTION else said


def _system_reason(error: BaseException | None) -> str:
    """What the system says of its own error that is wrapped here: its text for the number, nothing that was sent."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            return ", the name is not known"
        if isinstance(error, ssl.SSLError):  # its numbers are not the system's
            return ", TLS fails"
        if isinstance(error, OSError) and error.errno:
            return f", {os.strerror(error.errno).lower()}"
        error = error.__cause__ or error.__context__
    return ""


def _client(address: StateAddress) -> Redis:
    place: dict[str, Any] = (
        {"unix_socket_path": address.path} if address.path else {"host": address.host, "port": address.port}
    )
    if address.tls:
        place |= {"ssl": True, "ssl_ca_certs": address.ca}
    return Redis(
        **place,
        db=address.db,
        username=address.username,
        password=address.password,
        protocol=2,
        socket_timeout=ANSWER_S,
        socket_connect_timeout=ANSWER_S,
        retry=Retry(NoBackoff(), 0),
        client_name="combos",
    )


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    """Wait for the event; False when it does not come in time."""
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _evaluate(client: Redis, script: str, keys: tuple[str, ...], arguments: tuple[str, ...]) -> Any:
    return await client.eval(script, len(keys), *keys, *arguments)


async def _subscribed(listening: PubSub) -> None:
    """Until the server has confirmed it: from now on nothing is missed."""
    while True:
        message = await listening.get_message(timeout=ANSWER_S)
        if message is not None and message["type"] == "subscribe":
            return


async def _first(*works: Any) -> None:
    """Run side by side until one fails; the others end with it."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    raise next(result for result in results if isinstance(result, Exception))


def _joined_of(answer: Any) -> Joined:
    """The answer of the joining script. Raises `ValueError`."""
    match answer:
        case [bytes() as seconds, bytes() as micros, bytes() as epoch, version, bytes() as applied, sums, registers]:
            return Joined(
                int(seconds) * 1000 + int(micros) // 1000,
                epoch.decode(),
                int(version),
                int(applied),
                totals_of(_texts(sums)),
                registers_of(_texts(registers)),
            )
    raise ValueError("not an answer")


def _texts(pairs: list[bytes]) -> Mapping[str, str]:
    texts = [part.decode(errors="replace") for part in pairs]
    return dict(zip(texts[::2], texts[1::2], strict=True))
