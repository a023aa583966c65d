"""The units and the container file start what they say, with options that mitmdump takes, and end it cleanly."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from e2e.proxyprocess import ProxyProcess

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
UNITS = sorted((ROOT / "config" / "systemd").glob("*.service"))
SEVERAL = (ROOT / "config" / "scaling" / "combos@.conf").read_text()
CONTAINER = (ROOT / "config" / "container" / "Containerfile").read_text()


def settings(unit: str, name: str) -> list[str]:
    """The values of a setting of a unit."""
    return re.findall(rf"^{name}=(.*)$", unit, re.MULTILINE)


def instructions(name: str) -> list[str]:
    """What stands behind an instruction of the container file."""
    return re.findall(rf"^{name} (.*)$", CONTAINER, re.MULTILINE)


def filled(text: str, home: Path) -> str:
    """A line of a unit or the container file, with folders of this test."""
    for written, real in (
        ("%S/combos", f"{home}"),
        ("%h/.local/bin", f"{BIN}"),
        ("%h", f"{home}"),
        ("/usr/local/lib/combos/bin", f"{BIN}"),
        ("/data", f"{home}"),
        ("0.0.0.0", "127.0.0.1"),
    ):
        text = text.replace(written, real)
    return text


@pytest.fixture
def home(tmp_path: Path, confdir: Path) -> Path:
    """The folder of the service, with the authority of all tests where any of them looks for it."""
    for name in ("mitmproxy", ".mitmproxy"):
        (_made(tmp_path / "home") / name).symlink_to(confdir)
    return tmp_path / "home"


async def starts(line: Sequence[str], environ: Mapping[str, str], home: Path, confdir: Path) -> None:
    """Start it on free ports as the service does, wait until it serves, end it as the service does."""
    process = await asyncio.create_subprocess_exec(
        *(*line, "-p", "0", "--set", "combos_admin_listen="),
        env={"HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    running = ProxyProcess(process, home, confdir)
    try:
        await running.line("combos: serving combo/demo")
    finally:
        await running.stop()


def test_there_are_units() -> None:
    assert [unit.name for unit in UNITS] == ["combos-user.service", "combos.service"]


@pytest.mark.parametrize("text", [unit.read_text() for unit in UNITS], ids=[unit.name for unit in UNITS])
async def test_what_a_unit_starts_serves(text: str, home: Path, confdir: Path) -> None:
    (command,) = settings(text, "ExecStart")
    pairs = [pair.split("=", 1) for line in settings(text, "Environment") for pair in shlex.split(line)]
    environ = {name: filled(value, home) for name, value in pairs}
    await starts(shlex.split(filled(command, home)), environ, home, confdir)


async def test_what_one_of_several_units_starts_serves(home: Path, confdir: Path) -> None:
    """The name of an instance is its port; a server of the shared state that is not there keeps nobody from serving."""
    empty, command = settings(SEVERAL, "ExecStart")
    assert (empty, "-p %i " in command) == ("", True)
    line = filled(command, home).replace("%i", "0").replace("$$", "$").replace(":6379/", ":1/")
    await starts(shlex.split(line), {"COMBOS_HOME": str(home), "COMBOS_STATE_PASSWORD": "p"}, home, confdir)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "ocx").symlink_to(BIN / "ocx")
    copied = _installed(unit, tmp_path / unit.name)
    assert verified(copied, unit.name, tmp_path) == (0, [])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units_of_several(tmp_path: Path) -> None:
    """As documented: the unit of a machine as a template, with the drop-in beside it."""
    drop_ins = tmp_path / "combos@.service.d"
    drop_ins.mkdir()
    _installed(ROOT / "config" / "scaling" / "combos@.conf", drop_ins / "scaling.conf")
    template = _installed(ROOT / "config" / "systemd" / "combos.service", tmp_path / "combos@.service")
    assert verified(template, "combos@", tmp_path) == (0, [])


def test_several_units_start_after_the_server_of_the_shared_state() -> None:
    """Debian has both, each under a name of its own, and starts the one that is installed."""
    assert settings(SEVERAL, "After") == ["redis-server.service valkey-server.service"]


def verified(unit: Path, name: str, home: Path) -> tuple[int, list[str]]:
    """How systemd ends its look at a unit, and what it says of files of this name."""
    kind = ["--user"] if "user" in unit.name else []
    environ = {**os.environ, "HOME": str(home / "home"), "XDG_RUNTIME_DIR": str(home)}
    done = subprocess.run(
        ["systemd-analyze", *kind, "verify", unit], env=environ, capture_output=True, text=True, check=False
    )
    return done.returncode, [line for line in done.stderr.splitlines() if name in line]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_of_a_machine_is_hardened() -> None:
    unit = next(unit for unit in UNITS if unit.name == "combos.service")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"}


def test_the_container_file_holds_known_instructions() -> None:
    lines = [line for line in CONTAINER.splitlines() if line and not line.startswith("#")]
    assert {line.split()[0] for line in lines} == KNOWN


async def test_what_the_image_starts_serves(home: Path, confdir: Path) -> None:
    (entry,) = instructions("ENTRYPOINT")
    line = [filled(word, home) for word in json.loads(entry)]
    (environ,) = instructions("ENV")
    made = dict(pair.split("=", 1) for pair in shlex.split(filled(environ, home)) if not pair.startswith("PATH="))
    await starts([str(BIN / line[0]), *line[1:]], made, home, confdir)


def test_the_image_looks_after_itself_with_a_command_that_exists() -> None:
    (check,) = instructions("HEALTHCHECK")
    assert json.loads(check.partition("CMD ")[2]) == ["ocx", "ready"]


def test_the_image_is_built_from_what_the_wheel_needs(tmp_path: Path) -> None:
    """Only what the container file copies is there when it installs."""
    for line in instructions("COPY"):
        *sources, place = line.split()
        for source in sources if not line.startswith("--from") else ():
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, tmp_path / "src" / source if place != "./" else _made(tmp_path / "src") / source)
    project = tomllib.loads((tmp_path / "src" / "pyproject.toml").read_text())["project"]
    assert project["name"] == "mitmproxy-combos"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        "out",
        ".",
    ]
    subprocess.run(pip, cwd=tmp_path / "src", check=True)
    assert len(list((tmp_path / "src" / "out").glob("*.whl"))) == 1


def _installed(source: Path, place: Path) -> Path:
    """A file of the units in its place, with the programs of this test."""
    place.write_text(source.read_text().replace("/usr/local/lib/combos/bin", str(BIN)))
    return place


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
