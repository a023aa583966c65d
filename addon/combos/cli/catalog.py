"""`ocx catalog`: the model list in the form of a client, from the configuration file alone."""

import json
from typing import BinaryIO

import click

from combos.admin.catalog_view import SHAPES, catalog_of_file
from combos.cli.files import located
from combos.cli.grammar import Command
from combos.core.errors import ConfigError


@click.command("catalog", cls=Command)
@click.option("--openai", "shape", flag_value=SHAPES[0], default=True, help="The OpenAI list (default).")
@click.option("--codex", "shape", flag_value=SHAPES[1], help="The Codex catalog, for model_catalog_json.")
@click.option("--anthropic", "shape", flag_value=SHAPES[2], help="The Anthropic list, with names for Claude Code.")
@click.option("--into", "base", type=click.File("rb"), help="Add the combos to this list of the vendor instead.")
@click.option("--config", "option", metavar="PATH", help="Configuration file. Default: as for the proxy.")
@click.option("--json", "as_json", is_flag=True, help="One line, for programs.")
def catalog(shape: str, base: BinaryIO | None, option: str | None, as_json: bool) -> None:
    """Print the models that clients are shown.

    \b
    ocx catalog --codex > ~/.codex/combos-catalog.json
    codex debug models | ocx catalog --codex --into - > ~/.codex/combos-catalog.json
    ocx catalog --json
    """
    path = located(option).path
    try:
        body, omitted = catalog_of_file(path, shape, base.read() if base else None)
    except FileNotFoundError:
        raise click.ClickException(f"{path} does not exist") from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from error
    except ConfigError as error:
        lines = "".join(f"\n  {problem}" for problem in error.problems)
        raise click.ClickException(f"{path} is not valid:{lines}") from error
    for row in omitted:
        click.echo(f"{row.id} is not listed: {row.reason}", err=True)
    click.echo(_printed(body, as_json=as_json))


def _printed(body: bytes, *, as_json: bool) -> str:
    """The list for a reader or in one line. What was given with `--into` may be no JSON at all."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise click.ClickException("the list given with --into is not JSON") from None
    return json.dumps(document, indent=None if as_json else 2, ensure_ascii=False)
