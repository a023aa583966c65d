"""What people see on a terminal, and what programs read."""

import io
import json
import re
import sys

import click
import pytest

from combos.admin.refusal import Kind, RefusalError
from combos.cli.output import Failed, confirm, emit_json, refusals, table
from combos.core.errors import ConfigProblem


class Terminal(io.StringIO):
    """A standard output that somebody looks at."""

    def isatty(self) -> bool:
        return True


ROWS = [("main", "alpha/m1", "ready"), ("a-long-name", "[bold]beta[/bold]/m2", "cooling")]


def test_a_table_on_a_terminal_has_headings_and_shows_text_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    table(("Combo", "Target", "State"), ROWS)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert lines[0].split() == ["Combo", "Target", "State"]
    assert "[bold]beta[/bold]/m2" in lines[2]
    assert not re.search(r"\x1b\[[349]", screen.getvalue()), "no colour"


def test_a_table_for_programs_is_aligned_and_bare(capsys: pytest.CaptureFixture[str]) -> None:
    table(("Combo", "Target", "State"), ROWS)
    assert capsys.readouterr().out == (
        "main         alpha/m1              ready\na-long-name  [bold]beta[/bold]/m2  cooling\n"
    )
    table(("Combo",), [])
    assert capsys.readouterr().out == ""


def test_json_in_two_widths(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"ä": [1]})
    assert capsys.readouterr().out == '{"ä": [1]}\n'
    emit_json({"ä": [1]}, pretty=True)
    assert json.loads(capsys.readouterr().out) == {"ä": [1]}


def test_a_refusal_shows_every_problem_once_and_the_next_step() -> None:
    problems = (ConfigProblem("a", "is wrong"), ConfigProblem("b", "is worse"))
    with pytest.raises(Failed) as caught, refusals("Try: ocx"):
        raise RefusalError(Kind.INVALID, "invalid_config", "a: is wrong", problems)
    assert caught.value.message == "a: is wrong\n  b: is worse\nTry: ocx"
    assert caught.value.exit_code == 1


def test_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm("Sure?", yes=True)
    with pytest.raises(click.UsageError, match="--yes"):
        confirm("Sure?", yes=False)
