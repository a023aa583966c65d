"""Small writes of one pass of the event loop, made together at the beginning of the next.

A write wakes the process at the other end, and that costs more than the write: those that follow at once find it awake.
Ten per cent of a request's processor time at 32 connections. Before anything else is read or written in the next pass,
all of it is out, in order; whoever closes a connection, or writes to it directly, calls `now` first.
"""

import asyncio
import logging

logger = logging.getLogger(__name__)

SMALL = 16 * 1024
"""Bytes up to which waiting is worth it: more would pile up where nobody sees it."""


class Writes:
    """What waits to be written, on all connections of one side."""

    def __init__(self) -> None:
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []

    def soon(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write with the others. More than `SMALL` goes out at once, after what waits."""
        if len(data) > SMALL:
            self.now()
            transport.write(data)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self.now)
        self._waiting.append((transport, data))

    def now(self) -> None:
        """Write everything that waits. What belongs to a closed connection is dropped, and a connection that cannot be
        written to is closed: the others are none of its concern."""
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            if transport.is_closing():
                continue
            try:
                transport.write(data)
            except Exception as exc:
                logger.warning(f"combos: a write failed and its connection is closed: {type(exc).__name__}")
                transport.abort()
