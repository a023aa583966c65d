"""What a proxy may find at its start and later: broken, full, foreign or missing. It says so and serves if it can."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from combos.admin.ledger_file import open_for_writing
from combos.admin.runtime_file import running_at
from combos.admin.usage_query import reading, records
from e2e.proxyprocess import ADDON, MITMDUMP, ProxyProcess, environment, mitmdump, process_with
from ports import free_port
from rawclient import ask
from stage import Case, document_of, stubs, until
from wires import R

OCX = MITMDUMP.with_name("ocx")
LIMIT_S = 60
"""For a command that takes a second on an idle machine."""
DOCUMENT = {
    "providers": {"alpha": {"adapter": "openai-responses", "baseUrl": "https://models.test/v1", "apiKey": "${KEY}"}},
    "combos": {"main": {"targets": [{"provider": "alpha", "model": "m"}]}},
}


async def output(
    *command: str | Path, under: Sequence[str] = (), environ: Mapping[str, str | None] | None = None
) -> tuple[int | None, str]:
    """Exit code and whole output of a command that is to end by itself."""
    given = {**environment(), **(environ or {})}
    process = await asyncio.create_subprocess_exec(
        *under,
        *command,
        env={name: value for name, value in given.items() if value is not None},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    except TimeoutError:
        process.kill()
        raise
    return process.returncode, said.decode()


async def start(confdir: Path, *arguments: str, **more: Any) -> tuple[int | None, str]:
    """A start that is to fail."""
    options = ["-p", "0", "--listen-host", "127.0.0.1", "--set", f"confdir={confdir}"]
    return await output(MITMDUMP, "-s", ADDON, *options, "--set", "combos_admin_listen=", *arguments, **more)


async def ocx(home: Path, *arguments: str, **more: Any) -> tuple[int | None, str]:
    return await output(OCX, *arguments, environ={"COMBOS_HOME": str(home)}, **more)


def content(folder: Path) -> dict[str, int]:
    """The names in a folder and their sizes."""
    return {path.name: path.lstat().st_size for path in folder.iterdir()}


def kept(ledger: Path) -> list[str]:
    """The outcomes in a ledger."""
    with reading(ledger) as connection:
        return [row["outcome"] for _, row in records(connection, 1_000)]


# -- the configuration file


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


def written(data: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(data) and None


def looping(path: Path) -> None:
    path.symlink_to(path)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("unmounted"))


FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "it is not a regular file"),
    "looping": (looping, "symbolic link"),
    "dangling": (dangling, "is a symbolic link that leads nowhere"),
    "endless": (endless, "the file is larger than 16777216 bytes"),
    "binary": (written(bytes(range(256))), "the file is not UTF-8 text"),
    "nested": (written(b"[" * 100_000), "the file is nested too deeply"),
}


@pytest.mark.parametrize("kind", FILES)
async def test_what_is_no_configuration_is_an_error_that_names_the_file(
    kind: str, tmp_path: Path, confdir: Path
) -> None:
    """Commands that read the file: tests/cli/test_files.py."""
    make, reason = FILES[kind]
    make(tmp_path / "config.json")
    code, said = await start(confdir, environ={"COMBOS_HOME": str(tmp_path)})
    assert (code, "Traceback" in said) == (1, False)
    assert f"{tmp_path}/config.json (from COMBOS_HOME) cannot be used:" in said
    assert reason in said


async def test_a_byte_order_mark_is_no_fault(tmp_path: Path, confdir: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(DOCUMENT).encode())
    async with mitmdump(tmp_path, confdir) as proxy:
        assert "serving combo/main" in proxy.log


async def test_a_file_in_place_of_the_folder(tmp_path: Path, confdir: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    code, said = await start(confdir, environ={"COMBOS_HOME": str(home)})
    assert (code, "Traceback" in said) == (1, False)
    assert f"{home}/config.json (from COMBOS_HOME) cannot be used" in said
    assert "Not a directory" in said
    code, said = await ocx(home, "provider", "add", "openai")
    assert (code, "Traceback" in said) == (1, False)
    assert "Not a directory" in said
    assert home.read_bytes() == b""


# -- a disk that is full, a folder that cannot be written

NO_LARGER = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
"""No file may grow: what a full disk does to a process, without a disk."""


def in_a_namespace(*steps: str, flags: str = "-m") -> tuple[str, ...]:
    return ("unshare", *flags.split(), "sh", "-ec", "; ".join((*steps, 'exec "$@"')), "sh")


def needs_namespaces(flags: str) -> None:
    if subprocess.run(["unshare", *flags.split(), "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"unshare {flags} is not allowed here")


async def served(proxy: ProxyProcess, case: Case) -> None:
    answer = await proxy.ask(case)
    assert (answer.status, answer.body) == (200, b"".join(case.wire.ok("alpha-ok")))


async def test_no_file_can_grow(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stubs(case) as server:
        made = document_of([case], server.url, {})
        admin = f"127.0.0.1:{free_port()}"
        async with mitmdump(tmp_path, confdir, document=made, under=NO_LARGER, admin=admin) as proxy:
            await served(proxy, case)
            await proxy.line(r"usage\.sqlite cannot be written, records of usage wait in memory: ")
            await proxy.line("management answers nobody: .*File too large; set COMBOS_ADMIN_TOKEN")
            await proxy.line(r"runtime-port\.json cannot be written: File too large")
            before = proxy.config.read_bytes()
            code, said = await ocx(tmp_path, "combo", "remove", case.id, "--yes", under=NO_LARGER)
            assert (code, "Traceback" in said) == (1, False)
            assert f"{proxy.config} cannot be changed: File too large" in said
            assert proxy.config.read_bytes() == before
            await served(proxy, case)
        assert re_lines(proxy, "2 records of usage could not be written")
    assert {name for name, size in content(tmp_path).items() if size} == {"config.json"}
    assert not [name for name in content(tmp_path) if name.startswith(".")]


def re_lines(proxy: ProxyProcess, text: str) -> list[str]:
    return [line for line in proxy.lines if text in line]


async def test_a_disk_that_is_full_and_has_room_again(tmp_path: Path, confdir: Path) -> None:
    """Nothing that was served meanwhile is missing in the end."""
    needs_namespaces("-m")
    case = Case(R, alpha=R.answers("alpha-ok"))
    home, given, port = tmp_path / "home", tmp_path / "given.json", free_port()
    home.mkdir()
    quoted = shlex.quote(str(home))
    under = in_a_namespace(
        f"mount -t tmpfs -o size=512k,mode=700 tmpfs {quoted}",
        f"cp {shlex.quote(str(given))} {quoted}/config.json",
        f"dd if=/dev/zero of={quoted}/filler bs=1k 2>/dev/null || true",
    )
    async with stubs(case) as server:
        given.write_text(json.dumps(document_of([case], server.url, {})))
        environ = {"COMBOS_ADMIN_TOKEN": "ocx_admin_x"}
        async with mitmdump(home, confdir, under=under, environ=environ, admin=f"127.0.0.1:{port}") as proxy:
            seen = Path(f"/proc/{proxy.process.pid}/root{home}")
            before = (seen / "config.json").read_bytes()
            await served(proxy, case)
            await proxy.line(r"usage\.sqlite cannot be written, records of usage wait in memory: ")
            code, said = await ocx(seen, "combo", "remove", case.id, "--yes")
            assert (code, "Traceback" in said) == (1, False)
            assert "cannot be changed: No space left on device" in said
            assert (seen / "config.json").read_bytes() == before
            (seen / "filler").unlink()
            await proxy.line(r"usage\.sqlite is written again; 0 records of usage were lost")
            await served(proxy, case)
            code, said = await ocx(seen, "combo", "set", case.id, "--strategy", "random")
            assert code == 0, said
            await proxy.line("loaded, 1 combo in force")
            usage = await ask(port, "GET", "/api/usage", headers=[(b"X-Combos-API-Key", b"ocx_admin_x")])
            assert usage.json()["summary"]["requests"] == 2


READ_ONLY = {
    "mounted": ("-m", ['mount --bind "$COMBOS_HOME" "$COMBOS_HOME"', 'mount -o remount,ro,bind "$COMBOS_HOME"']),
    "not ours": ("-U --map-user=54321 --map-group=54321", ['chmod 500 "$COMBOS_HOME"']),
}


@pytest.mark.parametrize("kind", READ_ONLY)
@pytest.mark.parametrize("has_file", [True, False])
async def test_a_folder_that_is_read_only(kind: str, has_file: bool, tmp_path: Path, confdir: Path) -> None:
    flags, steps = READ_ONLY[kind]
    needs_namespaces(flags)
    case = Case(R, alpha=R.answers("alpha-ok"))
    under, port = in_a_namespace(*steps, flags=flags), free_port()
    home = tmp_path / "home"
    async with stubs(case) as server:
        made = document_of([case], server.url, {}) if has_file else None
        async with mitmdump(home, confdir, document=made, under=under, admin=f"127.0.0.1:{port}") as proxy:
            if has_file:
                await served(proxy, case)
            else:
                case.id = "demo"
                assert (await proxy.ask(case)).status == 200
            await proxy.line(r"usage\.sqlite cannot be written, records of usage wait in memory: ")
            await proxy.line("management answers nobody: .*admin-api-token cannot be made: .*; set COMBOS_ADMIN_TOKEN")
            assert (await ask(port, "GET", "/healthz")).json()["status"] == "ok"
            assert (await ask(port, "GET", "/api/combos")).status == 503
            code, said = await ocx(home, "combo", "remove", case.id, "--yes", under=under)
            assert (code, "Traceback" in said) == (1, False), said
    home.chmod(0o700)
    assert list(content(home)) == (["config.json"] if has_file else [])


async def test_a_ledger_in_a_folder_that_is_read_only_is_read(tmp_path: Path, confdir: Path) -> None:
    needs_namespaces("-m")
    home = tmp_path / "home"
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with process_with(home, confdir, [case]) as (proxy, _):
        await served(proxy, case)
    code, said = await ocx(home, "usage", under=in_a_namespace(*READ_ONLY["mounted"][1]))
    assert code == 0, said
    assert case.id in said


# -- the ledger


def garbage(path: Path) -> None:
    path.write_bytes(b"no database, but somebody's file " * 500)


def cut(path: Path) -> None:
    connection = open_for_writing(path)
    connection.execute("CREATE TABLE more AS SELECT randomblob(100000)")
    connection.close()
    os.truncate(path, path.stat().st_size // 2)


def newer(path: Path) -> None:
    connection = open_for_writing(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


LEDGERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "garbage": (garbage, "was not readable"),
    "cut": (cut, "was not readable"),
    "zero length": (Path.touch, ""),
    "newer": (newer, "it was written by a newer version"),
    "pipe": (os.mkfifo, "it is not a regular file"),
    "folder": (Path.mkdir, "Is a directory"),
    "dangling": (dangling, ""),
}


@pytest.mark.parametrize("kind", LEDGERS)
async def test_a_ledger_that_cannot_be_used_keeps_nobody_from_being_served(
    kind: str, tmp_path: Path, confdir: Path
) -> None:
    make, said = LEDGERS[kind]
    ledger = tmp_path / "usage.sqlite"
    make(ledger)
    before = ledger.read_bytes() if ledger.is_file() else b""
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        await served(proxy, case)
        if said:
            await proxy.line(said)
    code, printed = await ocx(tmp_path, "usage")
    assert "Traceback" not in printed
    if kind in ("newer", "pipe", "folder"):
        assert re_lines(proxy, "1 records of usage could not be written")
        assert (code, "the usage ledger cannot be read: it " in printed) == (1, True)
        assert not [name for name in content(tmp_path) if ".broken-" in name]
    else:
        assert kept(ledger) == ["success"]
        assert (code, case.id in printed) == (0, True)
        aside = [(tmp_path / name).read_bytes() for name in content(tmp_path) if re.search(r"\.broken-\w+$", name)]
        assert aside == ([before] if kind in ("garbage", "cut") else [])


async def test_a_ledger_that_another_process_has_locked(tmp_path: Path, confdir: Path) -> None:
    ledger = tmp_path / "usage.sqlite"
    other = open_for_writing(ledger)
    other.execute("BEGIN IMMEDIATE")
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        await served(proxy, case)
        await served(proxy, case)
        other.execute("ROLLBACK")
        other.close()
    assert kept(ledger) == ["success", "success"]


# -- ports


async def test_the_proxys_port_is_in_use(tmp_path: Path, confdir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = await start(confdir, "-p", str(port), environ={"COMBOS_HOME": str(tmp_path)})
    assert code == 1
    assert "address already in use" in said
    assert str(port) in said
    assert "Traceback" not in said


async def test_the_port_of_the_management_is_in_use(tmp_path: Path, confdir: Path) -> None:
    """By another proxy of the same folder: that one goes on to be found."""
    case = Case(R, alpha=R.answers("alpha-ok"))
    admin = f"127.0.0.1:{free_port()}"
    async with stubs(case) as server:
        made = document_of([case], server.url, {})
        async with mitmdump(tmp_path, confdir, document=made, admin=admin) as first:
            async with mitmdump(tmp_path, confdir, admin=admin) as second:
                await second.line(f"no management and no faster base URL: {admin} is in use by another process")
                await served(second, case)
            await served(first, case)
            assert (await ocx(tmp_path, "state"))[0] == 0


# -- the user's surroundings

NOBODY = in_a_namespace(flags="-U --map-user=54321 --map-group=54321")
"""A number as user, as containers are given: without an entry, hence without a home directory but for HOME."""


async def test_without_a_home_directory(tmp_path: Path, confdir: Path) -> None:
    needs_namespaces("-U --map-user=54321 --map-group=54321")
    nowhere: dict[str, str | None] = {"HOME": None}
    runs = [
        start(confdir, under=NOBODY, environ=nowhere),
        output(OCX, "combo", "list", under=NOBODY, environ=nowhere),
        output(OCX, "state", under=NOBODY, environ=nowhere),
        output(OCX, "catalog", under=NOBODY, environ=nowhere),
    ]
    for code, said in await asyncio.gather(*runs):
        assert code == 1, said
        assert "there is no home directory to look for .combos/config.json in: set HOME or COMBOS_HOME" in said
        assert "Traceback" not in said
    code, said = await output(OCX, "combo", "list", under=NOBODY, environ={"HOME": None, "COMBOS_HOME": str(tmp_path)})
    assert code == 0, said


async def test_a_folder_for_certificates_that_cannot_be_made(tmp_path: Path, confdir: Path) -> None:
    """mitmproxy's own affair: it ends and names the folder."""
    (tmp_path / "taken").touch()
    code, said = await start(tmp_path / "taken", environ={"COMBOS_HOME": str(tmp_path)})
    assert code == 1
    assert f"File exists: '{tmp_path}/taken'" in said
    assert not [name for name in content(tmp_path) if name != "taken"]


