"""`ocx explain-flow` reads in a process of its own; `ocx dashboard` finds the running proxy and shows its token."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from adminstage import TOKEN, stage
from combos.cli.main import main

ADDON = Path(__file__).parents[2] / "addon"


def ocx(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from combos.cli.main import main; main(prog_name='ocx')"
    environ = {**os.environ, "PYTHONPATH": str(ADDON)}
    return subprocess.run([sys.executable, "-c", program, *arguments], env=environ, capture_output=True, text=True)


def test_flows_are_judged(tmp_path: Path) -> None:
    flow = tflow.tflow(resp=True)
    flow.request.method, flow.request.path = "POST", "/v1/messages"
    assert flow.response is not None
    flow.response.status_code = 529
    file, config = tmp_path / "f.mitm", tmp_path / "none.json"
    with file.open("wb") as out:
        FlowWriter(out).add(flow)
    done = ocx("explain-flow", str(file), "--config", str(config), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = json.loads(done.stdout)["attempts"]
    assert (row["seen"], row["action"]) == ("status 529", "hop")
    config.write_text("{")
    refused = ocx("explain-flow", str(file), "--config", str(config))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: ")


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["explain-flow", str(tmp_path / "none")]).exit_code == 2


def test_the_command_line_itself_imports_no_mitmproxy() -> None:
    program = "import sys, combos.cli.main; sys.exit('mitmproxy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ADDON)}, check=True)


async def test_the_dashboard_is_opened_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or len(opened) == 1)
    monkeypatch.setenv("COMBOS_ADMIN_TOKEN", TOKEN)
    config = tmp_path / "config.json"
    document = {"providers": {"a": {"adapter": "openai-chat", "baseUrl": "https://api.example.com/v1"}}}
    async with stage(config, document) as on:
        url = str(on.client.make_url("")).rstrip("/")
        monkeypatch.setenv("COMBOS_ADMIN_URL", url)

        async def run(*more: str) -> tuple[int, str, str]:
            arguments = ["dashboard", "--config", str(config), *more]
            done = await asyncio.to_thread(CliRunner().invoke, main, arguments)
            return done.exit_code, done.stdout, done.stderr

        assert await run("--print") == (0, f"{url}/#token={TOKEN}\n", "")
        assert opened == []
        assert await run() == (0, "", f"The dashboard is open: {url}/\n")
        assert opened == [f"{url}/#token={TOKEN}"]
        code, out, complaint = await run()
        assert (code, out) == (1, "")
        assert "no browser could be started" in complaint
        assert TOKEN not in complaint


def test_no_dashboard_without_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMBOS_ADMIN_URL", raising=False)
    done = CliRunner().invoke(main, ["dashboard", "--config", str(tmp_path / "config.json")])
    assert done.exit_code == 1
    assert "ocx run" in done.stderr
