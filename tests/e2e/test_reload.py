"""Edits of the configuration file while the proxy runs."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.proxyprocess import ADDON, MITMDUMP, ProxyProcess, mitmdump, process_with
from rawserver import LAST_CHUNK, Send, Signal, Stall, chunk, event_head
from stage import Case, document_of, stage, stubs, until
from wires import R, error

DOWN = error(503, {"error": {"message": "down"}})


def replace_file(path: Path, text: str) -> None:
    """Write as editors do: a new file under the old name."""
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


def changed(path: Path, change: Mapping[str, Any]) -> str:
    document = json.loads(path.read_text())
    for key, value in change.items():
        document[key] = {**document.get(key, {}), **value}
    return json.dumps(document)


async def within(proxy: ProxyProcess, pattern: str, since: int) -> None:
    """The line comes within a second; the other second is for a machine that is busy with other tests."""
    await asyncio.wait_for(proxy.line(pattern, since), 2)


async def test_edits_of_the_file_of_a_running_process(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"), beta=R.answers("beta-ok"))
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        assert b"alpha-ok" in (await proxy.ask(case)).body
        good = proxy.config.read_text()

        # In force within a second: the targets change places.
        since = len(proxy.lines)
        rows = case.combo()["targets"][::-1]
        replace_file(proxy.config, changed(proxy.config, {"combos": {case.id: {"targets": rows}}}))
        await within(proxy, r"config.json loaded, 1 combo in force", since)
        assert b"beta-ok" in (await proxy.ask(case)).body

        # Not valid as a whole: nothing of it is taken, and the log names file, path and rule.
        since = len(proxy.lines)
        twice = {"targets": [rows[0], rows[0]]}
        edited = {"combos": {case.id: twice, "another": {"targets": rows}}}
        replace_file(proxy.config, changed(proxy.config, edited))
        await within(proxy, r"config.json cannot be used; the last good configuration stays in force", since)
        await within(proxy, rf"combos\.{case.id}\.targets\S*.*(duplicate|twice|repeat|once|already)", since)
        assert b"beta-ok" in (await proxy.ask(case)).body
        assert (await proxy.ask(case, model="combo/another")).status == 404

        # No JSON at all.
        since = len(proxy.lines)
        replace_file(proxy.config, '{"combos": ')
        await within(proxy, r"config.json cannot be used", since)
        assert b"beta-ok" in (await proxy.ask(case)).body

        # Mended.
        since = len(proxy.lines)
        replace_file(proxy.config, good)
        await within(proxy, r"config.json loaded", since)
        assert b"alpha-ok" in (await proxy.ask(case)).body

        # Gone: what was in force stays; back again: taken again.
        since = len(proxy.lines)
        proxy.config.unlink()
        await within(proxy, r"config.json is gone; the last good configuration stays in force", since)
        assert b"alpha-ok" in (await proxy.ask(case)).body
        since = len(proxy.lines)
        replace_file(proxy.config, changed_text(good, {"combos": {"again": {"targets": rows}}}))
        await within(proxy, r"config.json loaded, 2 combos in force", since)
        assert b"beta-ok" in (await proxy.ask(case, model="combo/again")).body


def changed_text(text: str, change: Mapping[str, Any]) -> str:
    document = json.loads(text)
    return json.dumps({**document, **{key: {**document[key], **value} for key, value in change.items()}})


async def test_a_running_request_keeps_the_configuration_it_began_with(confdir: Path) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()
    first = [*R.start(), *R.begin_text(), R.delta("alpha-ok")]
    rest = R.finish("alpha-ok")
    case = Case(
        R,
        alpha=[
            Send(event_head() + b"".join(map(chunk, first))),
            Signal(begun),
            Stall(gate),
            Send(b"".join(map(chunk, rest)) + LAST_CHUNK),
        ],
    )
    waiting = Case(R, alpha=[Signal(begun), Stall(gate), Send(DOWN)], beta=R.answers("beta-ok"))
    async with stage(confdir, case, waiting) as on:
        async with on.talk(case) as client:
            _, fields = await client.head()
            got = await client.until(b"alpha-ok")
            asked = asyncio.create_task(on.ask(waiting))
            await until(lambda: bool(waiting.calls))
            # Both combos are deleted while their requests run.
            document = json.loads(on.service.config.path.read_text())
            document["combos"] = {"renamed": case.combo()}
            on.service.config.adopt(document)
            gate.set()
            body, clean = await client.rest(fields)
        assert got + body == b"".join([*first, *rest])
        assert clean
        assert b"beta-ok" in (await asked).body
        # Nothing is remembered of what has been deleted, and the name is unknown now.
        assert on.cooling(waiting) == {}
        gone = await on.ask(case)
        assert (gone.status, gone.json()["error"]["type"]) == (404, "invalid_request_error")


async def test_a_reload_keeps_the_cooldowns_of_what_stays(confdir: Path) -> None:
    kept = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    gone = Case(R, alpha=DOWN, beta=R.answers("beta-ok"))
    async with stage(confdir, kept, gone) as on:
        await on.ask_all([kept, gone])
        document = json.loads(on.service.config.path.read_text())
        whole = json.dumps(document)
        del document["combos"][gone.id]
        on.service.config.adopt(document)
        assert on.cooling(kept) == {"alpha/m1": 60_000}
        on.service.config.adopt(json.loads(whole))
        assert on.cooling(gone) == {}
        assert on.cooling(kept) == {"alpha/m1": 60_000}


async def test_a_touched_script_is_loaded_again(tmp_path: Path, confdir: Path) -> None:
    """mitmproxy reloads a script whose file changes: the old addon ends with its tasks, the new one serves."""
    begun, gate = asyncio.Event(), asyncio.Event()
    case = Case(R, alpha=R.answers("alpha-ok"))
    slow = Case(R, alpha=[Signal(begun), Stall(gate), Send(R.answers("slow-ok"))])
    script = tmp_path / "main.py"
    source = f"import sys\nsys.path.insert(0, {str(ADDON.parent)!r})\n{ADDON.read_text()}"
    script.write_text(source)
    async with stubs(case, slow) as server:
        document = document_of([case, slow], server.url, {})
        async with mitmdump(tmp_path / "home", confdir, document=document, script=script) as proxy:
            assert b"alpha-ok" in (await proxy.ask(case)).body
            running = asyncio.create_task(proxy.ask(slow))
            await asyncio.wait_for(begun.wait(), 10)
            for count in range(2):
                since = len(proxy.lines)
                replace_file(script, f"{source}\n# {count}\n")
                await proxy.line("Loading script", since)
                await proxy.line("combos: serving", since)
                assert b"alpha-ok" in (await proxy.ask(case)).body
            gate.set()
            await running  # ended one way or the other: it does not hang
            since = len(proxy.lines)
            rows = {"combos": {"another": case.combo()}}
            replace_file(proxy.config, changed(proxy.config, rows))
            await proxy.line("3 combos in force", since)
            # One watcher is left, that of the addon in use.
            assert len([line for line in proxy.lines[since:] if "3 combos in force" in line]) == 1
            assert b"alpha-ok" in (await proxy.ask(case, model="combo/another")).body


async def test_a_bad_file_at_the_start_is_an_error_that_names_it(tmp_path: Path, confdir: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"combos": {"main": {"targets": []}}}')
    process = await asyncio.create_subprocess_exec(
        *start_arguments(confdir, bad),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    text = output.decode()
    assert process.returncode == 1
    assert "bad.json" in text
    assert "combos.main.targets" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["combos_admin_listen=", "combos_admin_listen="], "multiple values for combos_admin_listen"),
        (["combos_body_limit=abc"], "combos_body_limit: not an integer: abc"),
        (["combos_otel=perhaps"], "combos_otel: boolean must be"),
    ],
)
async def test_an_option_that_cannot_be_read_is_an_error_at_the_start(
    given: list[str], said: str, tmp_path: Path, confdir: Path
) -> None:
    good = tmp_path / "good.json"
    good.write_text("{}")
    process = await asyncio.create_subprocess_exec(
        *start_arguments(confdir, good),
        *(word for value in given for word in ("--set", value)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    text = output.decode()
    assert process.returncode == 1, text
    assert said in text
    assert "Traceback" not in text


def start_arguments(confdir: Path, config: Path) -> list[str]:
    options = ["-p", "0", "--listen-host", "127.0.0.1", "--set", f"confdir={confdir}"]
    return [str(MITMDUMP), "-s", str(ADDON), *options, "--set", f"combos_config={config}"]