# -- what earlier processes and other programs left


async def test_after_a_crash_the_next_start_finds_everything(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stubs(case) as server:
        made = document_of([case], server.url, {})
        port = free_port()
        with contextlib.suppress(AssertionError):  # its end is no orderly one
            async with mitmdump(tmp_path, confdir, document=made, admin=f"127.0.0.1:{port}") as proxy:
                await served(proxy, case)
                await proxy.line("dashboard on")
                token = (tmp_path / "admin-api-token").read_text()
                proxy.process.send_signal(signal.SIGKILL)
                await proxy.process.wait()
        (tmp_path / "config.lock").touch()
        (tmp_path / ".config.json.0123456789ab.tmp").write_text("{")
        assert "runtime-port.json" in content(tmp_path)
        code, said = await ocx(tmp_path, "state")
        assert (code, "no proxy is running" in said) == (1, True)
        async with mitmdump(tmp_path, confdir, admin=f"127.0.0.1:{port}") as proxy:
            await served(proxy, case)
            await proxy.line("dashboard on")
            assert (tmp_path / "admin-api-token").read_text() == token
            assert (await ocx(tmp_path, "state"))[0] == 0
            code, said = await ocx(tmp_path, "combo", "set", case.id, "--strategy", "random")
            assert code == 0, said
            await proxy.line("loaded, 1 combo in force")
    assert not [name for name in content(tmp_path) if name.startswith(".")]


async def test_of_two_processes_the_one_that_is_left_is_found(tmp_path: Path, confdir: Path) -> None:
    ports = [free_port(), free_port()]
    async with mitmdump(tmp_path, confdir, document=DOCUMENT, admin=f"127.0.0.1:{ports[0]}") as first:
        await first.line("dashboard on")
        async with mitmdump(tmp_path, confdir, admin=f"127.0.0.1:{ports[1]}") as second:
            await second.line("dashboard on")
            assert running_at(tmp_path) == ("127.0.0.1", ports[1])
        await until(lambda: running_at(tmp_path) == ("127.0.0.1", ports[0]))
        for command in ("health", "ready", "state"):
            code, said = await ocx(tmp_path, command)
            assert code == 0, said
    for command in ("health", "ready", "state"):
        code, said = await ocx(tmp_path, command)
        assert (code, "no proxy is running for" in said) == (1, True)


@pytest.mark.parametrize("make", [os.mkfifo, written(b"{"), written(b"[" * 5_000), looping, dangling])
async def test_a_broken_runtime_file_is_replaced(make: Callable[[Path], None], tmp_path: Path, confdir: Path) -> None:
    make(tmp_path / "runtime-port.json")
    code, said = await ocx(tmp_path, "state")
    assert (code, "no proxy is running" in said) == (1, True)
    async with mitmdump(tmp_path, confdir, document=DOCUMENT, admin=f"127.0.0.1:{free_port()}") as proxy:
        await proxy.line("dashboard on")
        code, said = await ocx(tmp_path, "state")
        assert (code, "main" in said) == (0, True)
    assert "runtime-port.json" not in content(tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, written(b""), written(b"\xff" * 100), endless, looping])
