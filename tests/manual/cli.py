"""The manual page of `ocx`, made from its own help."""

from collections.abc import Iterator

import click
from click.testing import CliRunner

from combos.cli.main import main

HEAD = """# ocx

Works on the configuration file directly (lock, whole validation, atomic write); a running proxy picks the change up
within a second. `state`, `cooldowns`, `health` and `ready` ask the running proxy; `explain`, `combo test` and
`provider test` ask it if there is one.

Data goes to standard output, messages to standard error. Exit codes: 0 done, 1 refused or not found, 2 usage. Colour is
used on terminals only and never with `NO_COLOR`. Shell completion: `eval "$(_OCX_COMPLETE=bash_source ocx)"`
(`zsh_source`, `fish_source`).

| Variable | Meaning |
|---|---|
| `COMBOS_CONFIG` | the configuration file |
| `COMBOS_HOME` | its folder; default `~/.combos` |
| `COMBOS_ADMIN_TOKEN` | admin token; default: the file `admin-api-token` beside the configuration |
| `COMBOS_ADMIN_URL` | management API; default: as in `runtime-port.json` beside the configuration |

Made by `./scripts/docs` from the program's own help. `ocx route combo …` is the same as `ocx combo …`; `create` and
`update` are `set`, `delete` is `remove`.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(path) for path in _paths(main, ()))


def _paths(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if path:
        yield path
    if isinstance(command, click.Group):
        for name, member in sorted(command.commands.items()):
            if (*path, name) != ("route",) and name not in ("create", "update", "delete"):
                yield from _paths(member, (*path, name))


def _section(path: tuple[str, ...]) -> str:
    done = CliRunner().invoke(main, [*path, "--help"], prog_name="ocx", terminal_width=100)
    return f"\n## ocx {' '.join(path)}\n\n```\n{done.output.rstrip()}\n```\n"
