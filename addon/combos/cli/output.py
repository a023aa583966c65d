"""What the commands print: data on stdout, everything else on stderr; tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from combos.admin.refusal import Kind, RefusalError
from combos.core.config import Config, config_warnings
from combos.core.config_problems import path_of


def emit_json(data: object, *, pretty: bool = False) -> None:
    """One JSON document: on one line for programs, with two blanks of indentation for people."""
    click.echo(json.dumps(data, indent=2 if pretty else None, ensure_ascii=False))


def say(message: str) -> None:
    """A message: what was done, a warning, a hint."""
    click.echo(message, err=True)


def say_warnings(config: Config, group: str, name: str) -> None:
    """What is odd about one combo or provider."""
    place = f"{path_of((group, name))}."
    for warning in dict.fromkeys(config_warnings(config)):
        if warning.path.startswith(place):
            say(f"Warning: {warning}")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns: drawn on a terminal, else aligned with two blanks between them and no heading to strip."""
    if sys.stdout.isatty():
        drawn = Table(*headers, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            drawn.add_row(*(Text(cell, overflow="fold") for cell in row))
        Console().print(drawn)
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(headers))] if rows else []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def is_interactive() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is destroyed. Without a terminal only `--yes` will do."""
    if yes:
        return
    if not is_interactive():
        raise click.UsageError("this needs --yes when there is no terminal to ask on")
    if not click.confirm(question, err=True):
        raise Failed("nothing was changed")


class Failed(click.ClickException):
    """The request was understood and refused, or what it names was not found: exit code 1."""

    exit_code = 1


# What helps when the file itself is at fault, whatever the command was.
_FILE_HINTS = {"config_invalid": "Try: ocx config validate", "config_unavailable": ""}


@contextmanager
def refusals(hint: str = "", missing: str = "") -> Iterator[None]:
    """Turn a refusal into a message with every problem, and the next command to try; `missing`: for an unknown name."""
    try:
        yield
    except RefusalError as refusal:
        said = refusal.problems[:1] if refusal.problems and refusal.problems[0].message in refusal.message else ()
        more = (problem for problem in refusal.problems if problem not in said)
        shown = [f"  {problem}" for problem in more if str(problem) not in refusal.message]
        chosen = (missing or hint) if refusal.kind is Kind.NOT_FOUND else hint
        chosen = _FILE_HINTS.get(refusal.code, chosen)
        tail = [chosen] if chosen else []
        raise Failed("\n".join([refusal.message, *shown, *tail])) from None