async def test_a_broken_token_file_closes_the_management_and_nothing_else(
    make: Callable[[Path], None], tmp_path: Path, confdir: Path
) -> None:
    token, port = tmp_path / "admin-api-token", free_port()
    make(token)
    if not token.is_symlink():
        token.chmod(0o600)
    case = Case(R, alpha=R.answers("alpha-ok"))
    async with stubs(case) as server:
        made = document_of([case], server.url, {})
        async with mitmdump(tmp_path, confdir, document=made, admin=f"127.0.0.1:{port}") as proxy:
            await proxy.line(f"management answers nobody: {token} ")
            await served(proxy, case)
            assert (await ask(port, "GET", "/api/combos")).status == 503
            code, said = await ocx(tmp_path, "state")
            assert (code, "there is no admin token" in said, "Traceback" in said) == (1, True, False)


async def test_a_misspelt_option_is_said_and_its_value_is_not(tmp_path: Path, confdir: Path) -> None:
    given = ("--set", "combos_stat=redis://canary", "--set", "combos_nope=1", "--set", "foreign_option=1")
    async with mitmdump(tmp_path, confdir, *given, document=DOCUMENT) as proxy:
        await proxy.line('there is no option combos_stat; did you mean "combos_state"')
        await proxy.line("there is no option combos_nope")
        assert "canary" not in proxy.log
        assert "foreign_option" not in proxy.log
