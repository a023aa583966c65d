"""Which arguments `ocx run` hands to mitmproxy."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from mitmproxy.proxy.mode_specs import ProxyMode

from combos.cli import run as module
from combos.cli.main import main


def test_it_listens_on_loopback_by_default() -> None:
    arguments = module.tool_arguments(["-p", "9090"])
    assert arguments == ["-s", str(module.entry_file()), "--listen-host", "127.0.0.1", "-p", "9090"]


@pytest.mark.parametrize(
    "chosen",
    [
        ["--listen-host", "0.0.0.0"],
        ["--listen-host=0.0.0.0"],
        ["--set", "listen_host=0.0.0.0"],
        ["--set=listen_host=0.0.0.0"],
        ["--mode", "wireguard"],
        ["--mode=wireguard@51820"],
        ["-m", "wireguard:keys.conf"],
        ["-mwireguard"],
        ["--set", "mode=wireguard"],
    ],
)
def test_a_chosen_address_is_left_alone(chosen: list[str]) -> None:
    assert module.tool_arguments(chosen) == ["-s", str(module.entry_file()), *chosen]


MODES = [
    ["--mode", "regular@18082"],
    ["--mode=socks5"],
    ["-m", "reverse:http://127.0.0.1:1"],
    ["-mtransparent"],
    ["--set", "mode=regular@0"],
    ["--set=mode=upstream:http://127.0.0.1:1"],
    ["--mode", "wireguard", "--mode", "regular"],
]


@pytest.mark.parametrize("chosen", MODES)
def test_a_mode_is_no_address(chosen: list[str]) -> None:
    assert module.tool_arguments(chosen) == ["-s", str(module.entry_file()), "--listen-host", "127.0.0.1", *chosen]


def test_an_address_in_a_mode_wins() -> None:
    """Over the one that is added, as mitmproxy reads the two."""
    for mode, host in (("regular@0.0.0.0:8080", "0.0.0.0"), ("regular@8080", "127.0.0.1"), ("socks5", "127.0.0.1")):
        arguments = module.tool_arguments(["--mode", mode])
        assert ProxyMode.parse(mode).listen_host(arguments[arguments.index("--listen-host") + 1]) == host


def test_the_entry_file_is_the_checkouts() -> None:
    assert module.entry_file() == Path(__file__).parents[2] / "addon" / "main.py"


@pytest.mark.parametrize(("flags", "tool"), [([], "mitmdump"), (["--web"], "mitmweb"), (["--console"], "mitmproxy")])
def test_run_becomes_the_tool(flags: list[str], tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(module.os, "execv", lambda path, arguments: called.append((path, arguments)))
    result = CliRunner().invoke(main, ["run", *flags, "-p", "9090", "--set", "flow_detail=2"])
    assert result.exit_code == 0
    ((path, arguments),) = called
    assert path == arguments[0] == sys.executable
    assert arguments[1:3] == ["-u", str(Path(sys.executable).with_name(tool))]
    assert arguments[-4:] == ["-p", "9090", "--set", "flow_detail=2"]


def test_a_missing_tool_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    with pytest.raises(click.ClickException, match="mitmfoo was not found"):
        module.command_of("mitmfoo")


def test_a_tool_that_is_on_the_path_only_is_started_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be of another environment, or no script at all."""
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/elsewhere/{name}")
    assert module.command_of("mitmfoo") == ["/elsewhere/mitmfoo"]


def test_log_lines_are_seen_when_they_are_written(tmp_path: Path, confdir: Path) -> None:
    """Although they go into a pipe, and nobody has set a variable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COMBOS_", "PYTHON"))}
    options = ["-p", "0", "--set", f"confdir={confdir}", "--set", "combos_admin_listen="]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("ocx"), "run", *options],
        env={**kept, "COMBOS_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    lost = threading.Timer(60, process.kill)
    lost.start()
    seen = next((line for line in process.stdout if "combos: serving" in line), "")
    lost.cancel()
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert "built-in demonstration" in seen
    assert process.returncode == 0


def test_help_and_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.startswith("ocx, version ")
    assert "addon-path" in CliRunner().invoke(main, ["--help"]).output
