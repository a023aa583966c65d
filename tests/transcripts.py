"""Transcripts of the command line: what was typed, what came on each stream, with which exit code.

A line `$ ocx …` is a command (`$ text | ocx …` gives it standard input), `! …` a line of the error stream, `[exit n]`
an exit code other than 0, `# …` a comment; everything else is standard output. Paths of the test are written `~`.
Set COMBOS_WRITE_TRANSCRIPTS=1 to write what is printed now into the file, and read the difference.
"""

import os
import shlex
from pathlib import Path

from click.testing import CliRunner

from combos.cli.main import main

FOLDER = Path(__file__).parent / "data" / "cli"


def replay(name: str, home: Path) -> tuple[str, str]:
    """The recorded transcript, and the same commands run again in an empty home."""
    path = FOLDER / f"{name}.transcript"
    recorded = path.read_text(encoding="utf-8")
    lines = [line for line in recorded.splitlines() if line.startswith(("$ ", "#"))]
    replayed = "".join(f"{line}\n" if line.startswith("#") else run(line, home) for line in lines)
    if os.environ.get("COMBOS_WRITE_TRANSCRIPTS"):
        path.write_text(replayed, encoding="utf-8")
    return recorded, replayed


def run(line: str, home: Path) -> str:
    """One command with its output."""
    words = shlex.split(line.removeprefix("$ "))
    given = f"{words[0]}\n" if "|" in words else None
    arguments = [word.replace("~", str(home)) for word in words[words.index("ocx") + 1 :]]
    environ = {"COMBOS_HOME": str(home), "COMBOS_CONFIG": None, "NO_COLOR": "1", "OPENAI_API_KEY": None}
    done = CliRunner().invoke(main, arguments, input=given, env=environ, prog_name="ocx")
    errors = "".join(f"! {text}".rstrip() + "\n" for text in done.stderr.splitlines())
    code = f"[exit {done.exit_code}]\n" if done.exit_code else ""
    return f"{line}\n{done.stdout}{errors}{code}".replace(str(home), "~")
