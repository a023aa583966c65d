"""Starts mitmproxy with the addon. Decides the tool, the script path and the address to listen on, nothing else."""

import os
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

import combos
from combos.cli.grammar import Command

_LISTEN_OPTIONS = ("--listen-host", "listen_host=", "--set=listen_host=")
_MODE_OPTIONS = ("--mode=", "mode=", "--set=mode=", "-m")
_FOR_OTHER_DEVICES = "wireguard"


def entry_file() -> Path:
    """The file for mitmproxy's `-s`: alone in its folder inside a wheel, `addon/main.py` in a checkout."""
    package = Path(combos.__file__).resolve().parent
    packaged = package / "loader" / "main.py"
    return packaged if packaged.exists() else package.parent / "main.py"


def tool_arguments(arguments: Sequence[str]) -> list[str]:
    """mitmproxy's arguments: the addon, and loopback only unless the caller says where to listen.

    mitmproxy itself listens on every interface by default, which would offer the providers' keys to the network. A mode
    does not say where (`regular@8080`), or says it for itself (`regular@0.0.0.0:8080`) and wins. WireGuard by itself is
    for other devices, and every one of them has a key.
    """
    chosen = any(argument.startswith(_LISTEN_OPTIONS) for argument in arguments)
    modes = _modes(arguments)
    is_wireguard = bool(modes) and all(mode.startswith(_FOR_OTHER_DEVICES) for mode in modes)
    listen = [] if chosen or is_wireguard else ["--listen-host", "127.0.0.1"]
    return ["-s", str(entry_file()), *listen, *arguments]


def _modes(arguments: Sequence[str]) -> list[str]:
    """The modes that are named, however they are written."""
    following = [value for option, value in pairwise(arguments) if option in ("--mode", "-m")]
    joined = [
        argument.removeprefix(option)
        for argument in arguments
        for option in _MODE_OPTIONS
        if argument.startswith(option) and argument != option
    ]
    return following + joined


def command_of(name: str) -> list[str]:
    """What starts the tool: that beside this interpreter, else on PATH. Raises `ClickException` when there is none.

    Beside this interpreter it is a script, and is run unbuffered: log lines are seen when they are written, also in a
    file or a journal. The variable for that does nothing in scripts of pipx, which ignore the environment.
    """
    beside = Path(sys.executable).with_name(name)
    if beside.exists():
        return [sys.executable, "-u", str(beside)]
    found = shutil.which(name)
    if found is None:
        raise click.ClickException(f"{name} was not found: install mitmproxy into the environment of ocx")
    return [found]


@click.command(cls=Command, context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.option("--web", "tool", flag_value="mitmweb", help="Start mitmweb, with its page in the browser.")
@click.option("--console", "tool", flag_value="mitmproxy", help="Start the terminal interface.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[MITMPROXY OPTIONS]...")
def run(tool: str | None, arguments: tuple[str, ...]) -> None:
    """Start the proxy on 127.0.0.1:8080; further options go to mitmproxy.

    \b
    ocx run -p 9090
    ocx run --web --set combos_config=~/combos.json
    """
    command = [*command_of(tool or "mitmdump"), *tool_arguments(arguments)]
    os.execv(command[0], command)  # noqa: S606 - replaces this process on purpose


@click.command("addon-path", cls=Command)
def addon_path() -> None:
    """Print the file for mitmproxy's -s option."""
    click.echo(entry_file())
