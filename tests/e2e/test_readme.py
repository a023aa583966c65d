"""The README is true: its transcript is replayed, its configuration loads, its commands and files exist."""

import asyncio
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from combos.core.config import parse_config
from e2e.proxyprocess import mitmdump

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
CONSOLE = [line for kind, text in BLOCKS if kind == "console" for line in text.splitlines()]
COMMANDS = [line[2:].partition("  #")[0].rstrip() for line in CONSOLE if line.startswith("$ ")]


def demo() -> tuple[str, list[str]]:
    """The curl command of the demonstration and the lines shown below it."""
    start = next(number for number, line in enumerate(CONSOLE) if line.startswith("$ curl"))
    shown = []
    for line in CONSOLE[start + 1 :]:
        if line.startswith("$ "):
            break
        shown.append(line)
    return CONSOLE[start][2:], shown


def matches(shown: list[str], real: list[str]) -> bool:
    """Whether the real lines read as shown, where `…` stands for anything, a line of its own for any lines."""
    parts = [".*?".join(re.escape(part) for part in line.split("…")) for line in shown]
    pattern = "\n".join(parts).replace("\n.*?\n", "\n(?:.*\n)*?")
    return re.fullmatch(pattern, "\n".join(real)) is not None


async def test_the_transcript_of_the_demonstration(tmp_path: Path, confdir: Path) -> None:
    command, shown = demo()
    async with mitmdump(tmp_path, confdir) as proxy:
        replayed = shlex.split(command.replace(":8080", f":{proxy.port}"))
        process = await asyncio.create_subprocess_exec(*replayed, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        await proxy.line(r"demo: sim-down/chat 503 → sim-up/chat 200 \(1 hop, ")
    real = [line for line in output.decode().splitlines() if line]
    assert matches(shown, real), output.decode()


def test_the_log_line_is_in_the_readme() -> None:
    assert "demo: sim-down/chat 503 → sim-up/chat 200 (1 hop" in README


def test_the_configuration_is_valid() -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "json"]
    config = parse_config(json.loads(text))
    assert list(config.combos) == ["main"]


def test_it_begins_with_what_it_is_and_is_not_and_the_two_commands() -> None:
    before = README[: README.index("```console")]
    assert "is a mitmproxy addon" in before
    assert "is **not**" in before
    assert [command.split()[0] for command in COMMANDS[:2]] == ["./scripts/run", "./scripts/test"]


@pytest.mark.parametrize("command", sorted({command.split()[0] for command in COMMANDS}))
def test_every_command_exists(command: str) -> None:
    here = [ROOT / command, Path(sys.executable).parent / command]
    assert any(path.exists() for path in here) or shutil.which(command)


@pytest.mark.parametrize("name", re.findall(r"`((?:config|docs|scripts|addon)/[\w./-]+)`", README))
def test_every_file_exists(name: str) -> None:
    assert (ROOT / name).exists()
