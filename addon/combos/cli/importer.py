"""`ocx import`: take over an existing opencodex configuration, and say what became of every part of it."""

import os
from pathlib import Path

import click

from combos.admin.import_opencodex import Report, import_document
from combos.cli.files import config_option, dry_run_option, json_option, store_of
from combos.cli.grammar import Command
from combos.cli.output import Failed, emit_json, refusals, say
from combos.core.config_text import parse_document
from combos.core.errors import ConfigError


@click.command("import", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Where both have an object of one name, take the imported one.")
@dry_run_option
@json_option
@config_option
def import_config(file: Path, config: str | None, replace: bool, dry_run: bool, as_json: bool) -> None:
    """Add the providers and combos of an opencodex configuration to this one.

    \b
    ocx import ~/.opencodex/config.json --dry-run
    ocx import ~/.opencodex/config.json
    """
    found = _read(file)
    store = store_of(config)
    with refusals("Try: ocx config validate"):
        if file.exists() and store.path.exists() and os.path.samefile(file, store.path):
            raise Failed(f"{file} is the configuration itself")
        run = store.preview if dry_run else store.edit
        report = run(lambda document: import_document(document, found, replace=replace)).result
    _print(report, as_json=as_json, dry_run=dry_run)
    say(f"Nothing was written to {store.path}." if dry_run else f"Imported into {store.path}.")


def _read(file: Path) -> dict[str, object]:
    try:
        return dict(parse_document(file.read_bytes()))
    except FileNotFoundError:
        raise Failed(f"{file} does not exist") from None
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror}") from None
    except ConfigError as error:
        raise Failed(f"{file} is not JSON that could be imported: {error.problems[0]}") from None


def _print(report: Report, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        rows = {"kept": report.kept, "changed": report.changed, "dropped": report.dropped}
        emit_json(rows | ({"dryRun": True} if dry_run else {}))
        return
    for heading, lines in (("kept", report.kept), ("changed", report.changed), ("dropped", report.dropped)):
        for line in lines:
            click.echo(f"{heading}  {line}")
