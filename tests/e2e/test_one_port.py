"""Several real proxies behind one port: a balancer before the proxy ports, and a listener whose port they share."""

import asyncio
import contextlib
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from e2e.proxyprocess import ProxyProcess, mitmdump
from ports import free_port
from rawclient import Answer, answer_of, ask, request_bytes, talk
from rawserver import Pairs
from redisserver import redis_server
from stage import Case, document_of, stubs, until
from wires import R

SCALING = Path(__file__).parents[2] / "config" / "scaling"
LIMIT_S = 30


def haproxy() -> str:
    found = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if found is None:
        pytest.skip("haproxy is not on PATH: ./scripts/servers installs it")
    return found


@contextmanager
def balancer(folder: Path, front: int, *behind: int, changes: Mapping[str, str] | None = None) -> Iterator[None]:
    """HAProxy with the configuration that is offered, on other ports."""
    text = (SCALING / "haproxy.cfg").read_text()
    for written, wanted in (changes or {}).items():
        assert written in text
        text = text.replace(written, wanted)
    for written, port in (("8080", front), ("8081", behind[0]), ("8082", behind[1])):
        text = text.replace(f"127.0.0.1:{written}\n", f"127.0.0.1:{port}\n")
    config = folder / "haproxy.cfg"
    config.write_text(text)
    program = haproxy()
    assert subprocess.run([program, "-c", "-f", config], capture_output=True, check=False).returncode == 0
    process = subprocess.Popen([program, "-db", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def proxies(
    home: Path, confdir: Path, case: Case, *options: str, admin: str = "", size: int = 2
) -> AsyncIterator[list[ProxyProcess]]:
    """Proxies with one home: one configuration, one ledger, one admin token."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(stubs(case))
        document = document_of([case], server.url, {})
        yield [
            await stack.enter_async_context(mitmdump(home, confdir, *options, document=document, admin=admin))
            for _ in range(size)
        ]


async def until_open(port: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                writer = (await asyncio.open_connection("127.0.0.1", port))[1]
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                return


async def through(port: int, case: Case, headers: Pairs = ()) -> Answer:
    """One request on a connection of its own, to the port that clients know."""
    return await ask(port, "POST", R.path, headers=headers, body=json.dumps(R.request(case.model)).encode())


def served(proxy: ProxyProcess, case: Case) -> int:
    """How many requests of the case this process has served."""
    return len(re.findall(f"combos: {case.id}: ", proxy.log))


async def test_a_balancer_in_front_of_two_proxies(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, combo={"strategy": "round-robin"}, alpha=R.answers("a"), beta=R.answers("b"))
    front = free_port()
    with redis_server() as redis:
        await redis.start()
        options = (f"combos_served_at=127.0.0.1:{front}", f"combos_state={redis.url}")
        settings = [part for option in options for part in ("--set", option)]
        async with proxies(tmp_path / "home", confdir, case, *settings) as (a, b):
            with balancer(tmp_path, front, a.port, b.port):
                await until_open(front)
                answers = await asyncio.gather(*(through(front, case) for _ in range(40)))
                assert {answer.status for answer in answers} == {200}
                await until(lambda: served(a, case) + served(b, case) == 40, LIMIT_S)
                assert served(a, case) > 0 < served(b, case)
                # What is not for a model is answered too: the balancer's address is the proxies' own.
                listed = await ask(front, "GET", "/v1/models")
                assert (listed.status, case.model in listed.body.decode()) == (200, True)
                assert (await ask(front, "GET", "/")).status == 200
                # As a forward proxy.
                sent = json.dumps(R.request(case.model)).encode()
                head = request_bytes("POST", f"http://api.example.com{R.path}", [(b"Host", b"api.example.com")], sent)
                async with talk(front, head) as started:
                    assert (await answer_of(started)).status == 200
                # One of them ends: what comes next goes to the other.
                await a.stop()
                for _ in range(5):
                    assert (await through(front, case)).status == 200


async def test_a_conversation_stays_on_one_process(tmp_path: Path, confdir: Path) -> None:
    documented = (SCALING.parents[1] / "docs" / "scaling.md").read_text()
    changes = {"mode tcp": "mode http", "balance leastconn": "balance hdr(thread-id)"}
    assert all(
        f"`{wanted}` in place of `{written}`" in " ".join(documented.split()) for written, wanted in changes.items()
    )
    case = Case(R, alpha=R.answers("alpha-ok"))
    front = free_port()
    async with proxies(tmp_path / "home", confdir, case, "--set", f"combos_served_at=127.0.0.1:{front}") as (a, b):
        with balancer(tmp_path, front, a.port, b.port, changes=changes):
            await until_open(front)
            seen = []
            for number in range(8):
                before = served(a, case)
                for _ in range(3):
                    headers = ((b"thread-id", b"thread-%d" % number),)
                    assert (await through(front, case, headers)).status == 200
                await until(lambda number=number: served(a, case) + served(b, case) == 3 * number + 3, LIMIT_S)
                seen.append(served(a, case) - before)
            assert set(seen) == {0, 3}


async def test_a_listener_whose_port_is_shared(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    port = free_port()
    home = tmp_path / "home"
    async with proxies(home, confdir, case, "--set", "combos_reuse_port=true", admin=f"127.0.0.1:{port}") as (a, b):
        for proxy in (a, b):
            await proxy.line(r"combos: dashboard on")
        answers = await asyncio.gather(*(through(port, case) for _ in range(60)))
        assert {answer.status for answer in answers} == {200}
        await until(lambda: served(a, case) + served(b, case) == 60, LIMIT_S)
        assert served(a, case) > 0 < served(b, case)
        token = (home / "admin-api-token").read_text().strip().encode()
        for _ in range(8):
            answer = await ask(port, "GET", "/api/combos/state", headers=((b"Authorization", b"Bearer " + token),))
            assert answer.status == 200
        # Both write one ledger.
        await until(lambda: recorded(home) == 60, LIMIT_S)


def recorded(home: Path) -> int:
    """How many requests are in the ledger; none before its tables are made."""
    with contextlib.closing(sqlite3.connect(home / "usage.sqlite")) as connection:
        try:
            found: int = connection.execute("SELECT count(*) FROM requests").fetchone()[0]
        except sqlite3.OperationalError:
            return 0
    return found


async def test_a_port_is_not_shared_with_those_that_do_not_say_so(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with proxies(tmp_path, confdir, case, admin=f"127.0.0.1:{free_port()}") as (_, b):
        await b.line("no management and no faster base URL: .* is in use by another process")


def test_the_drop_in_starts_what_it_says() -> None:
    text = (SCALING / "combos@.conf").read_text()
    _, command = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    words = shlex.split(command)
    assert "combos_served_at=127.0.0.1:8080" in words
    assert "combos_state=redis://combos:$${COMBOS_STATE_PASSWORD}@127.0.0.1:6379/0" in words
    assert "127.0.0.1:8080" in (SCALING / "haproxy.cfg").read_text()
