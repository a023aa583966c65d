"""How commands are written: flags of which one is chosen exclude each other, in every command that has such flags."""

from collections import defaultdict
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from combos.cli.grammar import Command
from combos.cli.main import main


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name, inner in command.commands.items():
        yield from commands(inner, (*words, name))


@pytest.mark.parametrize(("words", "command"), list(commands(main)))
def test_every_command_is_read_by_this_grammar(words: tuple[str, ...], command: click.Command) -> None:
    assert isinstance(command, Command), words


def choices() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The flags that set one value, for each command that has any."""
    for words, command in commands(main):
        flags = defaultdict(list)
        for option in command.params:
            if isinstance(option, click.Option) and option.is_flag:
                flags[option.name].append(option.opts[0])
        yield from ((words, names) for names in flags.values() if len(names) > 1)


FOUND = sorted(choices())


def test_there_are_such_flags() -> None:
    assert {words for words, _ in FOUND} >= {("catalog",), ("run",)}


@pytest.mark.parametrize(("words", "flags"), FOUND, ids=lambda found: " ".join(found))
def test_they_exclude_each_other(words: tuple[str, ...], flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("it was started"))
    for one in flags:
        for other in flags:
            done = CliRunner().invoke(main, [*words, one, other])
            said = f"{one} is given more than once" if one == other else f"{one} and {other} exclude each other"
            assert (done.exit_code, said in done.stderr) == (2, True)
