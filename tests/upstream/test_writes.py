"""Writes that are put off go out in order and once, and only while their connection is open."""

import asyncio
from typing import cast

import pytest

from combos.upstream.writes import SMALL, Writes


class Transport:
    def __init__(self, name: str, log: list[tuple[str, bytes]]) -> None:
        self.name = name
        self.log = log
        self.closed = False
        self.broken = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        if self.broken:
            raise TypeError(data)
        self.log.append((self.name, data))

    def abort(self) -> None:
        self.closed = True


def pair() -> tuple[list[tuple[str, bytes]], Transport, Transport]:
    log: list[tuple[str, bytes]] = []
    return log, Transport("a", log), Transport("b", log)


def soon(writes: Writes, transport: Transport, data: bytes) -> None:
    writes.soon(cast("asyncio.Transport", transport), data)


async def test_what_waits_goes_out_in_order_with_the_next_pass() -> None:
    log, a, b = pair()
    writes = Writes()
    for transport, data in ((a, b"1"), (b, b"2"), (a, b"3")):
        soon(writes, transport, data)
    assert not log
    await asyncio.sleep(0)
    assert log == [("a", b"1"), ("b", b"2"), ("a", b"3")]
    soon(writes, b, b"4")
    await asyncio.sleep(0)
    assert log[3:] == [("b", b"4")]


async def test_much_goes_out_at_once_after_what_waits() -> None:
    log, a, b = pair()
    writes = Writes()
    soon(writes, a, b"1")
    soon(writes, a, b"x" * (SMALL + 1))
    assert [(name, len(data)) for name, data in log] == [("a", 1), ("a", SMALL + 1)]
    soon(writes, b, b"x" * SMALL)
    assert len(log) == 2
    await asyncio.sleep(0)
    assert len(log) == 3


async def test_nothing_goes_to_a_connection_that_was_closed_meanwhile() -> None:
    log, a, b = pair()
    writes = Writes()
    soon(writes, a, b"1")
    soon(writes, b, b"2")
    a.closed = True
    await asyncio.sleep(0)
    assert log == [("b", b"2")]


async def test_a_write_that_fails_costs_its_own_connection_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    log, a, b = pair()
    writes = Writes()
    a.broken = True
    for transport, data in ((a, b"secret"), (b, b"2"), (a, b"3")):
        soon(writes, transport, data)
    await asyncio.sleep(0)
    assert log == [("b", b"2")]
    assert (a.closed, b.closed) == (True, False)
    assert "TypeError" in caplog.text
    assert "secret" not in caplog.text
